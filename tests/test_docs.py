"""The documentation is true: its examples run, its generated parts are fresh, every public name is explained."""

import doctest
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import evenscore
from evenscore.cli.app import app
from in_process import run_command

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
#: A command with one of these is for a shell.
SHELL = frozenset("|&;<>()$`*?[]{}~#!\\")
#: Libraries of the extras that the examples of a page need.
NEEDED = {
    **dict.fromkeys(("choose-cohort", "coming-from", "evidence", "plots", "theory"), ("matplotlib",)),
    "scale": ("zarr", "distributed"),
    "text-dependent": ("soundfile", "kaldi_native_fbank"),
}
#: What may stand behind a command, with one word: a pipe into one of these, or a file that takes what it prints.
ENDS = {
    "| head -n": lambda lines, number: lines[: int(number)],
    "| tail -n": lambda lines, number: lines[-int(number) :],
    "| grep": lambda lines, word: [line for line in lines if word in line],
    ">": lambda lines, name: Path(name).write_text("".join(lines), encoding="utf-8") and [],
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    """Return language, title and text of the code blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def in_this_process(command, monkeypatch):
    """Return what a plain command prints, or None where it takes a shell: other pipes, patterns, variables."""
    ends = "|".join(map(re.escape, ENDS))
    folder, plain, end, word = re.fullmatch(rf"(?:cd (\S+) && )?(.+?)(?: ({ends}) (\w\S*))?", command).groups()
    program, *arguments = shlex.split(plain)
    if program not in ("cat", "evenscore") or SHELL & set((folder or "") + plain):
        return None
    with monkeypatch.context() as there:
        there.chdir(folder or ".")
        if program == "cat":
            printed, told = "".join(Path(name).read_text(encoding="utf-8") for name in arguments), ""
        else:
            run = run_command(*arguments)
            assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
            printed, told = run.stdout, run.stderr
        lines = printed.splitlines(keepends=True)
        return "".join(ENDS[end](lines, word) if end else lines) + told


def in_a_shell(command):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    run = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=300)
    return run.stdout + run.stderr


def run_console(text, monkeypatch):
    """Run the lines after ``$``, and compare what they print with the lines below."""
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        printed = in_this_process(command, monkeypatch)
        if printed is None:
            printed = in_a_shell(command)
        assert "Traceback" not in printed
        if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
            pytest.fail(f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}")


def run_python(text, page, names):
    if ">>>" not in text:
        exec(compile(text, str(page), "exec"), names)  # noqa: S102
        return
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    failures = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=failures.append, clear_globs=False)
    names |= test.globs
    assert not failures, "".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    for library in NEEDED.get(page.stem, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # what a program assumes that writes to no terminal
    monkeypatch.delenv("EVENSCORE_DEBUG", raising=False)
    names = {}
    for language, title, text in blocks(page):
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            run_console(text, monkeypatch)
        elif language == "python":
            run_python(text, page, names)


def test_the_examples_are_really_found():
    found = [language for page in PAGES for language, _, _ in blocks(page)]
    assert found.count("console") >= 4
    assert found.count("python") >= 5


def test_generated_pages_are_fresh():
    for library in ("matplotlib", "soundfile", "kaldi_native_fbank", "distributed"):
        pytest.importorskip(library, reason="the pages name what needs it")
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.main(["--check"]) == 0, "run: python docs/generate.py"


@pytest.mark.parametrize("name", [name for name in evenscore.__all__ if callable(getattr(evenscore, name))])
def test_every_public_name_is_explained_with_an_example(name):
    documented = getattr(evenscore, name)
    doc = documented.__doc__ or ""
    assert doc.strip()
    if not (isinstance(documented, type) and issubclass(documented, Exception)):
        assert ">>>" in doc, f"{name} has no example"


@pytest.mark.parametrize("home", [name for name in evenscore.__all__ if inspect.ismodule(getattr(evenscore, name))])
def test_every_name_of_a_public_module_is_explained(home):
    module = getattr(evenscore, home)
    assert (module.__doc__ or "").strip()
    names = [
        name
        for name in module.__all__
        if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))
    ]
    assert [name for name in names if not (getattr(module, name).__doc__ or "").strip()] == []


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    absent = [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]]
    assert [name for name in absent if name not in navigation] == []


def test_commands_that_are_only_shown_have_these_options():
    """Those of the command-line page are generated from the commands themselves."""
    root = get_command(app)
    for page in [page for page in PAGES if page.name != "cli.md"]:
        for language, title, text in blocks(page):
            shown = text.replace("\\\n", " ").splitlines() if language in ("sh", "bash", "text") and not title else []
            for line in (line for line in shown if line.startswith("evenscore ")):
                name, *words = shlex.split(line, comments=True)[1:]
                parameters = root.get_command(None, name).params
                known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
                used = {word for word in words if word.startswith("-") and word != "-"}
                assert used <= known, f"{page.name}: {line}"


def test_the_readme_names_the_two_commands_that_matter():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
