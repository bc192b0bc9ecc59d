"""The map, and the mixture of a text."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from embedtopics import plots, topics
from embedtopics.clustering.results import NOISE
from embedtopics.plots import _mixture
from embedtopics.plots._colors import NOISE_COLOR, tint, topic_colors
from embedtopics.topics.results import Mixture
from tests.factories import make_result

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
    repeated = int(np.argmax(result.distinct.weights))
    hover = hover_of(plots.map(result))
    longest = next(text for text in hover if text.startswith("word word"))
    assert all(len(line) <= 60 for line in longest.split("<br>"))
    assert len(longest.replace("<br>", " ")) == 200
    n_rows = result.distinct.weights[repeated]
    assert any(text.endswith(f"<br><i>{n_rows} rows share this text</i>") for text in hover)


@pytest.mark.parametrize("n_topics", [1, 6, 200])
def test_labels_stand_on_their_topics_and_are_not_too_many(n_topics):
    result = make_result(n_documents=2000, n_topics=n_topics)
    annotations = plots.map(result).layout.annotations
    assert 1 <= len(annotations) <= 30
    places = {tuple(map(float, point)) for point in result.map}
    assert all((a.x, a.y) in places for a in annotations)


@pytest.mark.parametrize("n_documents", [1, 2, 40])
def test_a_result_of_no_topics_is_a_map_of_noise(n_documents):
    figure = plots.map(make_result(n_documents=n_documents, n_topics=0))
    assert [trace.name for trace in figure.data] == ["No topic"]
    assert np.isfinite(figure.layout.xaxis.range).all()


def test_mixture_shows_shares_and_words(monkeypatch):
    monkeypatch.setattr(_mixture, "_TOPICS", 3)
    result = make_result(400, 6)
    found = topics.mixture(result, 0)
    figure = plots.mixture(found)
    bars, words = figure.data
    order = np.argsort(-found.shares, kind="stable")
    order = order[found.shares[order] > 0]
    shares = [*found.shares[order[:3]], found.shares[order[3:]].sum()]
    np.testing.assert_allclose(
        np.array(bars.x) / bars.x[0], np.array(shares) / shares[0], rtol=1e-5
    )
    notes = [a.text for a in figure.layout.annotations]
    assert result.topics[order[0]].name in notes[0] and f"<b>{shares[0]:.0%}</b>" in notes[0]
    assert f"{len(order) - 3} other topic" in notes[3]
    assert list(words.text) == list(found.tokens)
    frame = found.to_frame()
    boxes = figure.layout.shapes
    assert len(boxes) == (frame["topic"] >= 0).sum()
    colors, strongest = topic_colors(result), frame["weight"].max()
    held = frame[frame["topic"] >= 0]
    for box, (place, row) in zip(boxes, held.iterrows(), strict=True):
        assert box.x0 < words.x[place] < box.x1 and box.y0 < words.y[place] < box.y1
        share = 0.12 + 0.43 * row["weight"] / strongest
        assert box.fillcolor == tint(colors[row["topic"]], share)


def test_words_are_laid_out_without_overlap(monkeypatch):
    monkeypatch.setattr(_mixture, "_WORDS", 100)
    result = make_result(60, 2)
    tokens = ("word", "<b>x</b>", "長い言葉", "a" * 90, "$m$", "%{x}") * 30
    weights = csr_matrix(np.tile([[0.5, 0.0]], (180, 1)).astype(np.float32))
    shares = np.array([1, 0], dtype=np.float32)
    figure = plots.mixture(Mixture(tokens, weights, shares, result))
    boxes = figure.layout.shapes
    assert len(boxes) == len(figure.data[1].text) == 100
    assert "80 more words" in [a.text for a in figure.layout.annotations]
    assert figure.data[1].text[1] == "&lt;b&gt;x&lt;/b&gt;" and len(figure.data[1].text[3]) == 32
    widest = figure.layout.xaxis2.range[1]
    for a, b in combinations(boxes, 2):
        assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
    assert all(box.x1 <= widest + 0.6 for box in boxes)
    narrow = plots.mixture(Mixture(tokens, weights, shares, result), width=420).layout
    assert narrow.width == 420 and narrow.xaxis2.range[1] == pytest.approx((420 - 40) / 7.826)
    assert all(box.x1 <= narrow.xaxis2.range[1] + 0.6 for box in narrow.shapes)
    # A box is as wide as its word: a character twice as wide counts twice.
    assert boxes[2].x1 - boxes[2].x0 == pytest.approx(8 + 1.2)


def test_mixture_of_nothing_and_bad_input():
    result = make_result(60, 2)
    nothing = topics.mixture(result, int((result.distinct.of_row < 0).argmax()))
    figure = plots.mixture(nothing)
    assert "no words" in [a.text for a in figure.layout.annotations]
    assert any("No topic" in a.text for a in figure.layout.annotations)
    none = make_result(30, 0)
    assert len(plots.mixture(topics.mixture(none, 0)).layout.shapes) == 0
