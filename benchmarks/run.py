"""Run every benchmark of this folder, one after the other, each in a process of its own.

    python benchmarks/run.py [--quick] [NAME ...]

--quick takes small sizes where a script knows them, to see that all of them run. NAME picks scripts: ``score_model``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scripts to run; all if none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes where a script knows them")
    arguments = parser.parse_args()
    scripts = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path.name != Path(__file__).name}
    unknown = [name for name in arguments.names if name not in scripts]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(scripts)}")
    failed = []
    for name in arguments.names or scripts:
        options = ["--quick"] if arguments.quick and '"--quick"' in scripts[name].read_text(encoding="utf-8") else []
        print(f"== {' '.join([name, *options])}", flush=True)
        start = time.perf_counter()
        code = subprocess.run([sys.executable, str(scripts[name]), *options], check=False).returncode
        if code:
            failed.append(name)
        print(f"== {name}: {'failed' if code else 'done'} in {time.perf_counter() - start:.0f} s\n", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
