"""``evenscore normalize``: the numbers of the library, in the form of the trials; and a reason for every refusal."""

import json

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    TrialList,
    load_model,
    read_scores,
    save_model,
    simulate_blocks,
    write,
)
from evenscore.norms import normalize
from evenscore.sources import score_blocks
from evenscore.tables import Axis

MODEL = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
ENROLL, TEST = [f"s{n % 4}" for n in range(6)], [f"s{n % 4}" for n in range(9)]
COHORT_ENROLL, COHORT_TEST = [f"c{n % 8}" for n in range(12)], [f"c{n % 8}" for n in range(10)]
BLOCKS, LABELS = simulate_blocks(MODEL, ENROLL, TEST, COHORT_ENROLL, COHORT_TEST, seed=4)
SPEAKERS = {
    name: speaker
    for ids, speakers in (
        (BLOCKS.trials.enroll_ids, ENROLL),
        (BLOCKS.trials.test_ids, TEST),
        (BLOCKS.cohort.enroll_ids, COHORT_ENROLL),
        (BLOCKS.cohort.test_ids, COHORT_TEST),
    )
    for name, speaker in zip(ids, speakers, strict=True)
}
ALL = ("--enroll", "enroll.npz", "--test", "test.npz", "--cohort", "cohort.npz", "--cohort-key", "cohort.key")


@pytest.fixture
def files(tmp_path):
    """The four blocks, with key, model and speakers, in the directory of the test."""
    for name in ("trials", "enroll", "test", "cohort"):
        write(getattr(BLOCKS, name), tmp_path / f"{name}.npz")
        write(getattr(BLOCKS, name), tmp_path / f"{name}.scores", format="kaldi")
    key = BLOCKS.cohort.to_trials(BLOCKS.cohort_labels)
    write(key, tmp_path / "cohort.key", format="wespeaker")
    write(BLOCKS.trials.to_trials(LABELS), tmp_path / "labelled", format="wespeaker")
    write(SPEAKERS, tmp_path / "utt2spk", format="utt2spk")
    save_model(MODEL, tmp_path / "m.json")
    return tmp_path


@pytest.fixture
def run(cli, tmp_path):
    """Normalize, and return what was written."""

    def run(*arguments, output="out.npz"):
        result = cli("normalize", *arguments, "-o", output)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert result.stderr == ""
        return read_scores(tmp_path / output)

    return run


@pytest.fixture
def refused(cli, tmp_path):
    """Normalize something that must be refused without an output; return the sentence."""

    def run(*arguments):
        result = cli("normalize", *arguments, "-o", "out.npz")
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "out.npz").exists()
        return result.stderr

    return run


def close(ours, theirs):
    return np.allclose(ours.scores, theirs.scores, rtol=1e-9, atol=1e-9, equal_nan=True)


def expected(blocks, model=MODEL):
    return ScoreModelNormalizer(model, blocks).normalize(blocks)


def without_speakers(*, cohort_labels=None, **blocks):
    tables = {"trials": BLOCKS.trials, **blocks}
    bare = {name: table.with_axes(Axis(table.enroll_ids), Axis(table.test_ids)) for name, table in tables.items()}
    return ScoreBlocks(bare.pop("trials"), **bare, cohort_labels=cohort_labels)


def whole(trials=BLOCKS.trials):
    return without_speakers(
        trials=trials,
        enroll=BLOCKS.enroll,
        test=BLOCKS.test,
        cohort=BLOCKS.cohort,
        cohort_labels=BLOCKS.cohort_labels,
    )


def test_the_score_model_with_all_blocks(run, files):
    out = run("--method", "lgsm", "--model", "m.json", "--trials", "trials.npz", *ALL)
    assert isinstance(out, ScoreMatrix)
    assert out.enroll_ids.tolist() == BLOCKS.trials.enroll_ids.tolist()
    assert close(out, expected(whole()))


@pytest.mark.parametrize("output", ["out.npz", "out.csv", "out.scores", "out.h5", "out.parquet", "out.csv.gz"])
def test_text_blocks_and_every_output(run, files, output):
    text = [name.replace(".npz", ".scores") for name in ALL]
    out = run("--model", "m.json", "--trials", "trials.scores", *text, output=output)
    matrix = out.to_matrix() if isinstance(out, TrialList) else out
    assert close(matrix.align(BLOCKS.trials.enroll_ids, BLOCKS.trials.test_ids), expected(whole()))


