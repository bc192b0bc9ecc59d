"""Trees against hand counts and SciPy, and probes on vectors whose distances are those of trees."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from embedtopics import probing
from embedtopics.probing.probes._structural import (
    Tree,
    edges_found,
    mean_rank_correlation,
    read_trees,
    tree_distances,
)
from tests.factories import refuses
from tests.probing.made import made_states, random_states, reordered


def random_heads(n, rng):
    """A random tree: in a random order, each word hangs on one that came before it."""
    order = rng.permutation(n)
    heads = [0] * n
    for at in range(1, n):
        heads[order[at]] = int(order[rng.integers(at)]) + 1
    return heads


def tree_states(n_texts=150, width=14, seed=0):
    """Layer 0 is noise; in layer 1, turned and stretched, squared distances are edges."""
    rng = np.random.default_rng(seed)
    texts, heads, vectors = [], [], []
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0] * rng.uniform(0.5, 3, width)
    for i in range(n_texts):
        n = int(rng.integers(4, 9))
        own = random_heads(n, rng)
        placed = np.zeros((n, width))
        placed[:, 8:] = rng.normal(size=(n, width - 8))  # says nothing
        for word in np.argsort(tree_distances(own)[own.index(0)], kind="stable"):
            if own[word]:
                placed[word, :8] = placed[own[word] - 1, :8]
                placed[word, word] += 1
        texts.append(" ".join(f"w{i}x{j}" for j in range(n)))
        heads.append(own)
        vectors.append(placed @ turn)
    flat = np.concatenate(vectors)
    return made_states(texts, [rng.normal(size=flat.shape), flat]), heads


STATES, HEADS = tree_states()


@pytest.fixture(scope="module")
def scores():
    return probing.structural_probe(STATES, HEADS)


def value(scores, what, metric, layer=None):
    (found,) = [one for one in scores.of(what=what, metric=metric) if one.layer == layer]
    return found


def test_distances_that_are_there_are_found(scores):
    assert value(scores, "probe", "uuas", 1).value > 0.97
    assert value(scores, "probe", "spearman", 1).value > 0.95
    assert value(scores, "probe", "uuas", 0).value < 0.6
    assert value(scores, "probe", "spearman", 0).value < 0.5
    assert scores.best("uuas").layer == scores.best("spearman").layer == 1
    first = value(scores, "embedding layer", "uuas", 0)
    assert first.value == value(scores, "probe", "uuas", 0).value
    for one in scores:
        assert one.low <= one.value <= one.high
    assert scores.labels == () and scores.n_train + scores.n_dev + scores.n_test == len(STATES)


def test_one_dimension_cannot_hold_a_tree(scores):
    one = probing.structural_probe(STATES, HEADS, layers=1, rank=1)
    assert value(one, "probe", "uuas", 1).value < value(scores, "probe", "uuas", 1).value - 0.2


def test_the_chain_of_words_is_measured_without_learning():
    texts = [f"a{i} b c d e" for i in range(9)]
    heads = [[2, 3, 4, 5, 0]] * 8 + [[5, 1, 1, 1, 0]]
    parts = ["train"] * 6 + ["dev"] + ["test"] * 2
    scores = probing.structural_probe(random_states(texts), heads, parts=parts)
    assert value(scores, "linear chain", "uuas").value == (4 + 1) / 8
    distances = tree_distances(heads[-1])
    chain = np.abs(np.subtract.outer(range(5), range(5)))
    other = np.mean([spearmanr(a, b).statistic for a, b in zip(chain, distances, strict=True)])
    found = value(scores, "linear chain", "spearman")
    assert found.value == pytest.approx((1 + other) / 2) and found.n == 2


def test_distances_are_counted_by_hand():
    assert tree_distances([0]).tolist() == [[0]]
    expected = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
    assert tree_distances([2, 3, 4, 0]).tolist() == expected
    assert tree_distances([0, 1, 1]).tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]


def test_the_spanning_tree_joins_the_nearest_first_and_every_word():
    rows, all_count = np.arange(4), np.ones(4, dtype=bool)
    # On a line at 0, 1, 3 and 3: the last two, of which neither is apart, are joined as well.
    points = np.array([0.0, 1.0, 3.0, 3.0])
    distances = np.abs(np.subtract.outer(points, points))
    right = Tree(rows, distances, frozenset({(0, 1), (2, 3)}), all_count)
    wrong = Tree(rows, distances, frozenset({(0, 2), (0, 3)}), all_count)
    assert edges_found(right, distances) == 2 and edges_found(wrong, distances) == 0
    alone = Tree(rows, distances, frozenset(), rows == 1)
    assert edges_found(alone, distances) == 0


def test_correlations_are_those_of_scipy_word_by_word():
    rng = np.random.default_rng(0)
    distances = tree_distances(random_heads(8, rng))
    tree = Tree(np.arange(8), distances, frozenset(), np.ones(8, dtype=bool))
    found = rng.integers(0, 5, (8, 8)).astype(float)
    expected = np.mean([spearmanr(a, b).statistic for a, b in zip(found, distances, strict=True)])
    assert mean_rank_correlation(tree, found) == pytest.approx(expected)
    assert mean_rank_correlation(tree, np.zeros((8, 8))) == 0


def test_words_without_vectors_and_punctuation_are_no_part_of_what_is_rebuilt():
    states = random_states(["we saw , it", "oh no", "x"], missing=[1])
    heads = ["2", "0", "2", "2", "0", "1", "0"]
    first, second = read_trees(states, heads)
    assert first.rows.tolist() == [0, 2, 3] and first.counts.tolist() == [True, False, True]
    assert first.distances.tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert first.edges == frozenset() and second.edges == {(0, 1)}
    whole = random_states(["we saw , it", "oh no", "x"])
    bare, *_ = read_trees(whole, heads)
    assert bare.edges == {(0, 1), (1, 3)}
    found = np.array([[0, 1, 1, 9], [1, 0, 9, 1], [1, 9, 0, 1], [9, 1, 1, 0.0]])
    assert edges_found(bare, found) == 2
    assert len(read_trees(whole, ["", "", "", "", *heads[4:]])) == 1


def test_results_do_not_depend_on_the_order_of_the_texts(scores):
    shuffled, order = reordered(STATES)
    found = probing.structural_probe(shuffled, [HEADS[i] for i in order], layers=1)
    for metric in ("uuas", "spearman"):
        assert value(found, "probe", metric, 1) == value(scores, "probe", metric, 1)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 1, 0], "heads"),
        ([0, 1, 0], "heads"),
        ([0, 1, 4], "heads"),
        ([0, 2, 1], "heads"),
        ([0, None, 1], "heads"),
        ([0, 1], "tags"),
    ],
)
def test_heads_that_are_no_tree_are_refused(heads, message):
    states = random_states(["a b c", "d e f", "g h i"])
    with refuses(message):
        probing.structural_probe(states, [[0, 1, 1], heads, [0, 1, 1]])
