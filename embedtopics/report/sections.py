"""The sections of the study report, each a function from a result to HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from embedtopics.plots import topic_colors
from embedtopics.report.markup import bar, flatten, section, table, text
from embedtopics.results import Decision, Topic, TopicResult

__all__ = [
    "decisions_section",
    "default_title",
    "history_section",
    "map_section",
    "settings_section",
    "sizes_section",
    "summary",
    "timings_section",
    "topics_section",
]

_STAGES = {
    "corpus": "Corpus",
    "encoder": "Encoder",
    "neighbors": "Neighbours",
    "reduction": "Reduction",
    "clustering": "Clustering",
    "terms": "Terms",
}
_WORD_LISTS = {"stop_words": "Stop words", "function_words": "Words used everywhere alike"}
_TEXT_LENGTH = 400
_PERSISTENCE_NOTE = (
    "Persistence tells how long a topic holds together as the density asked for grows."
)
_RECURRENCE_NOTE = (
    "Recurrence tells how far a topic comes back when the topics are found anew from random parts "
    "of the documents: the mean overlap (Jaccard) with its best match over {n_replicates} "
    "replicates, and the interval that holds nine tenths of them. Paler topics come back less."
)


def default_title(result: TopicResult) -> str:
    """Return a heading that names the file of the corpus, or counts its rows."""
    source = PurePath(result.corpus.source)
    if source.suffix:
        return f"Topics of {source.name}"
    n_rows = len(result.corpus)
    return "Topics of 1 row" if n_rows == 1 else f"Topics of {n_rows:,} rows"


def summary(result: TopicResult) -> str:
    """Return the figures that one looks for first."""
    n_rows, n_documents = len(result.documents.of_row), len(result.documents)
    tiles = [
        ("Rows", f"{n_rows:,}"),
        ("Distinct documents", f"{n_documents:,}"),
        ("Topics", f"{result.n_topics:,}"),
        ("In a topic", f"{result.coverage:.1%}"),
    ]
    if result.stability is not None and len(result.stability.adjusted_rand):
        index = float(result.stability.adjusted_rand.mean())
        tiles.append(("Replicates agree (ARI)", f"{index:.2f}"))
    if encoder := _encoder(result):
        tiles.append(("Encoder", text(encoder, 60)))
    if period := _period(result):
        tiles.append(("Period", period))
    items = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles)
    return f'<dl class="tiles">\n{items}\n</dl>'


def _encoder(result: TopicResult) -> str:
    """Return the name of the encoder, or nothing where the settings have none."""
    encoder = result.settings.get("encoder")
    if isinstance(encoder, Mapping):
        encoder = encoder.get("name")
    return "given embeddings" if encoder == "given" else str(encoder or "")


def _period(result: TopicResult) -> str:
    """Return the first and the last day of the corpus, or nothing."""
    times = result.corpus.time
    if times is None or times.isna().all():
        return ""
    first, last = times.min().date().isoformat(), times.max().date().isoformat()
    return f'<span class="nowrap">{first}</span> &ndash; <span class="nowrap">{last}</span>'


def map_section(result: TopicResult, hover_characters: int, full: int) -> str:
    """Return the place of the map, with how to read it."""
    note = (
        "Each point is a document; near points read alike. Grey points belong to no topic. "
        '<span class="hint"><span class="wide">Click a topic in the legend to hide it, '
        "double-click to see it alone. </span>Drag to move, double-click the map to come back."
        "</span>"
    )
    if hover_characters < full:
        note += (
            f" With {len(result.documents):,} documents, the first {hover_characters} characters "
            "of each are shown on hovering, to keep this file small."
        )
    return section(
        "map",
        "Map",
        f'<p class="note">{note}</p>',
        '<div class="figure" data-figure="map-figure"></div>',
        "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>",
    )


def sizes_section() -> str:
    """Return the place of the size chart."""
    return section(
        "sizes",
        "Sizes",
        '<p class="note">Rows in each topic, and their share of the rows with text.</p>',
        '<div class="figure" data-figure="sizes-figure"></div>',
    )


def topics_section(result: TopicResult) -> str:
    """Return the table of topics with their keywords and typical documents."""
    if not result.topics:
        return section(
            "topics",
            "Topics",
            "<p>No topics were found: no group of documents is dense enough.</p>",
        )
    measured = result.stability
    largest = max(topic.share for topic in result.topics)
    name, note = "Persistence", _PERSISTENCE_NOTE
    if measured is not None:
        name, note = "Recurrence", _RECURRENCE_NOTE.format(n_replicates=measured.n_replicates)
    rows = "\n".join(
        _topic_rows(result, topic, color, topic.share / largest if largest else 0.0)
        for topic, color in zip(result.topics, topic_colors(result), strict=True)
    )
    return section(
        "topics",
        "Topics",
        '<p class="note">A bar under a keyword shows its weight beside the topic\'s best. '
        f"{note}</p>",
        '<table class="topics"><thead><tr><th scope="col">Topic</th>'
        '<th scope="col" class="number">Rows</th><th scope="col">Share</th>'
        f'<th scope="col" class="number">{name}</th><th scope="col">Keywords</th></tr></thead>',
        rows,
        "</table>",
    )


def _topic_rows(result: TopicResult, topic: Topic, color: str, filled: float) -> str:
    """Return a topic's row, and a row below it that unfolds its typical documents."""
    name, figure = "Persistence", _figure(topic.persistence)
    if (measured := result.stability) is not None:
        low, high = _figure(measured.low[topic.topic_id]), _figure(measured.high[topic.topic_id])
        figure = _figure(measured.recurrence[topic.topic_id])
        name, figure = "Recurrence", f'{figure} <span class="nowrap">({low}&ndash;{high})</span>'
    best = max(topic.weights, default=0.0) or 1.0
    keywords = " ".join(
        f'<span class="keyword" title="{weight:.3g}">'
        f"<bdi>{text(term, 60)}</bdi>{bar(weight / best, color)}</span>"
        for term, weight in zip(topic.keywords, topic.weights, strict=True)
    )
    return (
        f'<tbody id="topic-{topic.topic_id}"><tr>'
        f'<th scope="row"><span class="dot" style="background:{color}"></span>'
        f'<span class="id">{topic.topic_id}</span> <bdi>{text(topic.label, 80)}</bdi></th>'
        f'<td class="number" data-name="Rows">{topic.size:,}</td>'
        f'<td class="share" data-name="Share">{topic.share:.1%}{bar(filled, color)}</td>'
        f'<td class="number" data-name="{name}">{figure}</td>'
        f'<td class="keywords">{keywords}</td></tr>{_representatives(result, topic)}</tbody>'
    )


