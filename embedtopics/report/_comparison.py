"""The page of a comparison: linked maps, scores, and differences of the encoders."""

import math
from collections.abc import Hashable, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.comparison.results import Comparison, Move, Overlap
from embedtopics.evaluation._maps import chance_overlap
from embedtopics.plots._colors import group_colors
from embedtopics.plots._comparison import (
    UNRANKED,
    ScoreInterval,
    ScoreRow,
    name_measure,
    score_rows,
    spell,
)
from embedtopics.protocols import FloatArray
from embedtopics.report._documents import html_sections
from embedtopics.report._explorer import linked_page
from embedtopics.report._markup import corpus_title, section, table, text, tiles
from embedtopics.report._page_data import Content, Panel
from embedtopics.report._study import record_sections

_BINS = 10
_MEANINGS = {
    "knn_accuracy": "labels predicted from the nearest neighbours; ",
    "probe_accuracy": "labels predicted by a linear model, on held-out documents; ",
    "probe_macro_f1": "the same model, all labels weighted equally; ",
    "silhouette": "separation of the labels; not for comparing encoders; ",
    "trustworthiness": "neighbours on the map that are neighbours in the embeddings; ",
    "continuity": "neighbours in the embeddings that are neighbours on the map; ",
}
_COSTS = ("documents_per_second", "megabytes")
"""Measures without an interval, shown below the others."""


def _depth(result: Comparison) -> int:
    """Return the number of compared neighbours of each document."""
    return min(view.graph.k for view in result.encoders)


def scores_section(result: Comparison) -> str:
    """Return the scores with their intervals, and the costs of each encoder."""
    every = score_rows(result)
    rows = [row for row in every if row.measure not in _COSTS]
    speed = [
        [f"{score.value:.1f}" if score.value < 10 else spell(score.value) for score in row.scores]
        for row in every
        if row.measure == "documents_per_second"
    ]
    heads = "".join(f'<th scope="col"><bdi>{text(name, 60)}</bdi></th>' for name in result.names)
    body = "\n".join(
        f'<tr><th scope="row">{text(name_measure(row.measure), 120)}'
        f'<span class="id">{_MEANINGS.get(row.measure, "")}{row.n:,} documents</span></th>'
        + "".join(f"<td>{_score(score, row)}</td>" for score in row.scores)
        + "</tr>"
        for row in rows
    )
    costs = (
        ("Dimensions", [f"{view.dimensions:,}" for view in result.encoders]),
        ("Time to encode", [_seconds(view.seconds) for view in result.encoders]),
        *(("Texts per second", cells) for cells in speed),
        ("Memory of the vectors", [f"{view.megabytes:,.1f} MB" for view in result.encoders]),
    )
    price = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, cells in costs
    )
    content = (
        '<p class="note">Higher is better. Brackets contain the 95% interval for documents of this '
        "kind, drawn below on one scale for the row. A score is bold if its interval lies above "
        'those of all others; silhouettes are never bold.</p>\n<div class="scroll" tabindex="0">'
        f'<table class="scores"><thead><tr><td></td>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n<tbody>\n{price}\n</tbody></table></div>"
    )
    return section("scores", "Scores", content)


def _seconds(value: float) -> str:
    """Return a time in seconds or minutes; a dash if it is unknown."""
    if math.isnan(value):
        return spell(value)
    return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"


def _score(score: ScoreInterval, row: ScoreRow) -> str:
    """Return a score and its interval, and both as a strip on the scale of the row."""
    value = f"<strong>{spell(score.value)}</strong>" if score.best else spell(score.value)
    if math.isnan(score.low) or math.isnan(score.high):
        return value
    ends = [end for other in row.scores for end in (other.low, other.high) if not math.isnan(end)]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    left, middle, right = (
        100.0 * (end - low) / span for end in (score.low, score.value, score.high)
    )
    middle = min(max(middle, 0.0), 100.0)
    return (
        f'{value} <span class="interval">[{spell(score.low)}, {spell(score.high)}]</span>'
        '<svg class="strip" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="all" y="2" width="100" height="6"/><rect class="held" y="2" height="6" '
        f'x="{left:.1f}" width="{right - left:.1f}"/><rect class="mean" height="10" width="1.6" '
        f'x="{middle - 0.8:.1f}"/></svg>'
    )


def differences_section(result: Comparison) -> str:
    """Return the differences of the other encoders from the first."""
    differences = result.differences
    if differences is None or differences.empty:
        return ""
    first, others = result.names[0], result.names[1:]
    records = [row for row in differences.to_dict("records") if row["against"] == first]
    by_cell = {(row["measure"], row["encoder"]): row for row in records}
    measures = [one for one in dict.fromkeys(differences["measure"]) if one not in UNRANKED]
    rows = [
        (text(name_measure(one), 120), *(_difference(by_cell.get((one, name))) for name in others))
        for one in measures
    ]
    note = (
        f'<p class="note">Difference of each encoder from <bdi>{text(first, 60)}</bdi>, with a 95% '
        "interval. Both encoders are scored on the same resampled documents, so these paired "
        "intervals are narrower than those of the scores. A difference is bold if its interval "
        "excludes zero.</p>"
    )
    heads = ("", *(f"<bdi>{text(name, 60)}</bdi>" for name in others))
    return section("differences", "Is it better?", note, table(heads, rows))


