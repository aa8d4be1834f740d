"""The acceptance cases import their modules from this folder, whichever program and settings they run with."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
