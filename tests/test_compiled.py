"""Each loop is compiled once for each type of scores, and for nothing else."""

import numpy as np
import pytest

from compiled_loops import all_loops
from evenscore import compiled


def test_every_loop_compiles_once_for_each_type_of_scores():
    for loop in all_loops():
        for kind in loop.kinds:
            loop.prepare(kind)
            loop.prepare(kind)
        assert len(loop._dispatcher.signatures) == len(loop.kinds), loop.__name__
    assert len(compiled.LOOPS) < 40


def transposed(scores, out):
    """Call a loop that takes everything a loop can: scores, whole numbers, and an array that it writes."""
    from evenscore.norms.kernel_apply import transpose

    transpose(scores, 0, 0, scores.shape[1], out)
    return out


def test_frozen_and_writable_arrays_are_one_type():
    scores = np.arange(6.0).reshape(2, 3)
    frozen = scores.copy()
    frozen.setflags(write=False)
    for given in (scores, frozen):
        np.testing.assert_array_equal(transposed(given, np.empty((3, 2))), scores.T)


@pytest.mark.parametrize("kind", ["transposed", "int64", "float16"])
def test_what_a_loop_does_not_take_is_refused_instead_of_compiled(kind):
    scores = np.zeros((2, 3)).T if kind == "transposed" else np.zeros((3, 2), dtype=kind)
    with pytest.raises(TypeError, match=r"No matching definition|takes scores in float32 or float64"):
        transposed(scores, np.empty((2, 3)))


def test_vectors_may_be_columns_of_a_table():
    from evenscore.norms.kernel_apply import sum_list

    numbers, out = np.arange(8.0).reshape(2, 4), np.zeros(2)
    place = np.arange(2, dtype=np.int32)
    sum_list(numbers[:, 0], place, place, *numbers.T, 0, 2, out)
    means, weights = numbers[:, [0, 2]], numbers[:, [1, 3]]
    np.testing.assert_allclose(out, ((numbers[:, :1] - means) * weights).sum(axis=1))


def test_few_is_a_matter_of_the_product():
    assert compiled.few(compiled.FEW)
    assert not compiled.few(compiled.FEW, 2)
    assert compiled.few(1 << 40, 0)
