"""``evenscore evaluate``: the figures of the library in every form, and a reason for every refusal."""

import csv
import io
import json
from typing import get_args

import numpy as np
import pytest

from evenscore import TrialList, bootstrap, evaluate, evaluate_by, paired_test, write
from evenscore.cli.evaluate import Eer, Metric, Preset
from evenscore.cli.labelled import LabelSources, with_known_speakers
from evenscore.metrics import NIST_PRESETS, SPOOF_COSTS, dev_pav, evaluate_nist, evaluate_spoofing, llr_bounds
from evenscore.metrics.error_rates import EerMethod
from evenscore.metrics.uncertainty import Metric as LibraryMetric

RNG = np.random.default_rng(5)
SPEAKERS = [f"p{n}" for n in range(12)]
MODELS = [f"m{n}" for n in range(12)]
TESTS = [f"t{n}-{k}" for n in range(12) for k in range(3)]
SPEAKER = {**dict(zip(MODELS, SPEAKERS, strict=True)), **{name: f"p{name[1:].split('-')[0]}" for name in TESTS}}
PAIRS = [(model, test) for model in MODELS for test in TESTS]
LABELS = np.array([SPEAKER[model] == SPEAKER[test] for model, test in PAIRS]).astype(int)
SCORES = RNG.normal(np.where(LABELS, 2.0, -2.0), 2.0)
NOISY = SCORES + RNG.normal(0.0, 3.0, SCORES.size)
GENDER = {name: "f" if int(SPEAKER[name][1:]) % 2 else "m" for name in (*MODELS, *TESTS)}
NAMES = ("eer", "eer_threshold", "min_dcf", "act_dcf", "cllr", "min_cllr", "n_target", "n_nontarget")


def trials(scores=SCORES, labels=LABELS, pairs=PAIRS):
    return TrialList.from_pairs(*zip(*pairs, strict=True), scores=scores, labels=labels)


@pytest.fixture
def files(tmp_path):
    """Scores of two systems, their key, speakers and metadata, in the directory of the test."""
    write(trials(labels=None), tmp_path / "a.scores")
    write(trials(NOISY, None), tmp_path / "b.scores")
    write(trials(None), tmp_path / "key")
    write(SPEAKER, tmp_path / "utt2spk", format="utt2spk")
    rows = "".join(f"{name},{GENDER[name]},{len(name)}\n" for name in TESTS)
    (tmp_path / "meta.csv").write_text("id,gender,length\n" + rows)
    return tmp_path


@pytest.fixture
def run(cli, files):
    def run(*arguments):
        result = cli("evaluate", *arguments)
        assert result.exit_code == 0, result.stderr
        return result

    return run


@pytest.fixture
def figures(run):
    """Evaluate, and return what --json prints."""
    return lambda *arguments: json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def refused(cli, files):
    """Evaluate something that must be refused; return the sentence."""

    def run(*arguments):
        result = cli("evaluate", *arguments)
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return run


def test_the_choices_are_those_of_the_library():
    assert get_args(Eer) == get_args(EerMethod)
    assert {one.value for one in Metric} == set(get_args(LibraryMetric))


def test_json_of_one_file_holds_the_figures_of_the_library(figures):
    found = figures("a.scores", "--key", "key")
    expected = evaluate(trials())
    assert {name: found["pooled"][name] for name in expected} == expected
    assert set(NAMES) <= found["pooled"].keys()
    assert found["scores"] == "a.scores"
    assert found["pooled"]["n_unknown"] == 0


@pytest.mark.parametrize("method", get_args(EerMethod))
def test_points_methods_and_costs_that_are_not_normalized(figures, method):
    found = figures(
        "a.scores", "-k", "key", "--points", "0.05", "--points", "0.01,10,1", "--eer", method, "--no-normalize"
    )
    expected = evaluate(trials(), points=[0.05, (0.01, 10.0, 1.0)], eer_method=method, normalize=False)
    assert {name: found["pooled"][name] for name in expected} == expected
    assert found["eer_method"] == method


