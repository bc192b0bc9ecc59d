import json

import numpy as np
import pytest

from embedtopics import plots, probing
from embedtopics.plots._colors import NOISE_COLOR, PALETTE
from embedtopics.plots._word_map import marked
from tests.factories import refuses
from tests.probing.made import random_states

TEXTS = ("the bat flew", "a bat hit it", "my bat and her bat", "nothing here", "old bat")
HOSTILE = "<script>alert(1)</script> bat & $x$ %{x} <b>bold</b>"


def states_of(texts=TEXTS, n_layers=3, **more):
    return random_states(texts, n_layers=n_layers, **more)


def points(figure, panel):
    axis = f"x{panel + 1}" if panel else "x"
    return [t for t in figure.data if (t.xaxis or "x") == axis and t.customdata is not None]


def test_each_panel_holds_its_layer_and_a_use_keeps_its_colour():
    found = probing.word_map(states_of(), "bat")
    figure = plots.word_map(found)
    colors = []
    for place in range(3):
        (trace,) = points(figure, place)
        order = list(trace.customdata)
        np.testing.assert_allclose(
            np.column_stack([trace.x, trace.y]), found.coordinates[place][order]
        )
        colors.append(dict(zip(order, trace.marker.color, strict=True)))
    assert colors[0] == colors[1] == colors[2]
    # without labels: in the order along the first axis of the last map
    last = found.coordinates[-1, :, 0]
    assert sorted(colors[0], key=colors[0].get) == np.argsort(last).tolist()
    notes = [note.text for note in figure.layout.annotations]
    (heading,) = [text for text in notes if text.startswith("<b>layer 1</b>")]
    assert f"{found.similarity[1]:.2f} · {found.explained_variance[1]:.0%}" in heading


def test_labels_of_texts_colour_their_uses():
    found = probing.word_map(states_of(), "bat")
    traces = points(plots.word_map(found, labels=["animal", "sport", "mixed", "x", None]), 0)
    assert {t.name.rstrip("\u200e"): list(t.customdata) for t in traces} == {
        "animal": [0], "sport": [1], "mixed": [2, 3], "no label": [4],
    }  # fmt: skip
    shown = {t.name.rstrip("\u200e"): t.marker.color for t in traces}
    assert shown["no label"] == NOISE_COLOR
    assert shown["animal"] in PALETTE and shown["animal"] != shown["sport"]


def test_numbers_stand_in_their_order_and_rare_labels_share_a_colour():
    texts = [f"bat {i}" for i in range(60)]
    found = probing.word_map(states_of(texts), "bat")
    years = [1990 + (i % 20) * 2 for i in range(60)]
    traces = points(plots.word_map(found, labels=years), 0)
    names = [t.name.rstrip("\u200e") for t in traces]
    assert names[:-1] == sorted(names[:-1], key=int) and len(names) == 12
    assert names[-1] == "9 other labels"
    assert sum(len(t.customdata) for t in traces) == 60


@pytest.mark.parametrize("paths", [False, True])
def test_corpus_text_is_no_markup(paths):
    states = states_of([HOSTILE, "a \u202ebat\ue000 in \ue001 here", "bat"], encoder=HOSTILE)
    found = probing.word_map(states, "bat")
    written = plots.word_map(found, labels=[HOSTILE, "b", "c"], paths=paths).to_json()
    said = json.loads(written)
    hover = [text for t in said["data"] for text in t.get("hovertext") or []]
    assert any(
        "&lt;script&gt;alert(1)&lt;/script&gt; <b>bat</b> &amp; &#36;x&#36;" in t for t in hover
    )
    assert "<script" not in written and "$x$" not in written and "<b>bold" not in written
    assert "\u202e" not in written and "\ue000" not in "".join(hover)
    assert all(t["hovertemplate"] == "%{hovertext}<extra></extra>" for t in said["data"])


def test_a_long_sentence_is_shown_around_its_word():
    sentence = "early words " * 30 + "the bat, again" + " late words" * 30
    begin = sentence.index("bat")
    lines = marked(sentence, (begin, begin + 3), 100)
    whole = " ".join(lines)
    assert "the <b>bat</b>, again" in whole and whole.startswith("…") and whole.endswith("…")
    assert len(whole.replace("<b>", "").replace("</b>", "")) <= 102
    assert marked("bat", (0, 3), 10) == ["<b>bat</b>"]
    assert marked("  a\n bat\x00s", (5, 8), 50) == ["a <b>bat</b>s"]


def test_paths_go_through_the_joint_plane_with_a_bead_a_layer():
    found = probing.word_map(states_of(), "bat")
    figure = plots.word_map(found, paths=True)
    paths = [t for t in figure.data if t.mode == "lines+markers+text"]
    use = int(paths[0].name.removeprefix("use "))
    np.testing.assert_allclose(paths[0].x, found.joint[:, use, 0])
    np.testing.assert_allclose(paths[0].y, found.joint[:, use, 1])
    assert list(paths[0].text) == ["0", "1", "2"]
    np.testing.assert_allclose(figure.data[0].x, found.joint[-1, :, 0])
    low, high = found.joint_explained_variance.min(), found.joint_explained_variance.max()
    assert f"{low:.0%} to {high:.0%} of its variance" in figure.layout.annotations[1].text


def test_without_numbers_a_path_stands_for_each_label():
    texts = [f"bat {i}" for i in range(30)]
    found = probing.word_map(states_of(texts), "bat")
    labels = ["a", "b", ""] * 10
    figure = plots.word_map(found, labels=labels, paths=True)
    chosen = [int(t.name[4:]) for t in figure.data if t.mode == "lines+markers+text"]
    assert sorted(labels[use] for use in chosen) == ["a", "b"]
    for use in chosen:
        own = found.joint[-1][[i for i, label in enumerate(labels) if label == labels[use]]]
        gaps = np.linalg.norm(own - np.median(own, axis=0), axis=1)
        apart = np.linalg.norm(found.joint[-1, use] - np.median(own, axis=0))
        assert apart == pytest.approx(gaps.min())
    alone = plots.word_map(found, paths=True)
    assert sum(t.mode == "lines+markers+text" for t in alone.data) == 4


@pytest.mark.parametrize("n_uses", [1, 2])
def test_few_uses_are_drawn(n_uses):
    found = probing.word_map(states_of(["a bat"] * n_uses), "bat")
    figure = plots.word_map(found)
    assert np.isfinite([axis.range for axis in figure.select_xaxes()]).all()
    assert ("one use" in figure.to_json()) == (n_uses == 1)
    assert np.isfinite(plots.word_map(found, paths=True).layout.xaxis.range).all()


@pytest.mark.parametrize("paths", [False, True])
def test_labels_of_other_texts_are_refused(paths):
    with refuses("labels"):
        plots.word_map(probing.word_map(states_of(), "bat"), labels=["a"], paths=paths)
