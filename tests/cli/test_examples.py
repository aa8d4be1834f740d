"""Every example in the help of every command runs, in a folder with the files that it names."""

import functools
import gzip
import shlex
import shutil
from importlib import import_module

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    Labels,
    LogisticCalibration,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    save_calibration,
    save_model,
    simulate,
    simulate_blocks,
    write,
)
from evenscore.cli.app import COMMANDS
from evenscore.files.models import save_plda, save_transform
from evenscore.plda import PLDA, fit_plda
from evenscore.scoring import fit_transform

MODEL = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
RNG = np.random.default_rng(8)
QUICK = {
    "compare": ["--bootstrap", "20", "--methods", "raw,s"],
    "choose-cohort": ["--bootstrap", "20", "--repeats", "2"],
    "demo": ["--bootstrap", "20", "--methods", "raw"],
    "fit": ["--max-iter", "5"],
}


def examples(command):
    """Return the lines of a command's examples, without what only a person reads."""
    text = import_module(f"evenscore.cli.{command.replace('-', '_')}").EXAMPLES.replace("\\\n", " ")
    return [shlex.join(shlex.split(line, comments=True)) for line in text.strip().splitlines()]


def unscored(trials):
    return TrialList(trials.enroll_ids, trials.test_ids, trials.enroll_index, trials.test_index, labels=trials.labels)


def noisy(*size):
    """Return vectors of as many speakers, who say as many utterances each in turn."""
    speakers, times, dim = size
    return np.tile(RNG.normal(size=(speakers, dim)), (times, 1)) + 0.3 * RNG.normal(size=(speakers * times, dim))


def measured(folder):
    """Scores of several systems on the same trials, and what is known about them."""
    enroll, test = [f"e{n}" for n in range(12)], [f"t{n}" for n in range(36)]
    speakers = [f"s{n}" for n in range(12)], [f"s{n % 12}" for n in range(36)]
    key = Labels.from_speakers(*speakers, enroll_ids=enroll, test_ids=test)

    def scores():
        return ScoreMatrix(RNG.normal(4.0 * key.matrix - 2.0, 1.5), enroll, test)

    lists = ("dev.scores", "eval.scores", "e.scores", "a.scores", "b.scores", "raw.scores", "norm.scores", "llr.scores")
    for name in (*lists, "a", "b", "d1", "d2", "e1", "e2"):
        write(scores(), folder / name, format="kaldi")
    for name in ("k", "dev.trials", "eval.trials", "eval.key"):
        write(unscored(scores().to_trials(key)), folder / name, format="kaldi")
    for name in ("raw.npz", "llr.npz", "eval.zarr", "dev.h5"):
        write(scores(), folder / name)
    for name in ("big.gz", "dev.gz"):
        (folder / name).write_bytes(gzip.compress((folder / "a.scores").read_bytes()))
    known = dict(zip([*enroll, *test], [*speakers[0], *speakers[1]], strict=True))
    write(known, folder / "utt2spk", format="utt2spk")
    write(Embeddings(list(known), RNG.normal(size=(len(known), 3))), folder / "xvector.scp")
    (folder / "meta.csv").write_text("id,gender\n" + "".join(f"t{n},{'fm'[n % 2]}\n" for n in range(36)))


