import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embedtopics import plots
from embedtopics.clustering.results import NOISE
from embedtopics.plots._colors import NOISE_COLOR, color_distances, group_colors
from embedtopics.plots._comparison import count_columns, score_rows, spell
from embedtopics.plots._labels import densest_points
from tests.factories import make_comparison

NASTY = ("<b>bold</b> & %{x} $y$", "</script><script>alert(1)</script>")
NAN = float("nan")


def with_scores(result, *rows):
    columns = ["encoder", "measure", "value", "low", "high", "n"]
    return replace(result, scores=pd.DataFrame(rows, columns=columns))


def maps(figure):
    return [trace for trace in figure.data if trace.type == "scattergl"]


def table(figure):
    return next(trace for trace in figure.data if trace.type == "table")


def bare(cell):
    return re.sub(r"</?span>", "", cell)


@pytest.mark.parametrize("n_encoders", [1, 2, 3, 4, 6])
def test_every_document_is_a_point_of_its_groups_trace_in_every_map(n_encoders):
    result = make_comparison(n_encoders=n_encoders)
    figure = plots.comparison(result)
    colors = [NOISE_COLOR, *group_colors(result)]
    traces = iter(maps(figure))
    for place, view in enumerate(result.encoders):
        for group in range(NOISE, len(result.group_names)):
            trace, members = next(traces), result.groups == group
            np.testing.assert_array_equal(np.column_stack([trace.x, trace.y]), view.map[members])
            assert trace.marker.color == colors[group + 1]
            assert trace.xaxis == ("x" if place == 0 else f"x{place + 1}")
            assert trace.legendgroup == str(group)
            assert trace.showlegend == (place == 0)
            assert trace.name == (result.group_names[group] if group >= 0 else "No group")
    assert next(traces, None) is None


def test_only_the_last_groups_share_colors_and_with_none_near_them_on_any_map():
    result = make_comparison(n_documents=900, n_groups=24)
    colors = group_colors(result)
    assert len(set(colors[:16])) == 16 == len(set(colors))
    alike = color_distances(colors) < 2.0  # a step of 2 is just visible
    for view in result.encoders:
        places = densest_points(view.map, result.groups, 24)
        gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
        np.fill_diagonal(gaps, np.inf)
        assert not alike[np.arange(24), gaps.argmin(axis=1)].any()


def test_maps_share_their_axes_and_their_scale_and_hold_every_point():
    result = make_comparison(n_encoders=5)
    layout = plots.comparison(result).layout
    every = np.vstack([view.map for view in result.encoders])
    for number in ("", "2", "3", "4", "5"):
        x, y = layout[f"xaxis{number}"], layout[f"yaxis{number}"]
        assert y.scaleanchor == f"x{number}"
        assert (x.matches, y.matches) == (("x", "y") if number else (None, None))
        assert not x.visible and not y.visible
        assert x.range[0] < every[:, 0].min() and every[:, 0].max() < x.range[1]
        assert y.range[0] < every[:, 1].min() and every[:, 1].max() < y.range[1]


def boxes(figure, n_encoders):
    """Return the maps' and the table's boxes in pixels: left, right, bottom, top."""
    layout = figure.layout
    width = layout.width - layout.margin.l - layout.margin.r
    height = layout.height - layout.margin.t - layout.margin.b
    found = []
    for number in ["", *map(str, range(2, n_encoders + 1))]:
        across, up = layout[f"xaxis{number}"].domain, layout[f"yaxis{number}"].domain
        found.append((*(width * share for share in across), *(height * share for share in up)))
    domain = table(figure).domain
    found.append((*(width * share for share in domain.x), *(height * share for share in domain.y)))
    return found


