"""A head that is not clearly better than a classical norm with logistic calibration becomes just that."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evidence.material import evaluation, training
from tests.evidence.test_features import as_list

from evenscore import (
    FileError,
    InputError,
    contributions,
    fit_evidence,
    fit_norm,
    normalize,
    prepare_norm,
)
from evenscore.evidence import EvidenceNormalizer
from evenscore.evidence.choice import Choice, Judge
from evenscore.evidence.features import SIMPLE, restricted
from evenscore.evidence.head import _calibrated
from evenscore.evidence.simple import calibration_alone, simple_choice, simple_columns
from evenscore.evidence.training_trials import TrainingTrials
from evenscore.files import load_evidence, save_evidence
from tilings import every_way, on_route, tiled_blocks

NORMS = {"full": ("raw", "s", "as"), "pair": ("s",), "enroll": ("z",), "test": ("t",)}


@pytest.fixture(scope="module")
def whole():
    return fit_evidence([training(8, 2)], guard=False)


def simple_model(whole, pattern, norm):
    """Return the model with a simple head for a pattern."""
    head = replace(whole.heads["none"], slope={norm: 1.7}, intercept={norm: -0.4}, share={norm: 1.0}, offset=0.3)
    heads = {**whole.heads, pattern: calibration_alone(replace(head, weight={norm: 1.0, "bend": 0.1}))}
    return replace(whole, heads=heads, report=replace(whole.report, simple={norm: 0.1}, instead=norm))


def expected(blocks, norm):
    options = {"top_k": 300, "excess": "clip"} if norm == "as" else {}
    return 1.7 * (blocks.trials if norm == "raw" else normalize(blocks, norm, **options)).scores.astype(float) - 0.4


CASES = [(pattern, norm) for pattern, norms in NORMS.items() for norm in norms]


@pytest.mark.parametrize(("pattern", "norm"), CASES)
@pytest.mark.parametrize(("own", "missing"), [(False, 0), (True, 0), (True, 7)])
def test_a_simple_model_scores_as_its_norm_does(whole, pattern, norm, own, missing):
    model = simple_model(whole, pattern, norm)
    for blocks in (evaluation(own=own, missing=missing), as_list(evaluation(own=own, missing=missing))):
        some = restricted(blocks, pattern)
        llrs = expected(some, norm)
        for tiling, route in every_way():
            with on_route(route):
                found = normalize(tiled_blocks(some, tiling), "evidence", model=model).in_memory()
            np.testing.assert_allclose(found.scores, llrs, rtol=1e-12, atol=1e-12, err_msg=f"{tiling}, {route}")


def test_single_precision_stays(whole):
    blocks = evaluation(dtype=np.float32)
    found = normalize(blocks, "evidence", model=simple_model(whole, "full", "s"))
    assert found.scores.dtype == np.float32
    np.testing.assert_allclose(found.scores, expected(blocks, "s"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", SIMPLE["full"])
def test_one_trial_files_and_contributions(whole, norm, tmp_path):
    model, blocks = simple_model(whole, "full", norm), evaluation(own=True)
    llrs = expected(blocks, norm)
    save_evidence(model, tmp_path / "evidence.json")
    again = load_evidence(tmp_path / "evidence.json")
    assert again.report.instead == norm
    assert again.report.simple == {norm: 0.1}
    np.testing.assert_allclose(normalize(blocks, "evidence", model=again).scores, llrs, rtol=1e-12)
    prepared = EvidenceNormalizer(again, blocks)
    sides = blocks.enroll.scores[1], blocks.test.scores[:, 3]
    who = {"enroll_speaker": blocks.enroll_speakers[1], "test_speaker": blocks.test_speakers[3]}
    assert prepared.normalize_one(blocks.trials.scores[1, 3], *sides, **who) == pytest.approx(llrs[1, 3])
    found = contributions(again, blocks, ("e1", "t3"))
    assert found.llr == pytest.approx(llrs[1, 3]) == pytest.approx(sum(found.terms.values()))
    assert {row[0] for row in found.rows()} == {norm, "bend", "offset", "bounds"}


def test_files_with_simple_views_among_others_are_refused(whole, tmp_path):
    path = tmp_path / "evidence.json"
    save_evidence(simple_model(whole, "full", "s"), path)
    values = json.loads(path.read_text())
    values["heads"]["full"]["weight"]["bend"] = 0.1
    path.write_text(json.dumps(values))
    with pytest.raises(FileError, match="'s' is no feature of the pattern 'full'"):
        load_evidence(path)
    values["heads"]["full"]["weight"]["bend"] = 0.0
    values["report"]["instead"] = "zt"
    path.write_text(json.dumps(values))
    with pytest.raises(FileError, match=r"report.instead.*expected one of as, raw, s, t, z"):
        load_evidence(path)


def test_files_without_a_guard_are_as_they_were(whole, tmp_path):
    path = tmp_path / "evidence.json"
    save_evidence(whole, path)
    assert not {"simple", "instead"} & json.loads(path.read_text())["report"].keys()
    assert load_evidence(path).report.instead is None


class Told:
    """A judge whose losses are told, in place of measured ones."""

    def __init__(self, losses, error):
        self._losses, self._error = losses, error

    def losses(self, choice):
        return np.array([self._losses.get(choice.views, self._losses["head"])])

    def gain(self, choice, over):
        return self.losses(over)[0] - self.losses(choice)[0], self._error


@pytest.mark.parametrize(
    ("head", "error", "few", "many"),
    [(0.1, 0.01, None, None), (0.1, 0.03, "s", None), (0.25, 0.01, "s", "s"), (0.25, 0.03, "s", None)],
)
def test_within_the_noise_few_speakers_take_the_simple_method_and_many_the_head(head, error, few, many):
    choice = Choice(views=("s_norm", "as_norm"), extras=("b",))
    judge = Told({"head": head, ("s",): 0.2, ("raw",): 0.25}, error)
    for n_speakers, chosen in ((11, few), (12, many)):
        instead, losses = simple_choice(judge, choice, ("raw", "s"), n_speakers)
        assert losses == {"raw": 0.25, "s": 0.2}
        assert (instead.views if instead else None) == (None if chosen is None else (chosen,))


def test_the_standard_error_is_that_of_leaving_speakers_out():
    """On trials of many folds the jackknife over speakers tells about the same."""
    rng = np.random.default_rng(0)
    part = training(40, 3, 2)
    trials = TrainingTrials.of([part])
    raw = part.blocks.trials.scores.reshape(-1)
    table = {"raw": raw, "s_norm": raw + rng.normal(size=raw.size), "s": raw}
    judge = Judge(table, trials, trials.sample(25_000))
    first, second = (Choice(views=(name,), extras=()) for name in ("raw", "s_norm"))
    gain, error = judge.gain(first, second)
    assert gain == pytest.approx(judge.losses(second).mean() - judge.losses(first).mean())
    assert error == pytest.approx(jackknifed(judge, first, second), rel=0.25)


def jackknifed(judge, first, second):
    """Return the standard error by leaving out one speaker after the other."""
    falls, keys, sides, folds = [], [], [], []
    for at, ((mine, key), (other, _), speakers) in enumerate(
        zip(judge.held_out(first), judge.held_out(second), judge._speakers, strict=True)
    ):
        sign = np.where(key == 1, -1.0, 1.0)
        falls.append((np.logaddexp(0, sign * other) - np.logaddexp(0, sign * mine)) / (2 * np.log(2)))
        keys.append(key)
        sides.append(np.stack(speakers))
        folds.append(np.full(len(key), at))
    fall, key, side, fold = np.concatenate(falls), np.concatenate(keys), np.hstack(sides), np.concatenate(folds)

    def mean(kept):
        return np.mean(
            [sum(fall[kept & (fold == at) & (key == label)].mean() for label in (0, 1)) for at in np.unique(fold)]
        )

    speakers = np.unique(side)
    left = np.array([mean((side != speaker).all(axis=0)) for speaker in speakers])
    return np.sqrt((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum())


def test_training_gives_way_to_the_norm_and_says_so():
    """Scores without any effect of the sides: all that a head could learn is noise."""
    part = noise(10, seed=4)
    fitted = fit_norm("evidence", [part])
    assert fitted.model.report.instead == fitted.model.heads["full"].simple == "raw"
    assert "with 10 training speakers" in fitted.notes[2]
    assert "it is the raw score followed by" in fitted.notes[2]
    assert set(fitted.model.report.simple) == {"raw"}
    raw = fit_norm("raw", [part])
    key = part.labels.matrix.reshape(-1)
    slope, offset = _calibrated(raw.training_scores[0].scores.reshape(-1), key)
    blocks = evaluation()
    by_hand = slope * raw.normalizer.normalize(blocks).scores + offset
    np.testing.assert_allclose(normalize(blocks, "evidence", model=fitted.model).scores, by_hand, rtol=1e-9)
    assert not np.array_equal(fitted.training_scores[0].scores, by_hand)


def noise(n_speakers, seed):
    part = training(n_speakers, 3)
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=part.blocks.trials.shape) + 2 * part.labels.matrix
    return type(part).own_cohort(part.blocks.trials.with_scores(scores), part.labels)


def test_a_norm_that_training_scores_do_not_allow_is_no_candidate():
    part = noise(12, seed=3)
    scores = part.blocks.trials.scores.copy()
    scores[0] = 1.0  # cohort scores of one enrolment that do not vary
    flat = type(part).own_cohort(part.blocks.trials.with_scores(scores), part.labels)
    with pytest.raises(InputError):
        prepare_norm("s").normalize(flat.blocks)
    assert set(simple_columns([part], "full", 12)) == {"raw", "s", "as"}
    assert set(simple_columns([part], "full", 11)) == set(simple_columns([flat], "full", 12)) == {"raw"}
