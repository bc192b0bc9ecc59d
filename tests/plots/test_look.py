"""What all figures share: colours, where names stand, and text made harmless."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import plots
from embedtopics.plots._colors import (
    NOISE_COLOR,
    PALETTE,
    color_distances,
    dark,
    spread_colors,
    tint,
    topic_colors,
)
from embedtopics.plots._labels import densest_points, place_labels
from embedtopics.plots._theme import cut, escape, name_lines, plain, wrap
from tests.factories import make_result, with_stability
from tests.report.driving import CHROMIUM


def test_distances_are_those_of_oklab_for_usual_vision():
    # black to white is one unit of lightness for every eye; equal colours do not differ
    distances = color_distances(("#000000", "#ffffff", "#ffffff"))
    assert distances[0, 1] == pytest.approx(100.0, abs=0.1)
    assert distances[1, 2] == 0.0


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
    shown = topic_colors(with_stability(result, [0.9, 0.45, 0.1], chance))
    # 0.45 lies half way from chance to the 0.75 of a full colour: a quarter and half of the rest.
    assert shown == (full[0], tint(full[1], 0.625), tint(full[2], 0.25))


def test_the_densest_point_is_in_the_thick_of_a_bent_topic():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 400)
    arc = np.column_stack([np.cos(angle), np.sin(angle)]) * 10
    core = rng.normal((-10, 0), 0.3, size=(200, 2))
    positions = np.vstack([arc, core]).astype(np.float32)
    found = densest_points(positions, np.zeros(600, dtype=np.int32), 1)
    assert np.linalg.norm(found[0] - [-10, 0]) < 1.5
    assert np.linalg.norm(positions.mean(axis=0) - [-10, 0]) > 4  # where the mean would put it


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16), st.integers(0, 60), st.integers(0, 40))
def test_placed_labels_never_overlap_and_stay_inside(seed, n_labels, max_labels):
    rng = np.random.default_rng(seed)
    size = (600.0, 400.0)
    anchors = rng.uniform(0, 1, (n_labels, 2)) * size
    boxes = [(float(w), 16.0) for w in rng.uniform(20, 160, n_labels)]
    placed = place_labels(anchors, boxes, size, max_labels)
    assert len(placed) <= max_labels
    edges = []
    for place in placed:
        centre, half = anchors[place.label] + place.shift, np.array(boxes[place.label]) / 2
        edges.append((*(centre - half), *(centre + half)))
        assert (centre - half >= -0.1).all()
        assert (centre + half <= np.array(size) + 0.1).all()
    for i, a in enumerate(edges):
        for b in edges[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_the_first_label_stands_on_its_anchor_and_the_next_moves_aside():
    anchors = np.array([[200.0, 200.0], [200.0, 200.0], [np.nan, np.nan]])
    first, second = place_labels(anchors, [(80, 16)] * 3, (400, 400), 10)
    assert (first.label, first.shift) == (0, (0.0, 0.0))
    assert (second.label, second.shift[0]) == (1, 0.0)
    assert 16 <= abs(second.shift[1]) <= 40
    (beside,) = place_labels(anchors[:1], [(80, 16)], (400, 400), 1, points=[[230.0, 195.0]])
    assert abs(beside.shift[1] + 5) >= 16 / 2


@given(st.text(st.characters(codec=None), max_size=300), st.integers(1, 40))
def test_wrapped_lines_hold_every_character_in_order_and_none_is_too_long(text, width):
    line = plain(text)
    lines = wrap(line, width)
    assert all(0 < len(part) <= width for part in lines)
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")


@given(st.text(max_size=100), st.integers(2, 20), st.integers(1, 4))
def test_lines_that_are_left_out_leave_an_ellipsis(text, width, most):
    every = wrap(plain(text), width)
    some = wrap(plain(text), width, most)
    assert len(some) == min(len(every), most) and all(len(line) <= width for line in some)
    if len(every) <= most:
        assert some == every
    else:
        assert some[:-1] == every[: most - 1]
        assert some[-1].endswith("…") and every[most - 1].startswith(some[-1][:-1])


def test_names_break_between_terms_and_never_within_words():
    assert name_lines("care, health, social security", 22, 2) == [
        "care, health,",
        "social security",
    ]
    assert name_lines("makeamericagreatagain, trump", 18, 3) == ["makeamericagreatagain,", "trump"]
    assert name_lines("Floods and storms of the north", 20, 2) == [
        "Floods and storms of",
        "the north",
    ]


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_cut_text_is_a_prefix_that_fits(text, length):
    short = cut(text, length)
    assert len(short) <= length
    if short != plain(text):
        assert short.endswith("…")
        assert plain(text).startswith(short[:-1])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("&lt;", "&amp;lt;"),
        ("$x^2$", "&#36;x^2&#36;"),
        ("\"quoted\" 'too' %{x}", "\"quoted\" 'too' %{x}"),
        ("🙂 שלום", "🙂 שלום"),
    ],
)
def test_escape(text, shown):
    assert escape(text) == shown


def test_plain_drops_what_has_no_glyph():
    assert plain("a\x00b\r\n\tc") == "a b c"
    assert plain("safe\u202etxt.exe") == "safetxt.exe"
    assert plain("lone \ud800 half").encode("utf-8") == b"lone ? half"
    assert cut("ab👩\u200d💻cdef", 5) == "ab👩…"  # no half of an emoji sequence


@pytest.mark.browser
@pytest.mark.slow
def test_figures_become_files_without_a_page(tmp_path):
    pytest.importorskip("kaleido", reason="needs the extra figures")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    result = make_result(60, 3)
    plots.terms(result).write_image(tmp_path / "terms.svg", width=500)
    image = (tmp_path / "terms.svg").read_text("utf-8")
    assert 'width="500"' in image and result.topics[0].keywords[0] in image
