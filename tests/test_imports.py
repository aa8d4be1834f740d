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
from parsed import nodes

PACKAGE = Path(evenscore.__file__).parent
MODULE_NAMES = [name for name in evenscore.__all__ if inspect.ismodule(getattr(evenscore, name))]
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOT = Path(__file__).resolve().parent.parent
RECIPES = [path for path in sorted((ROOT / "recipes").rglob("*.py")) if "tests" not in path.relative_to(ROOT).parts]
COMMAND_FILES = {"command.py", "__main__.py"}  # of recipes
OUTER = {
    "files",
    "plot",
    "report",
    "comparison",
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
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).parts[0].removesuffix(".py")


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
    return str(path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT))


MATHS = [path for path in MODULES if part_of(path) not in OUTER and path.name != "__init__.py"]


def loaded_by(*statements):
    """Return which packages a fresh interpreter has loaded after each statement."""
    code = "; ".join(["import json, sys", *(f"{each}; print(json.dumps(sorted(sys.modules)))" for each in statements)])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [{name.partition(".")[0] for name in json.loads(line)} for line in run.stdout.splitlines()]


def test_nothing_heavy_is_loaded_before_it_is_used():
    package, tables, maths = loaded_by(
        "import evenscore",
        "import evenscore.tables",
        "import evenscore.metrics, evenscore.norms, evenscore.scoring; evenscore.norms.NormOptions()",
    )
    assert "evenscore" in package
    assert package & (HEAVY | {"numpy"}) == set()
    assert tables & HEAVY == set()
    assert "numba" not in maths


def test_the_command_line_loads_numbers_only_when_a_command_runs():
    [loaded] = loaded_by("import evenscore.cli.app")
    assert loaded & (HEAVY - {"typer", "rich"} | {"numpy"}) == set()


BLOCKS = "--trials x/trials.scores --enroll x/enroll.scores --test x/test.scores"
SMALL_COMMANDS = f"""
simulate --speakers 6 --cohort-speakers 6 --to kaldi -o x
evaluate x/trials.scores --key x/key.trials
fit --scores x/cohort.scores --key x/cohort.trials -o m.json
normalize --method as --top-k 5 {BLOCKS} -o s
normalize --method lgsm --model m.json {BLOCKS} --cohort x/cohort.scores --cohort-key x/cohort.trials -o l
calibrate --train x/cohort.scores --train-key x/cohort.trials x/trials.scores -o c
"""


def test_commands_on_small_files_load_neither_numba_nor_scipy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = "from typer.testing import CliRunner; from evenscore.cli.app import app"
    lines = SMALL_COMMANDS.strip().splitlines()
    each = f"assert all(CliRunner().invoke(app, line.split()).exit_code == 0 for line in {lines})"
    [loaded] = loaded_by(f"{run}; {each}")
    assert {"numpy", "polars"} <= loaded
    assert loaded & {"numba", "scipy", "jaxtyping", "h5py", "zarr", "dask", "matplotlib", "plotly"} == set()


def breaking(law, paths):
    """Return what breaks a law in which module; one test of all modules is as clear as hundreds of one."""
    return {named(path): found for path in paths if (found := law(path))}


def test_maths_imports_neither_files_plots_reports_nor_command_line():
    def outside(path):
        parts = {name.split(".")[1] for name in imports(path) if name.startswith("evenscore.")}
        packages = {name.partition(".")[0] for name in imports(path)}
        return parts & OUTER | packages & {"typer", "rich", "matplotlib"}

    assert len(MATHS) > 50
    assert breaking(outside, MATHS) == {}


def test_tables_import_nothing_but_errors_and_sizes():
    for path in (PACKAGE / "tables").glob("*.py"):
        used = {name.split(".")[1] for name in imports(path) if name.startswith("evenscore.")}
        assert used <= {"tables", "errors", "memory"}, path


