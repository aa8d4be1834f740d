"""`evaluate` on scores that are read in chunks gives what it gives in memory: to 1e-12, or within its own bounds."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import ScoreMatrix, TrialList, write
from evenscore.cli.options import ScaleChoices
from evenscore.files import write_table
from evenscore.files.streams import TRIAL_BYTES
from evenscore.metrics.counting import summarize_table
from examples import examples
from in_process import output_of
from scale.chunked_examples import ids, in_tiles

E, T = ids("e", 23), ids("t", 31)
CHUNKS = ("--memory-limit", "1GB")
EXACT = ("cllr", "act_dcf", "n_target", "n_nontarget")


def scored(rng, missing=0.05, dtype=np.float32):
    scores = rng.normal(size=(23, 31)) + 3.0 * (np.arange(23)[:, None] % 5 == np.arange(31) % 5)
    scores[rng.random(scores.shape) < missing] = np.nan
    return ScoreMatrix(scores.astype(dtype), E, T, missing="nan")


def key_of(matrix, unknown=0.0, rng=None):
    trials = matrix.to_trials()
    labels = (trials.enroll_index % 5 == trials.test_index % 5).astype(np.int8)
    if unknown:
        labels[rng.random(len(labels)) < unknown] = -1
    return TrialList(trials.enroll_ids, trials.test_ids, trials.enroll_index, trials.test_index, labels=labels)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(ScaleChoices, "tile_bytes", 600.0)
    monkeypatch.setattr("evenscore.tables.tile._TRIALS", 50)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a folder with the same scores in several forms, a key, maps and metadata."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("made")
    table = scored(rng)
    key = key_of(table, 0.1, rng)
    write(table, folder / "s.npz")
    write_table(in_tiles(table), folder / "s.zarr")
    write_table(in_tiles(table), folder / "parts.parquet")
    np.save(folder / "s.npy", table.scores)
    for name, names in (("enroll", E), ("test", T)):
        (folder / f"s.{name}_ids").write_text("".join(f"{one}\n" for one in names))
    trials = table.to_trials().join(key)
    write(trials, folder / "own.parquet")
    write(trials.with_labels(None), folder / "s.parquet")
    write(trials.with_scores(-trials.scores), folder / "worse.parquet")
    write(key, folder / "key.csv")
    write(key.select(np.random.default_rng(1).permutation(len(key))), folder / "shuffled.csv")
    (folder / "utt2spk").write_text("".join(f"{name} s{n % 5}\n" for names in (E, T) for n, name in enumerate(names)))
    (folder / "meta.csv").write_text("test,phone\n" + "".join(f"{name},p{n % 3}\n" for n, name in enumerate(T)))
    (folder / "people.csv").write_text(
        "id,gender\n" + "".join(f"{name},{'fm'[n % 2]}\n" for names in (E, T) for n, name in enumerate(names))
    )
    rows = zip(key.enroll, key.test, range(len(key)), strict=True)
    (folder / "pairs.csv").write_text("enroll,test,set\n" + "".join(f"{e},{t},{n % 2}\n" for e, t, n in rows))
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch, small_chunks):
    """Give a copy, which a test may spoil, as the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0):
    return output_of("evaluate", *arguments, code=code)


def figures(*arguments):
    said = run(*arguments, "--json")
    return json.loads(said[said.index("{") :])  # after warnings


def assert_same(found, wanted, exact=EXACT):
    """Compare two sets of figures: counts and sums to 1e-12, what needs the order of scores by its bounds."""
    if "problem" in wanted:
        assert found == wanted
        return
    for name in exact:
        assert float(found[name]) == pytest.approx(float(wanted[name]), rel=1e-12), name
    for name, bounds in found["bounds"].items():
        low, high = map(float, bounds)
        assert low - 1e-12 <= float(wanted[name]) <= high + 1e-12, name
        assert low <= float(found[name]) <= high
    for one, other in zip(found["dcf"], wanted["dcf"], strict=True):
        for name in ("p_target", "act_dcf", "act_p_miss", "act_p_fa", "act_threshold"):
            assert one[name] == pytest.approx(other[name], rel=1e-12)
        assert one["min_dcf_bounds"][0] - 1e-12 <= other["min_dcf"] <= one["min_dcf_bounds"][1] + 1e-12


