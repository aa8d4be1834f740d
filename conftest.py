"""For all tests: modules of `tests` can be imported (`strategies`, `reference`), shapes are checked, loops compiled."""

import compileall
import gc
import importlib.util
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "tests"))  # pytest's importlib mode does not

import checked_shapes
import compiled_loops
from examples import FEWEST

# The shapes in the signatures of the maths are checked at run time, in the tests only: elsewhere they are for readers
# and type checkers. Kernels are compiled, and the public boundary checks its input itself, with messages that the tests
# look at.
_CHECKED = (
    "adapt_steps",
    "block_posterior",
    "elimination",
    "em",
    "moments",
    "own_speakers",
    "partial_cohorts",
    "pattern_posterior",
    "patterns",
    "precision",
    "prediction",
    "score_weights",
    "sums",
)
#: The second edition, on which only `tests/acceptance` runs from here, has other modules.
_NEXT = Path(__file__).parent / "next" in Path(importlib.util.find_spec("evenscore").origin).resolve().parents
_RECIPE = tuple(f"recipes.text_dependent.{name}" for name in ("ubm", "statistics", "eigenchannels"))
if not _NEXT:
    checked_shapes.check_shapes([*(f"evenscore.model.{name}" for name in _CHECKED), *_RECIPE])

collect_ignore_glob = [
    "tests/*/golden/make_*.py",
    "tests/*/golden/*/make_*.py",
]  # they need other programs, and are run by hand

# Files on a shared machine: time says nothing about correctness. The same examples are drawn in every run.
settings.register_profile(
    "evenscore",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("EVENSCORE_EXAMPLES", FEWEST)),  # `make test-all` draws more
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenscore")


def pytest_sessionstart(session):
    """Compile all loops and modules before test workers are started: they would compile the same ones side by side."""
    controls_workers = not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", None)
    if controls_workers and not _NEXT:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            shares = pool.map(compiled_loops.prepare_share, range(2), [2, 2])
            for folder in ("src", "recipes"):
                compileall.compile_dir(str(session.config.rootpath / folder), quiet=2)
            list(shares)


def pytest_collection_finish():
    """Let the garbage collector pass over all modules and tests, which stay to the end anyway."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup():
    """Check the shapes of each function anew in every test."""
    checked_shapes.forget_calls()


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory):
    """Keep what examples leave in the temporary directory among the files of the tests, which pytest removes."""
    folder = str(tmp_path_factory.mktemp("temporary"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", folder)
        patch.setenv("TMPDIR", folder)  # for processes
        yield


@pytest.fixture(scope="module")
def brief_training():
    """End the training of score models early, for tests of what is made of a model, not of its parameters."""
    from evenscore.model import fit

    def run_em(model, statistics, min_divergence, tol, max_iter):
        return whole(model, statistics, min_divergence, max(tol, 1e-3), max_iter)

    whole = fit.run_em
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "run_em", run_em)
        yield


@pytest.fixture(params=["few scores", "many scores"])
def route(request, monkeypatch):
    """Work as with few scores, in NumPy, or as with many, in compiled loops; a test that uses this does both."""
    if request.param == "many scores":
        monkeypatch.setattr("evenscore.compiled.FEW", -1)
