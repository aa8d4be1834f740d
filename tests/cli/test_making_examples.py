"""Every example in the help of a command that makes something runs, in a folder with the files that it names."""

import shlex
from importlib import import_module

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    Labels,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    save_model,
    simulate,
    simulate_blocks,
    write,
)
from evenscore.files.models import save_plda
from evenscore.plda import fit_plda

TRUTH = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
RNG = np.random.default_rng(8)


def examples(command):
    """Return the lines of a command's examples as lists of words."""
    text = import_module(f"evenscore.cli.{command}").EXAMPLES.replace("\\\n", " ")
    return [shlex.split(line, comments=True) for line in text.strip().splitlines()]


def unscored(trials):
    return TrialList(trials.enroll_ids, trials.test_ids, trials.enroll_index, trials.test_index, labels=trials.labels)


def development(folder):
    """Labelled scores of ten speakers and two phrases, and embeddings of the same utterances."""
    speakers = [f"s{n % 10}" for n in range(20)]
    drawn, _ = simulate(TRUTH, speakers, speakers, seed=8)
    tests = [f"t{n}_p{n // 10}_" for n in range(20)]
    scores = ScoreMatrix(drawn.scores, drawn.enroll_ids, tests)
    key = scores.to_trials(Labels.from_speakers(speakers, speakers, enroll_ids=scores.enroll_ids, test_ids=tests))
    for name in ("dev.npz", "dev.zarr", "a.npz", "b.npz", "d.npz"):
        write(scores, folder / name)
    for name in ("dev.scores", "d"):
        write(scores, folder / name, format="kaldi")
    for name in ("dev.trials", "a", "b", "k"):
        write(unscored(key), folder / name, format="kaldi")
    enroll = scores.enroll_ids.tolist()
    write(dict(zip([*enroll, *tests], speakers * 2, strict=True)), folder / "utt2spk", format="utt2spk")
    (folder / "spk2utt").write_text("".join(f"s{n} e{n} e{n + 10}\n" for n in range(10)))
    for name, ids in (("x", [*enroll, *tests]), ("e", enroll), ("t", tests)):
        said = speakers * (len(ids) // 20)
        write(Embeddings(ids, RNG.normal(size=(len(ids), 4)), said), folder / f"{name}.npz")


def evaluation(folder):
    """Trials of another domain, with scores of a cohort of 300 speakers."""
    speakers, cohort = [f"s{n % 10}" for n in range(20)], [f"c{n}" for n in range(300)]
    blocks, labels = simulate_blocks(TRUTH.rescaled(1.0, 2.5), speakers, speakers, cohort, cohort, seed=8)
    trials = blocks.trials.to_trials(labels)
    for name, table in (("s", blocks.trials), ("e", blocks.enroll), ("t", blocks.test), ("c", blocks.cohort)):
        write(table, folder / name, format="kaldi")
        write(table, folder / f"{name}.zarr")
    write(blocks.trials, folder / "eval.scores", format="kaldi")
    write(unscored(trials.select(np.arange(0, 400, 2))), folder / "some", format="kaldi")
    vectors = RNG.normal(size=(300, 4))
    write(Embeddings([f"c{n}" for n in range(300)], vectors, cohort), folder / "c.npz")


def vectors_to_train_on(folder):
    """Embeddings of many speakers, and a PLDA of few dimensions."""
    names, who = [f"u{n}" for n in range(320)], [f"s{n % 160}" for n in range(320)]
    vectors = RNG.normal(size=(160, 152))[np.arange(320) % 160] + 0.1 * RNG.normal(size=(320, 152))
    write(Embeddings(names, vectors, who), folder / "train.npz")
    write(Embeddings(names, vectors), folder / "xvector.scp")
    write(dict(zip(names, who, strict=True)), folder / "utt2spk", format="utt2spk")


@pytest.mark.parametrize("command", ["app", "fit", "score", "normalize", "adapt", "model", "plda", "simulate", "demo"])
def test_every_example_runs(cli, tmp_path, command):
    pytest.importorskip("zarr", reason="zarr stores need the extra 'zarr'")
    save_model(TRUTH, tmp_path / "m.json")
    if command == "plda":
        vectors_to_train_on(tmp_path)
    else:
        development(tmp_path)
        evaluation(tmp_path)
        takes = Embeddings([f"u{n}" for n in range(40)], RNG.normal(size=(40, 4)), [f"s{n % 10}" for n in range(40)])
        save_plda(fit_plda(takes).model, tmp_path / "plda.json")
    for words in examples(command):
        if "--workers" in words:  # a cluster takes long to start
            place = words.index("--workers")
            words[place : place + 2] = ["--memory-limit", "1GB"]
        if "demo" in words:
            words += ["--bootstrap", "20", "--methods", "raw"]
        result = cli(*words[1:])
        assert result.exit_code == 0, f"{words}: {result.stderr}"