@pytest.mark.parametrize("norm", ["at", "az", "as"])
def test_the_other_side_chooses_by_profile(run, refused, files, norm):
    spelt = ("--norm", f"{norm}:select=profile:top_k=4", "--trials", "trials.npz")
    assert close(run(*spelt, *ALL), normalize(whole(), norm, select="profile", top_k=4))
    (files / "out.npz").unlink()
    without = [word for at, word in enumerate(ALL) if not ({word, ALL[at - 1]} & {"--cohort", "--cohort-key"})]
    assert f"the norm '{norm}' with select='profile' needs the block `cohort`" in refused(*spelt, *without)


def test_lists_keep_order_and_labels(run, cli, files):
    trials = BLOCKS.trials.to_trials(LABELS)
    some = trials.select(np.random.default_rng(1).permutation(len(trials))[:20])
    write(some, files / "some", format="wespeaker")
    result = expected(whole(some))
    for output in ("out.npz", "out.csv", "out"):
        out = run("--model", "m.json", "--trials", "some", *ALL, output=output)
        assert isinstance(out, TrialList)
        assert [out.pair(n) for n in range(20)] == [some.pair(n) for n in range(20)]
        assert np.array_equal(out.labels, some.labels)
        assert close(out, result)
    plain = cli("normalize", "--model", "m.json", "--trials", "some", *ALL, "-o", "-", "--to", "kaldi")
    assert plain.stdout.splitlines()[0].split()[:2] == list(some.pair(0))
    assert len(plain.stdout.splitlines()[0].split()) == 3


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("--enroll", "enroll.npz"), ("enroll",)),
        (("--test", "test.npz"), ("test",)),
        (("--enroll", "enroll.npz", "--test", "test.npz"), ("enroll", "test")),
        (("--enroll", "enroll.npz", "--cohort", "cohort.npz"), ("enroll", "cohort")),
        ((), ()),
    ],
)
def test_parts_of_the_cohort(run, files, arguments, kept):
    out = run("--model", "m.json", "--trials", "trials.npz", *arguments)
    assert close(out, expected(without_speakers(**{name: getattr(BLOCKS, name) for name in kept})))


def test_without_a_cohort_it_calibrates_with_the_whole_variance(run, files):
    out = run("--model", "m.json", "--trials", "trials.npz")
    table = MODEL.variances
    mean, variance = MODEL.mu, table.sigma2 + table.nu
    density = [-0.5 * ((BLOCKS.trials.scores - mean[h]) ** 2 / variance[h] + np.log(variance[h])) for h in (0, 1)]
    assert np.allclose(out.scores, density[1] - density[0])


def test_missing_cohort_scores(run, files):
    rng = np.random.default_rng(2)
    gappy = {}
    for name in ("enroll", "test", "cohort"):
        block = getattr(BLOCKS, name)
        scores = np.where(rng.random(block.shape) < 0.1, np.nan, block.scores)
        gappy[name] = ScoreMatrix(scores, block.enroll_ids, block.test_ids, missing="nan")
        write(gappy[name], files / f"{name}.npz")
        write(gappy[name], files / f"{name}.scores", format="kaldi")
    blocks = without_speakers(**gappy, cohort_labels=BLOCKS.cohort_labels)
    key = gappy["cohort"].to_trials(BLOCKS.cohort_labels)
    write(key, files / "cohort.key", format="wespeaker")
    assert close(run("--model", "m.json", "--trials", "trials.npz", *ALL), expected(blocks))
    text = [name.replace(".npz", ".scores") for name in ALL]
    assert close(run("--model", "m.json", "--trials", "trials.npz", *text), expected(blocks))


def test_blocks_in_another_order(run, files):
    turned = BLOCKS.cohort.take(np.arange(12)[::-1], np.arange(10)[::-1])
    write(turned, files / "cohort.npz")
    write(BLOCKS.enroll.take(np.arange(6)[::-1], None), files / "enroll.npz")
    assert close(run("--model", "m.json", "--trials", "trials.npz", *ALL), expected(whole()))


