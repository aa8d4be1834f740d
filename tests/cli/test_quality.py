"""Quality measures from the command line: ``normalize`` makes them, ``calibrate`` weighs them."""

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    LogisticCalibration,
    TrialList,
    read_scores,
    score_blocks,
    score_embeddings,
    write,
)
from evenscore.calibrate import quality_measures
from evenscore.files.metadata import read_metadata, write_metadata

COHORT = Embeddings([f"c{i}" for i in range(20)], np.random.default_rng(0).normal(size=(20, 4)))
VECTORS = ("--enroll-embeddings", "x.npz", "--test-embeddings", "x.npz", "--cohort-embeddings", "c.npz")
NORMALIZE = ("normalize", "--norm", "as:top_k=7", *VECTORS)


@pytest.fixture
def data(tmp_path):
    """Embeddings with durations, and labelled trials of them."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(12), 3)
    vectors = rng.normal(size=(12, 4))[who] + rng.normal(size=(36, 4))
    takes = Embeddings([f"u{i}" for i in range(36)], vectors, columns={"duration": rng.uniform(1, 9, 36)})
    row, column = np.triu_indices(36, 1)
    trials = TrialList.from_pairs(takes.ids[row], takes.ids[column], labels=(who[row] == who[column]).astype(int))
    write(takes, tmp_path / "x.npz")
    write(COHORT, tmp_path / "c.npz")
    write(trials, tmp_path / "trials")
    return takes, trials


@pytest.fixture
def run(cli):
    def done(*arguments, code=0):
        result = cli(*arguments)
        assert result.exit_code == code, result.stderr
        return result.stdout if code == 0 else result.stderr

    return done


def expected(takes, trials):
    blocks = score_blocks(Cosine(), takes, takes, COHORT)
    return quality_measures(blocks, "as", top_k=7, enroll=takes, test=takes).columns(trials)


@pytest.mark.parametrize(("output", "large"), [("o.csv", ()), ("o.parquet", ("--memory-limit", "1GB"))])
def test_columns_beside_the_scores(run, data, tmp_path, output, large):
    run(*NORMALIZE, "--trials", "trials", "--quality", "mag,mu", "--quality", "min:duration", "-o", output, *large)
    found, columns = read_scores(tmp_path / output), expected(*data)
    assert list(found.measures) == ["mag_e", "mag_t", "mu_e", "mu_t", "min:duration"]
    for name in ("mag_e", "mag_t", "mu_e", "mu_t"):
        np.testing.assert_allclose(found.measures[name], columns[name], rtol=1e-12)
    durations = np.minimum(columns["duration_e"], columns["duration_t"])
    np.testing.assert_allclose(found.measures["min:duration"], durations, rtol=1e-12)
    scores = score_embeddings(data[0], data[0], data[1], cohort=COHORT, method="as", top_k=7).scores
    np.testing.assert_allclose(found.scores, scores, rtol=1e-12)


def test_lines_are_those_that_wespeaker_reads(run, data, tmp_path):
    run(*NORMALIZE, "--trials", "trials", "--quality", "mag,mu", "--to", "wespeaker", "-o", "w")
    run(*NORMALIZE, "--trials", "trials", "--quality", "max:mag,diff:mu", "--to", "wespeaker-factors", "-o", "f")
    columns = expected(*data)
    lines = ((tmp_path / name).read_text().splitlines() for name in "wf")
    for at, (line, factors) in enumerate(zip(*lines, strict=True)):
        *pair, _, label, mag_e, mag_t, mu_e, mu_t = line.split()
        assert (*pair, label) == (*data[1].pair(at), ["nontarget", "target"][data[1].labels[at]])
        np.testing.assert_allclose([float(mag_e), float(mu_t)], [columns["mag_e"][at], columns["mu_t"][at]])
        assert factors.split()[2] == label
        own = max(float(mag_e), float(mag_t)), abs(float(mu_e) - float(mu_t))
        np.testing.assert_allclose([float(text) for text in factors.split()[4:]], own, atol=1e-12)


@pytest.mark.parametrize("scores", ["s.npz", "s.csv"])
def test_calibrate_weighs_them(run, data, tmp_path, scores):
    """From a table beside a matrix or a list, and the durations from utt2dur."""
    takes, trials = data
    listed = ("--trials", "trials") if scores == "s.csv" else ()
    run(*NORMALIZE, *listed, "--quality-out", "q.csv", "-o", scores)
    (tmp_path / "utt2dur").write_text(
        "".join(f"{n} {d}\n" for n, d in zip(takes.ids, takes.columns["duration"], strict=True))
    )
    names = "min:mag,max:mag,diff:mag,log:ratio:dur"
    key = ("--train-key", "trials", "--unmatched", "drop")
    out = run("calibrate", "--train", scores, *key, "--quality", names, "--metadata", "q.csv", "--metadata", "utt2dur",
              "--save", "c.json", scores, "-o", "llr.csv")  # fmt: skip
    assert "diff:mag: not used" in out
    columns = expected(takes, trials)
    mag, dur = ([columns[f"{name}_{side}"] for side in "et"] for name in ("mag", "duration"))
    quality = np.column_stack((np.minimum(*mag), np.maximum(*mag), np.log(np.maximum(*dur) / np.minimum(*dur))))
    raw = read_scores(tmp_path / scores).to_trials()
    values = raw.scores[trials.match(raw)]
    fitted = LogisticCalibration.fit(values, trials.labels, quality=quality)
    llrs = read_scores(tmp_path / "llr.csv")
    np.testing.assert_allclose(llrs.scores[trials.match(llrs)], fitted(values, quality), rtol=1e-7)


def test_cohort_scores_have_measures_too(run, data, tmp_path):
    blocks = score_blocks(Cosine(), data[0], data[0], COHORT)
    for name, table in (("s", blocks.trials), ("e", blocks.enroll), ("t", blocks.test)):
        write(table, tmp_path / f"{name}.npz")
    cohort = ("--trials", "s.npz", "--enroll-cohort", "e.npz", "--test-cohort", "t.npz")
    run("normalize", "--norm", "as:top_k=7", *cohort, "--quality-out", "q.tsv", "-o", "o.npz")
    table = read_metadata(tmp_path / "q.tsv")
    assert list(table.columns) == ["id", "mu_e", "mu_t", "sigma_e", "sigma_t"]
    mu = quality_measures(blocks, "as", top_k=7).enroll.facts["mu"]
    np.testing.assert_allclose([float(text) for text in table.columns["mu_e"]], mu)


def test_what_cannot_be_is_refused_before_the_work(run, data, tmp_path):
    for given, reason in (
        (("--quality", "mag"), "a matrix has no columns for --quality; give --quality-out"),
        (("--trials", "trials", "--quality", "snr"), "there is no measure 'snr'; there are duration_e"),
        (("--quality-out", "no/q.csv"), "no/q.csv: its directory does not exist"),
        (("--resume", "--trials", "trials", "--quality", "mag"), "--resume goes on with scores only"),
    ):
        assert reason in run(*NORMALIZE, *given, "-o", "o.parquet", code=2)
        assert not (tmp_path / "o.parquet").exists()


def test_a_table_is_written_and_read(tmp_path):
    write_metadata({"id": np.array(["a", "b,c"]), "x_e": np.array([0.1, np.nan])}, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'id,x_e\na,0.1\n"b,c",\n'
    assert read_metadata(tmp_path / "t.csv").columns["x_e"] == ["0.1", ""]
    (tmp_path / "utt2num_frames").write_text("u1 312\nu2 80\n")
    frames = read_metadata(tmp_path / "utt2num_frames")
    assert (frames.ids, frames.columns["num_frames"]) == (("id",), ["312", "80"])
