"""The project's own papers: licence, citation, version, changelog; no paths of one machine, no vague module names."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

import evenscore

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(evenscore.__file__).parent
TEXTS = {".py", ".pyi", ".md", ".toml", ".yml", ".yaml", ".cff", ".txt", ".json", ".csv", ".html", ".css", ".js", ""}


def project_files():
    """Return the text files under version control."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this copy of the project is not under version control")
    files = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in files if path.suffix in TEXTS and path.is_file()]


def test_version_changelog_and_citation_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    heading = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", evenscore.__version__)
    assert f"version: {evenscore.__version__}\n" in citation
    assert heading[1] == ("Unreleased" if "dev" in evenscore.__version__ else evenscore.__version__)
    assert "doi: 10.21437/Interspeech.2017-137" in citation


def test_the_licence_is_apache_2():
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_no_file_names_a_path_of_one_machine_or_a_registry():
    here = "/".join(("", "work", ""))  # not written out, or this file would be found
    pattern = re.compile(rf"(?<![\w.]){here}|/home/\w+/|/Users/\w+/(?!Ann)|pypi\.org|pythonhosted")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in project_files()
        for number, line in enumerate(path.read_bytes().decode("utf-8", errors="replace").splitlines(), start=1)
        if path != Path(__file__) and pattern.search(line)
    ]
    assert found == []


def test_modules_have_names_that_say_something_and_the_package_is_typed():
    vague = {"utils", "util", "helpers", "helper", "misc", "common"}
    assert [str(path) for path in PACKAGE.rglob("*.py") if path.stem in vague or path.parent.name in vague] == []
    assert (PACKAGE / "py.typed").exists()


def test_every_public_name_can_be_imported_and_is_explained():
    for name in evenscore.__all__:
        thing = getattr(evenscore, name)
        assert name == "__version__" or (thing.__doc__ or "").strip() or hasattr(thing, "__path__"), name


def test_the_release_check_finds_no_disagreement():
    path = ROOT / ".ci" / "release_check.py"
    if not path.exists():
        pytest.skip("the check of releases is in the repository only")
    spec = importlib.util.spec_from_file_location("release_check", path)
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    assert check.disagreements(ROOT) == []