@pytest.mark.parametrize(
    "words", [("1", "0"), ("true", "False"), ("target", "nontarget"), ("tgt", "imp"), ("Target", "non-target")]
)
def test_every_spelling_of_the_labels(figures, file, words):
    file(
        "spelled", "".join(f"{m} {t} {words[0] if y else words[1]}\n" for (m, t), y in zip(PAIRS, LABELS, strict=True))
    )
    assert figures("a.scores", "--key", "spelled") == figures("a.scores", "--key", "key")


@pytest.mark.parametrize("name", ["own.wespeaker", "own.csv", "own.npz", "own.parquet", "own.h5"])
def test_labels_of_the_score_file_need_no_key(figures, files, name):
    write(trials(), files / name, format="wespeaker" if name.endswith("wespeaker") else None)
    assert figures(name)["pooled"] == figures("a.scores", "--key", "key")["pooled"]


def test_labels_from_speaker_maps_and_matrices(figures, files):
    write(trials(labels=None).to_matrix(), files / "matrix.npz")
    assert figures("matrix.npz", "--enroll-speakers", "utt2spk")["pooled"] == figures("a.scores", "-k", "key")["pooled"]


def test_unknown_trials_are_counted_and_left_out(figures, run, files):
    unknown = np.where(np.arange(len(LABELS)) % 7 == 0, -1, LABELS)
    write(trials(None, unknown), files / "key.csv")
    found = figures("a.scores", "--key", "key.csv")["pooled"]
    expected = evaluate(SCORES, unknown)
    assert {name: found[name] for name in expected} == expected
    assert found["n_unknown"] == np.count_nonzero(unknown < 0)
    assert f"{found['n_unknown']} trials of unknown class were left out" in run("a.scores", "-k", "key.csv").stdout


def test_infinite_llrs_are_accepted_and_json_stays_valid(figures, run, files):
    scores = SCORES.copy()
    scores[np.argmin(LABELS)] = -np.inf
    write(trials(labels=None).with_scores(scores, allow_infinite=True), files / "sure.scores")
    assert figures("sure.scores", "--key", "key")["pooled"]["cllr"] == evaluate(scores, LABELS)["cllr"]
    scores[np.argmax(LABELS)] = -np.inf
    write(trials(labels=None).with_scores(scores, allow_infinite=True), files / "wrong.scores")
    text = run("wrong.scores", "--key", "key", "--json").stdout
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["pooled"]
    assert found["cllr"] == found["calibration_loss"] == "inf"
    assert found["eer"] == evaluate(scores, LABELS)["eer"]
    assert " inf " in run("wrong.scores", "--key", "key").stdout


def test_a_table_that_people_read(run):
    lines = run("a.scores", "--key", "key").stdout.splitlines()
    found = evaluate(trials())
    assert lines[0].split() == ["a.scores", "EER", "%", "minDCF", "actDCF", "minCllr", "Cllr", "targets", "non-targets"]
    costs = [f"{found[name]:.3f}" for name in ("min_dcf", "act_dcf", "min_cllr", "cllr")]
    assert lines[2].split() == ["all", f"{100 * found['eer']:.2f}", *costs, "36", "396"]
    assert lines[3] == "DCF at p_target 0.01, c_miss 1, c_fa 1; EER by rocch"
    assert max(map(len, lines)) <= 80


def test_several_files_are_several_systems(figures, run):
    found = figures("a.scores", "b.scores", "--key", "key")
    assert [system["scores"] for system in found["systems"]] == ["a.scores", "b.scores"]
    assert found["systems"][1]["pooled"]["eer"] == evaluate(NOISY, LABELS)["eer"]
    assert found["systems"][0] == figures("a.scores", "--key", "key")
    lines = run("a.scores", "b.scores", "--key", "key").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["a.scores", "b.scores"]


