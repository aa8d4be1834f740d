"""The architecture: what loads what, who opens files, who prints."""

import ast
import functools
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import evenscore

PACKAGE = Path(evenscore.__file__).parent
MODULE_NAMES = [name for name in evenscore.__all__ if inspect.ismodule(getattr(evenscore, name))]
MODULES = sorted(PACKAGE.rglob("*.py"))
OUTER = {
    "files",
    "plot",
    "report",
    "comparison",
    "recipes",
    "experiments",
    "cli",
    "__main__",
}  # everything else is maths, tables and errors
HEAVY = {
    "polars",
    "numba",
    "scipy",
    "h5py",
    "kaldiio",
    "zarr",
    "dask",
    "matplotlib",
    "typer",
    "rich",
    "plotly",
    "networkx",
    "soundfile",
}
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "fromfile", "tofile", "loadtxt", "savetxt"}
OPENERS |= {"savez", "savez_compressed", "memmap", "NamedTemporaryFile", "mkstemp"}
UNSAFE = {"pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle"}


def part_of(path):
    """Return the part of the program that a module belongs to: the first folder or file name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imports(path):
    """Return the full names of the modules that a module imports, inside functions too."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{name.name}" for name in node.names}
    return found


@functools.cache
def calls(path):
    """Return the last names of everything that a module calls."""
    functions = [node.func for node in nodes(path) if isinstance(node, ast.Call)]
    return {f.id if isinstance(f, ast.Name) else f.attr for f in functions if isinstance(f, ast.Name | ast.Attribute)}


def named(path):
    return str(path.relative_to(PACKAGE))


MATHS = [path for path in MODULES if part_of(path) not in OUTER and path.name != "__init__.py"]


def loaded_by(statement):
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_importing_evenscore_loads_nothing_heavy():
    loaded = loaded_by("import evenscore")
    assert "evenscore" in loaded
    assert loaded & (HEAVY | {"numpy"}) == set()


def test_the_command_line_loads_numbers_only_when_a_command_runs():
    assert loaded_by("import evenscore.cli.app") & (HEAVY - {"typer", "rich"} | {"numpy"}) == set()


def test_tables_load_only_numpy():
    assert loaded_by("import evenscore.tables") & HEAVY == set()


@pytest.mark.parametrize("path", MATHS, ids=named)
def test_maths_imports_neither_files_plots_reports_nor_command_line(path):
    parts = {name.split(".")[1] for name in imports(path) if name.startswith("evenscore.") and name.count(".") >= 1}
    assert parts & OUTER == set()
    assert {name.partition(".")[0] for name in imports(path)} & {"typer", "rich", "matplotlib"} == set()


def test_tables_import_nothing_but_errors():
    for path in (PACKAGE / "tables").glob("*.py"):
        used = {name.split(".")[1] for name in imports(path) if name.startswith("evenscore.")}
        assert used <= {"tables", "errors"}, path


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) != "files"], ids=named)
def test_only_files_opens_files(path):
    allowed = {"open"} if named(path) == "cli/failures.py" else set()  # os.devnull, when a pipe is closed
    assert calls(path) & OPENERS <= allowed
    libraries = {"h5py", "zarr", "kaldiio", "gzip", "polars"}
    if part_of(path) == "comparison":  # whose results are a polars table
        libraries -= {"polars"}
    assert imports(path) & libraries == set()


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) != "cli"], ids=named)
def test_only_the_command_line_prints(path):
    assert calls(path) & {"print", "echo", "secho", "pprint"} == set()
    assert not any(name.startswith(("typer", "rich", "logging")) for name in imports(path))
    if part_of(path) != "files":  # which serve "-" for standard input and output
        used = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        assert used & {"stdout", "stderr", "stdin"} == set()


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) in {"recipes", "experiments"}], ids=named)
def test_recipes_and_experiments_use_only_what_is_public(path):
    own = ("evenscore.recipes", "evenscore.experiments")
    modules = [getattr(evenscore, name) for name in MODULE_NAMES]
    public = {f"{home.__name__}.{name}" for home in (evenscore, *modules) for name in home.__all__} | {"evenscore"}
    used = {name for name in imports(path) if name.partition(".")[0] == "evenscore" and not name.startswith(own)}
    assert used <= public


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_nothing_is_unpickled_or_evaluated(path):
    assert {name.partition(".")[0] for name in imports(path)} & UNSAFE == set()
    assert calls(path) & {"eval", "exec"} == set()
    pickles = [
        keyword
        for node in nodes(path)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle"
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]
    assert pickles == []


@pytest.mark.parametrize("home", [evenscore, *(getattr(evenscore, name) for name in MODULE_NAMES)], ids=str)
def test_every_public_name_can_be_had_and_is_listed_once(home):
    assert len(set(home.__all__)) == len(home.__all__)
    for name in home.__all__:
        assert getattr(home, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = home.nonsense


def test_the_names_at_the_top_are_few_and_no_module_hides_one():
    assert len(evenscore.__all__) - len(MODULE_NAMES) <= 70
    assert callable(evenscore.evidence.contributions)  # the module of this name must not take its place
