"""Every example in the help of compare and choose-cohort runs, in a folder with the files that it names."""

import shlex
from importlib import import_module

import numpy as np
import pytest

from evenscore import Embeddings, ScoreMatrix, ScoreModel, simulate, write

MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9], [0.7]], beta=[[0.8], [0.6]], sigma2=[1.0, 1.5])
QUICK = {
    "compare": ["--bootstrap", "20", "--methods", "raw,s"],
    "choose_cohort": ["--bootstrap", "20", "--repeats", "2"],
}
DEV, NEW, COH = np.arange(120), np.arange(120, 150), np.arange(150, 180)
GENDERS = {"women.list": range(0, 15, 2), "men.list": range(1, 15, 2)}


@pytest.fixture
def folder(tmp_path):
    """Write the scores of three groups, of two utterances a speaker, against each other, and embeddings of each."""
    pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")
    pytest.importorskip("zarr", reason="zarr stores need the extra 'zarr'")
    who = [f"s{n // 2}" for n in range(180)]
    whole, labels = simulate(MODEL, who, who, seed=1)
    for name, *part in (("dev", DEV, DEV), ("eval", NEW, NEW), ("e", NEW, DEV), ("t", DEV, NEW)):
        write(whole.take(*part), tmp_path / f"{name}.npz")
        write(whole.take(*part), tmp_path / f"{name}.zarr")
        write(whole.take(*part), tmp_path / name, format="npz")
        write(whole.take(*part).to_trials(labels.take(*part)), tmp_path / f"{name}.key", format="csv")
    rest = np.arange(150)
    write(ScoreMatrix.concat([whole.take(rest, COH), whole.take(COH, rest)]), tmp_path / "coh", format="npz")
    write(dict(zip([*whole.enroll_ids, *whole.test_ids], who * 2, strict=True)), tmp_path / "utt2spk", format="utt2spk")
    return tmp_path


def write_vectors(folder):
    """Write embeddings in place of scores, a key of some of them, and lists of speakers."""
    rng = np.random.default_rng(2)
    for group, names in (("dev", ["dev.npz", "d.npz"]), ("new", ["x.npz"]), ("coh", ["coh.npz"])):
        who = [f"{group}{n // 3}" for n in range(45)]
        vectors = np.repeat(rng.normal(size=(15, 6)), 3, axis=0) + rng.normal(size=(45, 6))
        for name in names:
            write(Embeddings([f"{group}-{n}" for n in range(45)], vectors, who), folder / name)
    pairs = [(one, other) for one in range(0, 45, 3) for other in range(45) if one != other]
    key = [f"new-{one} new-{other} {'' if one // 3 == other // 3 else 'non'}target" for one, other in pairs]
    (folder / "key").write_text("\n".join(key) + "\n")
    for name, numbers in GENDERS.items():
        (folder / name).write_text("".join(f"coh{n}\n" for n in numbers))


@pytest.mark.parametrize("command", ["compare", "choose_cohort"])
def test_every_example_runs(cli, folder, command):
    text = import_module(f"evenscore.cli.{command}").EXAMPLES.replace("\\\n", " ")
    lines = [shlex.split(line) for line in text.strip().splitlines()]
    for words in sorted(lines, key=lambda words: "--train-embeddings" in words):
        if "--train-embeddings" in words:
            write_vectors(folder)
        if "--workers" in words:  # a cluster takes long to start
            place = words.index("--workers")
            words[place : place + 2] = ["--memory-limit", "1GB"]
        run = cli(*words[1:], *QUICK[command])
        assert run.exit_code == 0, f"{words}: {run.stderr}"
