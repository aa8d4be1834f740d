"""The architecture: who imports whom, who opens files, who prints; nothing is unpickled or run."""

import ast
from pathlib import Path

import pytest

import evenscore

PACKAGE = Path(evenscore.__file__).parent

#: Each part imports only what stands before it, inside functions and for type checkers, too. `files` stands before what
#: writes reports and folders of results, and behind everything whose records it stores.
LAYERS = (
    *("_version", "errors", "spelling", "parallel", "kernels", "large", "data"),
    *("norms", "model", "metrics", "calibrate", "scoring", "evidence"),
    *("files", "comparison", "plot", "report", "cli", "__main__"),
)

OPENING_METHODS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "tofile", "fdopen", "mkstemp"}
OPENING_FUNCTIONS = {
    "np": {"load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile", "memmap"},
    "pl": {"read_csv", "read_parquet", "read_ipc", "read_json", "scan_csv", "scan_parquet"},
    "da": {"from_zarr", "to_zarr", "from_npy_stack", "to_npy_stack"},
    "h5py": {"File"},
    "zarr": {"open_group", "open_array", "create_array", "create_group", "group", "load", "save"},
    "tempfile": {"NamedTemporaryFile", "TemporaryFile"},
}
PRINTING = {"print", "typer.echo", "typer.secho", "rich.print", "Console", "rich.console.Console"}
STREAMS = {"sys.stdout", "sys.stderr", "sys.stdout.buffer"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}


