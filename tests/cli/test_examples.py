"""Every example in the help of a command runs, in a folder with the files that it names."""

import gzip
import shlex
from importlib import import_module

import numpy as np
import pytest

from evenscore import Embeddings, ScoreModel, TrialList, save_model, write

EXAMINED = ("info", "convert", "calibrate", "evaluate", "plot", "formats")
RNG = np.random.default_rng(8)
ENROLL, TEST = np.repeat([f"e{n}" for n in range(12)], 36), np.tile([f"t{n}" for n in range(36)], 12)
SPEAKERS = {f"e{n}": f"s{n}" for n in range(12)} | {f"t{n}": f"s{n % 12}" for n in range(36)}
LABELS = np.array([SPEAKERS[e] == SPEAKERS[t] for e, t in zip(ENROLL, TEST, strict=True)])
LISTS = ("dev.scores", "eval.scores", "e.scores", "a.scores", "raw.scores", "norm.scores", "llr.scores", "a", "b")
SYSTEMS = ("d1", "d2", "e1", "e2")
KEYS = ("k", "dev.trials", "eval.trials", "eval.key")
MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[1.0], [1.0]], beta=[[1.0], [1.0]], sigma2=[2.0, 2.0])


def examples(command):
    """Return the lines of a command's examples, without what only a person reads."""
    text = import_module(f"evenscore.cli.{command}").EXAMPLES.replace("\\\n", " ")
    return [" ".join(shlex.split(line, comments=True)) for line in text.strip().splitlines()]


def trials():
    return TrialList.from_pairs(ENROLL, TEST, scores=RNG.normal(np.where(LABELS, 2.0, -2.0), 1.5))


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")
    pytest.importorskip("zarr", reason="zarr stores need the extra 'zarr'")
    for name in (*LISTS, *SYSTEMS):
        write(trials(), tmp_path / name, format="kaldi")
    write(trials(), tmp_path / "b.scores", format="kaldi")
    for name in KEYS:
        write(TrialList.from_pairs(ENROLL, TEST, labels=LABELS), tmp_path / name, format="kaldi")
    for name in ("raw.npz", "llr.npz", "eval.zarr", "dev.h5"):
        write(trials().to_matrix(), tmp_path / name)
    for name in ("big.gz", "dev.gz"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / "a.scores").read_bytes()))
    write(SPEAKERS, tmp_path / "utt2spk", format="utt2spk")
    write(Embeddings(list(SPEAKERS), RNG.normal(size=(len(SPEAKERS), 3))), tmp_path / "xvector.scp")
    rows = [f"t{n},{'fm'[n % 2]}\n" for n in range(36)]
    (tmp_path / "meta.csv").write_text("id,gender\n" + "".join(rows))
    save_model(MODEL, tmp_path / "m.json")
    return tmp_path


@pytest.mark.parametrize("command", EXAMINED)
def test_every_example_runs(cli, folder, command):
    if command == "convert":  # which puts two files together
        write(TrialList.from_pairs(["new"], ["t0"], scores=[1.0]), folder / "b.scores", format="kaldi")
    for line in examples(command):
        line = line.replace("--workers 4", "--memory-limit 1GB")  # a cluster takes long to start
        piped, _, run = line.rpartition("evenscore ")
        text = gzip.decompress((folder / piped.split()[1]).read_bytes()) if piped else None
        result = cli(*shlex.split(run.partition("|")[0]), input=text)
        assert result.exit_code == 0, f"{line}: {result.stderr}"
