"""The shapes in the signatures of the maths are really checked while the tests run."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from evenscore.model.moments import SideMoments
from evenscore.model.score_weights import llr


def test_a_function_refuses_another_shape():
    with pytest.raises(TypeCheckError):
        llr(np.zeros(3), np.zeros((3, 1)), np.ones(2), None)


def test_a_record_refuses_another_shape():
    with pytest.raises(TypeCheckError):
        SideMoments(count=1.0, first=np.zeros(2), second=np.zeros((2, 3)))