def assert_same_systems(found, wanted):
    assert found["pooled"]["n_unknown"] == wanted["pooled"]["n_unknown"]
    assert found["pooled"]["equalized"] == wanted["pooled"]["equalized"]
    assert_same(found["pooled"], wanted["pooled"])
    assert found.get("conditions", {}).keys() == wanted.get("conditions", {}).keys()
    for column, conditions in wanted.get("conditions", {}).items():
        assert list(found["conditions"][column]) == list(conditions)
        for name in conditions:
            assert_same(found["conditions"][column][name], conditions[name])


@pytest.mark.parametrize("source", ["s.zarr", "s.npy", "parts.parquet", "s.parquet", "s.npz"])
@pytest.mark.parametrize(
    "labels", [("--key", "shuffled.csv"), ("--enroll-speakers", "utt2spk")], ids=["key", "speakers"]
)
def test_every_source_and_label(files, source, labels):
    wanted = figures("s.npz", *labels, "--points", "0.5", "--points", "0.01,10,1", "--no-normalize")
    found = figures(source, *labels, "--points", "0.5", "--points", "0.01,10,1", "--no-normalize", *CHUNKS)
    assert wanted["pooled"]["n_unknown"] == (0 if "utt2spk" in labels else 82)
    assert_same_systems(found, wanted)


def test_labels_of_the_list_itself_and_several_systems(files):
    wanted = figures("own.parquet", "own.parquet", "--points", "0.1")
    found = figures("own.parquet", "own.parquet", "--points", "0.1", *CHUNKS)
    for one, other in zip(found["systems"], wanted["systems"], strict=True):
        assert_same_systems(one, other)
    text = run("own.parquet", "worse.parquet", *CHUNKS)
    assert "worse.parquet: EER threshold" in text
    assert "82 trials of unknown class were left out" in text


@pytest.mark.parametrize(
    "by",
    [
        ("--by", "phone", "--metadata", "meta.csv"),
        ("--by", "phone", "--metadata", "meta.csv", "--equalize"),
        ("--by", "enroll:gender", "--by", "test:gender", "--metadata", "people.csv"),
        ("--by", "pair:gender", "--by", "same:gender", "--metadata", "people.csv"),
        ("--by", "set", "--metadata", "pairs.csv", "--equalize"),
    ],
    ids=["side", "equal", "both sides", "of both", "pairs"],
)
@pytest.mark.parametrize("source", ["s.zarr", "s.parquet"])
def test_conditions(files, source, by):
    assert_same_systems(figures(source, "--key", "key.csv", *by, *CHUNKS), figures("s.npz", "--key", "key.csv", *by))


def test_conditions_that_are_not_clear(files):
    by = ("--key", "key.csv", "--by", "gender", "--metadata", "people.csv", *CHUNKS)
    assert "say enroll:gender or test:gender" in run("s.zarr", *by, code=2)
    assert "say enroll:gender or test:gender" in run("s.parquet", *by, code=2)
    (files / "few.csv").write_text("test,phone\nt0,p0\n")
    few = ("--key", "key.csv", "--by", "phone", "--metadata", "few.csv")
    assert "to which group the trial ('e0', 't2') belongs" in run("s.zarr", *few, *CHUNKS, code=2)
    (files / "one").write_text("e0 t0 target\ne5 t0 target\ne1 t0 nontarget\n")
    dropped = ("--key", "one", "--unmatched", "drop", "--by", "phone", "--metadata", "few.csv")
    assert_same_systems(figures("s.zarr", *dropped, *CHUNKS), figures("s.npz", *dropped))