def module_name(path, package):
    """Return the dotted name of a module, such as evenscore.norms.classical."""
    return ".".join(("evenscore", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")


def part_of(module):
    """Return the part of the package that a module belongs to, or an empty string for the package itself."""
    return [*module.split("."), ""][1]


def dotted(node):
    """Return `np.load` for the node of such an expression, and only the name behind what is computed."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return ""


def imported_names(tree, module, is_package=False):
    """Yield (dotted name, imported on loading) of all that a module imports from evenscore.

    What is imported inside a function, or for type checkers only, is not imported on loading.
    """
    later = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING"))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if node.level:
                parents = module.split(".")
                base = parents[: len(parents) - node.level + is_package]
                home = ".".join([*base, *([home] if home else [])])
            names = [f"{home}.{alias.name}" for alias in node.names]
        yield from ((name, node not in later) for name in names if name.startswith("evenscore."))


def upward_imports(tree, module, is_package=False):
    """Return the parts that a module imports although they do not stand before its own."""
    home = part_of(module)
    if not home:  # the package offers names of every part
        return set()
    others = {part_of(name) for name, _ in imported_names(tree, module, is_package)} - {home, "__version__"}
    return {other for other in others if other not in LAYERS[: LAYERS.index(home)]}


def find_cycle(graph):
    """Return modules that import each other in a ring, or nothing."""
    done = set()

    def visit(module, path):
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        done.add(module)
        return next(filter(None, (visit(other, [*path, module]) for other in sorted(graph.get(module, ())))), [])

    return next(filter(None, (visit(module, []) for module in sorted(graph))), [])


def import_graph(package):
    """Return what each module imports on loading.

    Two modules of a part, such as matrix and list, may make each other inside functions; parts may not.
    """
    paths = {module_name(path, package): path for path in package.rglob("*.py")}
    graph = {}
    for module, path in paths.items():
        if module == "evenscore":
            continue
        names = imported_names(parsed(path), module, path.name == "__init__.py")
        targets = {name if name in paths else name.rpartition(".")[0] for name, on_loading in names if on_loading}
        graph[module] = targets & paths.keys() - {module, "evenscore"}
    return graph


def file_access(tree):
    """Return the calls that open, read or write files; the null device, for a closed pipe, is none."""
    found = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = dotted(call.func)
        owner, _, last = name.rpartition(".")
        if call.args and dotted(call.args[0]) == "os.devnull":
            continue
        method = isinstance(call.func, ast.Attribute) and call.func.attr in OPENING_METHODS
        if method or name == "open" or last in OPENING_FUNCTIONS.get(owner, ()):
            found.add(name)
    return found


def printing(tree):
    """Return what prints: calls, and the streams themselves."""
    calls = {dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    of_buffers = [node.value for node in attributes if node.attr == "buffer"]
    streams = {dotted(node) for node in attributes if node not in of_buffers}
    return calls & PRINTING | streams & STREAMS


def unsafe(tree):
    """Return what could run code that a file contains."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE_MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE_MODULES:
            found.add(node.module)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in UNSAFE_CALLS:
                found.add(name)
            if name == "np.load" and not any(
                word.arg == "allow_pickle" and getattr(word.value, "value", None) is False for word in node.keywords
            ):
                found.add("np.load without allow_pickle=False")
            found |= {"shell=" for word in node.keywords if word.arg == "shell"}
    return found


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def offenders(check, *allowed):
    """Return what a check finds in the modules outside the allowed parts."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if part_of(module_name(path, PACKAGE)) not in allowed:
            found[str(path.relative_to(PACKAGE))] = check(parsed(path))
    return {name: sorted(what) for name, what in found.items() if what}


def test_every_part_has_its_place():
    parts = {part_of(module_name(path, PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert parts - {""} <= set(LAYERS)


def test_each_part_imports_only_what_stands_before_it():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found[str(path)] = upward_imports(parsed(path), module_name(path, PACKAGE), path.name == "__init__.py")
    assert {name: what for name, what in found.items() if what} == {}


def test_no_module_imports_itself_through_others():
    assert find_cycle(import_graph(PACKAGE)) == []


def test_only_files_opens_files():
    assert offenders(file_access, "files") == {}


def test_only_the_command_line_prints():
    assert offenders(printing, "cli", "files") == {}
    assert offenders(lambda tree: printing(tree) - {"sys.stdout.buffer"}, "cli") == {}  # the file called "-"


def test_nothing_is_unpickled_or_run():
    assert offenders(unsafe) == {}


@pytest.mark.parametrize(
    ("source", "module", "found"),
    [
        ("from evenscore.files import read_scores", "evenscore.norms.classical", {"files"}),
        ("def f():\n    import evenscore.cli.app", "evenscore.files.text", {"cli"}),
        ("from evenscore import comparison", "evenscore.metrics.rates", {"comparison"}),
        ("from ..report import page", "evenscore.files.text", {"report"}),
        ("if TYPE_CHECKING:\n    from evenscore.model import ScoreModel", "evenscore.data.blocks", {"model"}),
        ("from evenscore import ScoreMatrix", "evenscore.norms.classical", {"ScoreMatrix"}),
        ("from evenscore.data import ScoreMatrix\nfrom . import folds", "evenscore.norms.classical", set()),
    ],
)
def test_an_import_of_a_later_part_is_found(source, module, found):
    assert upward_imports(ast.parse(source), module) == found


def test_a_ring_of_imports_is_found(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "__init__.py").write_text("from evenscore.data.side import Side\n")
    (tmp_path / "data" / "__init__.py").write_text("from .side import Side\n")
    (tmp_path / "data" / "side.py").write_text("import numpy\n")
    assert find_cycle(import_graph(tmp_path)) == []
    (tmp_path / "data" / "side.py").write_text("from evenscore.data import Side\n")
    assert find_cycle(import_graph(tmp_path)) == ["evenscore.data", "evenscore.data.side", "evenscore.data"]


@pytest.mark.parametrize(
    "source",
    ["open(p)", "np.load(p)", "Path(p).read_text()", "p.open('w')", "h5py.File(p)", "pl.read_csv(p)", "da.to_zarr(a)"],
)
def test_opening_a_file_is_found(source):
    assert file_access(ast.parse(source))
    assert not file_access(ast.parse("opened(p); scores.load(); np.array(p); os.open(os.devnull, os.O_WRONLY)"))


@pytest.mark.parametrize(
    "source", ["print(1)", "typer.echo(1)", "sys.stderr.write('a')", "sys.stdout.buffer", "Console()"]
)
def test_printing_is_found(source):
    assert printing(ast.parse(source))
    assert not printing(ast.parse("progress(1); sys.argv; reprint(1)"))


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from joblib import load", "eval('1')", "exec(a)", "os.system('ls')"),
        *("np.load(p)", "np.load(p, allow_pickle=True)", "subprocess.run('ls', shell=True)"),
    ],
)
def test_running_what_a_file_contains_is_found(source):
    assert unsafe(ast.parse(source))
    assert not unsafe(ast.parse("np.load(p, allow_pickle=False); re.compile('a'); model.evaluate()"))
