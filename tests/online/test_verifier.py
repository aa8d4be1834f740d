"""The verifier: the numbers of whole tables, one trial at a time, from any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    GaussianCalibration,
    InputError,
    LogisticCalibration,
    NormOptions,
    average_embeddings,
    score_embeddings,
)
from evenscore.norms import METHODS, register_norm
from evenscore.online import Enrolled, Probe, Verifier
from evenscore.sources import LeftOutCenter
from online_data import CALIBRATION, COHORT, ENROLLED, SIMPLE, TESTED, scorers, trained

NORMS = [
    *((method, {}) for method in ("z", "t", "s", "zt", "tz")),
    *((method, {"top_k": 7}) for method in ("as", "az", "at")),
    ("as", {"top_k": 0.3, "drop_top": 1, "ddof": 1, "combine": "sqrt2"}),
    ("as", {"top_k": 9, "statistic": "median"}),
    ("as", {"top_k": 7, "select": "cross"}),
    ("as", {"top_k": 7, "select": "profile"}),
    ("lgsm", {"model": SIMPLE}),
    ("lgsm", {"model": "trained"}),
    ("evidence", {"model": "trained"}),
]


def with_model(method, options):
    return options | ({"model": trained(method)} if options.get("model") == "trained" else {})


@pytest.mark.parametrize("scorer", ["cosine", "dot", "plda", "transformed"])
@pytest.mark.parametrize(("method", "options"), NORMS)
def test_single_trials_have_the_scores_of_tables(method, options, scorer):
    options, scorer = with_model(method, options), scorers()[scorer]
    verifier = Verifier(scorer, cohort=COHORT, method=method, **options)
    expected = score_embeddings(ENROLLED, TESTED, scorer=scorer, cohort=COHORT, method=method, **options).scores
    enrolled = [verifier.enroll(vector) for vector in ENROLLED.vectors]
    found = [[verifier.normalized(e, t) for t in TESTED.vectors] for e in enrolled]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(verifier.score(ENROLLED, TESTED).in_memory().scores, expected, rtol=1e-9)


def test_the_calibration_comes_last():
    raw = score_embeddings(ENROLLED, TESTED).scores
    plain = Verifier(calibration=CALIBRATION)
    assert plain.llr(ENROLLED.vectors[1], TESTED.vectors[2]) == pytest.approx(CALIBRATION(raw)[1, 2])
    normalized = Verifier(cohort=COHORT, method="s")
    calibrated = Verifier(cohort=COHORT, method="s", calibration=GaussianCalibration(mean=[0, 2], variance=[1, 1]))
    score = normalized.normalized(ENROLLED.vectors[0], TESTED.vectors[0])
    assert calibrated.normalized(ENROLLED.vectors[0], TESTED.vectors[0]) == score
    assert calibrated.llr(ENROLLED.vectors[0], TESTED.vectors[0]) == pytest.approx(2 * score - 2)
    with pytest.raises(InputError, match="no log-likelihood ratios; give a calibration"):
        normalized.llr(ENROLLED.vectors[0], TESTED.vectors[0])
    assert Verifier(cohort=COHORT, method="lgsm", model=SIMPLE).is_llr


@pytest.mark.parametrize("length_norm", ["none", "before", "both"])
def test_several_vectors_are_averaged(length_norm):
    takes = ENROLLED.vectors[:3]
    mean = average_embeddings(ENROLLED, {"m": ENROLLED.ids[:3].tolist()}, length_norm=length_norm)
    verifier = Verifier("dot", cohort=COHORT, method="s", length_norm=length_norm)
    assert verifier.normalized(takes, TESTED.vectors[0]) == verifier.normalized(mean.vectors[0], TESTED.vectors[0])


def test_what_was_enrolled_can_be_stored_and_used_again():
    verifier = Verifier(cohort=COHORT, method="as", top_k=5, calibration=CALIBRATION)
    ann, take = verifier.enroll(ENROLLED.vectors[0]), verifier.test(TESTED.vectors[0])
    again = Enrolled(np.array(ann.vector.tolist()), ann.offset, np.array(ann.numbers.tolist()))
    assert verifier.llr(again, take) == verifier.llr(ann, take) == verifier.llr(ENROLLED.vectors[0], take)
    assert isinstance(take, Probe)
    with pytest.raises(InputError, match="swapped"):
        verifier.llr(take, ann)
    with pytest.raises(InputError, match="the enrolment has 2 dimensions, but the test has 6"):
        verifier.llr(Enrolled(np.ones(2), 0.0, ann.numbers), take)


def test_float32_stays_float32_where_the_cohort_is():
    cohort = Embeddings(COHORT.ids, COHORT.vectors.astype(np.float32))
    small, large = (Verifier(cohort=each, method="as", top_k=5) for each in (cohort, COHORT))
    pair = ENROLLED.vectors[0], TESTED.vectors[0].tolist()
    assert small.enroll(pair[0]).vector.dtype == np.float32
    assert small.normalized(*pair) == pytest.approx(large.normalized(*pair), rel=1e-4)


@pytest.mark.parametrize(("method", "options"), [NORMS[5], NORMS[10], NORMS[13], NORMS[14]])
def test_threads_share_a_verifier(method, options):
    options = with_model(method, options)
    verifier = Verifier(cohort=COHORT, method=method, **options)
    pairs = [(e, t) for e in ENROLLED.vectors for t in TESTED.vectors] * 5
    expected = [verifier.normalized(*pair) for pair in pairs]
    fresh = Verifier(cohort=COHORT, method=method, **options)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda pair: fresh.normalized(*pair), pairs)) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "as"}, "needs a cohort"),
        ({"cohort": COHORT}, "but no norm"),
        ({"method": "ass", "cohort": COHORT}, "no method 'ass'"),
        ({"method": "as", "cohort": COHORT, "topk": 3}, "topk"),
        ({"method": "as", "cohort": COHORT, "top_k": 300}, "only 36 members"),
        ({"method": "s", "cohort": COHORT, "scorer": Cosine(mean=[1.0])}, "mean has 1 components"),
        ({"method": "s", "cohort": COHORT, "scorer": LeftOutCenter(COHORT)}, "no scores that are products"),
        ({"method": "s", "cohort": COHORT, "conditions": None}, "knows no conditions"),
        ({"calibration": LogisticCalibration(weights=[1, 2], quality_weights=[], offset=0)}, "one score alone"),
        ({"method": "s", "cohort": Embeddings(["a", "b"], [[1.0], [2.0]])}, "standard deviation of zero"),
    ],
)
def test_what_cannot_work_is_refused_at_once(options, message):
    with pytest.raises(InputError, match=message):
        Verifier(**options)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1.0, 2.0], "2 dimensions, but the cohort has 6"),
        ([np.nan] * 6, "not finite"),
        ([0.0] * 6, "no direction"),
        (["a"] * 6, "a list of numbers"),
        ([], "a list of numbers"),
        (np.ones((2, 6)), "a test is one vector"),
    ],
)
def test_odd_vectors_are_refused(vector, message):
    verifier = Verifier(cohort=COHORT, method="s")
    with pytest.raises(InputError, match=message):
        verifier.test(vector)


def test_options_as_a_record():
    pair = ENROLLED.vectors[0], TESTED.vectors[0]
    one, two = (
        Verifier(cohort=COHORT, method="as", **each) for each in ({"options": NormOptions(top_k=4)}, {"top_k": 4})
    )
    assert one.normalized(*pair) == two.normalized(*pair)


class Less:
    """A norm of somebody else, who knows neither parts nor single trials."""

    def normalize(self, blocks):
        return blocks.trials.with_scores(blocks.trials.scores - blocks.enroll.scores.max())


def test_a_norm_of_ones_own():
    if "less" not in METHODS:
        register_norm("less", lambda method: Less())
    verifier = Verifier(cohort=COHORT, method="less")
    highest = score_embeddings(ENROLLED, COHORT).scores[0].max()
    expected = score_embeddings(ENROLLED, TESTED).scores[0, 0] - highest
    assert verifier.normalized(ENROLLED.vectors[0], TESTED.vectors[0]) == pytest.approx(expected)
    del METHODS["less"]
