"""The page of a comparison: linked maps, scores, and differences of the encoders."""

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.comparison.results import MEANINGS, Comparison
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
from embedtopics.report._documents import Section, fill, html_table, text
from embedtopics.report._explorer import linked_page
from embedtopics.report._page_data import Content, Panel, corpus_title
from embedtopics.report._study import record_sections

_part = partial(fill, "comparison.html")


def comparison_html(result: Comparison, *, title: str | None = None) -> str:
    """Return a comparison as a self-contained HTML page: linked maps, and its tables below."""
    sizes = np.bincount(
        result.groups + 1, weights=result.distinct.weights, minlength=len(result.group_names) + 1
    )
    n_encoders, k = len(result.encoders), min(view.graph.k for view in result.encoders)
    on = f"{spell_count(n_encoders, 'encoder', 'encoders')} on"
    content = Content(
        result,
        title or corpus_title(on, result),
        panels=[Panel(view.name, view.map, view.graph) for view in result.encoders],
        labels=result.groups,
        names=list(zip(result.group_names, sizes[1:].astype(int).tolist(), strict=True)),
        colors=group_colors(result),
        units=("group", result.grouped_by[:1].upper() + result.grouped_by[1:]),
    )
    figures = [
        ("Encoders", f"{n_encoders:,}"),
        ("Neighbours compared", f"{k:,}"),
        ("Coloured by", text(result.grouped_by, 80)),
    ]
    sections = [
        _scores(result),
        *_differences(result),
        *_overlaps(result, k),
        *_moves(result),
        *record_sections(result.decisions, (), result.settings, result.versions),
    ]
    return linked_page(content, figures, sections)


def _scores(result: Comparison) -> Section:
    """Return the scores with their intervals, and the costs of each encoder."""
    scores, speed = [], []
    for row in score_rows(result):
        if row.measure == "documents_per_second":
            speeds = [score.value for score in row.scores]
            cells = [f"{value:.1f}" if value < 10 else spell(value) for value in speeds]
            speed.append(_row("Texts per second", cells))
        elif row.measure != "megabytes":
            notes = filter(None, [MEANINGS.get(row.measure), f"{row.n:,} documents"])
            name, note = text(name_measure(row.measure), 120), "; ".join(notes)
            cells = [_score(score, row) for score in row.scores]
            scores.append(_row(f'{name}<span class="id">{note}</span>', cells))
    costs = [
        _row("Dimensions", [f"{view.dimensions:,}" for view in result.encoders]),
        _row("Time to encode", [_seconds(view.seconds) for view in result.encoders]),
        *speed,
        _row("Memory of the vectors", [f"{view.megabytes:,.1f} MB" for view in result.encoders]),
    ]
    heads = "".join(f'<th scope="col">{_name(name)}</th>' for name in result.names)
    table = {"heads": heads, "scores": "\n".join(scores), "costs": "\n".join(costs)}
    return Section("Scores", [_part("scores", **table)])


