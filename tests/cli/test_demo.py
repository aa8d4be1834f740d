import json
import os


def test_normalization_helps_in_the_demo(cli):
    result = cli("demo", "--json")
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    raw, calibrated, normalized = (figures[name] for name in ("raw", "calibrated", "normalized"))
    assert raw["n_target"] == 400
    assert calibrated["eer"] == raw["eer"]  # calibration keeps the order of the scores
    assert normalized["eer"] < 0.6 * raw["eer"]
    assert normalized["cllr"] < calibrated["cllr"] < raw["cllr"]
    assert normalized["calibration_loss"] < 0.05


def test_the_seed_decides_the_scores(cli):
    first, again, other = (cli("demo", "--json", "--seed", seed).stdout for seed in (7, 7, 8))
    assert first == again
    assert json.loads(first)["raw"]["eer"] != json.loads(other)["raw"]["eer"]


def test_people_get_a_story_and_the_files(cli, tmp_path):
    (tmp_path / "here").mkdir()
    result = cli("demo", "--keep", "here")
    assert result.exit_code == 0, result.stderr
    assert "score model, with cohort" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120
    assert sorted(os.listdir("here")) == [
        "cohort.npz",
        "enroll.npz",
        "test.npz",
        "training.npz",
        "training.utt2spk",
        "trials.npz",
        "trials.utt2spk",
    ]
    info = cli("info", "here/trials.npz", "--json")
    assert json.loads(info.stdout)[0]["trials"] == 80 * 400


def test_a_directory_that_is_not_there_is_refused(cli):
    result = cli("demo", "--keep", "nowhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: nowhere/training.npz: its directory does not exist")
