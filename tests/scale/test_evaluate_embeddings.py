"""`evaluate` and `calibrate` from embeddings give what they give of the scores that `score` writes of them."""

import json
import shutil

import numpy as np
import pytest

from evenscore import Embeddings, ScoreMatrix, TrialList, fit_plda, read_scores, write
from evenscore.cli.embedded_scores import EmbeddedScores, embedded_scores
from evenscore.cli.inputs import is_large
from evenscore.cli.labelled import LabelSources
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.scorers import EmbeddingChoices
from evenscore.files import chunked_output
from evenscore.files.models import save_plda
from in_process import output_of
from scale.chunked_examples import contents

CHUNKS = ("--memory-limit", "1GB")
EVAL = ("--enroll-embeddings", "x.npz", "--test-embeddings", "y.npz")
DEV = ("--train-embeddings", "c.npz", "--train-test-embeddings", "d.npz")
SPEAKERS = ("--enroll-speakers", "utt2spk")
WAYS = [((), ".npz"), (CHUNKS, ".zarr")]
EXACT = ("cllr", "act_dcf", "n_target", "n_nontarget", "n_unknown")


def spoken(prefix, count, people, seed):
    """Return noisy vectors of some people, who are the same for each prefix of one seed."""
    who = np.arange(count) % people
    centers = np.random.default_rng(seed).normal(size=(people, 6))
    vectors = centers[who] + np.random.default_rng([seed, *prefix.encode()]).normal(size=(count, 6))
    return Embeddings([f"{prefix}{n}" for n in range(count)], vectors, [f"p{seed}-{n}" for n in who])