def _row(head: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _name(encoder: str) -> str:
    return f"<bdi>{text(encoder, 60)}</bdi>"


def _seconds(value: float) -> str:
    """Return a time in seconds or minutes; a dash if it is unknown."""
    if math.isnan(value):
        return spell(value)
    return f"{value:,.1f} s" if value < 120 else f"{value / 60:,.0f} min"


def _with_interval(value: str, low: str, high: str, *, is_bold: bool) -> str:
    value = f"<strong>{value}</strong>" if is_bold else value
    return f'{value} <span class="interval">[{low}, {high}]</span>'


def _score(score: ScoreInterval, row: ScoreRow) -> str:
    """Return a score and its interval, and both as a strip on the scale of the row."""
    if math.isnan(score.low) or math.isnan(score.high):
        return f"<strong>{spell(score.value)}</strong>" if score.best else spell(score.value)
    spelled = (spell(end) for end in (score.value, score.low, score.high))
    ends = [end for other in row.scores for end in (other.low, other.high) if not math.isnan(end)]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    left, middle, right = (
        100.0 * (end - low) / span for end in (score.low, score.value, score.high)
    )
    start = min(max(middle, 0.0), 100.0) - 0.8
    strip = _part("strip", left=left, width=right - left, mean=start)
    return _with_interval(*spelled, is_bold=score.best) + strip


def _differences(result: Comparison) -> list[Section]:
    """Return the differences of the other encoders from the first."""
    differences = result.differences()
    if differences.empty:
        return []
    first, *others = result.names
    records = [row for row in differences.to_dict("records") if row["against"] == first]
    by_cell = {(row["measure"], row["encoder"]): row for row in records}
    rows = [
        (text(name_measure(one), 120), *(_difference(by_cell.get((one, name))) for name in others))
        for one in dict.fromkeys(differences["measure"])
        if one not in UNRANKED
    ]
    table = html_table(("", *map(_name, others)), rows)
    content = _part("differences", first=_name(first), table=table)
    return [Section("Is it better?", [content])]


def _difference(row: Mapping[Hashable, Any] | None) -> str:
    if row is None or math.isnan(row["difference"]):
        return spell(math.nan)
    ends = [row[key] for key in ("difference", "low", "high")]
    value, low, high = ("+" * (end > 0) + spell(end) for end in ends)
    return _with_interval(value, low, high, is_bold=row["low"] > 0 or row["high"] < 0)


def _overlaps(result: Comparison, k: int) -> list[Section]:
    """Return the overlap of the `k` neighbours of every two encoders."""
    n_others = max(len(result.distinct) - 1, 1)
    by_chance = chance_overlap(n_others + 1, max(min(k, n_others), 1))
    chance = [f"{value:.3f}" if value >= 0.001 else "below 0.001" for value in by_chance]
    rows = []
    for overlap in result.neighbor_overlaps:
        first, second = (result.encoders[place] for place in (overlap.first, overlap.second))
        both = first.has_neighbors & second.has_neighbors
        jaccard, rank_biased = (
            spell(float(values[both].mean(dtype=np.float64)) if both.any() else math.nan)
            for values in (overlap.jaccard, overlap.rank_biased)
        )
        pair = f"{_name(first.name)} &ndash; {_name(second.name)}"
        histogram = _histogram(overlap.jaccard[both])
        rows.append([pair, jaccard, chance[0], rank_biased, chance[1], histogram])
    heads = ("Encoders", "Jaccard", "by chance", "Rank-biased overlap", "by chance",
             "Documents by Jaccard, 0 to 1")  # fmt: skip
    content = _part("overlaps", k=k, table=html_table(heads, rows))
    return [Section("Neighbours in common", [content])] if rows else []


def _histogram(values: FloatArray) -> str:
    """Return a histogram of documents by overlap, in ten bars."""
    counts, _ = np.histogram(values, bins=10, range=(0.0, 1.0))
    bars = ""
    for i, n in enumerate(counts.tolist()):
        share = n / max(counts.max(), 1)
        bars += _part(
            "bar", x=i + 0.05, y=1 - share, share=share, low=i / 10, high=i / 10 + 0.1, n=n
        )
    return _part("histogram", bars=bars)


def _moves(result: Comparison) -> list[Section]:
    """Return the documents with the largest changes of neighbours, and their terms."""
    tables: list[str] = []
    has_text = result.distinct.of_row >= 0
    pairs = groupby(
        result.moved.to_dict("records"), key=lambda move: (move["first"], move["second"])
    )
    for (first, second), moves in pairs:
        rows = []
        for move in moves:
            row = int(result.distinct.first_rows[move["document"]])
            words, place = text(result.corpus.texts[row], 140), has_text[:row].sum()
            document = _part("document", row=place, words=words)
            overlap = f'<span class="nowrap">{move["jaccard"]:.0%}</span>'
            rows.append((document, overlap, _terms(move["gained"]), _terms(move["lost"])))
        one, other = _name(result.names[first]), _name(result.names[second])
        heads = ("Document", "Jaccard", f"With {other}, near", f"With {one}, near")
        tables.append(
            f"<details{'' if tables else ' open'}><summary>From {one} to {other}: "
            f"{spell_count(len(rows), 'document', 'documents')}</summary>"
            f"{html_table(heads, rows)}</details>"
        )
    content = _part("moves", tables="\n".join(tables))
    return [Section("Largest changes", [content])] if tables else []


def _terms(terms: tuple[str, ...]) -> str:
    shown = " ".join(f'<span class="tag"><bdi>{text(term, 60)}</bdi></span>' for term in terms)
    return shown or "&ndash;"
