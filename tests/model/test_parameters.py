import numpy as np
import pytest

from evenscore import InputError, ScoreModel

GOOD = {"mu": [0.0, 1.0], "alpha": [[1.0], [2.0]], "beta": [[0.5], [0.1]], "sigma2": [1.0, 2.0]}


def test_variances_are_those_of_the_paper():
    model = ScoreModel(mu=[0, 1], alpha=[[1, 2], [3, 0]], beta=[[0, 1], [2, 2]], sigma2=[4, 5])
    table = model.variances
    np.testing.assert_allclose(table.nu_enroll, [5, 9])
    np.testing.assert_allclose(table.nu_test, [1, 8])
    np.testing.assert_allclose(table.nu, [6, 17])
    np.testing.assert_allclose(table.share, [6 / 10, 17 / 22])
    np.testing.assert_allclose(table.enroll_covariance, [[5, 3], [3, 9]])


def test_parameters_cannot_be_changed():
    model = ScoreModel(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        model.mu[0] = 3.0
    assert model == ScoreModel(**GOOD)
    assert model != ScoreModel(**{**GOOD, "mu": [0.0, 1.5]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma2": [1.0, 0.0]}, "positive"),
        ({"sigma2": [1.0, -1.0]}, "positive"),
        ({"mu": [0.0, np.nan]}, "finite"),
        ({"mu": [0.0]}, "2 numbers"),
        ({"alpha": [1.0, 2.0]}, "2 x D"),
        ({"alpha": [[1.0, 0.0], [2.0, 0.0]]}, "beta has shape"),
        ({"beta": [["a"], ["b"]]}, "numbers"),
    ],
)
def test_parameters_that_make_no_sense(change, message):
    with pytest.raises(InputError, match=message):
        ScoreModel(**{**GOOD, **change})