def test_own_speakers_are_left_out(run, files):
    blocks, _ = simulate_blocks(MODEL, ["a", "b"], ["a", "c", "b"], ["a", "b", "d", "e"], ["c", "d", "e", "f"], seed=1)
    for name in ("trials", "enroll", "test", "cohort"):
        write(getattr(blocks, name), files / f"{name}.npz")
    sides = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    ids = (blocks.trials.enroll_ids, blocks.trials.test_ids, blocks.cohort.enroll_ids, blocks.cohort.test_ids)
    maps = [dict(zip(names, getattr(blocks, side), strict=True)) for names, side in zip(ids, sides, strict=True)]
    write(maps[0] | maps[1], files / "trials.utt2spk", format="utt2spk")
    write(maps[2] | maps[3], files / "cohort.utt2spk", format="utt2spk")
    write(maps[0] | maps[1] | maps[2] | maps[3], files / "utt2spk", format="utt2spk")
    cohort = ("--enroll", "enroll.npz", "--test", "test.npz", "--cohort", "cohort.npz")
    two = ("--speakers", "trials.utt2spk", "--cohort-speakers", "cohort.utt2spk")
    for extra in (two, ("--speakers", "utt2spk")):
        assert close(run("--model", "m.json", "--trials", "trials.npz", *cohort, *extra), expected(blocks))
        z = run("--method", "z", "--trials", "trials.npz", *cohort, *extra)
        assert close(z, normalize(blocks, "z"))


@pytest.mark.parametrize(
    ("method", "arguments", "options"),
    [
        ("z", (), {}),
        ("t", (), {}),
        ("zt", (), {}),
        ("tz", (), {}),
        ("s", ("--convention", "hyperion"), {"convention": "hyperion"}),
        ("as", ("--top-k", "4"), {"top_k": 4}),
        ("as", ("--top-k", "0.5", "--ddof", "1"), {"top_k": 0.5, "ddof": 1}),
        ("at", ("--top-k", "3", "--drop-top", "1", "--statistic", "median"),
         {"top_k": 3, "drop_top": 1, "statistic": "median"}),
        ("az", ("--top-k", "3", "--std-floor", "1e-3"), {"top_k": 3, "std_floor": 1e-3}),
    ],
)  # fmt: skip
def test_classical_norms_go_the_same_way(run, files, method, arguments, options):
    out = run("--method", method, "--trials", "trials.npz", *ALL, *arguments)
    assert close(out, normalize(whole(), method, **options))


def test_from_simulation_to_log_likelihood_ratios(cli, run, files):
    """The whole chain on the command line, against the library."""
    from evenscore import Labels, cllr, eer, fit_score_model, min_cllr

    simulated = ("--enroll-per-speaker", 2, "--test-per-speaker", 4)
    assert cli("simulate", "--model", "m.json", "--speakers", 60, *simulated, "-o", "train").exit_code == 0
    arguments = ("--speakers", 60, "--cohort-speakers", 80, "--seed", 2, *simulated)
    assert cli("simulate", "--model", "m.json", *arguments, "-o", "eval").exit_code == 0
    trained = cli("fit", "--scores", "train/scores.npz", "--key", "train/key.trials", "-o", "fitted.json", "--json")
    assert json.loads(trained.stdout)["converged"] is True
    out = run(
        "--method", "lgsm", "--model", "fitted.json", "--trials", "eval/trials.npz", "--enroll", "eval/enroll.npz",
        "--test", "eval/test.npz", "--cohort", "eval/cohort.npz", "--cohort-key", "eval/cohort.trials",
    )  # fmt: skip
    names = [f"spk{n}" for n in range(60)]
    labels = Labels.from_speakers(np.repeat(names, 2), np.repeat(names, 4))
    training = read_scores(files / "train/scores.npz")
    model = fit_score_model([(training, labels)]).model
    assert load_model(files / "fitted.json").sigma2 == pytest.approx(model.sigma2, rel=1e-6)
    raw, key = read_scores(files / "eval/trials.npz").scores.ravel(), labels.matrix.ravel()
    llrs = out.scores.ravel()
    assert eer(llrs, key) < eer(raw, key)
    assert cllr(llrs, key) - min_cllr(llrs, key) < 0.03


@pytest.fixture
def vectors(tmp_path):
    """Embeddings of trials and cohort, written to files."""
    rng = np.random.default_rng(0)
    made = {}
    for name, count in (("e", 5), ("t", 7), ("c", 20)):
        speakers = [f"{name}{n % 4}" for n in range(count)]
        made[name] = Embeddings([f"{name}{n}" for n in range(count)], rng.normal(size=(count, 6)), speakers)
        write(made[name], tmp_path / f"{name}.npz")
    save_model(
        ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.2]], beta=[[0.1], [0.1]], sigma2=[0.1, 0.1]), tmp_path / "m.json"
    )
    return made


