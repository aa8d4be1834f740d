"""Who may import whom: a package only what stands before it, imports inside functions included."""

import ast
from pathlib import Path

import evenscore
from parsed import nodes

PACKAGE = Path(evenscore.__file__).parent

#: From the ground upwards.
LAYERS = (
    *("_version", "errors", "spelling", "progress", "log_odds", "compiled", "threads", "memory"),
    *("tables", "engine", "sources"),
    *("model", "metrics", "norms", "calibrate", "plda", "evidence", "scoring", "online"),
    *("files", "comparison", "plot", "report", "cli", "__main__"),
)


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Return the packages that a module imports, for type checkers only, too."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("evenscore."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "evenscore":
            yield from (name.name for name in node.names if name.name in LAYERS)
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("evenscore."))


def upwards():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        home = package_of(path)
        for other in imported(path):
            if home not in ("__init__", other) and LAYERS.index(other) > LAYERS.index(home):
                found.setdefault((home, other), str(path.relative_to(PACKAGE)))
    return found


def test_no_package_imports_what_stands_above_it():
    assert upwards() == {}


def test_every_package_has_its_place():
    homes = {package_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert homes <= set(LAYERS)
