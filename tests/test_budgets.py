"""The package stays within `budgets.toml`: lines of each part and of the whole, modules, functions, `Any`."""

import ast
import re
from collections import Counter
from pathlib import Path

import evenscore

PACKAGE = Path(evenscore.__file__).parent
BUDGETS = Path(__file__).with_name("budgets.toml")


def read_budgets(path):
    """Return the tables of numbers of a TOML file; Python 3.10 has no tomllib."""
    tables, table = {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("["):
            table = tables.setdefault(text.strip("[]"), {})
        elif text:
            name, _, number = text.partition("=")
            table[name.strip()] = int(number)
    return tables


def body_lines(function):
    """Count the lines of a function's body without its docstring."""
    first = function.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0
    return function.end_lineno - first.lineno + 1 - docstring


def measure(package):
    """Return the figures of a package under the names of `budgets.toml`, and the lines of its parts."""
    lines, longest_function, any_count, modules = {}, 0, 0, 0
    parts = Counter()
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines[path] = len(text.splitlines())
        parts[path.relative_to(package).parts[0].removesuffix(".py")] += lines[path]
        modules += path.name != "__init__.py"
        any_count += len(re.findall(r"\bAny\b", text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                longest_function = max(longest_function, body_lines(node))
    house = {
        "lines": sum(lines.values()),
        "modules": modules,
        "longest_module": max(lines.values(), default=0),
        "longest_function": longest_function,
        "any": any_count,
    }
    return {"house": house, "lines": {name: n for name, n in parts.items() if not name.startswith("_")}}


def above(figures, budgets):
    """Return what exceeds its budget, or has none."""
    return {
        f"{table}.{name}": f"{number}, budget {budgets[table].get(name)}"
        for table, numbers in figures.items()
        for name, number in numbers.items()
        if number > budgets[table].get(name, -1)
    }


def test_the_package_stays_within_its_budgets():
    assert above(measure(PACKAGE), read_budgets(BUDGETS)) == {}


def test_the_budgets_of_the_parts_fit_into_the_whole():
    budgets = read_budgets(BUDGETS)
    assert sum(budgets["lines"].values()) <= budgets["house"]["lines"]


def test_what_is_too_large_or_has_no_budget_is_found(tmp_path):
    (tmp_path / "norms").mkdir()
    (tmp_path / "extra.py").write_text("from typing import Any\n")
    body = '    """Add."""\n' + "    x = 1\n" * 61
    (tmp_path / "norms" / "large.py").write_text("def add():\n" + body + "\n" * 1300)
    found = above(measure(tmp_path), read_budgets(BUDGETS) | {"house": {"modules": 1, "any": 0}})
    assert found.keys() == {
        *("house.lines", "house.modules", "house.longest_module", "house.longest_function", "house.any"),
        *("lines.norms", "lines.extra"),
    }
    assert found["lines.norms"].startswith("1363,")
    assert measure(tmp_path)["house"]["longest_function"] == 61