SIDES = ("--enroll-embeddings", "e.npz", "--test-embeddings", "t.npz", "--cohort-embeddings", "c.npz")


def test_embeddings(run, vectors, tmp_path):
    model = load_model(tmp_path / "m.json")
    enroll, test, cohort = (vectors[name] for name in "etc")
    blocks = score_blocks(Cosine(), enroll, test, cohort)
    assert close(run("--model", "m.json", *SIDES), expected(blocks, model))
    assert close(run("--method", "as", "--top-k", 5, *SIDES), normalize(blocks, "as", top_k=5))
    listed = TrialList.from_pairs(["e1", "e0", "e1"], ["t3", "t0", "t6"], labels=[1, 0, 0])
    write(listed, tmp_path / "list", format="kaldi")
    out = run("--model", "m.json", "--trials", "list", *SIDES)
    assert np.array_equal(out.labels, [1, 0, 0])
    assert close(out, expected(score_blocks(Cosine(), enroll, test, cohort, trials=listed), model))


def test_one_file_on_all_sides(run, vectors, tmp_path):
    """Trials within the cohort: each of them leaves out its own utterances and speakers."""
    listed = TrialList.from_pairs(["c1", "c0"], ["c3", "c5"])
    write(listed, tmp_path / "list", format="kaldi")
    sides = ("--enroll-embeddings", "c.npz", "--test-embeddings", "c.npz", "--cohort-embeddings", "c.npz")
    blocks = score_blocks(Cosine(), *[vectors["c"]] * 3, trials=listed)
    assert close(run("--method", "s", "--trials", "list", *sides), normalize(blocks, "s"))
    out = run("--model", "m.json", "--trials", "list", *sides)
    assert close(out, expected(blocks, load_model(tmp_path / "m.json")))


def test_embeddings_whose_speakers_are_in_the_cohort(run, vectors, tmp_path):
    model = load_model(tmp_path / "m.json")
    mapped = {name: f"s{n % 5}" for side in "etc" for n, name in enumerate(vectors[side].ids)}
    write(mapped, tmp_path / "utt2spk", format="utt2spk")
    sides = [vectors[name].with_speakers(mapped) for name in "etc"]
    out = run("--model", "m.json", "--speakers", "utt2spk", *SIDES)
    assert close(out, expected(score_blocks(Cosine(), *sides), model))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--trials", "trials.npz"), "the norm lgsm needs a trained model"),
        (("--model", "m.json"), "there is nothing to normalize"),
        (("--method", "nonsense", "--trials", "trials.npz"), "there is no norm 'nonsense'"),
        (("--method", "z", "--model", "m.json", "--trials", "trials.npz"), "uses no model"),
        (("--model", "m.json", "--trials", "trials.npz", "--top-k", "3"), "top_k is for the classical norms"),
        (("--model", "m.json", "--trials", "trials.npz", "--ddof", "1"), "ddof is for the classical norms"),
        (("--method", "z", "--trials", "trials.npz"), "'z' needs"),
        (("--method", "as", "--trials", "trials.npz", *ALL, "--top-k", "many"), "top_k is 'many'"),
        (
            ("--method", "as", "--trials", "trials.npz", *ALL, "--top-k", "99"),
            "top_k is 99, but the cohort has only 10 members; take fewer, or all there are with excess='clip'",
        ),
        (("--method", "as", "--trials", "trials.npz", *ALL, "--ddof", "7"), "ddof is 7, but must be 0 or 1"),
        (("--method", "as", "--trials", "trials.npz", *ALL, "--trim", "0.2"), "trim is for statistic=trimmed"),
        (("--method", "as", "--trials", "trials.npz", *ALL, "--convention", "x"), "there is no convention 'x'"),
        (("--model", "absent.json", "--trials", "trials.npz"), "absent.json: there is no such file"),
        (("--model", "cohort.key", "--trials", "trials.npz"), "cohort.key:1: this is not JSON"),
        (("--model", "m.json", "--trials", "absent"), "absent: there is no such file"),
        (("--model", "m.json", "--trials", "utt2spk"), "utt2spk"),
        (("--model", "m.json", "--trials", "trials.npz", "--enroll", "test.npz"), "block `enroll`: enrolment 'e0'"),
        (("--model", "m.json", "--trials", "trials.npz", "--test", "enroll.npz"), "block `test`: test 't0'"),
        (("--model", "m.json", "--trials", "trials.npz", "--cohort", "test.npz", *ALL[:2]), "do not line up"),
        (("--model", "m.json", "--trials", "trials.npz", "--cohort-key", "cohort.key"), "give --cohort too"),
        (("--model", "m.json", "--trials", "trials.npz", *ALL[:6], "--cohort-key", "labelled"), "are not in the key"),
        (("--model", "m.json", "--trials", "trials.npz", *ALL, "--speakers", "few.utt2spk"), "has no speaker for test"),
        (
            ("--model", "m.json", "--trials", "trials.npz", *ALL, "--cohort-speakers", "few.utt2spk"),
            "has no speaker for cohort member",
        ),
        (("--model", "m.json", "--trials", "trials.npz", *SIDES[:2]), "--test-embeddings is needed too"),
        (("--model", "m.json", "--trials", "trials.npz", *SIDES, *ALL), "both embeddings and cohort scores"),
    ],
)
def test_refusals(refused, files, arguments, reason):
    write({name: speaker for name, speaker in SPEAKERS.items() if name[0] == "e"}, files / "few.utt2spk")
    assert reason in refused(*arguments)


