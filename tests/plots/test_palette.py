from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedtopics.plots._colors import (
    NOISE_COLOR,
    PALETTE,
    color_distances,
    dark,
    spread_colors,
    tint,
    topic_colors,
)
from embedtopics.topics.results import Stability
from tests.factories import make_result


def test_distances_are_those_of_oklab_for_usual_vision():
    # black to white is one unit of lightness for every eye; equal colours do not differ
    distances = color_distances(("#000000", "#ffffff", "#ffffff"))
    assert distances[0, 1] == pytest.approx(100.0, abs=0.1)
    assert distances[1, 2] == 0.0


def test_distances_see_red_green_confusion():
    red, green = "#cc3311", "#6b7d00"  # far apart to most eyes, close to a deuteranope's
    lightness_only = color_distances((red, green))[0, 1]
    blue = color_distances((red, "#0072b2"))[0, 1]
    assert lightness_only < 0.6 * blue


def test_the_palette_keeps_clear_of_noise_and_of_itself():
    with_noise = color_distances((*PALETTE, NOISE_COLOR))
    assert with_noise[-1, :-1].min() > 8.0
    assert len(set(PALETTE)) == len(PALETTE)


@pytest.mark.parametrize("n_topics", [2, 8, len(PALETTE)])
def test_no_color_comes_twice_while_there_are_enough(n_topics):
    positions = np.random.default_rng(0).normal(size=(n_topics, 2))
    assert len(set(spread_colors(positions))) == n_topics


@pytest.mark.parametrize("n_topics", [10, 40, 200])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_topics_look_different_to_every_eye(n_topics, seed):
    positions = np.random.default_rng(seed).uniform(size=(n_topics, 2))
    colors = spread_colors(positions)
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    np.fill_diagonal(gaps, np.inf)
    distances = color_distances(colors)
    nearest = distances[np.arange(n_topics), gaps.argmin(axis=1)]
    assert nearest.min() > 6.0  # a step of 2 is just visible


def test_colors_stand_places_that_are_nowhere_or_all_the_same():
    assert len(set(spread_colors(np.full((5, 2), np.nan)))) == 5
    assert len(set(spread_colors(np.zeros((5, 2))))) == 5
    assert spread_colors(np.empty((0, 2))) == ()


def test_colors_of_a_result_are_the_same_each_time():
    result = make_result(n_topics=30, n_documents=1000)
    assert topic_colors(result) == topic_colors(make_result(n_topics=30, n_documents=1000))
    assert set(topic_colors(result)) <= set(PALETTE)


def test_tint_and_dark():
    assert tint("#336699", 1.0) == "#336699"
    assert tint("#336699", 0.0) == "#ffffff"
    for color in PALETTE:
        rgb = np.array([int(dark(color)[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 7.0


def test_topics_that_do_not_come_back_are_paler():
    result = make_result(n_topics=3)
    full = topic_colors(result)
    chance = np.array([0.15, 0.15, 0.15])
    stability = Stability(
        recurrence=np.array([0.9, 0.45, 0.1]), low=chance, high=chance,
        agreement=np.ones(len(result.documents), np.float32),
        adjusted_rand=np.array([0.5]), n_replicates=2, chance=chance,
    )  # fmt: skip
    shown = topic_colors(replace(result, stability=stability))
    # 0.45 lies half way from chance to the 0.75 of a full colour: a quarter and half of the rest.
    assert shown == (full[0], tint(full[1], 0.625), tint(full[2], 0.25))
