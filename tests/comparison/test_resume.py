"""A run that was stopped goes on where it was; what it depends on must be the same, to the last bit."""

import json
import shutil

import numpy as np
import pytest
from compared_sides import evaluation_side, training_side

from evenscore import compare, load_calibration, load_model, read_scores
from evenscore.comparison.folder import inputs_digest
from evenscore.comparison.layout import method_folders, score_files
from evenscore.norms import FittedNorm, fit_methods, prepare_norm, register_norm

FITS = []
STOP = {"now": False}


class Stoppable:
    """A norm like z that counts how often it is trained, and can be stopped by the user."""

    def __call__(self, method, training, *, progress, **options):
        if STOP["now"]:
            raise KeyboardInterrupt
        FITS.append(options)
        norm = prepare_norm("z", **options)
        return FittedNorm(
            method=method, normalizer=norm, training_scores=[norm.normalize(part.blocks) for part in training]
        )


register_norm("counted", train=Stoppable())
register_norm("later", train=Stoppable())

METHODS = ["z", "lgsm", "counted", "later:ddof=1"]


@pytest.fixture(autouse=True)
def fresh():
    FITS.clear()
    STOP["now"] = False


def run(folder, *, names=("one", "two"), methods=METHODS, seed=100, **options):
    sides = training_side(names), evaluation_side(names, seed=seed)
    return compare(*sides, methods, **{"bootstrap": 20, "directory": folder, **options})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give a finished run and its folder, which no test changes."""
    folder = tmp_path_factory.mktemp("whole")
    return run(folder), folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Give a run of one method and its folder, which no test changes."""
    folder = tmp_path_factory.mktemp("finished")
    return run(folder, methods=["counted"]), folder


@pytest.fixture
def folder(finished, tmp_path):
    """Give a copy of that folder."""
    return shutil.copytree(finished[1], tmp_path / "copy")


