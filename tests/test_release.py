"""What a release says about itself."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import evenscore

ROOT = Path(__file__).parent.parent
NAMED = ("src/evenscore/_version.py", "CHANGELOG.md", "CITATION.cff")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    path = ROOT / ".ci" / "release_check.py"
    if not path.exists():
        pytest.skip("the check of releases is in the repository only")
    spec = importlib.util.spec_from_file_location("release_check", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_changelog_and_citation_agree(check):
    assert check.disagreements(ROOT) == []
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", evenscore.__version__)


def test_disagreements_are_told(check, tmp_path):
    for name in NAMED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / NAMED[0]).write_text('__version__ = "9.9"\n')
    cited, begins = check.disagreements(tmp_path)
    assert "CITATION.cff has version" in cited
    assert begins.endswith("but the package is 9.9; begin with [9.9]")


def test_lower_bounds_leave_extras_out(check, tmp_path):
    needs = ["numpy<3,>=1.26", "scipy (>=1.12)", "numba", 'zarr<4,>=2.18; extra == "zarr"']
    with ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("a-1.dist-info/METADATA", "Name: a\n" + "".join(f"Requires-Dist: {need}\n" for need in needs))
    assert check.lower_bounds(tmp_path / "a.whl") == ["numpy==1.26.*", "scipy==1.12.*"]
