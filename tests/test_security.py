"""What SECURITY.md promises, as far as a test can tell; damaged files have tests of their own beside each reader."""

import ast
import re
from pathlib import Path

import pytest

import evenscore

SOURCE = Path(evenscore.__file__).parent
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
#: What imports by name, and only names that stand in tables of the program.
BY_NAME = {"cli/app.py", "files/registry.py", "norms/registry.py"}


#: Modules without any of these need not be looked into.
SUSPECT = re.compile(
    "|".join([*FORBIDDEN_MODULES, *FORBIDDEN_CALLS, "system", "shell", "_module", r"np\.load", "read_array"])
)


def trees():
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if SUSPECT.search(text):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(text)


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            yield name, isinstance(node.func, ast.Name), node


def test_no_file_is_unpickled_or_run():
    for name, tree in trees():
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            assert not {module.partition(".")[0] for module in modules} & FORBIDDEN_MODULES, name
        for called, plain, node in calls(tree):
            assert not (plain and called in FORBIDDEN_CALLS), name
            assert called != "system", name
            assert not any(word.arg == "shell" for word in node.keywords), name
            if called == "exec_module":
                assert name == "cli/norm_options.py", "only a file that the user names as a norm is run"
            if called == "import_module":
                assert name in BY_NAME, f"{name} imports a module by name; it must be one of a table of the program"
            if called in ("load", "read_array") and getattr(getattr(node.func, "value", None), "id", "") == "np":
                assert any(word.arg == "allow_pickle" and word.value.value is False for word in node.keywords), name


HOSTILE = ("../../evil", "/etc/evil", "..", "a/../../evil", "C:\\evil", "~/evil", ".hidden", "x" * 300, "nul\0", "")


def test_names_of_methods_and_phrases_stay_in_their_folder(tmp_path):
    from evenscore.comparison.layout import method_folders, score_files

    folders = method_folders(HOSTILE)
    assert len(set(folders.values())) == len(HOSTILE)
    for folder in folders.values():
        assert folder.startswith("methods/")
        assert (tmp_path / folder).resolve().parent == tmp_path / "methods"
    for file in score_files("llrs", HOSTILE):
        assert (tmp_path / file).resolve().parent == tmp_path
        assert len(file) < 200


def test_a_comparison_of_hostile_names_writes_into_its_folder_only(tmp_path):
    from comparison.compared_sides import evaluation_side, training_side
    from evenscore import compare
    from evenscore.comparison.methods import Method

    names, methods = HOSTILE[:2], [Method(name, "z", {}) for name in HOSTILE[:4]]
    inner = tmp_path / "one" / "two" / "out"
    compare(training_side(names), evaluation_side(names), methods, bootstrap=10, directory=inner)
    assert {path for path in tmp_path.rglob("*") if path.is_file() and inner not in path.parents} == set()
    assert len(list((inner / "methods").iterdir())) == 5  # and raw


def test_a_cluster_is_for_this_machine_only(monkeypatch):
    pytest.importorskip("distributed")
    from contextlib import nullcontext

    from evenscore.engine.cluster import connected

    asked = {}

    def cluster(**how):
        asked.update(how)
        return nullcontext()

    monkeypatch.setattr("distributed.LocalCluster", cluster)
    monkeypatch.setattr("distributed.Client", lambda cluster: nullcontext())
    with connected(workers=1):
        pass
    assert asked["host"] == "127.0.0.1"
    assert asked["dashboard_address"].startswith("127.0.0.1:")


def test_a_drawing_shows_markup_and_holds_none(tmp_path):
    pytest.importorskip("matplotlib")
    from evenscore.plot import plot_det, save_figure

    hostile = "</text><script>x</script>"
    save_figure(plot_det({hostile: [-2.0, -1.0, 0.5, 1.0, 2.0, -0.5]}, [0, 0, 0, 1, 1, 1]), tmp_path / "det.svg")
    text = (tmp_path / "det.svg").read_text(encoding="utf-8")
    assert "<script" not in text