def test_a_cohort_key_with_unknown_pairs(run, refused, files):
    key = BLOCKS.cohort.to_trials(BLOCKS.cohort_labels)
    part = key.select(np.arange(len(key)) % 5 > 0)
    write(part, files / "cohort.key", format="wespeaker")
    assert "24 of the 120 scored trials are not in the key" in refused(
        "--model", "m.json", "--trials", "trials.npz", *ALL
    )
    out = run("--model", "m.json", "--trials", "trials.npz", *ALL, "--unmatched", "drop")
    scores = BLOCKS.cohort.scores.copy()
    scores.ravel()[np.arange(120) % 5 == 0] = np.nan
    cohort = ScoreMatrix(scores, BLOCKS.cohort.enroll_ids, BLOCKS.cohort.test_ids, missing="nan")
    blocks = without_speakers(enroll=BLOCKS.enroll, test=BLOCKS.test, cohort=cohort, cohort_labels=BLOCKS.cohort_labels)
    assert close(out, expected(blocks))


def test_known_targets_by_key(files, run, refused):
    """A key of the enrolments' cohort scores: targets in the cohort, and against takes that the cohort lacks."""
    rng = np.random.default_rng(1)
    takes = [f"{name}-take" for name in BLOCKS.trials.enroll_ids]
    more = np.full((len(takes), len(takes)), np.nan)
    np.fill_diagonal(more, 3 + rng.normal(size=len(takes)))
    scores = np.concatenate([BLOCKS.enroll.scores, more], axis=1)
    enroll = ScoreMatrix(scores, BLOCKS.trials.enroll_ids, [*BLOCKS.enroll.test_ids, *takes], missing="nan")
    write(enroll, files / "more.npz")
    pairs = list(zip(BLOCKS.trials.enroll_ids, takes, strict=True))
    pairs.append((BLOCKS.trials.enroll_ids[0], BLOCKS.enroll.test_ids[3]))
    key = TrialList.from_pairs(*zip(*pairs, strict=True), labels=[1] * len(pairs))
    write(key, files / "e.key", format="kaldi")
    given = ("--norm", "lgsm", "--model", "m.json", "--trials", "trials.npz", *ALL)
    out = run(*(word.replace("enroll.npz", "more.npz") for word in given), "--enroll-key", "e.key")
    blocks = ScoreBlocks(
        BLOCKS.trials.with_speakers([None] * 6, [None] * 9),
        enroll=enroll,
        test=BLOCKS.test,
        cohort=BLOCKS.cohort,
        cohort_labels=BLOCKS.cohort_labels,
        enroll_labels=key,
    )
    np.testing.assert_allclose(out.scores, normalize(blocks, "lgsm", model=MODEL).scores)
    assert np.abs(out.scores - run(*given).scores).min() > 1e-3
    (files / "out.npz").unlink()
    write(TrialList.from_pairs(["nobody"], ["c"], labels=[1]), files / "odd.key", format="kaldi")
    assert (
        "odd.key: 1 of 1 pairs are not among the scores of --enroll-cohort, the first of them 'nobody' 'c'"
        in refused(*given, "--enroll-key", "odd.key")
    )
    assert "--test-key gives labels to cohort scores; give --test-cohort too" in refused(
        "--norm", "z", "--trials", "trials.npz", "--enroll-cohort", "enroll.npz", "--test-key", "e.key"
    )
