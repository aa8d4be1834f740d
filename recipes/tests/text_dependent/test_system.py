"""The recognizer on a small made-up corpus, and on real speech if there is some."""

import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
import soundfile

from evenscore import FileError, InputError, eer, fit_norm
from evenscore.files import load_score_set, save_score_set
from recipes.text_dependent import (
    AdditiveNoise,
    Codec,
    Corpus,
    FeatureOptions,
    RecognizerOptions,
    Split,
    TextDependentSystem,
    read_audiomnist,
    role_permutations,
    run_recognizer,
    split_speakers,
)

OPTIONS = RecognizerOptions(
    features=FeatureOptions(n_ceps=12, delta_orders=1, normalize="none"), n_gaussians=8, rank=2, relevance=4.0
)


@pytest.fixture(scope="module")
def split(corpus):
    return split_speakers(corpus)


@pytest.fixture(scope="module")
def system(corpus):
    return TextDependentSystem(corpus, OPTIONS)


@pytest.fixture(scope="module")
def scores(system, split):
    return system.score(split)


def matrices(score_set):
    """Return all score matrices of a set by name."""
    found = {}
    for development, evaluation in zip(score_set.development, score_set.evaluation, strict=True):
        found[development.name, "development"] = development.blocks.trials
        for block in ("trials", "enroll", "test", "cohort"):
            found[evaluation.name, block] = getattr(evaluation.blocks, block)
    return found


def same(one, other):
    assert matrices(one) == matrices(other)
    assert one.gender == other.gender


def pooled_eer(parts):
    trials = [part.trials for part in parts]
    return eer(np.concatenate([one.scores for one in trials]), np.concatenate([one.labels for one in trials]))


def test_one_matrix_for_each_phrase_with_development_as_cohort(corpus, split, scores):
    assert [part.name for part in scores.development] == ["aio", "eua"]
    for development, evaluation in zip(scores.development, scores.evaluation, strict=True):
        assert development.blocks.trials.shape == evaluation.blocks.trials.shape == (4, 8)
        assert evaluation.blocks.cohort == development.blocks.trials
        assert set(evaluation.blocks.enroll_speakers) == set(split.evaluation)
        assert set(evaluation.blocks.cohort_test_speakers) == set(split.development)
        assert evaluation.labels.counts == (8, 24, 0)
        assert list(evaluation.blocks.enroll.test_ids) == list(development.blocks.trials.test_ids)
    first = scores.evaluation[0].blocks.trials
    speaker = split.evaluation[0]
    assert first.enroll_ids[0] == f"{speaker}-aio"
    assert list(first.test_ids[:2]) == [f"{speaker}-aio-{take}" for take in (2, 3)]
    assert set(scores.gender) == {*split.development, *split.evaluation}


def test_speakers_are_recognized(scores):
    assert pooled_eer(scores.development) < 0.25
    assert pooled_eer(scores.evaluation) < 0.25


def test_the_same_again_from_scratch(corpus, split, scores, tmp_path):
    for _ in range(2):  # with an empty cache, and with a full one
        same(run_recognizer(corpus, split, OPTIONS, cache=tmp_path), scores)


def test_roles_can_be_swapped(system, split, scores):
    swapped = system.score(Split(split.background, split.evaluation, split.development))
    before, after = matrices(scores), matrices(swapped)
    for phrase in ("aio", "eua"):
        for block, other in {"trials": "development", "development": "trials", "enroll": "test"}.items():
            first, second = after[phrase, block], before[phrase, other]
            assert first.scores == pytest.approx(second.scores, rel=1e-4, abs=1e-6)
            assert list(first.enroll_ids) == list(second.enroll_ids)


def test_six_permutations_train_three_recognizers(corpus, split):
    stages = []
    system = TextDependentSystem(corpus, OPTIONS, progress=lambda stage, done: stages.append((stage, done)))
    results = [system.score(roles) for roles in role_permutations(split)]
    assert len({pooled_eer(one.evaluation) for one in results}) > 1
    assert stages.count(("background model", 1.0)) == 3
    assert stages.count(("statistics", 1.0)) == 3
    assert sum(stage == "features" for stage, _ in stages) == 12  # each speaker once