@pytest.mark.parametrize("source", ["s.zarr", "s.parquet"])
def test_scores_and_key_that_do_not_match(files, source):
    lines = (files / "key.csv").read_text().splitlines()
    (files / "short.csv").write_text("\n".join(lines[:300]) + "\n")
    (files / "long.csv").write_text("\n".join([*lines, "e0,nobody,1", "nobody,t0,0"]) + "\n")
    assert "scored trials are not in the key, such as ('e" in run(source, "--key", "short.csv", *CHUNKS, code=2)
    assert "of the key have no score" in run(source, "--key", "long.csv", *CHUNKS, code=2).replace("has no", "have no")
    for name in ("short.csv", "long.csv"):
        dropped = (source, "--key", name, "--unmatched", "drop")
        assert_same_systems(figures(*dropped, *CHUNKS), figures("s.npz", *dropped[1:]))
    (files / "strange").write_text("a b target\na c nontarget\n")
    strange = run(source, "--key", "strange", "--unmatched", "drop", *CHUNKS, code=2)
    assert f"{source} with strange (--key): the key has none of these trials" in strange


def test_a_key_with_pairs_that_are_missing_in_the_store(files):
    every = TrialList.from_pairs([e for e in E for _ in T], [t for _ in E for t in T], labels=[0] * (23 * 31))
    write(every, "every")
    assert "trials of the key have no score" in run("s.zarr", "--key", "every", *CHUNKS, code=2)


def test_what_tells_nothing(files):
    (files / "targets").write_text("".join(f"{e} {t} target\n" for e in E for t in T))
    alone = run("s.zarr", "--key", "targets", "--unmatched", "drop", *CHUNKS, code=2)
    assert "target and 0 non-target trials, and without non-target trials" in alone
    write_table(in_tiles(ScoreMatrix(np.ones((23, 31)), E, T)), "flat.zarr")
    flat = run("flat.zarr", "--enroll-speakers", "utt2spk", *CHUNKS, code=2)
    assert "flat.zarr: all 713 scores are 1 or very near it" in flat
    assert "the scores have no labels; give --key" in run("s.zarr", *CHUNKS, code=2)
    assert "the scores have no labels; give --key" in run("s.parquet", *CHUNKS, code=2)
    (files / "lonely").write_text("e0 s0\ne1 s0\n")
    for source in ("s.zarr", "s.parquet"):
        assert "lonely has no speaker for" in run(source, "--enroll-speakers", "lonely", *CHUNKS, code=2)
    trials = TrialList.from_pairs(["e0", "e1"], ["t0", "t0"], scores=[1.0, 0.0], labels=[0, 0])
    write(trials, "wrong.parquet")
    clash = run("wrong.parquet", "--key", "key.csv", "--unmatched", "drop", *CHUNKS, code=2)
    assert "labels do not agree with the key, such as that of ('e0', 't0')" in clash


def test_an_empty_store(files):
    write_table(in_tiles(ScoreMatrix(np.empty((0, 31)), [], T)), "none.zarr")
    assert "there is nothing to add up" in run("none.zarr", "--enroll-speakers", "utt2spk", *CHUNKS, code=2)


def test_infinite_scores(files):
    rng = np.random.default_rng(0)
    trials = scored(rng).to_trials()
    values = trials.scores.astype(float)
    values[:3] = -np.inf, np.inf, np.inf
    write(trials.with_scores(values, allow_infinite=True).join(key_of(scored(np.random.default_rng(0)))), "i.parquet")
    assert_same_systems(figures("i.parquet", *CHUNKS), figures("i.parquet"))


def test_bounds_are_printed_where_they_matter(files, monkeypatch):
    speakers = ("--enroll-speakers", "utt2spk")
    assert "bounds " not in run("s.zarr", *speakers, *CHUNKS).split("DCF at")[0]
    from evenscore.metrics import summary

    monkeypatch.setattr(summary.summarize, "__kwdefaults__", summary.summarize.__kwdefaults__ | {"bits": 10})
    table = run("s.zarr", *speakers, *CHUNKS)
    [line] = [line for line in table.splitlines() if line.strip().startswith("bounds")]
    assert line.count("..") == 3  # EER, minDCF and minCllr; not Cllr and actDCF
    assert "certain bounds are given where a digit is not" in table
    assert r"\quad bounds" in run("s.zarr", *speakers, *CHUNKS, "--latex")
    [row] = csv.DictReader(io.StringIO(run("s.zarr", *speakers, *CHUNKS, "--csv")))
    assert float(row["eer_least"]) < float(row["eer"]) < float(row["eer_most"])
    assert "cllr_least" not in row


