"""A folder with simulated scores and embeddings, and a way to run commands in it."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from evenscore import Embeddings, write
from evenscore.cli.app import app


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Make the files once: a development set, an evaluation with a cohort, and embeddings of both."""
    folder = tmp_path_factory.mktemp("data")
    for line in (
        f"simulate --speakers 12 --seed 1 --to kaldi -o {folder}/dev",
        f"simulate --speakers 6 --cohort-speakers 15 --to kaldi -o {folder}/eval",
    ):
        assert CliRunner().invoke(app, line.split()).exit_code == 0
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(20), 3)
    vectors = 0.5 + rng.normal(size=(20, 8))[speakers] + 0.5 * rng.normal(size=(60, 8))
    everybody = Embeddings([f"u{n}" for n in range(60)], vectors, [f"s{n}" for n in speakers])
    write(everybody.take(slice(0, 24)), folder / "x.npz")
    write(everybody.take(slice(24, 60)), folder / "c.npz")
    pairs = [f"u{a} u{b}\n" for a in range(24) for b in range(24) if a != b]
    (folder / "x.trials").write_text("".join(pairs))
    return folder


@pytest.fixture
def run(data, tmp_path, monkeypatch):
    """Return a function that runs a command line and checks its exit code; $D is the folder with data."""
    monkeypatch.chdir(tmp_path)

    def command(line, code=0):
        result = CliRunner().invoke(app, line.replace("$D", str(data)).split())
        assert result.exit_code == code, result.output
        return result

    return command


@pytest.fixture
def start(data, tmp_path):
    """Return a function that starts a command in a process of its own."""

    def process(line, **options):
        words = line.replace("$D", str(data)).split()
        return subprocess.Popen([sys.executable, "-m", "evenscore", *words], cwd=tmp_path, **options)

    return process
