import numpy as np
import pytest

from embedtopics import InputError, probing
from tests.probing.made import made_states

STATES = made_states(
    ["one two", "three"],
    [[[1, 2], [3, 4], [5, 6]], [[10, 0], [0, 10], [2, 2]], [[4, 4], [8, 8], [0, 1]]],
)


def test_layers_are_summed_averaged_and_put_side_by_side():
    np.testing.assert_array_equal(
        probing.combine(STATES, [0, 2], "sum"), [[5, 6], [11, 12], [5, 7]]
    )
    np.testing.assert_array_equal(probing.combine(STATES, "last 2"), [[7, 2], [4, 9], [1, 1.5]])
    np.testing.assert_array_equal(
        probing.combine(STATES, [-1, 0], "concat"), [[4, 4, 1, 2], [8, 8, 3, 4], [0, 1, 5, 6]]
    )
    np.testing.assert_array_equal(probing.combine(STATES, 1), [[10, 0], [0, 10], [2, 2]])
    assert probing.combine(STATES, "all", "concat").shape == (3, 6)


@pytest.mark.parametrize("layers", ["first", "last 0", "last 4", "last -1", 3, [0, -4], []])
def test_layers_that_are_not_there_are_refused(layers):
    with pytest.raises(InputError, match="layer"):
        probing.combine(STATES, layers)


def test_another_way_is_refused():
    with pytest.raises(InputError, match="mean, sum, concat; got 'max'"):
        probing.combine(STATES, 1, "max")


def test_rows_of_a_text_are_found():
    assert STATES.rows_of(1) == slice(2, 3)
    with pytest.raises(InputError, match="from 0 to 1, got 2"):
        STATES.rows_of(2)