def test_conditions_of_both_sides(cli, tmp_path):
    """What is between two genders is told apart from what is within one."""
    people = {"ann": "f", "bea": "f", "cal": "m", "dan": "m", "eve": ""}
    rng = np.random.default_rng(3)
    pairs = [(e, t) for e in people for t in people]
    trials = TrialList.from_pairs(
        *zip(*pairs, strict=True), scores=rng.normal(size=len(pairs)), labels=[int(e == t) for e, t in pairs]
    )
    write(trials, tmp_path / "s.csv")
    (tmp_path / "people.csv").write_text("\n".join(["id,gender", *map(",".join, people.items())]))
    arguments = (
        "evaluate",
        "s.csv",
        "--metadata",
        "people.csv",
        "--by",
        "pair:gender",
        "--by",
        "same:gender",
        "--json",
    )
    found = json.loads(cli(*arguments).stdout)["conditions"]
    both = np.array([f"{people[e] or '(empty)'}-{people[t] or '(empty)'}" for e, t in pairs])
    assert {name: one["n_target"] + one["n_nontarget"] for name, one in found["pair:gender"].items()} == {
        name: int((both == name).sum()) for name in sorted(set(both))
    }
    same = np.isin(both, ["f-f", "m-m"])
    assert found["same:gender"]["same"]["cllr"] == pytest.approx(evaluate(trials.select(same)).cllr, rel=1e-12)
    assert found["same:gender"]["different"] == {
        "n_target": 0,
        "n_nontarget": 8,
        "problem": "there are no target trials",
    }
    assert found["same:gender"]["(empty)"]["n_nontarget"] == 8
    (tmp_path / "few.csv").write_text("id,gender\nann,f\nbea,f\ncal,m\neve,f\n")
    few = cli("evaluate", "s.csv", "--metadata", "few.csv", "--by", "same:gender")
    assert (few.exit_code, few.stderr) == (2, "error: few.csv has no row for enrolment 'dan'; add it\n")
    (tmp_path / "trials.csv").write_text("enroll,test,gender\nann,ann,f\n")
    of_trials = cli("evaluate", "s.csv", "--metadata", "trials.csv", "--by", "pair:gender")
    assert (
        "'pair:gender' looks at both sides of a trial, but the rows of trials.csv are about trials" in of_trials.stderr
    )


@pytest.mark.parametrize("equalize", [False, True])
def test_conditions_of_a_metadata_file(figures, equalize):
    found = figures("a.scores", "-k", "key", "--metadata", "meta.csv", "--by", "gender", *["--equalize"] * equalize)
    expected = evaluate_by(trials(), conditions=[GENDER[test] for _, test in PAIRS], equalize=equalize)
    assert found["conditions"]["gender"] == expected["conditions"]
    assert found["pooled"] == expected["pooled"] | {"n_unknown": 0}


def test_two_columns_are_two_divisions(figures):
    found = figures("a.scores", "-k", "key", "--metadata", "meta.csv", "--by", "gender", "--by", "length")
    assert list(found["conditions"]) == ["gender", "length"]
    assert list(found["conditions"]["length"]) == ["4", "5"]


def test_metadata_about_trials_about_one_side_and_in_the_key(figures, files):
    rows = [f"{m}\t{t}\t{'target' if y else 'imp'}\t{GENDER[t]}" for (m, t), y in zip(PAIRS, LABELS, strict=True)]
    (files / "key.tsv").write_text("modelid\tsegmentid\ttargettype\tgender\n" + "\n".join(rows) + "\n")
    by_test = figures("a.scores", "-k", "key", "--metadata", "meta.csv", "--by", "gender")["conditions"]["gender"]
    assert figures("a.scores", "-k", "key.tsv", "--by", "gender")["conditions"]["gender"] == by_test
    assert (
        figures("a.scores", "-k", "key", "--metadata", "key.tsv", "--by", "gender")["conditions"]["gender"] == by_test
    )
    (files / "both").write_text("id gender\n" + "".join(f"{name} {GENDER[name]}\n" for name in (*MODELS, *TESTS)))
    both = figures("a.scores", "-k", "key", "--metadata", "both", "--by", "test:gender", "--by", "enroll:gender")
    assert both["conditions"]["test:gender"] == by_test
    expected = evaluate_by(trials(), conditions=[GENDER[model] for model, _ in PAIRS])
    assert both["conditions"]["enroll:gender"] == expected["conditions"]


def test_metadata_in_parquet_and_rows_without_a_value(figures, files):
    pl = pytest.importorskip("polars")
    gender = [None if name == TESTS[0] else GENDER[name] for name in TESTS]
    pl.DataFrame({"segmentid": TESTS, "gender": gender}).write_parquet(files / "meta.parquet")
    found = figures("a.scores", "-k", "key", "--metadata", "meta.parquet", "--by", "gender")["conditions"]["gender"]
    assert list(found) == ["(empty)", "f", "m"]


