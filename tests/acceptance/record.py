"""Record what the imported evenscore makes of all acceptance cases: ``python tests/acceptance/record.py [GROUP ...]``.

Run it against a program whose numbers are trusted. Each group of cases (the name before the slash) has a file in
``expected/``; all groups are recorded unless some are named. ``--models`` writes the model files in ``models/`` first,
which stay those of the first edition.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from case_data import make_data  # noqa: E402
from case_models import MODEL_FILES  # noqa: E402
from case_run import folder_with, run_case, run_command  # noqa: E402
from cases import CASES  # noqa: E402


def record_models(data):
    """Let the program write a model file of each kind."""
    (HERE / "models").mkdir(exist_ok=True)
    with folder_with(data) as folder:
        for name, command in MODEL_FILES.items():
            code, out, err = run_command(command)
            if code:
                raise SystemExit(f"evenscore {command}\n{out}{err}")
            shutil.copy(folder / name, HERE / "models" / name)


def main():
    chosen = [name for name in sys.argv[1:] if name != "--models"] or sorted({name.split("/")[0] for name in CASES})
    with tempfile.TemporaryDirectory(prefix="acceptance-data-") as data:
        make_data(data)
        if "--models" in sys.argv:
            record_models(data)
        for group in chosen:
            found = {}
            for case in (case for name, case in CASES.items() if name.startswith(f"{group}/")):
                try:
                    found[case.name] = run_case(case, data)
                except Exception as error:  # noqa: PERF203
                    sys.stderr.write(f"{case.name}: {type(error).__name__}: {error}\n")
            lines = (f"{json.dumps(name)}: {json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found))
            (HERE / "expected").mkdir(exist_ok=True)
            (HERE / "expected" / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
            sys.stderr.write(f"{group}: {len(found)} cases\n")


if __name__ == "__main__":
    main()
