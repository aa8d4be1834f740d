"""The documentation is true: every command and snippet runs and prints what the page shows."""

import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from evenscore.calibrate import CALIBRATIONS
from evenscore.cli.app import COMMANDS, app
from evenscore.norms import CLASSICAL
from evenscore.scoring import SCORERS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELL = frozenset("|&;<>()$`*?[]{}~#!\\")  # a command with one of these is for a shell


def blocks(page):
    """Return language, title and text of the code blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run_evenscore(arguments, monkeypatch):
    """Return what a command prints; it runs in this process, which is much faster."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "argv", ["evenscore", *arguments])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        runpy.run_module("evenscore", run_name="__main__")
    return out.buffer.getvalue().decode()


def run_shell(command):
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    command = re.sub(r"(^|\| )evenscore ", rf"\1{sys.executable} -m evenscore ", command)
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def run_console(text, monkeypatch):
    """Run the lines after ``$``, and compare what they print with the lines below."""
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text.replace("\\\n", " "), re.MULTILINE):
        program, *arguments = shlex.split(command)
        if program == "evenscore" and not SHELL & set(command):
            printed = run_evenscore(arguments, monkeypatch)
        else:
            printed = run_shell(command)
        assert "Traceback" not in printed
        if "pip install 'evenscore[" in printed:
            pytest.skip(f"{command}: {printed}")
        failed = re.compile(r"^(Error|error): ", re.MULTILINE)  # Error: wrong use of the command line
        assert failed.search(expected) or not failed.search(printed), f"$ {command}\n{printed}"
        if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
            pytest.fail(f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}")


def run_python(text, page, names):
    if ">>>" not in text:
        exec(compile(text, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    failures = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=failures.append, clear_globs=False)
    names |= test.globs
    assert not failures, "".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = {}
    for language, title, text in blocks(page):
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            run_console(text, monkeypatch)
        elif language == "python":
            run_python(text, page, names)


def test_the_table_of_formats_is_that_of_the_program(monkeypatch):
    page = (ROOT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    for each in json.loads(run_evenscore(["formats", "--json"], monkeypatch)):
        layout = each["layout"].replace("|", r"\|") + ("" if each["written"] else " (only read)")
        assert f"| `{each['name']}` | {', '.join(each['holds'])} | {layout} |" in page


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_the_documentation_stays_short():
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in PAGES if page.name != "README.md")
    assert 10_000 < words <= 35_000


def test_every_public_name_is_on_the_page_of_the_api_and_explained():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    for stub in (ROOT / "src" / "evenscore").rglob("__init__.pyi"):
        package = importlib.import_module(".".join(stub.relative_to(ROOT / "src").parts[:-1]))
        for name in re.findall(r"(\w+) as \1\b", stub.read_text(encoding="utf-8")):
            assert re.search(rf"\b{name}\b", page), f"{package.__name__}.{name}"
            value = getattr(package, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                assert (value.__doc__ or "").partition("(")[0] not in ("", name), name


def test_the_page_of_the_mathematics_has_the_equations_of_the_code_in_order():
    number, page = re.compile(r"\(([MESRB])(\d+)\)"), (ROOT / "docs/model/mathematics.md").read_text()
    used = {found for path in (ROOT / "src/evenscore/model").glob("*.py") for found in number.findall(path.read_text())}
    stated = [found for line in page.splitlines() if re.search(r" {2,}\S+$", line) for found in number.findall(line)]
    for letter in "MESRB":
        own = [int(n) for first, n in stated if first == letter]
        assert own == list(range(1, len(own) + 1)), letter
    assert used == set(stated) == set(number.findall(page))


def test_every_method_has_a_line_with_a_link():
    page = (ROOT / "docs" / "reference" / "methods.md").read_text(encoding="utf-8")
    for name in (*CLASSICAL, "lgsm", "evidence", *CALIBRATIONS, *SCORERS):
        assert re.search(rf"^\| .*\[`{name}`\]\(", page, re.MULTILINE), name


def test_commands_that_are_only_shown_have_options_that_exist():
    root = typer.main.get_command(app)
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, rest in re.findall(r"\bevenscore (\w+)([^`\n]*)", text):
            if name in COMMANDS:
                params = root.get_command(root.make_context("evenscore", [], resilient_parsing=True), name).params
                known = {"--help", *(option for param in params for option in (*param.opts, *param.secondary_opts))}
                assert {*re.findall(r"(?<!\S)--[a-z-]+", rest)} <= known, f"{page.name}: evenscore {name}{rest}"