def _figure(value: float) -> str:
    """Return a figure from 0 to 1, or a dash where it is not known."""
    return "&ndash;" if math.isnan(value) else f"{value:.2f}"


def _representatives(result: TopicResult, topic: Topic) -> str:
    """Return the typical documents of a topic, folded."""
    if not topic.representatives:
        return ""
    corpus = result.corpus
    quotes = []
    for row in topic.representatives:
        origin = f"row {row + 1:,}"
        time = None if corpus.time is None else corpus.time.iloc[row]
        if time is not None and time == time:  # NaT equals nothing, not even itself
            origin += f", {time.date().isoformat()}"
        quotes.append(
            f'<blockquote><p dir="auto">{text(corpus.texts[row], _TEXT_LENGTH)}</p>'
            f"<footer>{origin}</footer></blockquote>"
        )
    number = len(quotes)
    heading = "1 typical document" if number == 1 else f"{number} typical documents"
    return (
        f'<tr class="typical"><td colspan="5"><details><summary>{heading}</summary>'
        f"{''.join(quotes)}</details></td></tr>"
    )


def decisions_section(
    decisions: Sequence[Decision], left_out: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> str:
    """Return what was decided without asking, stage by stage.

    Parameters
    ----------
    decisions : sequence of Decision
    left_out : mapping of str to sequence of str
        Words by list, shown where no decision shows them.
    """
    stages = dict.fromkeys([*_STAGES, *(decision.stage for decision in decisions)])
    parts = []
    listed: set[str] = set()
    for stage in stages:
        items = []
        for decision in decisions:
            if decision.stage == stage:
                words = decision.value if isinstance(decision.value, (list, tuple)) else ()
                if words:
                    listed.add(decision.name)
                items.append(f"<li>{text(decision.message, 600)}{_words(words)}</li>")
        if stage == "terms":
            items += [
                f"<li>{name} left out of the terms.{_words(left_out[key])}</li>"
                for key, name in _WORD_LISTS.items()
                if key not in listed and left_out.get(key)
            ]
        if items:
            name = text(_STAGES.get(stage, stage.capitalize()), 60)
            parts.append(f"<h3>{name}</h3>\n<ul>\n" + "\n".join(items) + "\n</ul>")
    return section(
        "decisions", "What was decided", *(parts or ["<p>Nothing was decided on its own.</p>"])
    )


def _words(words: object) -> str:
    """Return a folded list of words, or nothing."""
    if not isinstance(words, (list, tuple)) or not words:
        return ""
    listed = ", ".join(f"<bdi>{text(word, 60)}</bdi>" for word in words)
    return f"<details><summary>Show all {len(words):,}</summary><p>{listed}</p></details>"


def history_section(result: TopicResult) -> str:
    """Return the edits made after the fit, or nothing."""
    if not result.history:
        return ""
    edits = "\n".join(f"<li>{text(edit.message, 600)}</li>" for edit in result.history)
    return section("history", "Edits after the fit", f"<ol>\n{edits}\n</ol>")


def settings_section(settings: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """Return the parameters and the versions of what ran."""
    parts = []
    for heading, head, values in (
        ("Parameters", ("Parameter", "Value"), settings),
        ("Versions", ("Package", "Version"), versions),
    ):
        if values:
            rows = [
                (f"<code>{text(name, 80)}</code>", text(value, 200))
                for name, value in flatten(values)
            ]
            parts.append(f"<div><h3>{heading}</h3>{table(head, rows)}</div>")
    if not parts:
        return ""
    return section("settings", "Settings", '<div class="columns">', *parts, "</div>")


def timings_section(timings: Mapping[str, float], peak_memory: float = math.nan) -> str:
    """Return the seconds that each stage took, and the memory in bytes where it is known."""
    if not timings:
        return ""
    total = sum(timings.values())
    longest = max(timings.values()) or 1.0
    rows = [
        (
            text(_STAGES.get(stage, stage.capitalize()), 60),
            f"{seconds:.1f} s",
            bar(seconds / longest),
        )
        for stage, seconds in timings.items()
    ]
    rows.append(("<strong>Together</strong>", f"<strong>{total:.1f} s</strong>", ""))
    note = ""
    if not math.isnan(peak_memory):
        note = f'<p class="note">The process held at most {peak_memory / 1e9:.2f} GB of memory.</p>'
    return section("timings", "Time and memory", note, table(("Stage", "Seconds", ""), rows))