def test_a_condition_with_one_class_does_not_stop_the_others(figures, run, files):
    conditions = [
        f"{m} {t} {'odd' if y == 0 and n % 50 == 0 else 'usual'}"
        for n, ((m, t), y) in enumerate(zip(PAIRS, LABELS, strict=True))
    ]
    (files / "c").write_text("enroll test kind\n" + "\n".join(conditions) + "\n")
    arguments = ("a.scores", "-k", "key", "--metadata", "c", "--by", "kind")
    found = figures(*arguments)["conditions"]["kind"]
    assert found["odd"]["problem"] == "there are no target trials"
    assert found["usual"]["n_target"] == 36
    assert "! kind = odd: there are no target trials" in run(*arguments).stdout
    assert f"kind,odd,0,{found['odd']['n_nontarget']},,," in run(*arguments, "--csv").stdout


def test_intervals_by_speaker_maps(figures, run):
    arguments = ("a.scores", "-k", "key", "--enroll-speakers", "utt2spk", "--bootstrap", "50", "--seed", "3")
    found = figures(*arguments, "--level", "0.9")
    drawn = bootstrap(trials(), enroll_speakers=SPEAKER, test_speakers=SPEAKER, replicates=50, seed=3)
    assert found["pooled"]["intervals"] == drawn.to_dict(0.9)
    assert found["speakers_from"] == "the speaker maps"
    assert "intervals from 50 draws of 12 speakers, known from the speaker maps" in run(*arguments).stdout


def test_without_maps_target_trials_tell_the_speakers(figures):
    found = figures("a.scores", "-k", "key", "--bootstrap", "20")
    drawn = bootstrap(trials(), enroll_speakers=SPEAKER, test_speakers=SPEAKER, replicates=20)
    assert found["speakers_from"] == "the target trials"
    assert found["pooled"]["intervals"]["n_speakers"] == drawn.n_speakers == 12


def test_speakers_by_chains_of_targets_and_equal_ids():
    pairs = [("a", "b"), ("b", "c"), ("d", "e"), ("x", "e"), ("x", "y")]
    listed = trials([0.0] * 5, [1, 1, 1, 0, -1], pairs)
    found, _ = with_known_speakers(listed, LabelSources(), listed)
    enroll, test = (dict(zip(axis.ids, axis.speakers, strict=True)) for axis in (found.enroll_axis, found.test_axis))
    assert enroll == {"a": "a", "b": "a", "d": "d", "x": "x"}
    assert test == {"b": "a", "c": "a", "e": "d", "y": "y"}


def test_intervals_of_conditions(figures, run):
    arguments = ("a.scores", "-k", "key", "--metadata", "meta.csv", "--by", "gender", "--bootstrap", "20")
    found = figures(*arguments)["conditions"]["gender"]
    low, high = found["f"]["intervals"]["eer"]
    assert low <= found["f"]["eer"] <= high
    assert run(*arguments).stdout.count("95 %") == 3


def test_paired_comparison(figures, run):
    arguments = (
        "a.scores",
        "b.scores",
        "-k",
        "key",
        "--paired",
        "--metric",
        "cllr",
        "--metric",
        "eer",
        "--bootstrap",
        "60",
    )
    first, second = figures(*arguments)["comparisons"]
    expected = paired_test(
        trials(), trials(NOISY), enroll_speakers=SPEAKER, test_speakers=SPEAKER, metric="cllr", replicates=60
    )
    assert first["difference"] == expected.difference < 0
    assert (first["system_a"], first["system_b"], second["metric"]) == ("a.scores", "b.scores", "eer")
    assert {"low", "high", "level"} == first["interval"].keys()
    assert "a.scores is better than b.scores" in run(*arguments).stdout
    same = run("a.scores", "a.scores", "-k", "key", "--paired", "--bootstrap", "20").stdout
    assert "neither is clearly better" in same


