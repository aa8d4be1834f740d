"""Norms of the user's own: from a Python file that is named, or from an installed package; data are never run."""

import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from evenscore import InputError, ScoreBlocks, ScoreMatrix, normalize, prepare_norm, read_scores, write
from evenscore.comparison.methods import as_methods
from evenscore.norms import METHODS, Method, registry
from evenscore.norms.normalize import described_norm

OWN = """
from dataclasses import dataclass
import evenscore

@dataclass(frozen=True)
class Shift:
    by: float

    def normalize(self, blocks):
        return blocks.trials.with_scores(blocks.trials.scores - self.by)

evenscore.register_norm("shift", lambda method, by=1.0: Shift(by))
"""


@pytest.fixture(autouse=True)
def files(tmp_path):
    known = dict(METHODS)
    write(ScoreMatrix([[1.0, 2.0]], ["e"], ["t", "u"]), tmp_path / "s.npz")
    (tmp_path / "own.py").write_text(OWN)
    yield
    METHODS.clear()
    METHODS.update(known)


def run(cli, *arguments):
    return cli("normalize", "--trials", "s.npz", "-o", "out.npz", *arguments)


def test_a_file_that_is_named_is_run(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert run(cli, "--norm", "shift:by=0.5", "--norm-file", "own.py").exit_code == 0
    np.testing.assert_array_equal(read_scores(tmp_path / "out.npz").scores, [[0.5, 1.5]])
    assert not (tmp_path / "__pycache__").exists()
    assert not sys.dont_write_bytecode
    first = described_norm("shift", {})
    del METHODS["shift"]
    (tmp_path / "own.py").write_text(OWN + "# another one\n")
    assert run(cli, "--norm", "shift", "--norm-file", "own.py").exit_code == 0
    assert described_norm("shift", {}) != first  # so that results of the first are not taken for its own


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.py", None, "none.py: there is no such file"),
        ("own.json", "{}", "own.json: only files that end in .py are run as norms of your own"),
        ("bad.py", "x = 1\n1 / 0\n", "bad.py:2: it cannot be run: ZeroDivisionError: division by zero"),
        ("bad.py", "x = (\n", "bad.py:1: it cannot be run: SyntaxError: '(' was never closed (bad.py, line 1)"),
        ("bad.py", "x = 1\n", "bad.py: it registers no norm; call evenscore.register_norm in it"),
        ("bad.py", OWN.replace('"shift"', '"s"'), "bad.py: there is a norm 's' already; take another name"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused(cli, tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    result = run(cli, "--norm", "shift", "--norm-file", name)
    assert (result.exit_code, result.stderr) == (2, f"error: {message}\n")
    assert not (tmp_path / "out.npz").exists()


def test_workers_do_not_have_the_file(cli):
    result = run(cli, "--norm", "shift", "--norm-file", "own.py", "--workers", "2")
    assert result.exit_code == 2
    assert "workers cannot run --norm-file" in result.stderr


def test_an_installed_package_brings_a_norm(monkeypatch):
    sides = {"installed": Method(prepare=lambda method: prepare_norm("z")), "plain": lambda method: prepare_norm("z")}
    monkeypatch.setitem(sys.modules, "their_norms", type("Module", (), sides))
    points = {name: EntryPoint(name, f"their_norms:{name}", "evenscore.norms") for name in sides}

    def entry_points(*, group, name):
        assert group == "evenscore.norms"
        return [points[name]] if name in points else []

    monkeypatch.setattr(registry, "entry_points", entry_points)
    assert prepare_norm("installed").method == prepare_norm("plain").method == "z"
    del METHODS["plain"]
    assert [method.name for method in as_methods(["plain", "installed"], [])] == ["raw", "installed", "plain"]
    with pytest.raises(InputError, match="there is no norm 'elsewhere'; there are z"):
        normalize(ScoreBlocks(ScoreMatrix([[1.0]], ["e"], ["t"])), "elsewhere")
    with pytest.raises(InputError, match="there is no method 'elsewhere'; there are raw"):
        as_methods(["elsewhere"], [])