def listed(enroll, test, count, name):
    """Write a key of some pairs, in no order."""
    rows, columns = np.divmod(np.random.default_rng(3).permutation(len(enroll) * len(test))[:count], len(test))
    labels = enroll.speakers[rows] == test.speakers[columns]
    write(TrialList.from_pairs(enroll.ids[rows], test.ids[columns], labels=labels), name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Give a folder with embeddings of two sets of people, keys, a map of speakers, and the scores `score` makes."""
    folder = tmp_path_factory.mktemp("made")
    sets = {"x": (23, 7, 1), "y": (31, 7, 1), "c": (25, 9, 2), "d": (29, 9, 2)}
    sides = {name: spoken(name, *how) for name, how in sets.items()}
    for name, one in sides.items():
        write(one, folder / f"{name}.npz")
        write(Embeddings(one.ids, one.vectors), folder / f"{name}-bare.npz")
    listed(sides["x"], sides["y"], 400, folder / "key")
    listed(sides["c"], sides["d"], 500, folder / "dev.key")
    people = [(name, who) for one in sides.values() for name, who in zip(one.ids, one.speakers, strict=True)]
    (folder / "utt2spk").write_text("".join(f"{name} {who}\n" for name, who in people))
    for enroll, test, output in (("x", "y", "s.npz"), ("c", "d", "train.npz")):
        files = ("--enroll", folder / f"{enroll}.npz", "--test", folder / f"{test}.npz", "-o", folder / output)
        output_of("score", *files)
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """Give a copy of that folder to work in, and small chunks."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ScaleChoices, "tile_bytes", 600.0)
    monkeypatch.setattr("evenscore.tables.tile._TRIALS", 100)
    lazy = EmbeddedScores.lazy
    monkeypatch.setattr(EmbeddedScores, "lazy", lambda self: lazy(self).in_tiles(600.0, (12, 16)))
    return tmp_path


def figures(*arguments):
    said = output_of("evaluate", *arguments, "--json")
    return json.loads(said[said.index("{") :])["pooled"]  # after warnings


def calibrated(*arguments):
    """Return the LLRs of `calibrate`, in the order of the scores that `score` wrote."""
    output_of("calibrate", *arguments)
    table = read_scores(arguments[-1])
    matrix = table if isinstance(table, ScoreMatrix) else table.to_matrix()
    order = read_scores("s.npz")
    return matrix.align(order.enroll_ids, order.test_ids)


@pytest.mark.parametrize(
    ("sources", "of_scores"),
    [
        (EVAL, SPEAKERS),
        (("--enroll-embeddings", "x-bare.npz", "--test-embeddings", "y-bare.npz", *SPEAKERS), SPEAKERS),
        ((*EVAL, "--key", "key"), ("--key", "key", "--unmatched", "drop")),
    ],
    ids=["own speakers", "map", "key"],
)
def test_figures_are_those_of_the_written_scores(files, sources, of_scores):
    wanted = figures("s.npz", *of_scores, "--points", "0.1,10,1")
    found = figures(*sources, "--points", "0.1,10,1")
    numbers = [name for name, value in wanted.items() if isinstance(value, float | int)]
    assert [found[name] for name in numbers] == pytest.approx([wanted[name] for name in numbers], rel=1e-12)
    found = figures(*sources, "--points", "0.1,10,1", *CHUNKS)
    for name in EXACT:
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name
    for name, (low, high) in found["bounds"].items():
        assert low - 1e-12 <= wanted[name] <= high + 1e-12, name


def test_every_scorer_and_averaged_enrolments(files):
    save_plda(fit_plda(spoken("c", 90, 9, 2)).model, "p.json")
    (files / "models").write_text("".join(f"m{n} x{n} x{n + 7}\n" for n in range(7)))
    (files / "who").write_text("".join(f"m{n} p1-{n}\n" for n in range(7)) + (files / "utt2spk").read_text())
    ways = [("--scorer", "dot", "--center", "c.npz"), ("--scorer", "plda", "--plda", "p.json")]
    for how in (*ways, ("--enroll-map", "models", "--enroll-length-norm", "before")):
        output_of("score", "--enroll", "x.npz", "--test", "y.npz", *how, "-o", "made.npz")
        wanted = figures("made.npz", "--enroll-speakers", "who")
        assert figures(*EVAL, *how, *CHUNKS)["cllr"] == pytest.approx(wanted["cllr"], rel=1e-12)


def test_intervals_and_conditions(files):
    (files / "meta.csv").write_text("test,phone\n" + "".join(f"y{n},p{n % 2}\n" for n in range(31)))
    how = ("--bootstrap", "20", "--by", "phone", "--metadata", "meta.csv")
    wanted = figures("s.npz", *SPEAKERS, *how)["intervals"]
    for more in ((), CHUNKS):
        found = figures(*EVAL, *how, *more)["intervals"]
        assert [found[name] for name in ("eer", "cllr")] == [pytest.approx(wanted[name]) for name in ("eer", "cllr")]


def test_no_utterance_meets_itself_unless_a_key_says_so(files):
    same = ("--enroll-embeddings", "y.npz", "--test-embeddings", "y.npz")
    for more in ((), CHUNKS):
        found = figures(*same, *more)
        targets = sum(n * (n - 1) for n in np.bincount(np.arange(31) % 7))
        assert (found["n_target"], found["n_nontarget"]) == (targets, 31 * 30 - targets)
    (files / "itself").write_text("y0 y0 target\ny0 y1 nontarget\ny0 y7 target\n")
    assert figures(*same, "--key", "itself")["n_target"] == 2
    write(spoken("y", 31, 7, 1), "again.npz")
    said = output_of("evaluate", "--enroll-embeddings", "y.npz", "--test-embeddings", "again.npz")
    assert "warning: 31 ids stand on both sides of y.npz and again.npz, and utterances are not scored against" in said


def test_utterances_of_unknown_speakers_are_not_targets_of_each_other(files):
    x, y = spoken("x", 23, 7, 1), spoken("y", 31, 7, 1)
    for one, name in ((x, "x.npz"), (y, "y.npz")):
        write(Embeddings(one.ids, one.vectors, [None, None, *one.speakers[2:]]), name)
    wanted = figures(*EVAL)
    assert wanted["n_unknown"] == 23 * 31 - 21 * 29
    found = figures(*EVAL, *CHUNKS)
    assert [found[name] for name in EXACT] == pytest.approx([wanted[name] for name in EXACT], rel=1e-12)


@pytest.mark.parametrize(
    ("train", "of_scores", "ways"),
    [
        (DEV, ("--train", "train.npz", *SPEAKERS), WAYS),
        (
            (*DEV, "--train-key", "dev.key"),
            ("--train", "train.npz", "--train-key", "dev.key", "--unmatched", "drop"),
            WAYS,
        ),
        (("--cross-validate",), ("--cross-validate", *SPEAKERS), WAYS[:1]),
        ((*DEV, "--saturate"), ("--train", "train.npz", *SPEAKERS, "--saturate"), WAYS[1:]),
    ],
    ids=["train", "key", "cross-validate", "saturate"],
)
def test_llrs_are_those_of_the_written_scores(files, train, of_scores, ways):
    for how, ending in ways:
        wanted = calibrated(*of_scores, "s.npz", *how, "-o", f"wanted{ending}")
        found = calibrated(*train, *EVAL, *how, "-o", f"found{ending}")
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9, atol=1e-9)