def test_csv(run):
    text = run(
        "a.scores",
        "b.scores",
        "-k",
        "key",
        "--metadata",
        "meta.csv",
        "--by",
        "gender",
        "--csv",
        "--points",
        "0.01",
        "--points",
        "0.5",
    ).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["scores"], row["by"], row["condition"]) for row in rows[:3]] == [
        ("a.scores", "", ""),
        ("a.scores", "gender", "f"),
        ("a.scores", "gender", "m"),
    ]
    expected = evaluate(NOISY, LABELS, points=[0.01, 0.5])
    assert float(rows[3]["eer"]) == expected["eer"]
    assert float(rows[3]["min_dcf_0.5_1_1"]) == expected["dcf"][1]["min_dcf"]
    text = run("a.scores", "-k", "key", "--csv", "--bootstrap", "10").stdout
    [row] = csv.DictReader(io.StringIO(text))
    assert float(row["cllr_low"]) <= float(row["cllr"]) <= float(row["cllr_high"])


def test_latex(run, files):
    (files / "a_b&c.scores").write_bytes((files / "a.scores").read_bytes())
    lines = run("a_b&c.scores", "b.scores", "-k", "key", "--latex", "--bootstrap", "10").stdout.splitlines()
    assert lines[1] == r"\begin{tabular}{lrrrrrrr}"
    assert lines[3] == r" & EER \% & minDCF & actDCF & minCllr & Cllr & targets & non-targets \\"
    assert lines[5].startswith(r"a\_b\&c.scores & ")
    assert lines[6].startswith(r"\quad 95\,\% & ")
    assert all(line.count("&") - line.count(r"\&") == 7 for line in lines[5:9])
    assert lines[-1] == r"\end{tabular}"


def test_few_trials_are_warned_about_on_standard_error_only(run, file):
    file("few", "e t1 1\ne t2 0\nf t1 0.5\nf t2 2\n")
    file("few.key", "e t1 target\ne t2 nontarget\nf t1 nontarget\nf t2 target\n")
    result = run("few", "--key", "few.key", "--json")
    assert json.loads(result.stdout)["pooled"]["n_target"] == 2
    assert result.stderr.splitlines() == [
        "warning: few has only 2 target trials: error rates are very uncertain",
        "warning: few has only 2 non-target trials: error rates are very uncertain",
    ]


KEY = "e t1 target\ne t2 nontarget\n"


@pytest.mark.parametrize(
    ("scores", "key", "reason"),
    [
        ("e t1 1\ne t2 0\n", "e t1 target\ne t2 target\n", "2 target and 0 non-target trials, and without non-target"),
        ("e t1 1\ne t2 0\n", "e t1 imp\ne t2 imp\n", "0 target and 2 non-target trials, and without target trials"),
        ("e t1 1\ne t2 1\n", KEY, "all 2 scores are 1, so they cannot tell targets from non-targets"),
        ("e t1 1\ne t3 0\n", KEY, "1 of the 2 scored trials are not in the key, first ('e', 't3')"),
        ("e t1 1\n", KEY, "1 of the 2 trials of the key have no score, first ('e', 't2')"),
        ("e t1 1\ne t2 nan\n", KEY, "s:2: score 'nan' is not finite"),
        ("e t1 1\ne t2 0\n", "e t1 maybe\ne t2 imp\n", "label 'maybe' is not known"),
        ("e t1 1\ne t2 0\n", "e t1\ne t2\n", "the key k has no labels"),
        ("e t1 1 target\ne t2 0 target\n", KEY, "1 labels do not agree with the key, first that of ('e', 't2')"),
    ],
)
def test_bad_trials_are_refused_in_one_sentence(refused, file, scores, key, reason):
    assert reason in refused(file("s", scores), "--key", file("k", key))


def test_nothing_in_common_is_refused_even_when_dropping(refused, file):
    reason = refused(file("s", "x t1 1\nx t2 0\n"), "--key", file("k", KEY), "--unmatched", "drop")
    assert "the key has none of these trials; do the two files belong together?" in reason


def test_unmatched_trials_can_be_dropped(figures, file):
    file("s", "e t1 1\ne t2 0\ne t3 5\n")
    found = figures("s", "--key", file("k", KEY), "--unmatched", "drop")["pooled"]
    assert (found["n_target"], found["n_nontarget"], found["eer"]) == (1, 1, 0.0)


