import numpy as np
import pytest

from embedtopics.encoders.pooling import POOLINGS, pool, to_unit_length

torch = pytest.importorskip("torch")

STATES = [
    [[1.0, -4.0], [3.0, -2.0], [5.0, 0.0]],
    [[2.0, -1.0], [4.0, -3.0], [9.0, 9.0]],
]
MASK = [[1, 1, 1], [1, 1, 0]]
BY_HAND = {
    "mean": [[3.0, -2.0], [3.0, -2.0]],
    "cls": [[1.0, -4.0], [2.0, -1.0]],
    "max": [[5.0, 0.0], [4.0, -1.0]],
}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_by_hand(pooling):
    pooled = pool(torch.tensor(STATES), torch.tensor(MASK), pooling)
    np.testing.assert_allclose(pooled.numpy(), BY_HAND[pooling], rtol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_changes_nothing(pooling):
    states = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    mask = np.ones((3, 5), dtype=np.int64)
    padded = np.pad(states, ((0, 0), (0, 4), (0, 0)), constant_values=99.0)
    padded_mask = np.pad(mask, ((0, 0), (0, 4)))
    np.testing.assert_allclose(
        pool(torch.from_numpy(states), torch.from_numpy(mask), pooling),
        pool(torch.from_numpy(padded), torch.from_numpy(padded_mask), pooling),
        rtol=1e-6,
    )


def test_unit_length():
    unit = to_unit_length(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(unit.numpy(), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
