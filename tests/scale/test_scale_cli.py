"""`fit`, `normalize` and `score` on data that is read and written in chunks, through the command line."""

import json
import shutil

import numpy as np
import pytest
import zarr

from evenscore import Embeddings, ScoreMatrix, TrialList, read_scores, write
from evenscore.cli.inputs import open_scores
from evenscore.cli.options import ScaleChoices
from evenscore.files import write_table
from evenscore.files.score_tiles import count_stored
from evenscore.tables import LazyScores
from in_process import output_of as run
from scale.chunked_examples import ids, in_tiles, matrix

E, T, C, D = ids("e", 23), ids("t", 31), ids("c", 17), ids("d", 17)
CHUNKS = ("--memory-limit", "1GB")
QUICK = ("--max-iter", 10, "--starts", 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a folder with blocks as npz and as zarr, a map of speakers, and embeddings."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("made")
    for name, sides in {"s": (E, T), "e": (E, C), "t": (D, T), "c": (D, C)}.items():
        table = matrix(rng, *sides, dtype=np.float32)
        write(table, folder / f"{name}.npz")
        write_table(in_tiles(table), folder / f"{name}.zarr")
    (folder / "utt2spk").write_text("".join(f"{name} s{n % 5}\n" for names in (E, T) for n, name in enumerate(names)))
    (folder / "strangers").write_text("".join(f"{name} x{n % 5}\n" for names in (C, D) for n, name in enumerate(names)))
    for name, names in {"ee": E, "te": T, "ce": C}.items():
        write(Embeddings(names, rng.normal(size=(len(names), 6))), folder / f"{name}.npz")
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """Give a copy, which a test may spoil, as the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(ending):
    return ("--trials", f"s.{ending}", "--enroll", f"e.{ending}", "--test", f"t.{ending}", "--cohort", f"c.{ending}")


@pytest.mark.parametrize("dim", [0, 2])
def test_fit(files, dim):
    speakers = ("--enroll-speakers", "utt2spk", "--dim", dim, *QUICK)
    run("fit", "--scores", "s.npz", *speakers, "-o", "a.json")
    run("fit", "--scores", "s.zarr", *speakers, *CHUNKS, "-o", "b.json")
    one, other = (json.loads((files / name).read_text()) for name in ("a.json", "b.json"))
    for name in ("mu", "sigma2"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6)


def test_fit_by_phrase_and_by_key(files):
    phrases = ("--phrase-from", "re:t([12]?).*", *QUICK)
    run("fit", "--scores", "s.npz", "--enroll-speakers", "utt2spk", *phrases, "-o", "a.json")
    run("fit", "--scores", "s.zarr", "--enroll-speakers", "utt2spk", *phrases, *CHUNKS, "-o", "b.json")
    key = TrialList.from_pairs(
        [e for e in E for _ in T],
        [t for _ in E for t in T],
        labels=[(i % 5) == (j % 5) for i in range(23) for j in range(31)],
    )
    write(key, "key")
    run("fit", "--scores", "s.npz", "--key", "key", *QUICK, "-o", "c.json")
    run("fit", "--scores", "s.zarr", "--key", "key", *QUICK, *CHUNKS, "-o", "d.json")
    for one, other in (("a", "b"), ("c", "d")):
        found = [json.loads((files / f"{name}.json").read_text()) for name in (one, other)]
        np.testing.assert_allclose(found[0]["mu"], found[1]["mu"], rtol=1e-6)
    assert "no labels; give --key" in run("fit", "--scores", "s.zarr", *CHUNKS, "-o", "e.json", code=2)


@pytest.mark.parametrize("method", ["s", "zt", "lgsm"])
@pytest.mark.parametrize("speakers", [(), ("--speakers", "utt2spk", "--cohort-speakers", "strangers")])
def test_normalize(files, method, speakers):
    how = ("--method", method)
    if method == "lgsm":
        run("fit", "--scores", "s.npz", "--enroll-speakers", "utt2spk", *QUICK, "-o", "m.json")
        how += ("--model", "m.json")
    run("normalize", *how, *blocks("npz"), *speakers, "-o", "one.npz")
    run("normalize", *how, *blocks("zarr"), *speakers, *CHUNKS, "-o", "two.zarr")
    run("normalize", *how, *blocks("zarr"), *speakers, *CHUNKS, "-o", "three.npz")
    assert read_scores("one.npz") == read_scores("two.zarr") == read_scores("three.npz")


def test_trials_in_parquet(files):
    run("convert", "s.npz", "s.parquet")
    run("normalize", "--method", "s", *blocks("npz"), "-o", "one.npz")
    parts = ("--trials", "s.parquet", "--enroll", "e.zarr", "--test", "t.zarr")
    run("normalize", "--method", "s", *parts, *CHUNKS, "-o", "two.parquet")
    assert (files / "two.parquet").is_dir()
    assert read_scores("two.parquet").to_matrix() == read_scores("one.npz")
    run("info", "two.parquet")


def test_score_and_resume(files, monkeypatch):
    sides = ("--enroll", "ee.npz", "--test", "te.npz", "--norm", "as", "--top-k", 5, "--cohort", "ce.npz")
    run("score", *sides, "-o", "one.npz")
    run("score", *sides, *CHUNKS, "-o", "two.zarr")
    run("score", *sides[:4], "-o", "raw.npz")
    run("score", *sides[:4], *CHUNKS, "-o", "raw.zarr")
    np.testing.assert_allclose(read_scores("two.zarr").scores, read_scores("one.npz").scores, rtol=1e-9)
    np.testing.assert_allclose(read_scores("raw.zarr").scores, read_scores("raw.npz").scores, rtol=1e-9)
    vectors = ("--enroll-embeddings", "ee.npz", "--test-embeddings", "te.npz", "--cohort-embeddings", "ce.npz")
    run("normalize", "--method", "as", "--top-k", 5, *vectors, *CHUNKS, "-o", "three.zarr")
    assert read_scores("three.zarr") == read_scores("two.zarr")

    def broken(task, place):
        raise MemoryError

    monkeypatch.setattr("evenscore.files.chunked_output._write_one", broken)
    run("score", *sides, *CHUNKS, "-o", "four.zarr", code=1)
    monkeypatch.undo()
    monkeypatch.chdir(files)
    assert (files / "four.zarr.partial").is_dir()
    assert "go on with it (--resume)" in run("score", *sides, *CHUNKS, "-o", "four.zarr", code=2)
    other = ("--enroll", "te.npz", *sides[2:])
    assert "another trials" in run("score", *other, "--resume", "-o", "four.zarr", code=2)
    assert "another norm" in run("score", *sides, "--ddof", 1, "--resume", "-o", "four.zarr", code=2)
    run("score", *sides, "--resume", "-o", "four.zarr")
    assert read_scores("four.zarr") == read_scores("two.zarr")


def test_what_cannot_be(files):
    norm = ("normalize", "--method", "s", *blocks("zarr"))
    assert "--resume has nothing to go on with" in run(*norm, "--resume", "-o", "out.npz", code=2)
    assert "must be a size above 0" in run(*norm, "--memory-limit", "much", "-o", "out.zarr", code=2)
    assert "less than 1 MB; give a size like 500MB" in run(*norm, "--memory-limit", "2", "-o", "out.zarr", code=2)
    assert "give at least 400 MB" in run(*norm, "--workers", 1, "--memory-limit", "100MB", "-o", "out.zarr", code=2)
    assert "give one of the two" in run(*norm, "--workers", 1, "--scheduler", "tcp://x:1", "-o", "out.zarr", code=2)
    assert "nothing to normalize" in run("normalize", "--method", "s", "--resume", "-o", "out.zarr", code=2)


def test_nothing_is_left_of_a_run_that_was_wrong_from_the_start(files):
    zarr = ("normalize", "--method", "s", *CHUNKS, "-o", "out.zarr")
    assert "needs the block `test`" in run(*zarr, "--trials", "s.zarr", "--enroll", "e.zarr", code=2)
    write(read_scores("s.npz").to_trials(), "list.parquet")
    sides = ("--enroll", "e.zarr", "--test", "t.zarr")
    assert "give a name in .parquet" in run(*zarr, "--trials", "list.parquet", *sides, code=2)
    vectors = ("--enroll", "ee.npz", "--test", "te.npz")
    assert "does not exist" in run("score", *vectors, *CHUNKS, "-o", "no/out.zarr", code=2)
    assert not list(files.glob("out*"))
    run(*zarr, "--trials", "s.zarr", *sides)


def test_infinite_scores_are_mended_by_convert(files):
    group = zarr.open_group("s.zarr", mode="r+")
    group["scores"][3, 5] = np.inf
    fit = ("fit", "--enroll-speakers", "utt2spk", "--dim", 0, "-o", "m.json", *CHUNKS, "--scores")
    said = run(*fit, "s.zarr", code=2)
    assert "the score of ('e3', 't5') is inf" in said
    assert "mend it with 'evenscore convert --missing skip IN OUT'" in " ".join(said.split())
    run("convert", "--missing", "skip", "s.zarr", "mended.zarr")
    run(*fit, "mended.zarr")


def test_what_stays_in_its_files(files):
    write(read_scores("s.npz").to_trials(), "list.parquet")
    listed = open_scores("list.parquet", ScaleChoices())
    assert listed.listed
    assert not listed.is_in_memory
    assert isinstance(open_scores("s.zarr", ScaleChoices()), LazyScores)


def test_workers_of_a_scheduler(files, client):
    run("normalize", "--method", "s", *blocks("npz"), "-o", "one.npz")
    scheduler = client.scheduler.address
    run("normalize", "--method", "s", *blocks("zarr"), "--scheduler", scheduler, "-o", "two.zarr")
    assert read_scores("two.zarr") == read_scores("one.npz")


def test_what_is_read_in_chunks(files):
    small = ScaleChoices()
    assert not small.in_chunks("s.zarr", None, "-", "absent.zarr", "absent.parquet")
    assert count_stored("s.zarr") == 23 * 31
    assert ScaleChoices(memory_limit="1GB").in_chunks("s.npz")
    assert ScaleChoices(workers=1).in_chunks("s.npz")
    assert not small.given
    np.save("x.npy", np.zeros((1, 1)))
    assert not small.in_chunks("x.npy")
    (files / "x.enroll_ids").write_text("e\n")
    (files / "x.test_ids").write_text("t\n")
    assert small.in_chunks("x.npy")
    assert ScaleChoices(memory_limit="160MB").tile_bytes == 1e7


def test_a_key_must_fit_the_scores_as_in_memory(files):
    table = read_scores("s.npz")
    scores = table.scores.copy()
    scores[2, 3] = np.nan
    for part, rows in {"top": slice(0, 12), "rest": slice(12, 23)}.items():
        half = ScoreMatrix(scores[rows], E[rows], T, missing="nan")
        write(half, f"{part}.npz")
        write_table(in_tiles(half), f"{part}.zarr")
    i, j = np.divmod(np.arange(23 * 31), 31)
    key = TrialList(E, T, i, j, labels=(i % 5 == j % 5).astype(int))
    fits = key.select(np.arange(len(key)) != 2 * 31 + 3)
    for name, listed in {"all": key, "fits": fits, "few": fits.select(np.arange(600))}.items():
        write(listed, f"{name}.key", format="kaldi")
    for ending, chunks in (("npz", ()), ("zarr", CHUNKS)):
        both = ("--scores", f"top.{ending}", "--scores", f"rest.{ending}")
        fit = ("fit", "--dim", 0, "-o", f"{ending}.json", *chunks)
        run(*fit, *both, "--key", "fits.key")
        assert "have no score" in run(*fit, *both, "--key", "all.key", code=2)
        assert "not in the key" in run(*fit, *both, "--key", "few.key", code=2)
        assert "score" in run(*fit, *both[2:], "--key", "fits.key", code=2)
    models = [json.loads((files / f"{ending}.json").read_text()) for ending in ("npz", "zarr")]
    np.testing.assert_allclose(models[0]["mu"], models[1]["mu"], rtol=1e-6)
    write(TrialList.concat([fits, TrialList.from_pairs(["who"], ["t0"], labels=[0])]), "more.key", format="kaldi")
    assert "1 of the 713 trials of the key have no score, first ('who', 't0')" in run(
        *fit, *both, "--key", "more.key", code=2
    )
    write(read_scores("top.npz").to_trials(), "top.parquet")
    bare = ("fit", "--scores", "top.parquet", "-o", "m.json", *CHUNKS)
    assert "top.parquet: the scores have no labels; give --key" in run(*bare, code=2)


def test_a_cohort_key(files):
    rng = np.random.default_rng(1)
    i, j = np.divmod(rng.permutation(17 * 17), 17)
    key = TrialList(D, C, i, j, labels=(rng.random(17 * 17) < 0.1).astype(int))
    write(key, "cohort.key", format="kaldi")
    write(key.select(np.arange(200)), "some.key", format="kaldi")
    odd = TrialList.from_pairs(["who"], ["c1"], labels=[1])
    write(TrialList.concat([key, odd]), "odd.key", format="kaldi")
    drop = ("--unmatched", "drop")
    for given in (("--cohort-key", "cohort.key"), ("--cohort-key", "some.key", *drop)):
        run("normalize", "--method", "zt", *blocks("npz"), *given, "-o", "here.npz")
        run("normalize", "--method", "zt", *blocks("zarr"), *given, *CHUNKS, "-o", "there.zarr")
        found = read_scores("there.zarr").align(E, T)
        np.testing.assert_allclose(found.scores, read_scores("here.npz").align(E, T).scores, rtol=1e-5, atol=1e-5)
        shutil.rmtree("there.zarr")
    chunks = ("normalize", "--method", "zt", *blocks("zarr"), *CHUNKS, "-o", "there.zarr", "--cohort-key")
    assert "c.zarr with some.key (--key): 89 of the 289 scored trials are not in the key" in run(
        *chunks, "some.key", code=2
    )
    assert "first ('who', 'c1')" in run(*chunks, "odd.key", code=2)