def test_what_needs_all_trials(files, monkeypatch):
    speakers = ("--enroll-speakers", "utt2spk")
    for asked in (("--bootstrap", 20), ("--eer", "kaldi")):  # few trials come into memory
        assert figures("s.npy", *speakers, *asked) == figures("s.npz", *speakers, *asked) | {"scores": "s.npy"}
    monkeypatch.setattr("evenscore.files.streams.TRIAL_BYTES", 10**6)
    for asked in (("--bootstrap", 20), ("--eer", "kaldi"), ("s.zarr", "--paired")):
        refused = run("s.zarr", *speakers, *asked, *CHUNKS, code=2)
        assert "needs all trials in memory, and 713 are too many for 0.25 GB, a quarter of it; leave it out" in refused


def test_what_the_work_takes_decides_and_not_the_size_of_the_file(files, monkeypatch):
    speakers = ("--enroll-speakers", "utt2spk")
    exact = figures("s.npz", *speakers)["pooled"]
    for source in ("s.zarr", "s.npy", "s.parquet"):
        assert figures(source, *speakers)["pooled"] == exact
    monkeypatch.setattr("evenscore.files.streams.memory_size", lambda: 4 * 713 * TRIAL_BYTES)
    assert "bounds" not in figures("s.zarr", *speakers)["pooled"]
    monkeypatch.setattr("evenscore.files.streams.memory_size", lambda: 4 * 500 * TRIAL_BYTES)
    for source in ("s.zarr", "s.npy", "s.parquet", "s.npz"):
        low, high = figures(source, *speakers)["pooled"]["bounds"]["eer"]
        assert low - 1e-12 <= exact["eer"] <= high + 1e-12


def test_on_a_cluster(files, client):
    how = ("--key", "key.csv", "--by", "phone", "--metadata", "meta.csv", "--scheduler", client.scheduler.address)
    wanted = figures("s.zarr", *how[:-2], *CHUNKS)
    for source in ("s.zarr", "s.parquet"):
        found = figures(source, *how)
        assert source == "s.parquet" or found == wanted
        assert_same_systems(found, figures("s.npz", *how[:-2]))


@examples(20)
@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0.0, 0.3, 0.97]), rows=st.integers(1, 23))
def test_a_key_counts_as_labels_do(small_chunks, seed, missing, rows):
    rng = np.random.default_rng(seed)
    table = scored(rng, missing).take(rng.permutation(23)[:rows], rng.permutation(31))
    speakers = {name: int(name[1:]) % 5 for name in (*E, *T)}
    key = TrialList.from_pairs(
        [e for e in E for _ in T], [t for _ in E for t in T], labels=[speakers[e] == speakers[t] for e in E for t in T]
    ).select(rng.permutation(23 * 31)[: rng.integers(1, 23 * 31)])
    listed = np.full(table.shape, -1)
    for place in range(len(key)):
        e, t = key.pair(place)
        if e in table.enroll_ids:
            listed[table.enroll_ids.tolist().index(e), table.test_ids.tolist().index(t)] = key.labels[place]
    known = (listed >= 0) & ~np.isnan(table.scores)
    if not known.any():
        return
    found = summarize_table(in_tiles(table), key, bits=12)
    assert (found.n_target, found.n_nontarget) == tuple(np.count_nonzero(listed[known] == label) for label in (1, 0))
    np.testing.assert_allclose(found.sums.sum(), table.scores[known].astype(float).sum(), rtol=1e-12, atol=1e-12)