MAY_OPEN = {
    "memory.py": {"read_text"},  # what the system tells of itself
    "cli/app.py": {"open"},  # os.devnull, when a pipe is closed
    "recipes/rsr_like/tree.py": {"open"},  # writes what only one corpus has
    "recipes/text_dependent/audio.py": {"open"},  # soundfile does not tell why it cannot read a file
    "recipes/text_dependent/rsr2015.py": {"open", "read_text"},  # reads what only one corpus has
}


def test_only_files_opens_files():
    def opened(path):
        allowed = MAY_OPEN.get(named(path), set())
        libraries = {"h5py", "zarr", "kaldiio", "gzip", "polars"}
        if part_of(path) == "comparison":  # whose results are a polars table
            libraries -= {"polars"}
        return calls(path) & OPENERS - allowed | imports(path) & libraries

    assert breaking(opened, [*(path for path in MODULES if part_of(path) != "files"), *RECIPES]) == {}
    assert breaking(opened, [path for path in MODULES if part_of(path) == "files"])  # there it is seen


def test_only_the_command_line_prints():
    def printed(path):
        found = calls(path) & {"print", "echo", "secho", "pprint"}
        found |= {name for name in imports(path) if name.startswith(("typer", "rich", "logging"))}
        if part_of(path) != "files":  # which serve "-" for standard input and output
            used = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
            found |= used & {"stdout", "stderr", "stdin"}
        return found

    recipes = [path for path in RECIPES if path.name not in COMMAND_FILES]
    assert breaking(printed, [*(path for path in MODULES if part_of(path) != "cli"), *recipes]) == {}
    assert breaking(printed, [path for path in MODULES if part_of(path) == "cli"])  # there it is seen


# What recipes need to be commands like those of the package, and to write files as it does.
OF_COMMANDS = {
    *(f"evenscore.cli.{name}" for name in ("app.program", "app.run_program", "options")),
    *(f"evenscore.cli.output.{name}" for name in ("print_json", "print_lines", "print_table", "progress_bar")),
    *("evenscore.files.streams.atomic_output", "evenscore.files.streams.writing"),
    "evenscore.plot.style.require_matplotlib",
}


def test_recipes_use_only_what_is_public():
    modules = [getattr(evenscore, name) for name in MODULE_NAMES]
    public = {f"{home.__name__}.{name}" for home in (evenscore, *modules) for name in home.__all__} | {"evenscore"}
    commands = OF_COMMANDS | {name.rpartition(".")[0] for name in OF_COMMANDS}

    def private(path):
        used = {name for name in imports(path) if name.partition(".")[0] == "evenscore"}
        return used - public - (commands if path.name in COMMAND_FILES else set())

    assert len(RECIPES) > 30
    assert breaking(private, RECIPES) == {}


def test_the_package_does_not_need_recipes():
    assert breaking(lambda path: {name for name in imports(path) if name.startswith("recipes")}, MODULES) == {}


def test_nothing_is_unpickled_or_evaluated():
    def unsafe(path):
        found = {name.partition(".")[0] for name in imports(path)} & UNSAFE | calls(path) & {"eval", "exec"}
        for node in nodes(path):
            for keyword in node.keywords if isinstance(node, ast.Call) else []:
                refused = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "allow_pickle" and not refused:
                    found |= {"allow_pickle"}
        return found

    assert breaking(unsafe, MODULES + RECIPES) == {}


@pytest.mark.parametrize(
    "home", [evenscore, *(getattr(evenscore, name) for name in MODULE_NAMES)], ids=lambda home: home.__name__
)
def test_every_public_name_can_be_had_and_is_listed_once(home):
    assert len(set(home.__all__)) == len(home.__all__)
    for name in home.__all__:
        assert getattr(home, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = home.nonsense


def test_the_names_at_the_top_are_few_and_no_module_hides_one():
    assert len(evenscore.__all__) - len(MODULE_NAMES) <= 70
    assert callable(evenscore.evidence.contributions)  # the module of this name must not take its place