@pytest.mark.parametrize("n_encoders", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("width", [800, 1300])
def test_nothing_overlaps_and_maps_are_alike(n_encoders, width):
    figure = plots.comparison(make_comparison(n_encoders=n_encoders), width=width)
    found = boxes(figure, n_encoders)
    for i, (left, right, bottom, top) in enumerate(found):
        for other in found[:i]:
            apart = (left - other[1], other[0] - right, bottom - other[3], other[2] - top)
            assert max(apart) >= 15, "no air between two of the boxes"
    sizes = [(right - left, top - bottom) for left, right, bottom, top in found[:-1]]
    np.testing.assert_allclose(sizes, np.broadcast_to(sizes[0], (n_encoders, 2)), rtol=1e-6)
    rows = len({round(top) for *_, top in found[:-1]})
    assert rows == -(-n_encoders // count_columns(n_encoders)) == (1 if n_encoders < 4 else 2)
    # a line of the table is 31 pixels, two of them and the heads of the columns must have room
    assert found[-1][3] - found[-1][2] >= 31 * 3


def test_the_table_holds_every_score_with_its_interval():
    result = make_comparison(n_encoders=2)
    result = with_scores(
        result,
        ("encoder 0", "one <b>", 0.5, 0.4, 0.6, 300),
        ("encoder 1", "one <b>", 0.85, 0.7, 0.9, 300),
        ("encoder 1", "two", 0.25, NAN, NAN, 300),
    )
    cells = table(plots.comparison(result)).cells.values
    assert [[bare(cell) for cell in column] for column in cells] == [
        ["one &lt;b&gt;", "two"],
        ["0.500 [0.400, 0.600]", "\u2013"],
        ["<b>0.850</b> [0.700, 0.900]", "0.250"],
    ]
    assert list(table(plots.comparison(result)).header["values"]) == ["", "encoder 0", "encoder 1"]


@pytest.mark.parametrize(
    ("intervals", "leader"),
    [
        ([(0.9, 0.8, 0.95), (0.7, 0.6, 0.79), (0.1, 0.0, 0.2)], 0),
        ([(0.7, 0.6, 0.79), (0.9, 0.8, 0.95), (0.1, 0.0, 0.2)], 1),
        ([(0.9, 0.8, 0.95), (0.7, 0.6, 0.8), (0.1, 0.0, 0.2)], None),  # touching ends
        ([(0.9, 0.8, 0.95), (0.7, 0.6, 0.79), (0.1, 0.0, 0.85)], None),  # a wide third
        ([(0.9, NAN, NAN), (0.7, 0.6, 0.79), (0.1, 0.0, 0.2)], None),
        ([(0.9, 0.8, 0.95), (0.7, NAN, NAN), (0.1, 0.0, 0.2)], None),
        ([(0.9, 0.8, 0.95), (0.7, 0.6, 0.79), (NAN, NAN, NAN)], 0),  # not measured
        ([(0.9, 0.8, 0.95), (NAN, NAN, NAN), (NAN, NAN, NAN)], None),  # nobody to beat
    ],
)
def test_only_an_interval_above_all_others_leads(intervals, leader):
    result = make_comparison()
    rows = [(name, "m", *i, 9) for name, i in zip(result.names, intervals, strict=True)]
    (row,) = score_rows(with_scores(result, *rows))
    assert [score.best for score in row.scores] == [place == leader for place in range(3)]


def test_nobody_leads_in_silhouettes_and_measures_have_names():
    rows = [
        (name, measure, value, value - 0.1, value + 0.1, 9)
        for measure in ("silhouette", "probe_macro_f1")
        for name, value in (("encoder 0", 0.1), ("encoder 1", 0.9))
    ]
    result = with_scores(make_comparison(n_encoders=2), *rows)
    assert [[s.best for s in row.scores] for row in score_rows(result)] == [
        [False, False], [False, True]
    ]  # fmt: skip
    names = table(plots.comparison(result)).cells["values"][0]
    assert [bare(name) for name in names] == ["silhouette", "probe macro-F1"]


def test_figures_are_spelled_with_three_places_that_matter():
    assert [spell(v) for v in (0.84217, -0.5, 61.24, 1234.6, NAN)] == [
        "0.842", "\u22120.500", "61.2", "1,235", "\u2013",
    ]  # fmt: skip


def test_texts_and_names_are_shown_and_never_read_as_markup_or_template():
    result = make_comparison(texts=NASTY)
    views = (replace(result.encoders[0], name=NASTY[0]), *result.encoders[1:])
    result = replace(result, encoders=views, group_names=(NASTY[0], *result.group_names[1:]))
    figure = plots.comparison(result)
    shown = "&lt;b&gt;bold&lt;/b&gt; &amp; %{x} &#36;y&#36;"
    hover = [text for trace in maps(figure) for text in trace.hovertext]
    assert hover.count(shown) == len(result.encoders)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in hover
    assert {t.hovertemplate for t in maps(figure)} == {
        "<b>%{fullData.name}</b><br>%{hovertext}<extra></extra>"
    }
    assert shown in {trace.name for trace in maps(figure)}
    assert f"<b>{shown}</b>" in {note.text for note in figure.layout.annotations}
    assert "<b>bold" not in figure.to_json()


def test_each_map_has_its_encoders_name_and_few_names_of_groups():
    result = make_comparison(n_encoders=4, n_groups=9)
    notes = plots.comparison(result).layout.annotations
    assert [n.text for n in notes if n.xref == "paper"] == [f"<b>{n}</b>" for n in result.names]
    for number, view in zip(("", "2", "3", "4"), result.encoders, strict=True):
        own = [n for n in notes if n.xref == f"x{number}"]
        assert 1 <= len(own) <= 8
        places = {tuple(map(float, point)) for point in view.map}
        assert all((note.x, note.y) in places for note in own)
