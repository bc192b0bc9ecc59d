"""What the page of topics alone has: tiles, the table of topics, shares over time; methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import spell_count
from embedtopics.plots._colors import topic_colors
from embedtopics.report._markup import bar, dot, text, tiles
from embedtopics.topics.results import Topic, TopicResult

_PERSISTENCE_NOTE = "Persistence is the range of density levels over which a topic is one cluster."
_RECURRENCE_NOTE = (
    "Recurrence is the mean Jaccard overlap of a topic with its best match among the topics of "
    "{n_replicates} random subsets of the documents (replicates). Brackets contain 90 % of the "
    "replicates. Paler topics have a lower recurrence."
)


def summary(result: TopicResult) -> str:
    """Return the most important figures as tiles."""
    figures = [
        ("Rows", f"{len(result.documents.of_row):,}"),
        ("Distinct documents", f"{len(result.documents):,}"),
        ("Topics", f"{result.n_topics:,}"),
        ("In a topic", f"{result.coverage:.1%}"),
    ]
    if result.stability is not None and len(result.stability.adjusted_rand):
        index = float(result.stability.adjusted_rand.mean())
        figures.append(("Agreement of replicates (ARI)", f"{index:.2f}"))
    if encoder := encoder_name(result):
        figures.append(("Encoder", text(encoder, 60)))
    if (times := result.corpus.time) is not None and times.notna().any():
        ends = (
            f'<span class="nowrap">{t.date().isoformat()}</span>'
            for t in (times.min(), times.max())
        )
        figures.append(("Period", " &ndash; ".join(ends)))
    return tiles(figures)


def encoder_name(result: TopicResult) -> str:
    """Return the name of the encoder."""
    encoder = result.settings.get("encoder")
    if isinstance(encoder, Mapping):
        encoder = encoder.get("name")
    return "given embeddings" if encoder == "given" else str(encoder or "")


IN_METHODS = (
    "rows_taken", "sample", "passages", "empty", "duplicates", "truncated", "long_texts",
    "labels", "manual_labels", "seed_words", "names", "names_without_texts", "guided_topics",
    "seeds_without_topic", "labels_respected", "n_topics", "languages", "boilerplate",
    "accounts", "closing_words", "stop_words", "function_words",
)  # fmt: skip


def methods_text(result: TopicResult) -> str:
    """Return a citable paragraph on the methods."""
    settings, documents = result.settings, result.documents
    reader, vectors = encoder_name(result), f"vectors of {result.embeddings.shape[1]:,} dimensions"
    coverage = settings.get("coverage", "auto")
    stages = {name: _stage(settings.get(name)) for name in ("reducer", "clusterer", "weighting")}
    is_manual = (settings.get("constraints") or {}).get("kind") == "manual_labels"
    seed, number = settings.get("seed"), settings.get("n_topics", "auto")
    number = f"set to {number}" if is_whole(number) else f"chosen by the program ({number})"
    messages = {one.name: one.message for one in result.decisions}
    sentences = [
        f"The corpus has {len(documents.of_row):,} rows with {len(documents):,} distinct texts.",
        f"Texts were represented by precomputed {vectors}." if reader == "given embeddings"
        else f"Texts were represented by {vectors} (encoder: {reader}).",
        "Neighbours were found by cosine (FAISS"
        + (f", {settings['n_neighbors']} of each text)" if "n_neighbors" in settings else ")")
        + f"; vectors were reduced to {result.coordinates.shape[1]:,} dimensions by "
        + (stages["reducer"] or "principal components that were averaged over neighbours") + ".",
        "People gave the topics of the texts." if is_manual
        else f"Topics were found by {stages['clusterer']}." if stages["clusterer"]
        else "The centers of the topics come from the dense clusters of HDBSCAN's hierarchy "
        f"(Campello et al. 2013); k-means then assigns the texts. Their number was {number}.",
        "" if is_manual else "Outliers were not assigned." if coverage == 0
        else f"Label propagation assigned outliers (coverage: {coverage}).",
        f"{result.n_topics:,} topics contain {result.coverage:.1%} of the rows with text; the "
        "other rows are outliers.",
        "Topics are described by class-based TF-IDF (Grootendorst 2022)."
        if stages["weighting"] in ("", "ClassTfidf")
        else f"Topics are described by the weights of {stages['weighting']}.",
        *(messages[name] for name in IN_METHODS if name in messages),
        *(f"After the fit: {edit.message}." for edit in result.history),
        "The map is a UMAP layout (McInnes et al. 2018); large distances are not meaningful.",
        "" if seed is None else f"Seed {seed}.",
    ]  # fmt: skip
    if program := result.versions.get("embedtopics", ""):
        names = ("numpy", "scikit-learn", "faiss-cpu", "python")
        others = ", ".join(f"{name} {result.versions.get(name, '')}" for name in names)
        sentences.append(f"Made with embedtopics {program} ({others}).")
    return " ".join(filter(None, sentences))


def _stage(setting: Any) -> str:
    """Return the name of a custom stage, or nothing."""
    is_mapping = isinstance(setting, Mapping)
    return str((setting.get("name") or setting.get("class") if is_mapping else setting) or "")


def topics_section(result: TopicResult) -> str:
    """Return the table of topics with keywords and representative documents."""
    if not result.topics:
        return "<p>No topics were found: no cluster of documents is dense enough.</p>"
    measured = result.stability
    largest = max(topic.share for topic in result.topics)
    name, note = "Persistence", _PERSISTENCE_NOTE
    if measured is not None:
        name, note = "Recurrence", _RECURRENCE_NOTE.format(n_replicates=measured.n_replicates)
    colors, rows = topic_colors(result), []
    for theme in result.themes:
        if len(result.themes) < result.n_topics:
            rows.append(
                f'<tbody class="theme"><tr><th scope="rowgroup"><bdi>{text(theme.label, 80)}</bdi>'
                f'</th><td class="number" data-name="Rows">{theme.size:,}</td>'
                f'<td class="share" data-name="Share">{theme.share:.1%}</td><td></td>'
                f"<td>Theme of {len(theme.topics)} topics</td></tr></tbody>"
            )
        for topic in (result.topics[i] for i in theme.topics):
            filled = topic.share / largest if largest else 0.0
            rows.append(_topic_rows(result, topic, colors[topic.topic_id], filled))
    return "\n".join(
        [
            '<p class="note">The bar under a keyword shows its weight, relative to the largest. '
            f"{note}</p>",
            '<table class="topics"><thead><tr><th scope="col">Topic</th>'
            '<th scope="col" class="number">Rows</th><th scope="col">Share</th>'
            f'<th scope="col" class="number">{name}</th><th scope="col">Keywords</th></tr></thead>',
            *rows,
            "</table>",
        ]
    )


def _topic_rows(result: TopicResult, topic: Topic, color: str, filled: float) -> str:
    """Return the row of a topic, and an unfoldable row with its representative documents."""
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
        f'<th scope="row">{dot(color)}<span class="id">{topic.topic_id}</span> '
        f"<bdi>{text(topic.label, 80)}</bdi></th>"
        f'<td class="number" data-name="Rows">{topic.size:,}</td>'
        f'<td class="share" data-name="Share">{topic.share:.1%}{bar(filled, color)}</td>'
        f'<td class="number" data-name="{name}">{figure}</td>'
        f'<td class="keywords">{keywords}</td></tr>{_representatives(result, topic)}</tbody>'
    )


def _figure(value: float) -> str:
    """Return a figure from 0 to 1, or a dash if it is unknown."""
    return "&ndash;" if math.isnan(value) else f"{value:.2f}"


def _representatives(result: TopicResult, topic: Topic) -> str:
    if not topic.representatives:
        return ""
    corpus, quotes = result.corpus, []
    for row in topic.representatives:
        origin = f"row {row:,}"
        if corpus.time is not None and not corpus.time.isna().iloc[row]:
            origin += f", {corpus.time.iloc[row].date().isoformat()}"
        quotes.append(
            f'<blockquote><p dir="auto">{text(corpus.texts[row], 400)}</p>'
            f"<footer>{origin}</footer></blockquote>"
        )
    name = "representative document"
    heading = spell_count(len(quotes), name, f"{name}s")
    return (
        f'<tr class="typical"><td colspan="5"><details><summary>{heading}</summary>'
        f"{''.join(quotes)}</details></td></tr>"
    )