def _difference(row: Mapping[Hashable, Any] | None) -> str:
    if row is None or math.isnan(row["difference"]):
        return spell(math.nan)
    ends = [row[key] for key in ("difference", "low", "high")]
    value, low, high = ("+" * (end > 0) + spell(end) for end in ends)
    shown = f"<strong>{value}</strong>" if row["low"] > 0 or row["high"] < 0 else value
    return f'{shown} <span class="interval">[{low}, {high}]</span>'


def overlaps_section(result: Comparison) -> str:
    """Return the overlap of the neighbours of every two encoders."""
    if not result.overlaps:
        return ""
    k, n_others = _depth(result), max(len(result.documents) - 1, 1)
    by_chance = chance_overlap(n_others + 1, max(min(k, n_others), 1))
    chance = [f"{value:.3f}" if value >= 0.001 else "below 0.001" for value in by_chance]
    rows = [_overlap_cells(result, overlap, *chance) for overlap in result.overlaps]
    head = ("Encoders", "Jaccard", "by chance", "Rank-biased overlap", "by chance",
            "Documents by Jaccard, 0 to 1")  # fmt: skip
    note = (
        f'<p class="note">Mean overlap of the {k:,} nearest neighbours of a document in two '
        "encoders. Jaccard: neighbours in both lists as a share of those in either. Rank-biased "
        "overlap: the nearest neighbours weigh most. &ldquo;By chance&rdquo; is the expected "
        "overlap of random lists. Documents without neighbours in one of the encoders are left "
        "out.</p>"
    )
    return section("overlaps", "Neighbours in common", note, table(head, rows))


def _overlap_cells(
    result: Comparison, overlap: Overlap, jaccard_chance: str, biased_chance: str
) -> list[str]:
    views = [result.encoders[place] for place in (overlap.first, overlap.second)]
    first, second = (f"<bdi>{text(view.name, 60)}</bdi>" for view in views)
    both = views[0].has_neighbors & views[1].has_neighbors
    jaccard, rank_biased = (
        spell(float(values[both].mean(dtype=np.float64)) if both.any() else math.nan)
        for values in (overlap.jaccard, overlap.rank_biased)
    )
    histogram = _histogram(overlap.jaccard[both])
    names = f"{first} &ndash; {second}"
    return [names, jaccard, jaccard_chance, rank_biased, biased_chance, histogram]


def _histogram(values: FloatArray) -> str:
    """Return a histogram of documents by overlap, in ten bars."""
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, 1.0))
    most = max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{i + 0.05:.2f}" width="0.9" y="{1 - count / most:.3f}" '
        f'height="{count / most:.3f}"><title>{i / _BINS:.1f} to {(i + 1) / _BINS:.1f}: '
        f"{count:,} documents</title></rect>"
        for i, count in enumerate(counts.tolist())
    )
    return (
        f'<svg class="histogram" viewBox="0 0 {_BINS} 1" preserveAspectRatio="none" role="img" '
        f'aria-label="Documents by overlap">{bars}</svg>'
    )


def moves_section(result: Comparison) -> str:
    """Return the documents with the largest changes of neighbours, and their terms."""
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
    note = (
        '<p class="note">Documents with the smallest overlap of neighbours between two encoders, '
        "and the terms typical of the neighbours in one encoder but not in the other. Click a "
        "document to see it on all maps.</p>"
    )
    return section("moves", "Largest changes", note, *blocks)


def _move_cells(result: Comparison, move: Move) -> tuple[str, ...]:
    row = int(result.documents.first_rows[move.document])
    position = int(np.count_nonzero(result.documents.of_row[:row] >= 0))  # among rows with text
    words = text(result.corpus.texts[row], 140)
    return (
        f'<button type="button" data-row="{position}"><bdi dir="auto">{words}</bdi></button>',
        f'<span class="nowrap">{move.jaccard:.0%}</span>',
        _terms(move.gained),
        _terms(move.lost),
    )


def _terms(terms: tuple[str, ...]) -> str:
    shown = " ".join(f'<span class="tag"><bdi>{text(term, 60)}</bdi></span>' for term in terms)
    return shown or "&ndash;"


def comparison_html(result: Comparison, *, title: str | None = None) -> str:
    """Return a comparison as a self-contained HTML page: linked maps, and its tables below."""
    sizes = np.bincount(
        result.groups + 1, weights=result.documents.weights, minlength=len(result.group_names) + 1
    )
    groups = list(zip(result.group_names, sizes[1:].astype(int).tolist(), strict=True))
    panels = [
        Panel(view.name, view.map, result.groups, groups, view.graph) for view in result.encoders
    ]
    n_encoders = len(result.encoders)
    figures = (
        ("Rows", f"{len(result.corpus):,}"),
        ("Distinct documents", f"{len(result.documents):,}"),
        ("Encoders", f"{n_encoders:,}"),
        ("Neighbours compared", f"{_depth(result):,}"),
        ("Coloured by", text(result.grouped_by, 80)),
    )
    on = f"{spell_count(n_encoders, 'encoder', 'encoders')} on"
    content = Content(
        corpus=result.corpus,
        documents=result.documents,
        panels=panels,
        colors=group_colors(result),
        tokens=result.tokens,
        term_counts=result.term_counts,
        heading=title or corpus_title(on, result.corpus.source, len(result.corpus)),
        units=("group", result.grouped_by[:1].upper() + result.grouped_by[1:]),
    )
    record = record_sections(result.decisions, (), result.settings, result.versions)
    return linked_page(
        content,
        [
            '<div id="study">',
            tiles(figures),
            scores_section(result),
            differences_section(result),
            overlaps_section(result),
            moves_section(result),
            *html_sections(record),
            "</div>",
        ],
    )
