"""Run all benchmarks one after the other: every performance claim, as a ratio to a named baseline in the same run.

python benchmarks/run.py [--small] [NAME ...]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    *("start_up", "read_text", "norms", "asnorm_embeddings", "score_model", "metrics", "calibration", "online"),
    *("scale_zarr", "scaling", "compare", "folds", "evidence"),
)


def main() -> int:
    small = [word for word in sys.argv[1:] if word == "--small"]
    failed = []
    for name in [word for word in sys.argv[1:] if word != "--small"] or NAMES:
        print(f"== {name}", flush=True)
        takes_small = "--small" in (HERE / f"{name}.py").read_text()
        command = [sys.executable, str(HERE / f"{name}.py"), *(small if takes_small else [])]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "all ran")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