def test_one_speaker_is_refused_with_the_reason(refused, file):
    file("s", "e t1 1\ne t2 0\n")
    file("map", "e ann\nt1 ann\nt2 ann\n")
    reason = refused("s", "--key", file("k", KEY), "--bootstrap", "10", "--enroll-speakers", "map")
    assert "all trials are of one speaker, 'ann'" in reason
    assert "needs at least two" in reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.scores"], "a.scores: the scores have no labels; give --key"),
        (["absent", "-k", "key"], "absent: there is no such file"),
        (["a.scores", "-k", "absent"], "absent: there is no such file"),
        (["a.scores", "-k", "key", "--points", "0.01,1"], "the operating point '0.01,1' must be a prior"),
        (["a.scores", "-k", "key", "--points", "x"], "the operating point 'x' must be a prior"),
        (["a.scores", "-k", "key", "--points", "1.5"], "p_target is 1.5, but must lie between 0 and 1"),
        (
            ["a.scores", "-k", "key", "--by", "gender"],
            "--by gender needs a file with such a column; give it with --metadata",
        ),
        (
            ["a.scores", "-k", "key", "--by", "age", "--metadata", "meta.csv"],
            "meta.csv has no column 'age'; it has 'id'",
        ),
        (["a.scores", "-k", "key", "--by", "enroll:gender", "--metadata", "meta.csv"], "no row for enrolment 'm0'"),
        (["a.scores", "-k", "key", "--equalize"], "--equalize weighs the conditions of one column; give one --by"),
        (["a.scores", "-k", "key", "--bootstrap", "-1"], "--bootstrap is '-1', but must begin with a number"),
        (
            ["a.scores", "-k", "key", "--bootstrap", "9:level=95"],
            "--bootstrap: level is 95, but must lie between 0 and 1",
        ),
        (
            ["a.scores", "-k", "key", "--bootstrap", "9:draws=3"],
            "--bootstrap has no option 'draws'; it has level, seed",
        ),
        (["a.scores", "-k", "key", "--bootstrap", "9:seed=-1"], "--bootstrap: seed is -1, but must be at least 0"),
        (["a.scores", "-k", "key", "--bootstrap", "9", "--eer", "kaldi"], "--bootstrap knows the EER by rocch only"),
        (["a.scores", "-k", "key", "--paired"], "--paired compares two systems, but there are 1 score files"),
        (["a.scores", "b.scores", "-k", "key", "--metric", "eer"], "--metric says what --paired compares"),
        (["a.scores", "b.scores", "-k", "key", "--paired", "--table", "csv"], "a comparison has no place in a table"),
        (["a.scores", "-k", "key", "--json", "--table", "csv"], "both --json and --table were given"),
    ],
)
def test_wrong_use_is_refused_in_one_sentence(refused, arguments, reason):
    assert reason in refused(*arguments)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "meta: the file is empty"),
        ("id,gender\nt0-0\n", "meta:2: expected 2 columns (id gender), found 1"),
        ("id,id\n", "meta:1: the header has 'id' twice"),
        ("id,\nx,y\n", "meta:1: the header has a column without a name"),
        ('id,gender\n"x,y\n', "meta:2: the quotes do not fit together"),
        (b"id,gender\n\xff,f\n", "meta:2: byte 0xff is not UTF-8"),
        ("id,gender\nt0-0,f\nt0-0,m\n", "meta has 't0-0' more than once"),
        ("id,gender\nx,f\n", "meta has no row for enrolment 'm0'"),
        ("test,gender\nt0-0,f\n", "meta has no row for test 't0-1', 't0-2', 't1-0' and 32 more"),
        ("enroll,test,gender\nm0,t0-0,f\n", "meta has no row for 431 of the 432 trials, first ('m0', 't0-1')"),
        ("enroll,test,gender\nm0,t0-0,f\nm0,t0-0,f\n", "meta: the trial ('m0', 't0-0') is listed more than once"),
    ],
)
def test_bad_metadata_is_refused_in_one_sentence(refused, file, text, reason):
    assert reason in refused("a.scores", "-k", "key", "--by", "gender", "--metadata", file("meta", text))


