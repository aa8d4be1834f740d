import pytest


@pytest.fixture(autouse=True)
def _short_trainings(monkeypatch):
    """Train the models of cross-validation only a little: no test here asks how good they are."""
    monkeypatch.setattr("recipes.analysis.residuals.ITERATIONS", 10)