def test_kept_calibrations_listed_trials_and_mixed_sources(files):
    said = output_of("calibrate", *DEV, "--save", "c.json")
    assert said == output_of("calibrate", "--train", "train.npz", *SPEAKERS, "--save", "d.json")
    info = json.loads((files / "c.json").read_text())["info"]
    assert (info["train"], info["scorer"]) == (["c.npz and d.npz"], "cosine")
    wanted = calibrated("--load", "d.json", "s.npz", "-o", "wanted.npz")
    for output, more in (("listed.csv", ()), ("listed.parquet", CHUNKS)):
        output_of("calibrate", "--load", "c.json", *EVAL, "--trials", "key", *more, "-o", output)
        table = read_scores(output)
        assert len(table) == 400
        rows, columns = table.enroll_index, table.test_index
        at = wanted.align(table.enroll_ids, table.test_ids).scores[rows, columns]
        np.testing.assert_allclose(table.scores, at, rtol=1e-12)
    mixed = calibrated("--train", "train.npz", *SPEAKERS, *EVAL, "-o", "mixed.npz")
    np.testing.assert_allclose(mixed.scores, wanted.scores, rtol=1e-12)
    mixed = calibrated(*DEV, "s.npz", "-o", "mixed.npz")
    np.testing.assert_allclose(mixed.scores, wanted.scores, rtol=1e-12)


def test_cross_validation_of_listed_trials_has_the_folds_of_memory(files):
    how = ("--cross-validate", *EVAL, "--key", "key", "--folds", "3", "--json")
    one = json.loads(output_of("calibrate", *how, "-o", "one.csv"))
    two = json.loads(output_of("calibrate", *how, *CHUNKS, "-o", "two.parquet"))
    assert one["speakers_from"] == two["speakers_from"] == "the embeddings"
    assert two["cllr"] == pytest.approx(one["cllr"], rel=1e-6)
    found, wanted = read_scores("two.parquet"), read_scores("one.csv")
    assert found.pair(5) == wanted.pair(5)
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-3)


def test_a_run_that_was_cut_short_goes_on(files, monkeypatch):
    how = ("calibrate", *DEV, *EVAL, *CHUNKS)
    output_of(*how, "-o", "whole.zarr")
    write_one, written = chunked_output._write_one, []

    def broken(task, place):
        written.append(place)
        if len(written) > 3:
            raise MemoryError
        write_one(task, place)

    with monkeypatch.context() as patched:
        patched.setattr(chunked_output, "_write_one", broken)
        output_of(*how, "-o", "part.zarr", code=1)
    assert "another training" in output_of(*how, "--prior", "0.1", "--resume", "-o", "part.zarr", code=2)
    assert "another scores" in output_of(*how, "--center", "c.npz", "--resume", "-o", "part.zarr", code=2)
    monkeypatch.setattr("evenscore.metrics.counting.count_table", None)  # the calibration was kept
    output_of(*how, "--resume", "-o", "part.zarr")
    assert contents(files / "part.zarr") == contents(files / "whole.zarr")


