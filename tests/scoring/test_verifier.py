"""The verifier: the numbers of whole tables, one trial at a time, from any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evenscore import Embeddings, InputError, LabelledBlocks, ScoreModel, Verifier, fit_norm, load_verifier, write_model
from evenscore.calibrate import GaussianCalibration, LogisticCalibration
from evenscore.norms import METHODS, NormOptions, register_norm
from evenscore.scoring import average_embeddings, fit_plda, make_scorer, score_embeddings


def embeddings(prefix, n_speakers, size, seed):
    rng = np.random.default_rng(seed)
    speakers = np.repeat([f"{prefix}{n}" for n in range(n_speakers)], size)
    vectors = np.repeat(rng.normal(size=(n_speakers, 6)), size, axis=0) + 0.7 * rng.normal(size=(len(speakers), 6))
    return Embeddings([f"{prefix}-{n}" for n in range(len(speakers))], vectors, speakers)


COHORT, ENROLLED, TESTED = embeddings("c", 12, 3, 0), embeddings("e", 4, 1, 1), embeddings("t", 5, 1, 2)
MODEL = ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.2]], beta=[[0.1], [0.1]], sigma2=[0.1, 0.1])
CALIBRATION = LogisticCalibration(weights=[2.0], offset=-1.0)
SCORERS = {
    "cosine": make_scorer("cosine", COHORT, center="mean"),
    "dot": make_scorer("dot"),
    "plda": fit_plda(COHORT, shrinkage=0.2).model,
}
NORMS = [
    *((method, {}) for method in ("z", "t", "s", "zt", "tz")),
    *((method, {"top_k": 7}) for method in ("as", "az", "at")),
    ("as", {"top_k": 0.3, "drop_top": 1, "ddof": 1, "combine": "sqrt2"}),
    ("as", {"top_k": 9, "statistic": "median"}),
    ("as", {"options": NormOptions(top_k=7, select="cross")}),
    ("as", {"top_k": 7, "select": "profile"}),
    ("lgsm", {"model": MODEL}),
    ("evidence", {"model": fit_norm("evidence", LabelledBlocks.own_cohort(score_embeddings(COHORT, COHORT))).model}),
]


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize(("method", "options"), NORMS)
def test_single_trials_have_the_scores_of_tables(method, options, scorer):
    scorer = SCORERS[scorer]
    verifier = Verifier(scorer, cohort=COHORT, method=method, **options)
    expected = score_embeddings(ENROLLED, TESTED, scorer=scorer, cohort=COHORT, method=method, **options).scores
    enrolled = [verifier.enroll(vector) for vector in ENROLLED.vectors]
    found = [[verifier.normalized(e, t) for t in TESTED.vectors] for e in enrolled]
    np.testing.assert_allclose(found, expected, rtol=1e-6 if method == "evidence" else 1e-9)


def test_the_calibration_comes_last():
    raw = score_embeddings(ENROLLED, TESTED).scores
    pair = ENROLLED.vectors[1], TESTED.vectors[2]
    assert Verifier(calibration=CALIBRATION).llr(*pair) == pytest.approx(CALIBRATION(raw)[1, 2])
    normalized = Verifier(cohort=COHORT, method="s")
    gaussian = GaussianCalibration(mean=[0, 2], variance=[1, 1])
    calibrated = Verifier(cohort=COHORT, method="s", calibration=gaussian)
    assert calibrated.normalized(*pair) == normalized.normalized(*pair)
    assert calibrated.llr(*pair) == pytest.approx(2 * normalized.normalized(*pair) - 2)
    with pytest.raises(InputError, match="give a calibration"):
        normalized.llr(*pair)
    assert np.isfinite(Verifier(cohort=COHORT, method="lgsm", model=MODEL).llr(*pair))


@pytest.mark.parametrize("length_norm", ["none", "before", "both"])
def test_several_vectors_are_averaged(length_norm):
    takes, vector = ENROLLED.vectors[:3], TESTED.vectors[0]
    mean = average_embeddings(ENROLLED, {"m": ENROLLED.ids[:3].tolist()}, length_norm).vectors[0]
    verifier = Verifier("dot", cohort=COHORT, method="s", length_norm=length_norm)
    assert verifier.normalized(takes, vector) == verifier.normalized(mean, vector)


def test_what_was_enrolled_serves_with_a_verifier_from_its_file(tmp_path):
    verifier = Verifier(SCORERS["cosine"], cohort=COHORT, method="as", top_k=5, calibration=CALIBRATION)
    write_model(verifier, tmp_path / "verifier.npz")
    loaded = load_verifier(tmp_path / "verifier.npz")
    ann, take = verifier.enroll(ENROLLED.vectors[0]), verifier.test(TESTED.vectors[0])
    again = type(ann)(np.array(ann.vector.tolist()), ann.offset, tuple(ann.numbers))
    assert loaded.llr(again, take) == verifier.llr(ann, take) == verifier.llr(ENROLLED.vectors[0], TESTED.vectors[0])
    with pytest.raises(InputError, match="swapped"):
        verifier.llr(take, ann)


def test_float32_stays_float32_where_the_cohort_is():
    cohort = Embeddings(COHORT.ids, COHORT.vectors.astype(np.float32))
    small, large = (Verifier(cohort=each, method="as", top_k=5) for each in (cohort, COHORT))
    pair = ENROLLED.vectors[0], TESTED.vectors[0].tolist()
    assert small.enroll(pair[0]).vector.dtype == np.float32
    assert small.normalized(*pair) == pytest.approx(large.normalized(*pair), rel=1e-4)


@pytest.mark.parametrize(("method", "options"), [NORMS[5], NORMS[10], NORMS[12], NORMS[13]])
def test_threads_share_a_verifier(method, options):
    pairs = [(e, t) for e in ENROLLED.vectors for t in TESTED.vectors] * 5
    verifier, fresh = (Verifier(cohort=COHORT, method=method, **options) for _ in range(2))
    expected = [verifier.normalized(*pair) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda pair: fresh.normalized(*pair), pairs)) == expected


def test_a_norm_of_ones_own():
    register_norm("less", lambda blocks: blocks.trials.map(lambda s: s - blocks.enroll.scores.max()))
    try:
        verifier = Verifier(cohort=COHORT, method="less")
        highest = score_embeddings(ENROLLED, COHORT).scores[0].max()
        expected = score_embeddings(ENROLLED, TESTED).scores[0, 0] - highest
        assert verifier.normalized(ENROLLED.vectors[0], TESTED.vectors[0]) == pytest.approx(expected)
    finally:
        del METHODS["less"]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "as"},
        {"cohort": COHORT},
        {"top_k": 3},
        {"method": "ass", "cohort": COHORT},
        {"method": "as", "cohort": COHORT, "topk": 3},
        {"method": "as", "cohort": COHORT, "top_k": 300},
        {"method": "s", "cohort": COHORT, "scorer": make_scorer(center=[1.0])},
        {"method": "s", "cohort": Embeddings(["a", "b"], [[1.0], [2.0]])},
    ],
)
def test_what_cannot_work_is_refused_at_once(options):
    with pytest.raises(InputError):
        Verifier(**options)


@pytest.mark.parametrize("vector", [[1.0, 2.0], [np.nan] * 6, [0.0] * 6, ["a"] * 6, [], np.ones((2, 6))])
def test_odd_vectors_are_refused(vector):
    with pytest.raises(InputError):
        Verifier(cohort=COHORT, method="s").test(vector)
