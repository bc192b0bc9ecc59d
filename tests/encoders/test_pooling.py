import numpy as np
import pytest

from embedtopics.encoders.sentence._checkpoint import POOLINGS, Dense, UnitLength, finish
from embedtopics.encoders.sentence._graph import WORDS, _Builder, _pool
from embedtopics.encoders.sentence._running import OnnxRuntime
from embedtopics.encoders.sentence._torch import pool

torch = pytest.importorskip("torch")

STATES = [[[1.0, -4.0], [3.0, -2.0], [5.0, 0.0]], [[2.0, -1.0], [4.0, -3.0], [9.0, 9.0]]]
MASK = [[1, 1, 1], [1, 1, 0]]
BY_HAND = {
    "mean": [[3.0, -2.0], [3.0, -2.0]],
    "cls": [[1.0, -4.0], [2.0, -1.0]],
    "max": [[5.0, 0.0], [4.0, -1.0]],
    "mean_sqrt_len_tokens": [[9 / 3**0.5, -6 / 3**0.5], [6 / 2**0.5, -4 / 2**0.5]],
    "weightedmean": [[22 / 6, -8 / 6], [10 / 3, -7 / 3]],
    "lasttoken": [[5.0, 0.0], [4.0, -3.0]],
}
WITHOUT_FIRST = {
    "mean": [[4.0, -1.0], [4.0, -3.0]],
    "cls": [[3.0, -2.0], [4.0, -3.0]],
    "max": [[5.0, 0.0], [4.0, -3.0]],
    "mean_sqrt_len_tokens": [[8 / 2**0.5, -2 / 2**0.5], [4.0, -3.0]],
    "weightedmean": [[21 / 5, -4 / 5], [4.0, -3.0]],
    "lasttoken": [[5.0, 0.0], [4.0, -3.0]],
}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_by_hand_with_torch_and_in_a_graph(pooling):
    builder = _Builder(None)
    table = np.array(STATES, np.float32).reshape(6, 2)
    states = builder.add("Gather", WORDS, "input_ids")
    graph = builder.finish(_pool(builder, states, pooling), table)
    run = OnnxRuntime(graph)
    ids = np.arange(6).reshape(2, 3)
    # Tokens of a prompt may be left out; where nothing is left, the vector is zero.
    without, nothing = [[0, 1, 1], [0, 1, 0]], np.zeros((2, 2))
    for mask, expected in (
        (MASK, BY_HAND[pooling]), (without, WITHOUT_FIRST[pooling]), ([[0] * 3] * 2, nothing),
    ):  # fmt: skip
        in_graph = run(ids, np.ones_like(ids), np.array(mask))
        for pooled in (in_graph, pool(torch.tensor(STATES), torch.tensor(mask), pooling)):
            np.testing.assert_allclose(pooled, expected, rtol=1e-6)


def test_steps_after_the_pooling_by_hand():
    vectors = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(
        finish(vectors, (UnitLength(),)), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6
    )
    weight, bias = np.array([[1.0, -1.0]], np.float32), np.array([0.5], np.float32)
    by_hand = {
        "Identity": [-0.5, 0.5],
        "ReLU": [0.0, 0.5],
        "Tanh": np.tanh([-0.5, 0.5]),
    }
    for activation, expected in by_hand.items():
        made = finish(vectors, (Dense(None, weight, bias, activation),))
        np.testing.assert_allclose(made[:, 0], expected, rtol=1e-6)
        assert made.dtype == np.float32
