"""Write conventions.json from the naive twins in tests/reference/tool_norms.py (no evenscore norm runs here).

PYTHONPATH=src:tests python tests/norms/golden/make_conventions.py
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def main() -> None:
    sys.path.insert(0, str(HERE.parents[1]))
    target = HERE / "conventions.json"
    if not target.exists():
        target.write_text('{"values": {}}')
    from norms.test_conventions import cases

    facts = {
        "made by": "tests/norms/golden/make_conventions.py, formulas read from the tools' public sources",
        "numpy": np.__version__,
        "values": {name: np.round(expected, 12).tolist() for name, _, expected in cases()},
    }
    target.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
