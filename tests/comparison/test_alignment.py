from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import procrustes

from embedtopics.comparison import align_maps, displacement, fit_similarity


def similar(positions, angle, scale=1.0, shift=(0.0, 0.0), mirrored=False):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    if mirrored:
        turn = turn @ np.diag([1.0, -1.0])
    return scale * positions @ turn + shift


@pytest.fixture
def positions():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 2))[rng.integers(0, 12, 400)] * 5 + rng.normal(size=(400, 2))


@settings(max_examples=40, deadline=None)
@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-50, 50), st.booleans(), st.integers(0, 1000))
def test_a_map_turned_mirrored_scaled_and_moved_is_found_again(angle, scale, shift, mirrored, seed):
    goal = np.random.default_rng(seed).normal(size=(30, 2))
    moved = similar(goal, angle, scale, (shift, -shift), mirrored)
    np.testing.assert_allclose(fit_similarity(moved, goal), goal, atol=1e-5)


def test_without_outliers_the_turn_is_that_of_procrustes(positions):
    noisy = similar(positions, 0.8, 3.0) + 0.3 * np.random.default_rng(1).normal(size=(400, 2))
    fitted = fit_similarity(noisy, positions)
    _, expected, _ = procrustes(positions, noisy)
    expected = (
        expected * np.sqrt(((positions - positions.mean(axis=0)) ** 2).sum())
        / np.linalg.norm(expected)
    ) + positions.mean(axis=0)  # fmt: skip
    assert displacement(fitted, expected).mean() < 0.005


def test_documents_that_moved_do_not_pull_the_rest(positions):
    other = positions.copy()
    other[:120] += [40, 25]
    fitted = fit_similarity(similar(other, 2.0, 0.4, (3, 3), mirrored=True), positions)
    np.testing.assert_allclose(fitted[120:], positions[120:], atol=0.01)
    # Least squares is led astray by them.
    goal, plain, _ = procrustes(positions, other)
    assert displacement(goal[120:], plain[120:]).mean() > 0.1


def test_all_maps_take_the_frame_of_the_target(positions):
    maps = [similar(positions, angle, 1 + angle, (angle, 0)) for angle in (0.1, 1.0, 2.5)]
    for aligned in align_maps(maps, positions):
        # The mean is centred: the frame's turn and size are those of the target.
        np.testing.assert_allclose(aligned, positions - positions.mean(axis=0), atol=1e-3)


def test_noise_shrinks_no_map(positions):
    rng = np.random.default_rng(2)
    maps = [positions + rng.normal(size=positions.shape) * noise for noise in (0.1, 3.0)]
    clear, blurred = align_maps(maps, positions)
    assert blurred.std() == pytest.approx(clear.std(), rel=0.15)


def test_displacement_is_nought_for_the_same_and_one_for_another(positions):
    assert displacement(positions, positions).max() == 0
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 100_000, 2))
    assert np.sqrt((displacement(first, second) ** 2).mean()) == pytest.approx(1, abs=0.01)


def test_a_map_without_extent_is_no_error():
    flat = np.zeros((5, 2))
    assert np.isfinite(fit_similarity(flat, np.random.default_rng(0).normal(size=(5, 2)))).all()
    assert np.isfinite(align_maps([flat, flat], flat)).all()
    assert displacement(flat, flat).tolist() == [0] * 5
