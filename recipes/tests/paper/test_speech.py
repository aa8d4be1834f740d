"""The paper's experiment from audio that the test writes to all of its files, through the command line."""

import csv
import json
from pathlib import Path

import pytest

from in_process import run_app

soundfile = pytest.importorskip("soundfile", reason="speech needs the extra evenscore[speech]")
pytest.importorskip("kaldi_native_fbank", reason="speech needs the extra evenscore[speech]")
pytest.importorskip("matplotlib", reason="figures need the extra evenscore[plot]")

SMALL = ("--gaussians", 4, "--rank", 2, "--jobs", 1, "--bootstrap", 20)
FILES = {"index.md", "results.json", "metrics.csv", "metrics.md", "variances.csv", "variances.md", "stages.csv"}
FIGURES = {"det.svg", "bayes.svg"}
SYSTEMS = ["raw", "ZT", "LGSM 0D", "LGSM 1D", "LGSM 2D", "S", "S shift", "AS"]
SETS = {"background": 4, "development": 8, "evaluation": 4}  # speakers, half of them women


@pytest.fixture(scope="module", autouse=True)
def few_iterations():
    """Stop the training of score models early: on so few speakers it would creep towards a variance of zero."""
    from evenscore import fit_norm

    def quick(method, training, **options):
        return fit_norm(method, training, **options | ({"max_iter": 20} if method == "lgsm" else {}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.paper.systems.fit_norm", quick)
        yield


def paper(*arguments):
    from recipes.paper.command import APP

    return run_app(APP, *arguments)


def say(path, speaker, phrase, take):
    from recipes.tests.synthetic_speech import utterance

    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, utterance(speaker, phrase, take, seconds=0.3), 16000)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """A list of two phrases of 16 speakers in three sets; the first two of four takes enrol."""
    folder = tmp_path_factory.mktemp("recordings")
    roles = [role for role, number in SETS.items() for _ in range(number)]
    rows = ["speaker,gender,phrase,session,path,set"]
    for speaker, role in enumerate(roles):
        for phrase in ("ai", "ou"):
            for take in range(4):
                name = f"{speaker}_{phrase}_{take}.wav"
                say(folder / name, speaker, phrase, take)
                rows.append(f"s{speaker},{'fm'[speaker % 2]},{phrase},{take},{name},{role}")
    (folder / "list.csv").write_text("\n".join(rows) + "\n")
    return folder / "list.csv"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """AudioMNIST's layout with one digit of 12 men."""
    folder = tmp_path_factory.mktemp("AudioMNIST")
    for speaker in range(1, 13):
        for take in range(5):
            say(folder / "data" / f"{speaker:02d}" / f"7_{speaker:02d}_{take}.wav", speaker, "ei", take)
    people = {f"{speaker:02d}": {"gender": "male"} for speaker in range(1, 13)}
    (folder / "data" / "audioMNIST_meta.txt").write_text(json.dumps(people))
    return folder


@pytest.fixture(scope="module")
def finished(manifest, tmp_path_factory):
    """The directory of a whole run with shifts, and what it printed."""
    out = tmp_path_factory.mktemp("paper") / "out"
    shifts = ("--shift", "noise:5,mixed", "--save-scores", out / "scores")
    result = paper("--corpus", "manifest", "--root", manifest, "--enroll", "0,1", "-o", out, *SMALL, *shifts)
    assert result.exit_code == 0, result.stderr
    return out, result.stdout


@pytest.fixture
def results(finished):
    return json.loads((finished[0] / "results.json").read_text())


def test_all_files_are_written(finished):
    out, printed = finished
    names = {path.name for path in out.iterdir()}
    assert names == FILES | FIGURES | {"shift.svg", "shift.csv", "features", "scores"}
    assert all((out / name).read_bytes().startswith(b"<?xml") for name in FIGURES)
    assert "LGSM 2D" in printed
    assert "eigenchannels" in printed
    assert "index.md" in printed


def test_results_have_all_systems_groups_and_trials(results):
    metrics = results["splits"][0]["models"]["per-gender"]
    assert list(metrics) == ["female", "male", "pooled"]
    for group, systems in metrics.items():
        assert list(systems) == SYSTEMS
        for name, figures in systems.items():
            # 2 phrases, 2 speakers of each gender with one enrolment and two tests: 4 of 8 trials are targets
            assert (figures["n_target"], figures["n_nontarget"]) == ((16, 16) if group == "pooled" else (8, 8))
            low, high = figures["intervals"]["eer"]
            assert 0 <= low <= high <= 1
            assert (figures["cllr"] is None) == (not name.startswith("LGSM"))
            assert figures["cllr_calibrated"] >= figures["min_cllr"] * 0.99 or group == "pooled"
    assert results["splits"][0]["speakers"]["development"] == {"female": 4, "male": 4}
    assert results["paper"]["eer"]["male"]["LGSM 2D"] == 0.0076


def test_the_page_puts_our_figures_next_to_the_papers(finished, results):
    page = (finished[0] / "index.md").read_text()
    ours = 100 * results["summary"]["per-gender"]["male"]["raw"]["eer"]["mean"]
    row = next(line for line in page.splitlines() if line.startswith("| raw |"))
    assert f"| {ours:.2f} | 1.24 |" in row
    assert "| male, paper (RSR2015) | 18.9 | 4.1 | 55.7 | 66.3 |" in page
    assert "agrees" in page or "does not agree" in page
    assert "weak" in page
    assert "trained on background speakers" in page
    for link in ("det.svg", "bayes.svg", "shift.svg"):
        assert f"]({link})" in page


def test_tables_agree_with_the_results(finished, results):
    with (finished[0] / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * len(SYSTEMS)
    for row in rows:
        known = results["splits"][0]["models"][row["models"]][row["group"]][row["system"]]
        assert float(row["eer"]) == pytest.approx(known["eer"], rel=1e-5)
        assert float(row["eer_low"]) == pytest.approx(known["intervals"]["eer"][0], rel=1e-5)
    with (finished[0] / "variances.csv").open() as file:
        table = {(row["gender"], row["model"]): row for row in csv.DictReader(file)}
    assert set(table) == {(gender, f"LGSM {dim}D") for gender in ("female", "male") for dim in (0, 1, 2)}
    assert all(float(row["sigma2_tar"]) > 0 for row in table.values())


def test_shifts_are_reported_in_order_and_clean_first(finished, results):
    assert [shift["name"] for shift in results["shifts"]] == ["clean", "noise:5", "mixed"]
    clean = results["shifts"][0]["summary"]
    assert clean["joint"]["pooled"]["raw"]["eer"] == results["summary"]["joint"]["pooled"]["raw"]["eer"]
    rates = [shift["summary"]["joint"]["pooled"]["raw"]["min_cllr"]["mean"] for shift in results["shifts"]]
    assert len(set(rates)) > 1
    with (finished[0] / "shift.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3 * 2 * 3 * len(SYSTEMS)


def test_the_saved_scores_are_those_that_were_evaluated(finished, results):
    from evenscore import eer
    from evenscore.files import load_score_set
    from recipes.paper.systems import SYSTEMS, apply_systems, train_systems

    scores = load_score_set(finished[0] / "scores")
    assert {part.blocks.trials.scores.dtype.name for part in scores.evaluation} == {"float32"}
    groups = apply_systems(scores, train_systems(scores, systems=SYSTEMS[:1]))
    assert eer(groups["male"]["raw"].trials) == results["summary"]["per-gender"]["male"]["raw"]["eer"]["mean"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_files(finished, manifest, tmp_path):
    first = finished[0]
    shifts = ("--shift", "noise:5,mixed", "--cache", first / "features")
    again = paper("--corpus", "manifest", "--root", manifest, "--enroll", "0,1", "-o", tmp_path, *SMALL, *shifts)
    assert again.exit_code == 0, again.stderr
    for name in (FILES | FIGURES | {"shift.svg", "shift.csv"}) - {"stages.csv"}:
        assert (tmp_path / name).read_bytes() == (first / name).read_bytes(), name


@pytest.mark.slow
def test_development_speakers_may_train_the_recognizer(finished, results, manifest, tmp_path):
    options = (
        "--corpus",
        "manifest",
        "--root",
        manifest,
        "--enroll",
        "0,1",
        "--cache",
        finished[0] / "features",
        *SMALL,
    )
    both = ("--shift", "none", "--train-sets", "background,development")
    run = paper(*options, "-o", tmp_path, *both)
    assert run.exit_code == 0, run.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["options"]["recognizer"]["train_sets"] == ["background", "development"]
    assert found["sets"]["raw"]["development"] != results["sets"]["raw"]["development"]
    assert "trained on background and development speakers" in (tmp_path / "index.md").read_text()


@pytest.mark.slow
def test_several_permutations_give_means_with_spread(digits, tmp_path):
    out = tmp_path / "out"
    result = paper(
        "--corpus", "audiomnist", "--root", digits, "-o", out, *SMALL, "--permutations", 3, "--shift", "none"
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in out.iterdir()} == FILES | FIGURES | {"det_mean.svg", "features"}
    results = json.loads((out / "results.json").read_text())
    rates = [split["models"]["per-gender"]["male"]["raw"]["eer"] for split in results["splits"]]
    summary = results["summary"]["per-gender"]["male"]["raw"]["eer"]
    assert summary["mean"] == pytest.approx(sum(rates) / 3)
    assert (summary["min"], summary["max"]) == (min(rates), max(rates))
    roles = [split["roles"] for split in results["splits"]]
    assert roles[0]["background"] == roles[1]["background"] != roles[2]["background"]
    assert roles[0]["development"] == roles[1]["evaluation"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--corpus": "timit"}, "there is no reader for corpus 'timit'; give audiomnist, rsr2015 or manifest"),
        ({"--root": "nowhere"}, "nowhere: there is no such directory; check the name"),
        ({"--permutations": "7"}, "permutations is 7, but must be from 1 to 6"),
        ({"--permutations": "some"}, "--permutations is 'some', but must be a number from 1 to 6, or all"),
        ({"--shift": "phone"}, "there is no shift 'phone'"),
        ({"--shift": "noise:loud"}, "the shift 'noise:loud' has no level in decibels; write it as noise:10"),
        ({"--shift": "gsm,gsm"}, "the shift 'gsm' stands twice; keep one of them"),
        ({"--shift": "mixed"}, "mixed draws one of the other shifts"),
        ({"--shift-side": "left"}, "shift_side is 'left', but must be 'test' or 'both'"),
        (
            {"--train-sets": "development"},
            "train_sets is 'development', but must be background or background,development",
        ),
        ({"--bootstrap": "-1"}, "replicates is -1, but must be at least 0"),
        ({"--corpus": "manifest"}, "a manifest does not say which sessions enrol; give them with --enroll"),
        ({"-o": "taken"}, "taken: a file of this name exists, but a directory is needed; choose another name"),
        ({"-o": "taken/out"}, "taken/out: "),
        ({"--save-scores": "taken"}, "taken: a file of this name exists"),
        ({"--enroll": "77"}, "no recording is of the enrolment sessions 77"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(digits, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("")
    options = {"--corpus": "audiomnist", "--root": digits, "-o": "out"} | change
    result = paper(*SMALL, *(part for pair in options.items() for part in pair))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_too_few_speakers_are_refused(manifest, tmp_path):
    lines = manifest.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("s4,", "s6,"))]  # two of four women to develop on
    few = manifest.with_name("few.csv")
    few.write_text("\n".join(kept) + "\n")
    result = paper("--corpus", "manifest", "--root", few, "--enroll", "0,1", "-o", tmp_path / "out", *SMALL)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: the development set has 2 female speakers, but at least 4 are needed")


@pytest.mark.slow
def test_a_damaged_recording_is_named_or_left_out(digits, tmp_path, manifest):
    rows = [line for line in manifest.read_text().splitlines() if "set" not in line.rpartition(",")[0]]
    (manifest.parent / "bad.wav").write_bytes(b"RIFF nothing")
    listed = manifest.with_name("damaged.csv")
    listed.write_text("\n".join([*rows, "s15,m,ai,9,bad.wav,evaluation"]) + "\n")
    options = ("--corpus", "manifest", "--root", listed, "--enroll", "0,1", *SMALL, "--shift", "none")
    result = paper(*options, "-o", tmp_path / "refused")
    assert result.exit_code == 2
    assert "bad.wav: it cannot be read as audio" in result.stderr
    result = paper(*options, "-o", tmp_path / "out", "--skip-unreadable")
    assert result.exit_code == 0, result.stderr
    skipped = json.loads((tmp_path / "out" / "results.json").read_text())["corpus"]["skipped"]
    assert [line for line in skipped if "bad.wav" in line] == skipped != []


def test_help_has_examples():
    result = paper("--help")
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert "python -m recipes.paper --corpus audiomnist --root AudioMNIST" in result.stdout
    assert "Needs evenscore[speech,plot]." in " ".join(result.stdout.split())
