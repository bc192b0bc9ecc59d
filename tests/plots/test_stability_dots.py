from __future__ import annotations

import dataclasses

import numpy as np

from embedtopics import plots
from embedtopics.plots._colors import topic_colors
from embedtopics.topics.results import Stability
from tests.factories import make_result, refuses


def measured(result, recurrence, chance=None):
    recurrence = np.array(recurrence, dtype=np.float64)
    found = Stability(
        recurrence=recurrence,
        low=recurrence - 0.1,
        high=recurrence + 0.05,
        agreement=np.ones(len(result.documents), dtype=np.float32),
        adjusted_rand=np.array([0.5]),
        n_replicates=7,
        chance=chance,
    )
    return dataclasses.replace(result, stability=found)


def test_topics_from_the_stablest_down_each_with_interval_and_chance():
    labels = ["a", "b", "c", "<i>d</i> $x$"]
    result = make_result(n_topics=4, topic_labels=labels)
    chance = np.array([0.1, 0.2, 0.3, 0.4])
    figure = plots.stability(measured(result, [0.5, np.nan, 0.9, 0.7], chance))
    *lines, marks, dots = figure.data
    names = [name.strip() for name in figure.layout.yaxis.ticktext]
    assert names == ["c", "&lt;i&gt;d&lt;/i&gt; &#36;x&#36;", "a", "b (in no replicate)"]
    np.testing.assert_allclose(dots.x, [0.9, 0.7, 0.5, np.nan])
    np.testing.assert_allclose(marks.x, [0.3, 0.4, 0.1, 0.2])
    np.testing.assert_allclose(
        [line.x for line in lines[:3]], [[0.8, 0.95], [0.6, 0.75], [0.4, 0.55]]
    )
    assert [line.y for line in lines] == [(i, i) for i in range(4)]
    assert "7 replicates" in dots.name
    assert "topic 2" in dots.hovertext[0] and "from 0.80 to 0.95" in dots.hovertext[0]
    colors = topic_colors(measured(result, [0.5, np.nan, 0.9, 0.7], chance))
    assert list(dots.marker.color) == [colors[i] for i in (2, 3, 0, 1)]


def test_without_chance_levels_and_without_topics():
    figure = plots.stability(measured(make_result(n_topics=1), [0.5]))
    assert len(figure.data) == 2
    empty = plots.stability(make_result(n_documents=3, n_topics=0))
    assert empty.layout.annotations[0].text == "No topics were found"


def test_stability_must_have_been_measured():
    with refuses("result"):
        plots.stability(make_result())