def test_development_speakers_may_train_it_too(corpus, split, scores):
    options = replace(OPTIONS, train_sets=("background", "development"))
    stages = []
    system = TextDependentSystem(corpus, options, progress=lambda stage, done: stages.append((stage, done)))
    found = [system.score(roles) for roles in role_permutations(split)]
    assert stages.count(("background model", 1.0)) == 3  # background and development may be swapped
    more = Split(split.background + split.development, split.evaluation[:1], split.evaluation[1:])
    wide = TextDependentSystem(corpus, OPTIONS).score(more)
    for name in ("aio", "eua"):
        same_tests = matrices(wide)[name, "trials"]
        known = matrices(found[0])[name, "trials"].select(same_tests.enroll_ids, same_tests.test_ids)
        assert known.scores == pytest.approx(same_tests.scores, rel=1e-4, abs=1e-6)
    assert matrices(found[0])["aio", "trials"] != matrices(scores)["aio", "trials"]
    with pytest.raises(
        InputError, match="train_sets is 'evaluation', but must be background or background,development"
    ):
        replace(OPTIONS, train_sets=("evaluation",))


def test_only_evaluation_tests_are_spoilt(system, split, scores):
    noisy = system.score(split, degradation=AdditiveNoise(0.0, "babble"))
    before, after = matrices(scores), matrices(noisy)
    for phrase in ("aio", "eua"):
        for block in ("development", "enroll", "cohort"):
            assert after[phrase, block] == before[phrase, block]
        for block in ("trials", "test"):
            assert not np.allclose(after[phrase, block].scores, before[phrase, block].scores, rtol=0.01)
    both = matrices(system.score(split, degradation=AdditiveNoise(0.0, "babble"), degrade_enrolments=True))
    assert both["aio", "test"] == after["aio", "test"]
    assert not np.allclose(both["aio", "enroll"].scores, before["aio", "enroll"].scores, rtol=0.01)
    same(system.score(split), scores)


def test_normalization_takes_the_score_set(scores):
    fitted = fit_norm("s", scores.development)
    normalized = [part.labelled(fitted.normalizer.normalize(part.blocks)) for part in scores.evaluation]
    assert sum(len(one) for one in normalized) == 64


def test_score_sets_are_saved_and_read_back(scores, tmp_path):
    save_score_set(scores, tmp_path)
    loaded = load_score_set(tmp_path)
    same(loaded, scores)
    for one, other in zip(loaded.evaluation, scores.evaluation, strict=True):
        assert one.blocks == other.blocks
        assert one.labels.counts == other.labels.counts
    assert repr(loaded) == "ScoreSet(2 phrases, 64 development and 64 evaluation trials, 8 speakers)"


def test_processes_are_kept_for_all_turns_and_change_nothing(corpus, split, system):
    parallel = TextDependentSystem(corpus, OPTIONS, jobs=2)
    for degradation in (None, AdditiveNoise(5.0)):
        same(parallel.score(split, degradation=degradation), system.score(split, degradation=degradation))


def test_the_package_lists_its_names():
    from recipes import text_dependent as package

    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = package.nonsense


def test_a_recognizer_for_each_gender(corpus, split):
    scores = run_recognizer(corpus, split, replace(OPTIONS, gender_dependent=True, n_gaussians=4))
    assert [part.name for part in scores.evaluation] == ["aio/f", "eua/f", "aio/m", "eua/m"]
    for part in scores.evaluation:
        assert {speaker[0] for speaker in part.blocks.enroll_speakers} == {part.name[-1]}
    men = tuple(speaker for speaker in split.evaluation if speaker.startswith("m"))
    with pytest.raises(InputError, match="no evaluation speakers of gender 'f'"):
        run_recognizer(
            corpus,
            Split(split.background, split.development, men),
            replace(OPTIONS, gender_dependent=True, n_gaussians=4),
        )