def officially_measured(folder):
    """The same, and keys with the columns of an evaluation and with spoofed trials."""
    measured(folder)
    scores = (folder / "a.scores").read_text()
    pairs = [line.split()[:2] for line in scores.splitlines()]
    known = dict(line.split() for line in (folder / "utt2spk").read_text().splitlines())
    words = ["target" if known[enroll] == known[test] else "nontarget" for enroll, test in pairs]
    columns = ("modelid", "segmentid", "targettype", "num_enroll_segs", "phone_num_match", "gender", "source_type")
    facts = [("13"[n % 2], "NY"[n % 3 > 0], ("male", "female")[n % 5 > 1], "pstn") for n in range(len(pairs))]
    rows = [columns, *((*pair, word, *fact) for pair, word, fact in zip(pairs, words, facts, strict=True))]
    (folder / "sre18_trial_key.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    (folder / "sre18.tsv").write_text(scores)
    (folder / "sasv.tsv").write_text(scores)
    classes = ["spoof" if n % 4 == 3 else word for n, word in enumerate(words)]
    rows = [(*pair, word) for pair, word in zip(pairs, classes, strict=True)]
    (folder / "protocol.txt").write_text("".join(" ".join(row) + "\n" for row in rows))


def to_be_joined(folder):
    """The same, but a second file with other trials."""
    measured(folder)
    write(TrialList.from_pairs(["new"], ["t0"], scores=[1.0]), folder / "b.scores", format="kaldi")


def to_train_on(folder):
    """Labelled scores of ten speakers and two phrases, and embeddings of the same utterances."""
    speakers = [f"s{n % 10}" for n in range(20)]
    drawn, _ = simulate(MODEL, speakers, speakers, seed=8)
    enroll, tests = drawn.enroll_ids.tolist(), [f"t{n}_p{n // 10}_" for n in range(20)]
    scores = ScoreMatrix(drawn.scores, enroll, tests)
    key = unscored(scores.to_trials(Labels.from_speakers(speakers, speakers, enroll_ids=enroll, test_ids=tests)))
    for name in ("dev.npz", "dev.zarr", "a.npz", "b.npz", "d.npz"):
        write(scores, folder / name)
    for name in ("dev.scores", "d"):
        write(scores, folder / name, format="kaldi")
    for name in ("dev.trials", "a", "b", "k"):
        write(key, folder / name, format="kaldi")
    write(dict(zip([*enroll, *tests], speakers * 2, strict=True)), folder / "utt2spk", format="utt2spk")
    (folder / "spk2utt").write_text("".join(f"s{n} e{n} e{n + 10}\n" for n in range(10)))
    for name, ids in (("x", [*enroll, *tests]), ("e", enroll), ("t", tests)):
        write(Embeddings(ids, RNG.normal(size=(len(ids), 4)), speakers * (len(ids) // 20)), folder / f"{name}.npz")
    takes = Embeddings([f"u{n}" for n in range(40)], noisy(10, 4, 4), speakers * 2)
    save_plda(fit_plda(takes).model, folder / "plda.json")
    save_transform(fit_transform(takes).transform, folder / "transform.json")


def to_normalize(folder):
    """The same, and trials of another domain with scores of a cohort of 300 speakers."""
    to_train_on(folder)
    speakers, cohort = [f"s{n % 10}" for n in range(20)], [f"c{n}" for n in range(300)]
    blocks, labels = simulate_blocks(MODEL.rescaled(1.0, 2.5), speakers, speakers, cohort, cohort, seed=8)
    for name, table in (("s", blocks.trials), ("e", blocks.enroll), ("t", blocks.test), ("c", blocks.cohort)):
        write(table, folder / name, format="kaldi")
        write(table, folder / f"{name}.zarr")
    write(blocks.trials, folder / "eval.scores", format="kaldi")
    targets = TrialList.from_pairs([blocks.trials.enroll_ids[0]], [blocks.cohort.test_ids[0]], labels=[1])
    write(targets, folder / "e.key", format="kaldi")
    known = unscored(blocks.trials.to_trials(labels).select(np.arange(0, 400, 2)))
    write(known, folder / "some", format="kaldi")
    write(Embeddings(cohort, RNG.normal(size=(300, 4)), cohort), folder / "c.npz")


def bundled(folder):
    """The same, and a calibration."""
    to_normalize(folder)
    save_calibration(LogisticCalibration(weights=[2.0], quality_weights=[], offset=-1.0), folder / "cal.json")


def vectors(folder):
    """Embeddings of more dimensions than the PLDA keeps, and a PLDA to be adapted to them."""
    names, who = [f"u{n}" for n in range(320)], [f"s{n % 160}" for n in range(320)]
    found = noisy(160, 2, 152)
    for name in ("train", "new"):
        write(Embeddings(names, found, who), folder / f"{name}.npz")
    save_plda(PLDA(mean=np.zeros(152), between=np.eye(152), within=np.eye(152)), folder / "plda.json")
    write(Embeddings(names, found), folder / "xvector.scp")
    write(dict(zip(names, who, strict=True)), folder / "utt2spk", format="utt2spk")


def compared(folder):
    """Scores of three groups, of two utterances a speaker, against each other."""
    who = [f"s{n // 2}" for n in range(180)]
    whole, labels = simulate(MODEL, who, who, seed=1)
    dev, new, cohort, others = np.arange(120), np.arange(120, 150), np.arange(150, 180), np.arange(150)
    for name, *part in (("dev", dev, dev), ("eval", new, new), ("e", new, dev), ("t", dev, new)):
        write(whole.take(*part), folder / f"{name}.npz")
        write(whole.take(*part), folder / f"{name}.zarr")
        write(whole.take(*part), folder / name, format="npz")
        write(whole.take(*part).to_trials(labels.take(*part)), folder / f"{name}.key", format="csv")
    write(ScoreMatrix.concat([whole.take(others, cohort), whole.take(cohort, others)]), folder / "coh", format="npz")
    write(dict(zip([*whole.enroll_ids, *whole.test_ids], who * 2, strict=True)), folder / "utt2spk", format="utt2spk")


def compared_vectors(folder):
    """Embeddings in place of scores, a key of some of them, and lists of speakers."""
    for group, names in (("dev", ["dev.npz", "d.npz"]), ("new", ["x.npz"]), ("coh", ["coh.npz"])):
        said = Embeddings([f"{group}-{n}" for n in range(45)], noisy(15, 3, 6), [f"{group}{n % 15}" for n in range(45)])
        for name in names:
            write(said, folder / name)
    pairs = [(one, other) for one in range(15) for other in range(45) if one != other]
    key = [f"new-{one} new-{other} {'' if one == other % 15 else 'non'}target" for one, other in pairs]
    (folder / "key").write_text("\n".join(key) + "\n")
    for first, name in enumerate(("women.list", "men.list")):
        (folder / name).write_text("".join(f"coh{n}\n" for n in range(first, 15, 2)))


#: What makes the files that the examples name.
FOLDERS = {
    **dict.fromkeys(("app", "fit", "score", "normalize", "adapt", "model", "simulate", "demo"), to_normalize),
    **dict.fromkeys(("info", "calibrate", "plot", "formats"), measured),
    "evaluate": officially_measured,
    **dict.fromkeys(("compare", "choose-cohort"), compared),
    "convert": to_be_joined,
    "plda": vectors,
    "transform": vectors,
    "verifier": bundled,
}


@pytest.fixture(scope="module")
def folder_for(tmp_path_factory):
    """Make the files of a command once for all commands that take the same ones."""

    @functools.cache
    def made(make):
        folder = tmp_path_factory.mktemp(make.__name__)
        make(folder)
        save_model(MODEL, folder / "m.json")
        return folder

    return lambda command: made(FOLDERS[command])


#: `test_demo` runs the same command with other options.
SLOW = {"demo": pytest.mark.slow}


@pytest.mark.parametrize("command", ["app", *(pytest.param(name, marks=SLOW.get(name, ())) for name in COMMANDS)])
def test_every_example_runs(cli, folder_for, tmp_path, command):
    pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")
    pytest.importorskip("zarr", reason="zarr stores need the extra 'zarr'")
    shutil.copytree(folder_for(command), tmp_path, dirs_exist_ok=True)
    lines = examples(command)
    assert lines
    for line in sorted(lines, key=lambda line: "--train-embeddings" in line):
        if "--train-embeddings" in line:
            compared_vectors(tmp_path)
        piped, _, run = line.rpartition("evenscore ")
        text = gzip.decompress((tmp_path / piped.split()[1]).read_bytes()) if piped else None
        words = shlex.split(run.partition(" '|' ")[0])
        if "--workers" in words:  # a cluster takes long to start
            place = words.index("--workers")
            words[place : place + 2] = ["--memory-limit", "1GB"]
        quick = [] if "--norm" in words else QUICK.get(words[0], [])  # some options are for one norm only
        result = cli(*words, *quick, input=text)
        assert result.exit_code == 0, f"{line}: {result.stderr}"
