"""What known target scores are worth: the bundled scores, and leave-one-out scores by hand."""

import json

import numpy as np
import pytest

from evenscore import fit_score_model, load_audiomnist_scores
from recipes.takes.known import further_takes


@pytest.fixture(scope="module")
def scores():
    return load_audiomnist_scores()


def test_known_targets_pay(scores):
    model = fit_score_model([(part.blocks.trials, part.table()) for part in scores.development]).model
    none, one = further_takes(scores, model, [0, 1])
    assert none.n_trials == one.n_trials == 20 * 20 * 8 * 10
    assert one.cllr < 0.9 * none.cllr
    assert one.eer < none.eer
    assert one.name == "1 further take"


def test_the_program_prints_what_the_function_returns():
    from typer.testing import CliRunner

    from recipes.takes.command import APP

    found = json.loads(CliRunner().invoke(APP, ["--numbers", "0,2", "--json"]).stdout)
    assert [one["name"] for one in found] == ["0 further takes", "2 further takes"]
    assert found[1]["cllr"] < found[0]["cllr"]


def small_system(folder):
    """Return a small recognizer on made-up speech, and who is in which set."""
    from recipes.tests.synthetic_speech import make_corpus
    from recipes.text_dependent import FeatureOptions, RecognizerOptions, TextDependentSystem, split_speakers

    corpus = make_corpus(folder)
    features = FeatureOptions(n_ceps=12, delta_orders=1, normalize="none")
    system = TextDependentSystem(corpus, RecognizerOptions(features=features, n_gaussians=8, rank=2, relevance=4.0))
    return system, split_speakers(corpus)


def test_each_take_is_scored_against_the_others(tmp_path):
    pytest.importorskip("soundfile")
    from recipes.takes.leave_one_out import OwnTakes, own_takes
    from recipes.text_dependent.recognizer import enrolled, linear_scores, probe_vectors

    system, split = small_system(tmp_path)
    recognizer = system.recognizer(split.background)
    found = own_takes(system, recognizer, split.evaluation[:1])
    phrase = system.corpus.phrases[0]
    takes = sorted(
        one
        for one in system.corpus.of(split.evaluation[:1])
        if one.phrase == phrase and system.corpus.is_enrolment(one)
    )
    frames = system.frames(takes)
    others = recognizer.statistics([frames[take] for take in takes[1:]])
    model = enrolled(recognizer, others, np.zeros(len(takes) - 1, dtype=int), 1)
    probe = probe_vectors(recognizer, recognizer.statistics([frames[takes[0]]]))
    [own] = found.scores[phrase].values()
    assert own[0] == pytest.approx(linear_scores(model, probe)[0, 0])
    assert OwnTakes({"p": {"e": [1.0, 3.0]}}).of("p", less=1.0, as_one=True) == {"e": [1.0]}


@pytest.mark.slow
def test_all_ways_to_take_them_are_judged(tmp_path):
    pytest.importorskip("soundfile")
    from recipes.takes.leave_one_out import compare_ways

    system, split = small_system(tmp_path)
    outcomes = compare_ways(system.score(split), split, system)
    assert [one.n_trials for one in outcomes] == [64] * 4
    assert len({one.cllr for one in outcomes}) == 4
