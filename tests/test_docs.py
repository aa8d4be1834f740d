"""The documentation is true: its examples run, its generated parts are fresh, every public name is explained."""

import doctest
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenscore

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: A minute and a half of commands that other tests run, too.
LONG = ("scores-to-llrs.md", "embeddings-to-llrs.md", "compare.md", "choose-cohort.md")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    """Return language, title and text of the code blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run_console(text):
    """Run the lines after ``$`` in a shell, and compare what they print with the lines below."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        run = subprocess.run(
            ["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300
        )
        printed = run.stdout + run.stderr
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


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in LONG else []) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, title, text in blocks(page):
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "console":
            run_console(text)
        elif language == "python":
            run_python(text, page, names)


def test_the_examples_are_really_found():
    found = [language for page in PAGES for language, _, _ in blocks(page)]
    assert found.count("console") >= 4
    assert found.count("python") >= 5


def test_generated_pages_are_fresh():
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


def test_the_readme_names_the_two_commands_that_matter():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