def test_metadata_with_both_sides_wants_to_know_which(refused, file):
    file("meta", "id gender\n" + "".join(f"{name} {GENDER[name]}\n" for name in (*MODELS, *TESTS)))
    reason = refused("a.scores", "-k", "key", "--by", "gender", "--metadata", "meta")
    assert "say enroll:gender or test:gender" in reason


def test_a_nist_key_is_scored_by_its_preset(figures, run, refused, files):
    columns = {
        "num_enroll_segs": np.where(np.arange(LABELS.size) % 2, "1", "3"),
        "phone_num_match": np.where(np.arange(LABELS.size) % 3, "N", "Y"),
        "gender": np.where(np.arange(LABELS.size) % 5, "male", "female"),
        "source_type": np.full(LABELS.size, "pstn"),
    }
    words = np.where(LABELS, "target", "nontarget")
    rows = [[*pair, word, *rest] for pair, word, *rest in zip(PAIRS, words, *columns.values(), strict=True)]
    lines = ["\t".join(row) for row in [["modelid", "segmentid", "targettype", *columns], *rows]]
    (files / "nist.tsv").write_text("\n".join(lines) + "\n")
    wanted = evaluate_nist(SCORES, LABELS, preset="sre18", columns=columns).to_dict()
    found = figures("a.scores", "--key", "nist.tsv", "--preset", "sre18")
    assert found["pooled"] == wanted["pooled"] | {"n_unknown": 0}
    assert found["conditions"] == {"partition": wanted["conditions"]}
    table = run("a.scores", "--key", "nist.tsv", "--preset", "sre18").stdout
    assert "actCprim" in table
    assert "one without non-targets has no part in the false alarms" in table
    assert "conditions" not in figures("a.scores", "--key", "key", "--preset", "sre19-av")
    assert "leave out --by" in refused("a.scores", "--key", "nist.tsv", "--preset", "sre18", "--by", "gender")
    assert "no column 'language'" in refused("a.scores", "--key", "nist.tsv", "--preset", "sre16")
    assert "--preset sre18 needs a file" in refused("a.scores", "--key", "key", "--preset", "sre18")
    assert set(get_args(Preset)) == set(NIST_PRESETS)


def test_spoofed_trials_are_a_third_class(figures, run, refused, files):
    classes = np.where(np.arange(LABELS.size) % 4, np.where(LABELS, "target", "nontarget"), "spoof")
    lines = [f"{model} {test} {word}" for (model, test), word in zip(PAIRS, classes, strict=True)]
    (files / "protocol").write_text("\n".join(lines) + "\n")
    wanted = evaluate_spoofing(SCORES, classes, costs=SPOOF_COSTS["a-dcf"]).to_dict()
    found = figures("a.scores", "--key", "protocol", "--spoof", "a-dcf")
    assert found == {"scores": "a.scores", "eer_method": "rocch", **wanted}
    assert found == figures("a.scores", "--key", "protocol", "--spoof", "0.9,0.05,0.05,1,10,20")
    table = run("a.scores", "b.scores", "--key", "protocol", "--spoof", "asvspoof5").stdout
    assert "SASV-EER %" in table
    assert "p_spoof 0.05" in table
    left_out = figures("a.scores", "--key", "protocol")["pooled"]
    assert left_out["n_unknown"] == found["n_spoof"] == np.count_nonzero(classes == "spoof")
    assert "--spoof is '0.9', but must be asvspoof5 or" in refused("a.scores", "--key", "protocol", "--spoof", "0.9")
    assert "leave out --by" in refused("a.scores", "--key", "protocol", "--spoof", "a-dcf", "--by", "x")
    assert "use --json" in refused("a.scores", "--key", "protocol", "--spoof", "a-dcf", "--table", "csv")
    assert "there are no spoof trials" in refused("a.scores", "--key", "key", "--spoof", "a-dcf")


def test_forensic_figures(figures, run):
    pooled = figures("a.scores", "--key", "key", "--forensic")["pooled"]
    assert pooled["dev_pav"] == dev_pav(SCORES, LABELS)
    assert pooled["llr_bounds"] == list(llr_bounds(SCORES, LABELS))
    assert (
        f"devPAV {pooled['dev_pav']:.4f}; the trials support LLRs"
        in run("a.scores", "--key", "key", "--forensic").stdout
    )
