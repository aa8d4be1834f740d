"""The project's own papers: licence, citation, version, dependencies, size of the modules, no paths of one machine."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenscore
from parsed import nodes

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(evenscore.__file__).parent
MODULES = [*PACKAGE.rglob("*.py"), *(ROOT / "recipes").rglob("*.py")]
TEXTS = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".txt", ".json", ".csv", ".tsv", ""}


def project_files():
    """Return the text files under version control, or, in a copy without it, those of the known folders."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout.decode()
        files = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = [
            path for part in ("src", "recipes", "tests", "docs", "benchmarks") for path in (ROOT / part).rglob("*")
        ]
    return [path for path in files if path.suffix in TEXTS and path.is_file()]


def readable(path):
    return path.read_bytes().decode("utf-8", errors="replace")


def test_the_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_the_citation_parses_and_names_the_paper():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the docs extra")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    paper = citation["references"][0]
    assert paper["title"] == "A Generative Model for Score Normalization in Speaker Recognition"
    assert [author["family-names"] for author in paper["authors"]] == ["Swart", "Brümmer"]
    assert paper["doi"] == "10.21437/Interspeech.2017-137"


def test_no_file_names_a_path_of_one_machine():
    here = "/".join(("", "work", ""))  # not written out, or this file would be found
    pattern = re.compile(rf"(?<![\w.]){here}|/home/\w+/|/Users/\w+/(?!Ann)|\bC:\\Users\\(?!Ann)")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in project_files()
        for number, line in enumerate(readable(path).splitlines(), start=1)
        if path != Path(__file__) and pattern.search(line)
    ]
    assert found == []


def test_modules_stay_below_400_lines():
    long = [str(path) for path in MODULES if len(readable(path).splitlines()) >= 400]
    assert long == []


def test_modules_have_names_that_say_something():
    vague = {"utils", "util", "helpers", "helper", "misc", "common"}
    assert [str(path) for path in MODULES if path.stem in vague or path.parent.name in vague] == []


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_every_table_of_names_has_a_package_that_reads_it():
    """Names are looked up in `__init__.pyi` at run time, so that neither file works without the other."""
    tables = {path.parent for home in (PACKAGE, ROOT / "recipes") for path in home.rglob("__init__.pyi")}
    readers = {path.parent for path in MODULES if path.name == "__init__.py" and "attach_stub(" in readable(path)}
    assert PACKAGE in tables
    assert tables == readers


# The places that may use packages of the extras; what all others import comes with the plain install.
OF_EXTRAS = ("plot/", "engine/", "sources/dask_arrays.py", "files/zarr_", "cli/plot.py")


def plain_dependencies():
    """Return the names under which the packages of the plain install are imported."""
    settings = readable(ROOT / "pyproject.toml")  # read by hand, as Python 3.10 has no tomllib
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", settings, re.MULTILINE | re.DOTALL).group(1)
    return {name.replace("-", "_") for name in re.findall(r'^ *"([\w-]+)', listed, re.MULTILINE)}


def packages_used(path):
    """Return the packages that a module imports when it runs, inside functions too, but not for its types alone."""
    typing = [node for node in nodes(path) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {inner for node in typing for statement in node.body for inner in ast.walk(statement)}
    used = set()
    for node in nodes(path):
        if isinstance(node, ast.Import) and node not in for_types:
            used |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node not in for_types:
            used.add(node.module.partition(".")[0])
    return used


def test_the_plain_install_brings_what_the_main_commands_import():
    allowed = plain_dependencies() | set(sys.stdlib_module_names) | {"evenscore"}
    assert {"numpy", "lazy_loader", "jinja2", "plotly"} <= allowed
    used = {path.relative_to(PACKAGE).as_posix(): packages_used(path) for path in PACKAGE.rglob("*.py")}
    assert "plotly" in used["report/page.py"]
    foreign = {name: found - allowed for name, found in used.items() if not name.startswith(OF_EXTRAS)}
    assert {name: found for name, found in foreign.items() if found} == {}
    unused = plain_dependencies() - set().union(*used.values())
    assert unused == set()
