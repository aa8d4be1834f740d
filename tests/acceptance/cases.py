"""The table of acceptance cases. Each knows the command line or the public API only, and asserts no wording."""

import case_models
import case_norms
import case_python
import case_tables
from case_run import Case

__all__ = ["CASES", "Case"]

CASES = {case.name: case for module in (case_norms, case_tables, case_models, case_python) for case in module.CASES}
