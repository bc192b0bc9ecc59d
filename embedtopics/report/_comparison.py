"""The page of a comparison: linked maps, scores, and where the encoders differ."""

import base64
import json
import math
from collections.abc import Hashable, Mapping
from itertools import groupby
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.comparison.results import Comparison, EncoderView, Move, Overlap
from embedtopics.evaluation._maps import chance_overlap
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.plots._colors import NOISE_COLOR, dark, group_colors
from embedtopics.plots._comparison import (
    UNRANKED,
    Score,
    ScoreRow,
    count_columns,
    name_measure,
    score_rows,
    spell,
)
from embedtopics.plots._labels import densest_points
from embedtopics.plots._theme import cut
from embedtopics.protocols import FloatArray
from embedtopics.report._markup import asset, data_script, html_page, section, table, text
from embedtopics.report._report import decisions_section, settings_section, timings_section

# What the page of a comparison knows of the documents, small enough to open at once.

FULL_TEXT = 300
"""Characters shown of a text, where there is space."""

# Texts are most of a large page; beyond this many characters in all each is cut shorter.
_TEXT_BUDGET = 9_000_000
_NEIGHBORS = 10
_STEPS = 65535


def text_length(n_documents: int) -> int:
    """Return how many characters of each text the page holds."""
    return max(40, min(FULL_TEXT, _TEXT_BUDGET // max(n_documents, 1)))


def comparison_json(result: Comparison) -> str:
    """Return the documents, their places and their neighbours as JSON.

    Places are rounded to one 65,535th of what all maps span, and arrays travel as base64 of
    little-endian integers: 20,000 documents take 107 kB a map, and 533 kB for ten neighbours.
    """
    low, step, span = _grid(result)
    length = text_length(len(result.documents))
    rows = result.documents.first_rows
    colors = group_colors(result)
    narrow = "<u2" if len(rows) <= _STEPS else "<u4"
    depth = min([_NEIGHBORS, *(view.graph.k for view in result.encoders)])
    content: dict[str, Any] = {
        "n": len(rows),
        "depth": depth,
        "span": [round(float(value), 1) for value in span],
        "texts": [cut(result.corpus.texts[row], length) for row in rows.tolist()],
        "ids": [cut(result.corpus.ids[row], 80) for row in rows.tolist()],
        "rows": _pack(rows),
        "weights": _pack(result.documents.weights),
        "groups": _pack(result.groups + 1),
        "names": ["No group", *(cut(name, 60) for name in result.group_names)],
        "colors": [NOISE_COLOR, *colors],
        "inks": ["#5b6674", *(dark(color) for color in colors)],
        "encoders": [
            {
                "name": cut(view.name, 60),
                "places": _pack(np.rint((view.map - low) / step), "<u2"),
                "neighbors": _pack(_neighbors(view.graph, depth), narrow),
                "anchors": [
                    None if np.isnan(point).any() else np.rint((point - low) / step).tolist()
                    for point in densest_points(view.map, result.groups, len(result.group_names))
                ],
            }
            for view in result.encoders
        ],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _grid(result: Comparison) -> tuple[npt.NDArray[np.float64], float, npt.NDArray[np.float64]]:
    """Return the corner, the step and the span in steps of the grid on which all maps lie."""
    every = np.vstack([view.map for view in result.encoders]).astype(np.float64)
    if not len(every):
        return np.zeros(2), 1.0, np.ones(2)
    low, high = every.min(axis=0), every.max(axis=0)
    step = float(np.max(high - low)) / _STEPS or 1.0
    return low, step, np.maximum((high - low) / step, 1.0)


def _neighbors(graph: NeighborGraph, depth: int) -> npt.NDArray[Any]:
    """Return the nearest neighbours, and the number of documents for nobody.

    What has nothing in common with a document only fills its list, and is no neighbour.
    """
    indices, similarities = graph.indices[:, :depth], graph.similarities[:, :depth]
    return np.where((indices < 0) | (similarities <= 0), len(graph), indices)


def _pack(values: npt.NDArray[Any], kind: str = "<u4") -> str:
    """Return an array as base64 of little-endian integers."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode("ascii")


_TOOLS = (
    ("lasso", "Lasso", "Draw around documents to select them"),
    ("box", "Box", "Drag a box over documents to select them"),
    ("move", "Move", "Drag to move all maps"),
)
_BINS = 10
_MEANINGS = {
    "knn_accuracy": "label predicted from the nearest neighbours",
    "probe_accuracy": "label predicted by a linear model from held-out documents",
    "probe_macro_f1": "the same model, all labels weighted equally",
    "silhouette": "nearer to its own label than to the next; not for comparing encoders",
    "trustworthiness": "neighbours on the map that are neighbours for the encoder",
    "continuity": "neighbours for the encoder that are neighbours on the map",
}
"""Measures in a few words."""

_COSTS = ("documents_per_second", "megabytes")
"""Measures without an interval, which stand below the others; of memory, less is better."""


def default_title(result: Comparison) -> str:
    """Return a heading that names the file of the corpus, or counts its rows."""
    source = PurePath(result.corpus.source)
    n_encoders = len(result.encoders)
    count = "1 encoder" if n_encoders == 1 else f"{n_encoders} encoders"
    if source.suffix:
        return f"{count} on {source.name}"
    n_rows = len(result.corpus)
    return f"{count} on 1 row" if n_rows == 1 else f"{count} on {n_rows:,} rows"


def summary(result: Comparison) -> str:
    """Return the most important figures."""
    tiles = [
        ("Rows", f"{len(result.corpus):,}"),
        ("Distinct documents", f"{len(result.documents):,}"),
        ("Encoders", f"{len(result.encoders):,}"),
        ("Neighbours compared", f"{_depth(result):,}"),
        ("Coloured by", text(result.grouped_by, 80)),
    ]
    items = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles)
    return f'<dl class="tiles">\n{items}\n</dl>'


def _depth(result: Comparison) -> int:
    """Return how many neighbours of each document are compared."""
    return min(view.graph.k for view in result.encoders)


def maps_section(result: Comparison) -> str:
    """Return the places of the maps, the tools over them and the lists below."""
    length = text_length(len(result.documents))
    shorter = ""
    if length < FULL_TEXT:
        shorter = (
            f" With {len(result.documents):,} documents, the page holds the first {length} "
            "characters of each, to stay small."
        )
    tools = "".join(
        f'<button type="button" data-tool="{name}" aria-pressed="false" title="{title}">'
        f"{label}</button>"
        for name, label, title in _TOOLS
    )
    panels = "\n".join(_panel(view, place) for place, view in enumerate(result.encoders))
    columns = count_columns(len(result.encoders))
    return section(
        "maps",
        "Maps",
        '<p class="note">Each point is a document, and a place means the same in every map. Point '
        "at one to see it and its nearest neighbours in all; draw around some to follow them; "
        "click one to compare its neighbours. Shift adds to a selection, a double click or Escape "
        f"ends it; the arrow keys step from document to document.{shorter}</p>",
        f'<div class="tools"><span class="choice" role="group" aria-label="What dragging does">'
        f"{tools}</span>"
        '<span class="choice" role="group" aria-label="Size"><button type="button" '
        'data-zoom="1.5" title="Larger" aria-label="Larger">+</button><button type="button" '
        'data-zoom="0.6667" title="Smaller" aria-label="Smaller">&minus;</button></span>'
        '<input type="search" id="search" placeholder="Select texts that hold &hellip;" '
        'aria-label="Select texts that hold">'
        '<span id="count" role="status"></span>'
        '<button type="button" id="clear" hidden>Clear</button></div>',
        _legend(result),
        f'<div class="panels" data-columns="{columns}">\n{panels}\n</div>',
        '<div id="tip" hidden></div>',
        '<div id="document" hidden></div>',
        '<div id="selection" hidden><div class="line"><h3>Selected documents</h3>'
        '<button type="button" id="download" title="With texts as long as here">Download as CSV'
        "</button></div>"
        '<p class="note" id="shares"></p><ol id="listed"></ol></div>',
        "<noscript><p>The maps need JavaScript; the tables do not.</p></noscript>",
    )


def _panel(view: EncoderView, place: int) -> str:
    name = text(view.name, 60)
    return (
        f'<figure class="panel"><figcaption title="{name}"><bdi>{name}</bdi></figcaption>'
        f'<div class="map" data-map="{place}" tabindex="0" role="application" '
        f'aria-label="Map by {name}"><canvas></canvas><canvas></canvas></div></figure>'
    )


def _legend(result: Comparison) -> str:
    """Return one button for each group that has documents; it hides the group in all maps."""
    counts = np.bincount(result.groups + 1, minlength=len(result.group_names) + 1).tolist()
    names = ["No group", *result.group_names]
    colors = [NOISE_COLOR, *group_colors(result)]
    order = [*range(1, len(names)), 0]
    buttons = "\n".join(
        f'<button type="button" data-group="{group}" aria-pressed="true">'
        f'<span class="dot" style="background:{colors[group]}"></span>'
        f"<bdi>{text(names[group], 60)}</bdi> "
        f'<span class="id">{counts[group]:,}</span></button>'
        for group in order
        if counts[group]
    )
    return (
        '<div class="legend" role="group" aria-label="Groups" title="Click to hide or show, '
        f'double-click to see alone">\n{buttons}\n</div>'
    )


def scores_section(result: Comparison) -> str:
    """Return the scores with their intervals, and what each encoder costs."""
    every = score_rows(result)
    rows = [row for row in every if row.measure not in _COSTS]
    speed = [row for row in every if row.measure == "documents_per_second"]
    heads = "".join(f'<th scope="col"><bdi>{text(name, 60)}</bdi></th>' for name in result.names)
    body = "\n".join(
        f'<tr><th scope="row">{text(name_measure(row.measure), 120)}'
        f'<span class="id">{_explain(row)}</span></th>'
        + "".join(f"<td>{_score(score, row)}</td>" for score in row.scores)
        + "</tr>"
        for row in rows
    )
    costs = (
        ("Dimensions", [f"{view.dimensions:,}" for view in result.encoders]),
        ("Time to encode", [_seconds(view.seconds) for view in result.encoders]),
        *(("Texts a second", [_rate(score.value) for score in row.scores]) for row in speed),
        ("Memory of the vectors", [f"{view.megabytes:,.1f} MB" for view in result.encoders]),
    )
    price = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, cells in costs
    )
    columns = f"--encoders:{len(result.encoders)}"
    return section(
        "scores",
        "Scores",
        '<p class="note">More is better. Brackets hold a 95% interval, drawn below on one scale '
        "for the row: the range in which the figure would stay with other documents of the same "
        "kind. Bold stands only where the interval lies above those of all others, and in no "
        "silhouette.</p>",
        f'<div class="scroll"><table class="scores" style="{columns}"><thead><tr><td></td>'
        f"{heads}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n<tbody>\n{price}\n</tbody></table></div>",
    )


def _explain(row: ScoreRow) -> str:
    """Return the meaning of a measure, where known, and its number of documents."""
    meaning = _MEANINGS.get(row.measure)
    return f"{meaning}; {row.n:,} documents" if meaning else f"{row.n:,} documents"


def _seconds(value: float) -> str:
    """Return a time in the unit that people would use; a dash where it is not known."""
    if math.isnan(value):
        return spell(value)
    return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"


def _rate(value: float) -> str:
    """Return a rate with no more places than it can be measured to."""
    return spell(value) if math.isnan(value) or value >= 10 else f"{value:.1f}"


def _score(score: Score, row: ScoreRow) -> str:
    """Return a score, its interval, and both as a strip on the scale of the row."""
    value = f"<strong>{spell(score.value)}</strong>" if score.best else spell(score.value)
    if math.isnan(score.low) or math.isnan(score.high):
        return value
    ends = [end for other in row.scores for end in (other.low, other.high) if not math.isnan(end)]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    left, middle, right = (
        100.0 * (end - low) / span for end in (score.low, score.value, score.high)
    )
    return (
        f'{value} <span class="interval">[{spell(score.low)}, {spell(score.high)}]</span>'
        f'<span class="strip"><span style="left:{left:.1f}%;width:{right - left:.1f}%"></span>'
        f'<i style="left:{min(max(middle, 0.0), 100.0):.1f}%"></i></span>'
    )


def differences_section(result: Comparison) -> str:
    """Return by how much the other encoders differ from the first."""
    found = result.differences
    if found is None or found.empty:
        return ""
    first, others = result.names[0], result.names[1:]
    by_place = {
        (row["measure"], row["encoder"]): row
        for row in found.to_dict("records") if row["against"] == first
    }  # fmt: skip
    rows = [
        (
            text(name_measure(measure), 120),
            *(_difference(by_place.get((measure, name))) for name in others),
        )
        for measure in dict.fromkeys(found["measure"])
        if measure not in UNRANKED
    ]
    return section(
        "differences",
        "Is it better?",
        f'<p class="note">By how much each encoder differs from <bdi>{text(first, 60)}</bdi>, with '
        "a 95% interval over the same resampled documents for both. What makes a document hard for "
        "both falls out, so that these intervals are narrower than those of the scores. Bold is a "
        "difference whose interval does not hold zero.</p>",
        table(("", *(f"<bdi>{text(name, 60)}</bdi>" for name in others)), rows),
    )


def _difference(row: Mapping[Hashable, Any] | None) -> str:
    if row is None or math.isnan(row["difference"]):
        return spell(math.nan)
    value, low, high = (_signed(row[key]) for key in ("difference", "low", "high"))
    shown = f"<strong>{value}</strong>" if row["low"] > 0 or row["high"] < 0 else value
    return f'{shown} <span class="interval">[{low}, {high}]</span>'


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + spell(value)


def overlaps_section(result: Comparison) -> str:
    """Return the agreement of every two encoders on the neighbours of a document."""
    if not result.overlaps:
        return ""
    k, n_others = _depth(result), max(len(result.documents) - 1, 1)
    chance = chance_overlap(n_others + 1, max(min(k, n_others), 1))
    rows = [_overlap_cells(result, overlap, chance) for overlap in result.overlaps]
    head = (
        "Encoders",
        "Jaccard",
        "by chance",
        "Rank-biased overlap",
        "by chance",
        "Documents by Jaccard, 0 to 1",
    )
    return section(
        "overlaps",
        "Neighbours in common",
        f'<p class="note">Mean similarity of the {k:,} nearest neighbours that two encoders '
        "give to a document: Jaccard counts the neighbours in both lists as a share of those "
        "in either; rank-biased overlap weighs the nearest most. Lists drawn at random would have "
        "as much in common as stands under &ldquo;by chance&rdquo;. Documents of which one of both "
        "encoders knows nothing are left out.</p>",
        table(head, rows),
    )


def _overlap_cells(
    result: Comparison, overlap: Overlap, chance: tuple[float, float]
) -> tuple[str, ...]:
    views = [result.encoders[place] for place in (overlap.first, overlap.second)]
    first, second = (f"<bdi>{text(view.name, 60)}</bdi>" for view in views)
    both = views[0].has_neighbors & views[1].has_neighbors
    jaccard, rank_biased = overlap.jaccard[both], overlap.rank_biased[both]
    return (
        f"{first} &ndash; {second}",
        _mean(jaccard),
        _chance(chance[0]),
        _mean(rank_biased),
        _chance(chance[1]),
        _histogram(jaccard),
    )


def _chance(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "below 0.001"


def _mean(values: FloatArray) -> str:
    return spell(float(values.mean(dtype=np.float64)) if len(values) else math.nan)


def _histogram(values: FloatArray) -> str:
    """Return ten small bars: documents by overlap."""
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, 1.0))
    most = max(int(counts.max()), 1)
    bars = "".join(
        f'<span style="height:{100.0 * count / most:.0f}%" '
        f'title="{i / _BINS:.1f} to {(i + 1) / _BINS:.1f}: {count:,} documents"></span>'
        for i, count in enumerate(counts.tolist())
    )
    return f'<span class="histogram">{bars}</span>'


def moves_section(result: Comparison) -> str:
    """Return the documents whose neighbours differ most, and by which terms."""
    if not result.moves:
        return ""
    pairs = groupby(result.moves, key=lambda move: (move.first, move.second))
    blocks = []
    for number, ((first, second), moves) in enumerate(pairs):
        one, other = (f"<bdi>{text(result.names[p], 60)}</bdi>" for p in (first, second))
        rows = [_move_cells(result, move) for move in moves]
        head = ("Document", "Overlap", f"With {other}, near", f"With {one}, near")
        blocks.append(
            f"<details{' open' if not number else ''}><summary>From {one} to {other}: "
            f"{len(rows):,} document{'s' if len(rows) > 1 else ''}</summary>"
            f"{table(head, rows)}</details>"
        )
    return section(
        "moves",
        "What moved, and why",
        '<p class="note">Documents that keep fewest of their neighbours from one encoder to the '
        "next, and the terms that the new neighbours share and the old ones do not, or the "
        "reverse. Click one to see it in all maps.</p>",
        *blocks,
    )


def _move_cells(result: Comparison, move: Move) -> tuple[str, ...]:
    row = int(result.documents.first_rows[move.document])
    words = text(result.corpus.texts[row], 140)
    return (
        f'<button type="button" class="document" data-document="{move.document}">'
        f'<bdi dir="auto">{words}</bdi></button>',
        f'<span class="nowrap">{move.jaccard:.0%}</span>',
        _terms(move.gained),
        _terms(move.lost),
    )


def _terms(terms: tuple[str, ...]) -> str:
    shown = " ".join(f'<span class="term"><bdi>{text(term, 60)}</bdi></span>' for term in terms)
    return shown or "&ndash;"


def comparison_html(result: Comparison, *, title: str | None = None) -> str:
    """Return a comparison as a self-contained HTML page.

    The page's own script draws the maps: Plotly would cost 5 MB, the right to compile strings, and
    a redraw of every map at each selection.
    """
    heading = text(title if title is not None else default_title(result), 160)
    return html_page(
        heading,
        asset("page.css") + asset("comparison.css"),
        [
            summary(result),
            maps_section(result),
            scores_section(result),
            differences_section(result),
            overlaps_section(result),
            moves_section(result),
            decisions_section(result.decisions),
            settings_section(result.settings, result.versions),
            timings_section(result.timings),
        ],
        [data_script("comparison", comparison_json(result))],
        [asset("scatter.js"), asset("comparison.js")],
    )