def test_embeddings_of_many_pairs_are_scored_in_chunks_unasked(files, monkeypatch):
    source = embedded_scores(EmbeddingChoices(enroll_embeddings="x.npz", test_embeddings="y.npz"), LabelSources())
    assert not is_large(ScaleChoices(), [source])
    monkeypatch.setattr("evenscore.files.streams.memory_size", lambda: 4 * 32 * 23 * 31 - 1)
    assert is_large(ScaleChoices(), [source])
    monkeypatch.setattr(EmbeddedScores, "table", None)  # the matrix of all scores
    assert "bounds" in figures(*EVAL)
    assert calibrated(*DEV, *EVAL, "-o", "a.zarr").shape == (23, 31)
    monkeypatch.setattr("evenscore.cli.evaluation.MOST_IN_MEMORY", 700)
    said = output_of("evaluate", *EVAL, "--bootstrap", "9", code=2)
    assert said == (
        "error: x.npz and y.npz: --bootstrap needs all trials in memory, and 713 are too many; leave it out, or "
        "evaluate a list of at most 700 trials\n"
    )


WRONG = {
    ("evaluate", "s.npz", *EVAL): "both scores and embeddings were given; evaluate one of the two",
    ("evaluate",): "there is nothing to evaluate; give SCORES, or --enroll-embeddings and --test-embeddings",
    ("evaluate", "s.npz", "-k", "key", "--scorer", "dot"): "--scorer has no meaning without embeddings; leave it out",
    ("evaluate", *EVAL[:3], "y-bare.npz"): "x.npz and y-bare.npz: the scores have no labels; give --key, or",
    ("evaluate", *EVAL[:3], "short.npz"): "x.npz and short.npz: enrolments have 6 dimensions, but tests have 2; both",
    ("evaluate", *EVAL, "--enroll-speakers", "few"): "few has no speaker for enrolment 'x5', 'x6', 'x7' and 15 more",
    ("evaluate", *EVAL, "--key", "odd"): "odd: y.npz has no embedding of test 'nobody'; add it, or leave out such",
    ("evaluate", *EVAL, "--key", "dev.key", "--unmatched", "drop"): "dev.key lists no trial of the embeddings of x.npz",
    ("evaluate", *EVAL, "--enroll-length-norm", "both"): "name a file of --enroll-map",
    ("calibrate", "--load", "c.json", "s.npz", *EVAL, "-o", "o.npz"): "both SCORES and --enroll-embeddings were given",
    ("calibrate", *DEV, "--train", "train.npz", "--save", "o"): "both --train and --train-embeddings were given",
    ("calibrate", *DEV, "s.npz", "--trials", "key", "-o", "o"): "--trials lists the trials of embeddings, if no key",
    ("calibrate", "--cross-validate", *EVAL, "-k", "key", "--trials", "key", "-o", "o"): "leave out --trials or --key",
    (
        "calibrate",
        "--train-embeddings",
        "c-bare.npz",
        "--save",
        "o",
    ): "c-bare.npz: the scores have no labels; give --train-key",
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.items(), ids=[" ".join(one[:4]) for one in WRONG])
def test_wrong_use_is_refused_in_one_sentence(files, arguments, reason):
    (files / "few").write_text("".join(f"x{n} p1-{n % 2}\n" for n in range(5)))
    (files / "odd").write_text((files / "key").read_text() + "x0 nobody target\n")
    write(Embeddings(["a"], [[1.0, 2.0]], ["p"]), "short.npz")
    said = output_of(*arguments, code=2)
    assert said.startswith("error: ")
    assert reason in said
    assert said.count("\n") == 1
    assert not list(files.glob("o*")) or list(files.glob("o*")) == [files / "odd"]
