"""RSR2015's protocol from its files to the paper's figure and tables, through the command of the documentation."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from evenscore import fit_norm
from evenscore.files import load_score_set
from in_process import run_app
from recipes.paper.command import APP
from recipes.text_dependent import RecognizerOptions, Split, read_rsr2015, run_recognizer

pytest.importorskip("matplotlib", reason="figures need the extra evenscore[plot]")

SMALL = ("--gaussians", 4, "--rank", 2, "--jobs", 1, "--bootstrap", 20, "--shift", "noise:10")
NAMES = {"development": "dev", "evaluation": "eval"}


pytestmark = pytest.mark.slow  # a whole run of the experiment


@pytest.fixture(scope="module")
def finished(tree, tmp_path_factory):
    """The directory of a whole run."""

    def quick(method, training, **options):  # on so few speakers training would creep towards a variance of zero
        return fit_norm(method, training, **options | ({"max_iter": 20} if method == "lgsm" else {}))

    out = tmp_path_factory.mktemp("rsr") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.paper.systems.fit_norm", quick)
        result = run_app(
            APP, "--corpus", "rsr2015", "--root", tree, "-o", out, "--gender-dependent", *SMALL,
            "--save-scores", out / "scores",
        )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return out


@pytest.fixture(scope="module")
def results(finished):
    return json.loads((finished / "results.json").read_text())


@pytest.fixture(scope="module")
def scores(finished):
    return load_score_set(finished / "scores")


def listed_trials(tree, role, gender):
    """Return the trials of the corpus' list whose phrase is right, as our ids, and whether each is a target."""
    path = tree / "key" / "part1" / "ndx" / f"3sess-pwd_{NAMES[role]}_{gender}.ndx"
    trials = {}
    for line in path.read_text().splitlines():
        model, file, *marks = line.split(",")
        if "Y" in (marks[0], marks[2]):
            speaker, session, phrase = file.rpartition("/")[2].removesuffix(".sph").split("_")
            trials[model.replace("_", "-"), f"{speaker}-{phrase}-{session}"] = marks[0] == "Y"
    return trials


def test_all_files_are_written(finished):
    names = {path.name for path in finished.iterdir()}
    assert {"index.md", "det.svg", "bayes.svg", "shift.svg", "metrics.csv", "variances.csv"} <= names
    assert (finished / "det.svg").read_bytes().startswith(b"<?xml")


def test_sets_are_those_of_rsr2015(results):
    assert results["corpus"]["n_recordings"] == 6 * 4 * 2 * 9
    assert results["corpus"]["skipped"] == []
    assert len(results["splits"]) == 1  # the sets are given, so that nothing is permuted
    split = results["splits"][0]
    assert list(split["speakers"].values()) == [{"female": 4, "male": 4}] * 3
    ranges = {role: (names[0], names[3], names[4], names[7]) for role, names in split["roles"].items()}
    assert ranges == {
        "background": ("f001", "f004", "m001", "m004"),
        "development": ("f048", "f051", "m051", "m054"),
        "evaluation": ("f095", "f098", "m101", "m104"),
    }


def test_a_model_is_three_sessions_of_a_phrase(tree):
    corpus = read_rsr2015(tree)
    sessions = {}
    for recording in corpus.recordings:
        sessions.setdefault((recording.model, corpus.is_enrolment(recording)), []).append(recording.session)
    enrolled = {tuple(found) for (_, enrols), found in sessions.items() if enrols}
    tested = {tuple(found) for (_, enrols), found in sessions.items() if not enrols}
    assert enrolled == {("01", "04", "07")}
    assert tested == {("02", "03", "05", "06", "08", "09")}


@pytest.mark.parametrize("role", NAMES)
def test_trials_are_those_of_the_lists(tree, scores, role):
    parts = {part.name: part for part in getattr(scores, role)}
    assert list(parts) == ["001/f", "002/f", "001/m", "002/m"]  # a matrix for each phrase and gender
    for gender in "fm":
        listed = listed_trials(tree, role, gender)
        scored = {}
        for phrase in ("001", "002"):
            part = parts[f"{phrase}/{gender}"]
            trials = part.blocks.trials
            labels = part.labelled(trials)
            for enroll, test, target in zip(
                np.array(labels.enroll_ids)[labels.enroll_index],
                np.array(labels.test_ids)[labels.test_index],
                labels.labels,
                strict=True,
            ):
                assert {enroll[0], test[0]} == {gender}
                assert enroll[5:8] == test[5:8] == phrase
                scored[str(enroll), str(test)] = bool(target)
        assert scored == listed


def test_counts_are_those_that_the_protocol_implies(finished, results):
    metrics = results["splits"][0]["models"]["per-gender"]
    assert list(metrics) == ["female", "male", "pooled"]
    for group, systems in metrics.items():
        target = 4 * 2 * 6 * (2 if group == "pooled" else 1)  # speakers, phrases, tests
        for figures in systems.values():
            assert (figures["n_target"], figures["n_nontarget"]) == (target, 3 * target)
    with (finished / "metrics.csv").open() as file:
        counts = Counter((row["n_target"], row["n_nontarget"]) for row in csv.DictReader(file))
    assert counts == {("48", "144"): 32, ("96", "288"): 16}  # two genders or both, eight systems, two kinds of models


def test_cohorts_are_the_development_speakers_of_the_gender(scores):
    for part in scores.evaluation:
        gender = part.name[-1]
        wanted = {f"{gender}{number:03d}" for number in (range(48, 52) if gender == "f" else range(51, 55))}
        assert set(part.blocks.cohort_enroll_speakers) == set(part.blocks.cohort_test_speakers) == wanted


def test_the_recognizer_of_a_gender_knows_nothing_of_the_other(tree, scores):
    corpus = read_rsr2015(tree)
    men = [speaker for speaker in corpus.speakers if speaker[0] == "m"]
    split = Split(men[:4], men[4:8], men[8:])
    alone = run_recognizer(corpus.only(men), split, RecognizerOptions(n_gaussians=4, rank=2))
    together = {part.name: part for part in scores.evaluation}
    for part in alone.evaluation:
        found = together[f"{part.name}/m"].blocks.trials
        assert list(part.blocks.trials.enroll_ids) == list(found.enroll_ids)
        assert part.blocks.trials.scores == pytest.approx(found.scores, rel=1e-5, abs=1e-6)