def test_a_drawn_part_of_the_frames_is_the_same_each_time(corpus, split, scores):
    few = replace(OPTIONS, max_frames=500)
    once, again = run_recognizer(corpus, split, few), run_recognizer(corpus, split, few)
    same(once, again)
    other = run_recognizer(corpus, split, replace(few, seed=1))
    assert matrices(other)["aio", "trials"] != matrices(once)["aio", "trials"]


def test_unreadable_takes_are_left_out_on_request(corpus, split, tmp_path):
    victim = corpus.of(split.evaluation)[0]  # an enrolment take
    soundfile.write(tmp_path / "silent.wav", np.zeros(16000), 16000)
    broken = Corpus(
        [replace(one, path=tmp_path / "silent.wav") if one == victim else one for one in corpus.recordings],
        corpus.enroll_sessions,
    )
    with pytest.raises(FileError, match=r"silent.wav: there are 0 frames of speech"):
        run_recognizer(broken, split, OPTIONS)
    system = TextDependentSystem(broken, OPTIONS, skip_unreadable=True)
    assert system.score(split).evaluation[0].blocks.trials.shape == (4, 8)
    assert [one.name for one in system.skipped] == [victim.name]


@dataclass(frozen=True)
class Mute:
    """Leave nothing of the recordings of a take."""

    take: str
    name = "mute"

    def apply(self, samples, recording):
        return 0.0 * samples if recording.endswith(self.take) else samples


def test_tests_without_speech_after_a_degradation_are_listed(corpus, split):
    system = TextDependentSystem(corpus, OPTIONS, skip_unreadable=True)
    muted = system.score(split, degradation=Mute("aio-2"))
    assert [part.blocks.trials.shape for part in muted.evaluation] == [(4, 4), (4, 8)]
    assert {recording.name for _, recording in system.skipped_degraded} == {f"{s}-aio-2" for s in split.evaluation}
    assert system.skipped == {}
    with pytest.raises(InputError, match="phrase 'aio' has no enrolments or tests of one set"):
        system.score(split, degradation=Mute(""))
    assert system.score(split).evaluation[0].blocks.trials.shape == (4, 8)


def test_wrong_splits_are_refused(corpus, split):
    with pytest.raises(InputError, match="the corpus has no sets of its own; make some with split_speakers"):
        run_recognizer(corpus, None, OPTIONS)
    with pytest.raises(InputError, match="'zoe' of the split has no recording"):
        run_recognizer(corpus, Split(split.background, split.development, ("zoe",)), OPTIONS)
    speaker = split.evaluation[0]
    without = Corpus(
        [one for one in corpus.recordings if one.speaker not in split.evaluation or one.session in ("0", "1")],
        corpus.enroll_sessions,
    )
    with pytest.raises(InputError, match="phrase 'aio' has no enrolments or tests of one set"):
        run_recognizer(without, Split(split.background, split.development, (speaker,)), OPTIONS)


def test_real_speech_of_a_few_speakers():
    root = os.environ.get("EVENSCORE_AUDIOMNIST")
    if root is None:
        pytest.skip("set EVENSCORE_AUDIOMNIST to the directory of AudioMNIST to run on real speech")
    whole = read_audiomnist(root)
    women = [speaker for speaker in whole.speakers if whole.gender[speaker] == "f"]
    some = whole.only([*women[:3], *whole.speakers[:9]])
    corpus = Corpus([one for one in some.recordings if one.phrase in "012"], some.enroll_sessions)
    split = split_speakers(corpus)
    options = RecognizerOptions(n_gaussians=32, rank=5)
    system = TextDependentSystem(corpus, options)
    clean, coded = system.score(split), system.score(split, degradation=Codec("gsm"))
    assert pooled_eer(clean.evaluation) < 0.08
    assert pooled_eer(clean.evaluation) < pooled_eer(coded.evaluation)
