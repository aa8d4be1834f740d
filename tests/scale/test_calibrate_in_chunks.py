"""`calibrate` on scores that are read in chunks: the same LLRs as in memory, and runs that go on after a kill."""

import json
import shutil

import numpy as np
import pytest

from evenscore import ScoreMatrix, TrialList, read_scores, write
from evenscore.cli.options import ScaleChoices
from evenscore.files import write_table
from in_process import output_of
from scale.chunked_examples import contents, ids, in_tiles

E, T, C, D = ids("e", 37), ids("t", 41), ids("c", 23), ids("d", 29)
CHUNKS = ("--memory-limit", "1GB")
SPEAKERS = ("--enroll-speakers", "utt2spk")


def run(*arguments, code=0):
    return output_of("calibrate", *arguments, code=code)


def scored(rng, rows, columns, missing=0.05):
    """Return scores of nine speakers, some of which are missing, and some of whose targets are outliers."""
    same = np.arange(len(rows))[:, None] % 9 == np.arange(len(columns)) % 9
    scores = rng.normal(size=same.shape) + 4.0 * (same & (rng.random(same.shape) > 0.04))
    scores[rng.random(same.shape) < missing] = np.nan
    return ScoreMatrix(scores, rows, columns, missing="nan")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a folder with scores to train on and to calibrate, in memory's formats and in chunks, a key and a map."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("made")
    for name, sides in {"train": (C, D), "s": (E, T), "full": (E, T)}.items():
        table = scored(rng, *sides, missing=0.05 * (name != "full"))
        write(table, folder / f"{name}.npz")
        write_table(in_tiles(table), folder / f"{name}.zarr")
        trials = table.to_trials()
        key = trials.with_labels(trials.enroll_index % 9 == trials.test_index % 9)
        write(key, folder / f"{name}.parquet")
        write(TrialList(*(getattr(key, part) for part in PARTS), labels=key.labels), folder / f"{name}.key")
    np.save(folder / "train.npy", read_scores(folder / "train.npz").scores)
    for side, names in (("enroll", C), ("test", D)):
        (folder / f"train.{side}_ids").write_text("".join(f"{name}\n" for name in names))
    people = ((n, name) for names in (E, T, C, D) for n, name in enumerate(names))
    (folder / "utt2spk").write_text("".join(f"{name} s{n % 9}\n" for n, name in people))
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """Give a copy, which a test may spoil, as the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ScaleChoices, "tile_bytes", 3000.0)
    monkeypatch.setattr("evenscore.tables.tile._TRIALS", 500)
    return tmp_path


PARTS = ("enroll_ids", "test_ids", "enroll_index", "test_index")
METHODS = {
    "logistic": 1e-6,
    "gaussian": 1e-12,
    "bayesian": 1e-12,
    "unsupervised": 1e-4,
    "pav": 1e-4,
    "saturating": 1e-4,
}


def parameters(path):
    return json.loads(path.read_text())["parameters"]


@pytest.mark.parametrize(("method", "tolerance"), METHODS.items())
def test_every_method_from_every_source(files, method, tolerance):
    how = ("--method", method)
    one = run("--train", "train.npz", *SPEAKERS, *how, "s.npz", "-o", "one.npz", "--save", "one.json")
    wanted = parameters(files / "one.json")
    sources = {"train.npy": ("--train-key", "train.key")}
    if method in ("logistic", "unsupervised"):
        sources |= {"train.zarr": SPEAKERS, "train.parquet": ()}
    for source, labels in sources.items():
        two = run("--train", source, *labels, *how, "s.zarr", *CHUNKS, "-o", "two.zarr", "--save", "two.json")
        assert two == one or method == "unsupervised"
        for name, value in parameters(files / "two.json").items():
            assert np.shape(value) == np.shape(wanted[name])
            np.testing.assert_allclose(np.ravel(value), np.ravel(wanted[name]), rtol=tolerance, atol=tolerance)
        found = read_scores("two.zarr").scores
        np.testing.assert_allclose(found, read_scores("one.npz").scores, rtol=10 * tolerance, atol=10 * tolerance)
        shutil.rmtree("two.zarr")


def test_kept_calibrations_are_applied_exactly(files):
    run("--train", "train.npz", *SPEAKERS, "--save", "c.json")
    run("--load", "c.json", "s.npz", "-o", "one.npz")
    run("--load", "c.json", "s.zarr", *CHUNKS, "-o", "two.zarr")
    run("--load", "c.json", "s.parquet", *CHUNKS, "-o", "three.parquet")
    run("--load", "c.json", "s.zarr", *CHUNKS, "-o", "four.npz")
    one = read_scores("one.npz")
    assert one == read_scores("two.zarr") == read_scores("four.npz")
    listed = read_scores("three.parquet")
    assert listed.to_matrix().align(E, T) == one
    assert (listed.labels == read_scores("s.parquet").labels).all()


@pytest.mark.parametrize("labels", [SPEAKERS, ("--key", "full.key")], ids=["speakers", "key"])
def test_cross_validation(files, labels):
    how = ("--cross-validate", *labels, "--folds", "3", "--json")
    one = run(*how, "full.npz", "-o", "one.npz")
    two = run(*how, "full.zarr", *CHUNKS, "-o", "two.zarr")
    three = run(*how, "--key", "full.key", "full.parquet", *CHUNKS, "-o", "three.parquet")
    one, two, three = map(json.loads, (one, two, three))
    for name in ("folds", "speakers", "speakers_from", "calibrations"):
        assert one[name] == two[name] == three[name]
    assert two["cllr"] == pytest.approx(one["cllr"], rel=1e-6)
    assert three["cllr"] == pytest.approx(two["cllr"], rel=1e-9)
    found = read_scores("two.zarr").scores
    np.testing.assert_allclose(found, read_scores("one.npz").scores, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(read_scores("three.parquet").to_matrix().align(E, T).scores, found, rtol=1e-9)


def test_cross_validation_of_a_calibration_that_chooses_by_speaker(files, monkeypatch):
    monkeypatch.setattr("evenscore.calibrate.saturating.SHARES", (0.0, 1e-2, 3e-2))
    how = ("--cross-validate", *SPEAKERS, "--saturate", "full.zarr", *CHUNKS)
    facts = json.loads(run(*how, "--folds", "4", "--json", "-o", "out.zarr"))
    measured = json.loads(output_of("evaluate", "out.zarr", *SPEAKERS, "--json"))["pooled"]
    assert facts["cllr"] == pytest.approx(measured["cllr"], rel=1e-4)
    assert measured["calibration_loss"] < 0.1
    few = run(*how, "--folds", "3", "-o", "few.zarr", code=2)
    assert "without the speakers of folds 0 and 1: the saturating calibration" in few
    assert "of which too few are left; give more folds (at least 4)" in few


@pytest.mark.parametrize("target", ["out.zarr", "out.parquet"])
def test_a_run_that_was_cut_short_goes_on(files, monkeypatch, target):
    train = ("--train", "train.zarr", *SPEAKERS, "s.zarr", *CHUNKS)
    from evenscore.files import chunked_output

    write_one, left = chunked_output._write_one, [10**6]

    def broken(task, place):
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        write_one(task, place)

    monkeypatch.setattr(chunked_output, "_LISTED_BYTES", 2000)
    monkeypatch.setattr(chunked_output, "_write_one", broken)
    run(*train, "-o", f"whole.{target[4:]}", "--save", "whole.json")
    left[0] = 1
    run(*train, "-o", target, code=1)
    assert (files / f"{target}.partial").is_dir()
    left[0] = 10**6
    assert "go on with it (--resume)" in run(*train, "-o", target, code=2)
    assert "another training" in run(*train, "--prior", "0.1", "--resume", "-o", target, code=2)
    assert "another scores" in run("--train", "train.zarr", *SPEAKERS, "train.zarr", "--resume", "-o", target, code=2)

    def never(*args, **kwargs):
        raise AssertionError("the calibration was kept, so nothing is to be counted again")

    monkeypatch.setattr("evenscore.metrics.counting.count_table", never)
    run(*train, "--resume", "-o", target, "--save", "again.json")
    assert contents(files / target) == contents(files / f"whole.{target[4:]}")
    assert (files / "again.json").read_bytes() == (files / "whole.json").read_bytes()


def cut_short(monkeypatch, *how):
    """Run a command that fails when its first chunk is to be written."""

    def broken(task, place):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("evenscore.files.chunked_output._write_one", broken)
        run(*how, code=1)


def test_a_cross_validation_that_was_cut_short_goes_on(files, monkeypatch):
    how = ("--cross-validate", *SPEAKERS, "s.zarr", *CHUNKS)
    run(*how, "-o", "whole.zarr")
    cut_short(monkeypatch, *how, "-o", "out.zarr")
    assert "another training" in run(*how, "--folds", "4", "--resume", "-o", "out.zarr", code=2)
    run(*how, "--resume", "-o", "out.zarr")
    assert contents(files / "out.zarr") == contents(files / "whole.zarr")


def test_cheating_is_noticed(files):
    said = run("--train", "s.zarr", *SPEAKERS, "s.zarr", *CHUNKS, "-o", "out.zarr")
    assert "were trained on, which is cheating" in said
    said = run("--method", "unsupervised", "s.zarr", *CHUNKS, "-o", "out.zarr")
    assert "cheating" not in said


def test_infinite_llrs_and_scores(files):
    how = ("--method", "pav", "--smoothing", "0", "--train", "train.zarr", *SPEAKERS)
    assert "no place for the infinite LLRs" in run(*how, "s.zarr", *CHUNKS, "-o", "out.zarr", code=2)
    run(*how, "s.parquet", *CHUNKS, "-o", "out.parquet")
    run("--method", "pav", "--smoothing", "0", "--train", "train.npz", *SPEAKERS, "s.npz", "-o", "one.parquet")
    one, two = (read_scores(name, infinite="accept") for name in ("one.parquet", "out.parquet"))
    np.testing.assert_allclose(two.scores, one.scores, rtol=1e-12)
    table = read_scores("train.npz").scores.copy()
    table[0, 0] = np.inf
    np.save("train.npy", table)
    train = ("--train", "train.npy", *SPEAKERS, "s.zarr", "-o", "out.zarr")
    assert "infinite" in run(*train, code=2)


def test_what_cannot_be(files):
    train = ("--train", "train.zarr", *SPEAKERS)
    two = run("--cross-validate", *SPEAKERS, "s.zarr", "s.npz", *CHUNKS, "-o", "out.zarr", code=2)
    assert "the cross-validation of a fusion cannot be had in chunks; leave it out, or use scores that fit into" in two
    folds = ("--cross-validate", "3", *SPEAKERS, "--quality", "snr")
    assert "with quality measures cannot be had in chunks" in run(*folds, "s.zarr", *CHUNKS, "-o", "o.zarr", code=2)
    assert "the scores have no measure 'snr'" in run(
        *train, "--quality", "snr", "s.zarr", *CHUNKS, "-o", "o.zarr", code=2
    )
    assert "give its name with -o" in run(*train, "--save", "c.json", "--resume", code=2)
    assert "--resume has nothing to go on with" in run(*train, "s.zarr", "--resume", "-o", "out.npz", code=2)
    saturate = run("--saturate", "--train", "train.parquet", "s.zarr", *CHUNKS, "-o", "out.zarr", code=2)
    assert "train.parquet: the speakers are not known; give --enroll-speakers, or a key" in saturate
    assert not (files / "out.zarr.partial").exists()
    (files / "same").write_text("".join(f"{c} {d} target\n" for c in C for d in D))
    one = run(
        "--train", "train.zarr", "--train-key", "same", "--unmatched", "drop", "s.zarr", *CHUNKS, "-o", "o.zarr", code=2
    )
    assert "target and 0 non-target trials, but both kinds are needed" in one
    run("--train", "train.npz", "--train", "train.npz", *SPEAKERS, "--l2", "0.1", "--save", "fusion.json")
    assert "fusion.json is for 2 systems, but there are 1" in run(
        "--load", "fusion.json", "s.zarr", *CHUNKS, "-o", "out.zarr", code=2
    )
    assert "a third must be left" in run(
        "--cross-validate", *SPEAKERS, "--folds", "2", "s.zarr", *CHUNKS, "-o", "out.zarr", code=2
    )


@pytest.fixture(scope="module")
def made_second(made, tmp_path_factory):
    """Make scores of another system on the same trials, in another order."""
    folder = tmp_path_factory.mktemp("second")
    rng = np.random.default_rng(5)
    for name in ("train", "s"):
        table = read_scores(made / f"{name}.npz")
        other = ScoreMatrix(
            0.4 * table.scores + rng.normal(size=table.shape), table.enroll_ids, table.test_ids, missing="nan"
        )
        order = rng.permutation(table.shape[0])
        write(other.take(order, None), folder / f"{name}2.npz")
        write_table(in_tiles(other.take(order, None)), folder / f"{name}2.zarr")
        listed = read_scores(made / f"{name}.parquet")
        write(other.to_trials().with_labels(listed.labels), folder / f"{name}2.parquet")
        write(other.take(order, None).to_trials(), folder / f"{name}3.parquet")
    return folder


@pytest.fixture
def second(files, made_second):
    shutil.copytree(made_second, files, dirs_exist_ok=True)
    return files


@pytest.mark.parametrize("how", [(), ("--l2", "0.1", "--prior", "0.05")], ids=["plain", "penalty"])
def test_fusions(second, how):
    one = run("--train", "train.npz", "--train", "train2.npz", *SPEAKERS, *how, "s.npz", "s2.npz", "-o", "one.npz")
    wanted = read_scores("one.npz")
    train = ("--train", "train.zarr", "--train", "train2.zarr", *SPEAKERS, *how, *CHUNKS, "--save", "two.json")
    assert run(*train, "s.zarr", "s2.zarr", "-o", "two.zarr") == one
    np.testing.assert_allclose(read_scores("two.zarr").scores, wanted.scores, rtol=1e-9, atol=1e-9)
    lists = ("--train", "train.parquet", "--train", "train2.parquet", *how, "s.parquet", "s2.parquet", *CHUNKS)
    assert run(*lists, "-o", "three.parquet") == one
    found = read_scores("three.parquet").to_matrix().align(E, T)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9, atol=1e-9)
    run("--load", "two.json", "s.zarr", "s2.zarr", *CHUNKS, "-o", "four.zarr")
    assert contents(second / "four.zarr") == contents(second / "two.zarr")


@pytest.fixture
def measured(second):
    """Add a table about both sides, and lists that have a measure of their own."""
    rng = np.random.default_rng(5)
    names = [name for side in (E, T, C, D) for name in side]
    lines = [f"{name},{x},7" for name, x in zip(names, rng.uniform(1, 5, len(names)), strict=True)]
    (second / "q.csv").write_text("\n".join(["id,mag,same", *lines]) + "\n")
    for name in ("train", "s"):
        trials = read_scores(f"{name}.parquet")
        write(replace_measures(trials, rng.normal(size=len(trials))), f"{name}-own.parquet")
    return second


def replace_measures(trials, snr):
    parts = {part: getattr(trials, part) for part in (*PARTS, "scores", "labels")}
    return TrialList(**parts, measures={"snr": snr})


MEASURES = "min:mag,max:mag,diff:mag,same_e,log:ratio:mag"


def test_quality_measures(measured):
    """Measures of a table, of matrices: those that tell nothing new are left out as in memory."""
    train, new = ("train.npz", "train2.npz"), ("s.npz", "s2.npz")
    how = (*SPEAKERS, "--metadata", "q.csv", "--quality", MEASURES)
    one = run(*(x for name in train for x in ("--train", name)), *how, *new, "-o", "one.npz", "--save", "one.json")
    assert "diff:mag and same_e: not used" in one
    large = [[name.replace("npz", "zarr") for name in names] for names in (train, new)]
    both = [x for name in large[0] for x in ("--train", name)]
    two = run(*both, *how, *large[1], *CHUNKS, "-o", "two.zarr", "--save", "two.json")
    assert two == one
    wanted = read_scores("one.npz").scores
    np.testing.assert_allclose(read_scores("two.zarr").scores, wanted, rtol=1e-6, atol=1e-6)
    run("--load", "two.json", *large[1], "--metadata", "q.csv", *CHUNKS, "-o", "three.zarr")
    assert contents(measured / "three.zarr") == contents(measured / "two.zarr")


def test_quality_measures_of_lists(measured):
    how = ("--train", "train-own.parquet", "--quality", "snr,min:mag", "--metadata", "q.csv", "s-own.parquet")
    assert run(*how, "-o", "one.parquet") == run(*how, *CHUNKS, "-o", "two.parquet")
    one, two = read_scores("one.parquet"), read_scores("two.parquet")
    np.testing.assert_allclose(two.scores, one.scores, rtol=1e-6, atol=1e-6)
    assert two.measures["snr"].tolist() == one.measures["snr"].tolist()


def test_measures_of_a_run_that_goes_on_stay_the_same(measured, monkeypatch):
    how = ("--train", "train.zarr", *SPEAKERS, "--metadata", "q.csv", "s.zarr", *CHUNKS, "-o", "out.zarr")
    cut_short(monkeypatch, *how, "--quality", "min:mag")
    assert "another training" in run(*how, "--quality", "max:mag", "--resume", code=2)
    (measured / "q.csv").write_text((measured / "q.csv").read_text().replace(",7", ",8"))
    assert "another training" in run(*how, "--quality", "min:mag", "--resume", code=2)


def test_fusions_that_cannot_be(second):
    run("--train", "train.zarr", "--train", "train2.zarr", *SPEAKERS, *CHUNKS, "--save", "c.json")
    load = ("--load", "c.json", *CHUNKS, "-o", "out.parquet")
    assert "do not have the same trials in the same order; sort" in run(*load, "s.parquet", "s3.parquet", code=2)
    assert "the same trials, all in matrices or all in lists" in run(*load, "s.parquet", "s2.zarr", code=2)
    assert "the same trials, all in matrices or all in lists" in run(*load, "s.zarr", "train.zarr", code=2)
    assert "scores of some systems only" in run(*load, "s.zarr", "full.zarr", code=2)
    twice = ("--train", "train.zarr", "--train", "train.zarr", *SPEAKERS, *CHUNKS, "--save", "d.json")
    assert "train.zarr and train.zarr: one of the inputs is a weighted sum of the others" in run(*twice, code=2)


def test_a_fusion_that_was_cut_short_goes_on(second, monkeypatch):
    how = ("--train", "train.zarr", "--train", "train2.zarr", *SPEAKERS, "s.zarr", "s2.zarr", *CHUNKS)
    run(*how, "-o", "whole.zarr")
    cut_short(monkeypatch, *how, "-o", "out.zarr")
    other = ("--train", "train.zarr", "--train", "train2.zarr", *SPEAKERS, "s.zarr", "full.zarr", *CHUNKS)
    assert "another scores" in run(*other, "--resume", "-o", "out.zarr", code=2)
    monkeypatch.setattr("evenscore.cli.calibration_systems.fit_fusion", None)  # it was kept
    run(*how, "--resume", "-o", "out.zarr")
    assert contents(second / "out.zarr") == contents(second / "whole.zarr")


def test_a_fusion_on_a_cluster(second, client):
    how = ("--train", "train.zarr", "--train", "train2.zarr", *SPEAKERS, "s.zarr", "s2.zarr")
    run(*how, *CHUNKS, "-o", "here.zarr")
    run(*how, "--scheduler", client.scheduler.address, "-o", "there.zarr")
    assert contents(second / "here.zarr") == contents(second / "there.zarr")


def test_on_a_cluster(files, client):
    run("--train", "train.zarr", *SPEAKERS, "--saturate", "s.zarr", *CHUNKS, "-o", "here.zarr")
    there = ("--scheduler", client.scheduler.address)
    run("--train", "train.zarr", *SPEAKERS, "--saturate", "s.zarr", *there, "-o", "there.zarr")
    assert contents(files / "there.zarr") == contents(files / "here.zarr")
