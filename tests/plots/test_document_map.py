from __future__ import annotations

import sys
from subprocess import run

import numpy as np
import pytest

from embedtopics import plots
from embedtopics.clustering.results import NOISE
from embedtopics.plots._colors import NOISE_COLOR, topic_colors
from tests.factories import make_result, refuses

NASTY = (
    "<script>alert(1)</script>",
    "<b>bold</b> & %{x} %{customdata}",
    "\"double\" and 'single'",
    "🙂 שלום עולם",
)


def test_every_document_is_one_point_of_its_topics_trace():
    result = make_result()
    figure = plots.map(result)
    labels = result.clustering.labels
    assert [trace.type for trace in figure.data] == ["scattergl"] * (result.n_topics + 1)
    for topic_id, trace in zip(range(NOISE, result.n_topics), figure.data, strict=True):
        np.testing.assert_array_equal(
            np.column_stack([trace.x, trace.y]), result.map[labels == topic_id]
        )
    colors = [trace.marker.color for trace in figure.data]
    assert colors == [NOISE_COLOR, *topic_colors(result)]


def test_the_axes_share_a_scale_and_hold_every_point():
    result = make_result()
    layout = plots.map(result).layout
    assert layout.yaxis.scaleanchor == "x"
    assert layout.xaxis.range[0] < result.map[:, 0].min() < result.map[:, 0].max()
    assert layout.xaxis.range[1] > result.map[:, 0].max()
    assert not layout.xaxis.visible and not layout.yaxis.visible


def hover_of(figure):
    return [text for trace in figure.data for text in trace.hovertext]


def test_texts_are_shown_and_never_read_as_markup_or_template():
    result = make_result(texts=NASTY, topic_labels=["<i>x</i> %{y}"])
    figure = plots.map(result)
    hover = hover_of(figure)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hover
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; %{x} %{customdata}" in hover
    assert "\"double\" and 'single'" in hover
    assert "🙂 שלום עולם" in hover
    assert figure.data[1].name == "&lt;i&gt;x&lt;/i&gt; %{y}"
    assert "&lt;i&gt;x&lt;/i&gt; %{y}" in [a.text for a in figure.layout.annotations]
    templates = {trace.hovertemplate for trace in figure.data}
    assert templates == {"<b>%{fullData.name}</b><br>%{hovertext}<extra></extra>"}


def test_hover_holds_the_first_characters_and_counts_the_rows():
    result = make_result(texts=["word " * 100])
    repeated = int(np.argmax(result.documents.weights))
    hover = hover_of(plots.map(result))
    longest = next(text for text in hover if text.startswith("word word"))
    assert all(len(line) <= 60 for line in longest.split("<br>"))
    assert len(longest.replace("<br>", " ")) == 200
    n_rows = result.documents.weights[repeated]
    assert any(text.endswith(f"<br><i>{n_rows} rows share this text</i>") for text in hover)


def test_hover_texts_can_be_left_out():
    figure = plots.map(make_result(), hover_characters=0)
    assert all(trace.hovertext is None for trace in figure.data)
    assert figure.data[0].hovertemplate == "%{fullData.name}<extra></extra>"


@pytest.mark.parametrize("n_topics", [1, 6, 200])
def test_labels_stand_on_their_topics_and_are_not_too_many(n_topics):
    result = make_result(n_documents=2000, n_topics=n_topics)
    figure = plots.map(result, max_labels=12)
    annotations = figure.layout.annotations
    assert 1 <= len(annotations) <= 12
    places = {tuple(map(float, point)) for point in result.map}
    assert all((a.x, a.y) in places for a in annotations)
    assert plots.map(result, max_labels=0).layout.annotations == ()


@pytest.mark.parametrize("n_documents", [1, 2, 40])
def test_a_result_of_no_topics_is_a_map_of_noise(n_documents):
    figure = plots.map(make_result(n_documents=n_documents, n_topics=0))
    assert [trace.name for trace in figure.data] == ["No topic"]
    assert np.isfinite(figure.layout.xaxis.range).all()


def test_the_same_result_gives_the_same_figure_and_is_left_alone():
    result = make_result()
    before = result.map.copy()
    assert plots.map(result).to_json() == plots.map(make_result()).to_json()
    np.testing.assert_array_equal(result.map, before)


def test_title_and_size():
    figure = plots.map(make_result(), title="A <b>map</b>", width=600, height=400)
    assert figure.layout.title.text == "A &lt;b&gt;map&lt;/b&gt;"
    assert (figure.layout.width, figure.layout.height) == (600, 400)


@pytest.mark.parametrize(
    "arguments", [{"width": 20}, {"height": -1}, {"max_labels": -1}, {"hover_characters": -5}]
)
def test_impossible_sizes_are_refused(arguments):
    with refuses(next(iter(arguments))):
        plots.map(make_result(), **arguments)


def test_importing_plots_does_not_load_plotly():
    code = "import sys, embedtopics.plots; sys.exit('plotly' in sys.modules)"
    assert run([sys.executable, "-c", code]).returncode == 0