def content(folder):
    """Return the bytes of every file, without what tells the time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".json":
                values = json.loads(data)
                values.pop("run", None)
                values.pop("seconds", None)
                data = json.dumps(values)
            found[str(path.relative_to(folder))] = data
    return found


def test_a_stopped_run_resumes_and_is_the_same_byte_for_byte(whole, tmp_path):
    comparison, folder = whole

    def stop(stage, fraction):
        STOP["now"] = stage == "later:ddof=1"

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", progress=stop)
    assert FITS == [{}]
    assert not (tmp_path / "parts" / "results.json").exists()
    STOP["now"] = False
    resumed = run(tmp_path / "parts")
    assert FITS == [{}, {"ddof": 1}]  # counted was not trained again
    assert resumed.run.resumed == ("raw", "z", "lgsm", "counted")
    assert content(tmp_path / "parts") == content(folder)
    for method in comparison.methods:
        other = resumed[method.name]
        assert np.array_equal(method.scores, other.scores)
        assert np.array_equal(method.llrs, other.llrs)
        assert method.calibration == other.calibration
        assert method.to_raw == other.to_raw
        assert method.to_best == other.to_best
        assert method.figures.values == other.figures.values


def test_a_finished_run_does_nothing_again(whole, tmp_path):
    first, folder = whole
    second = run(shutil.copytree(folder, tmp_path / "copy"))
    assert FITS == []
    assert len(second.run.resumed) == 5
    found = [one.results() for one in (first, second)]
    for results in found:
        results.pop("run")
    assert found[0] == found[1]
    assert [m.seconds for m in first.methods] == [m.seconds for m in second.methods]


@pytest.mark.parametrize(
    "change",
    [{"seed": 101}, {"bootstrap": 21}, {"calibration": "gaussian"}, {"points": 0.05}, {"names": ("one", "other")}],
)
def test_other_data_or_options_are_computed_again(folder, change):
    assert run(folder, methods=["counted"], **change).run.resumed == ()
    assert len(FITS) == 1


def test_more_methods_use_what_is_there(folder):
    comparison = run(folder, methods=["counted", "z"])
    assert comparison.run.resumed == ("raw", "counted")
    assert FITS == []


@pytest.mark.parametrize("file", ["record.json", "scores-1-one.npz", "llrs-2-two.npz", "calibration.json"])
@pytest.mark.parametrize("damage", ["cut", "lost"])
def test_damaged_results_are_made_again(finished, folder, file, damage):
    path = folder / "methods" / "counted" / file
    path.write_bytes(path.read_bytes()[:-20]) if damage == "cut" else path.unlink()
    again = run(folder, methods=["counted"])
    assert again.run.resumed == ("raw",)
    assert len(FITS) == 1
    assert content(folder) == content(finished[1])
    assert again["counted"].figures.values == finished[0]["counted"].figures.values


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["figures"]["intervals"].update(
            {name: [1, 2, 3] for name in record["figures"]["intervals"]}
        ),
        lambda record: record.update(seconds="long"),
        lambda record: record.update(seconds=10**400),
        lambda record: record.update(notes=[["x"]]),
        lambda record: record.pop("digest"),
    ],
)
def test_records_with_other_values_are_made_again(folder, change):
    path = folder / "methods" / "counted" / "record.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    assert run(folder, methods=["counted"]).run.resumed == ("raw",)


def test_scores_of_another_run_are_noticed(folder):
    compare(training_side(("one", "two")), evaluation_side(("one", "two"), seed=7), ["counted"], bootstrap=20).save(
        folder
    )
    assert run(folder, methods=["counted"]).run.resumed == ()


def test_infinite_llrs_come_back(tmp_path):
    first, second = (run(tmp_path, methods=["z"], calibration="pav:smoothing=0") for _ in range(2))
    assert np.isinf(first["z"].llrs).any()
    assert second.run.resumed == ("raw", "z")
    assert np.array_equal(first["z"].llrs, second["z"].llrs)
    assert first["z"].to_raw == second["z"].to_raw


def test_the_files_can_be_read_by_others(whole):
    comparison, folder = whole
    results = json.loads((folder / "results.json").read_text())
    for name, method in results["methods"].items():
        result = comparison[name]
        for kind in ("scores", "llrs"):
            parts = [read_scores(folder / file) for file in method["files"][kind]]
            assert np.array_equal(np.concatenate([part.scores for part in parts]), getattr(result, kind))
            assert np.array_equal(np.concatenate([part.labels for part in parts]), comparison.trials.labels)
        assert load_calibration(folder / method["files"]["calibration"]) == result.calibration
    model = load_model(folder / results["methods"]["lgsm"]["files"]["model"])
    assert np.array_equal(model.alpha, comparison["lgsm"].model.alpha)


def test_saving_later_writes_the_same_files(whole, tmp_path):
    comparison, folder = whole
    comparison.save(tmp_path / "later")
    saved = content(tmp_path / "later")
    stored = {name: data for name, data in content(folder).items() if not name.endswith("record.json")}
    assert saved == stored


@pytest.mark.parametrize("norm", [name for name in ("lgsm", "evidence") if name in fit_methods()])
def test_trained_models_come_back(tmp_path, norm):
    first, second = (run(tmp_path, names=("",), methods=[norm]) for _ in range(2))
    assert norm in second.run.resumed
    assert type(second[norm].model) is type(first[norm].model)
    assert second[norm].model is not None
    assert (tmp_path / first.results()["methods"][norm]["files"]["model"]).is_file()


def test_names_cannot_leave_the_folder():
    names = ["../../etc", "/root", "a/b", "a-b", ".", ""]
    folders = method_folders(names)
    assert len(set(folders.values())) == len(names)
    assert all(folder.count("/") == 1 and ".." not in folder for folder in folders.values())
    files = score_files("llrs", ["../x", "../x ", "\n"])
    assert len(set(files)) == 3
    assert all("/" not in file for file in files)


def test_the_digest_sees_every_part_of_the_data():
    training = training_side()
    base = inputs_digest([training, evaluation_side()])
    assert base == inputs_digest([training_side(), evaluation_side()])
    others = [
        [training, evaluation_side(seed=101)],
        [training, evaluation_side(("named",))],
        [training, evaluation_side(group="who")],
        [training, evaluation_side(cohort="who")],
        [evaluation_side(), training],
        [training, evaluation_side(members=16)],
    ]
    assert len({base, *map(inputs_digest, others)}) == 7
