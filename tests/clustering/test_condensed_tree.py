import numpy as np
import pytest

from embedtopics.clustering._hierarchy import condense
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.errors import InputError

TWO_PAIRS = [[0.0], [1.0], [5.0], [6.0], [8.0], [20.0]]
"""With one neighbour in a core: links of 1, 4, 1, 2 and 12, core distances 1, 1, 1, 1, 2, 12."""


def rows(condensed):
    columns = (condensed.parent, condensed.child, condensed.lambda_, condensed.size)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_hand_calculation():
    condensed = condense(spanning_tree(TWO_PAIRS, min_samples=1), 2)
    # The document at 20 falls out at 12; at 4 the rest splits; the one at 8 falls out at 2.
    # Components are numbered as they come to be, clusters from the latest down.
    upper, lower = condensed.parent[2], condensed.parent[0]
    assert {upper, lower} == {7, 8}
    assert rows(condensed)[:6] == [
        (lower, 0, 1.0, 1),
        (lower, 1, 1.0, 1),
        (upper, 2, 1.0, 1),
        (upper, 3, 1.0, 1),
        (upper, 4, 0.5, 1),
        (6, 5, 1 / 12, 1),
    ]
    assert sorted(rows(condensed)[6:], key=lambda row: row[3]) == [
        (6, lower, 0.25, 2),
        (6, upper, 0.25, 3),
    ]
    assert condensed.n_clusters == 3


def test_equal_distances_split_at_once():
    # Three pairs, 2 apart from one another: they part together, not one after the other.
    points = [[0.0], [1.0], [3.0], [4.0], [6.0], [7.0]]
    condensed = condense(spanning_tree(points, min_samples=1), 2)
    assert condensed.n_clusters == 4
    assert condensed.parent[6:].tolist() == [6, 6, 6]
    assert condensed.lambda_[6:].tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("least", [2, 5, 30])
def test_sizes_add_up(least):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(300, 2)) + 4 * rng.integers(0, 3, (300, 1))
    weights = rng.integers(1, 4, 300)
    condensed = condense(spanning_tree(points), least, weights)
    inside = np.bincount(
        condensed.parent - 300, weights=condensed.size, minlength=condensed.n_clusters
    )
    assert inside[0] == weights.sum()
    np.testing.assert_array_equal(inside[1:], condensed.size[300:])
    assert (condensed.size[300:] >= least).all()
    assert (condensed.parent[300:] < condensed.child[300:]).all()
    born = np.concatenate([[0.0], condensed.lambda_[300:]])
    assert (condensed.lambda_ >= born[condensed.parent - 300]).all()


def test_bad_input_is_explained():
    for size, weights in (*((bad, None) for bad in (1, 0, -3, 2.0, "5", True)), (2, [1, 1, 1])):
        with pytest.raises(InputError):
            condense(spanning_tree(TWO_PAIRS), size, weights)
