"""One table of all that can be measured of a result, and what each figure means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import resolve_seed
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import agreement
from embedtopics.evaluation._bootstrap import interval, resampled_means
from embedtopics.evaluation._coherence import c_v, npmi, u_mass
from embedtopics.evaluation._distinctness import (
    diversity,
    inverted_rbo,
    pairwise_jaccard,
    topic_significance,
    topic_uniqueness,
    word_embedding_coherence,
)
from embedtopics.evaluation._maps import trustworthiness_and_continuity
from embedtopics.protocols import Float64Array, RandomState
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._keywords import term_embeddings
from embedtopics.topics._describe import top_words
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends._by_group import values_of

SAMPLED = 150
"""Documents whose neighbours are ranked against all others."""

NEIGHBORS = 15

MEANINGS = {
    "coverage": "share of the texts that are in a topic",
    "topics": "number of topics",
    "median_size": "texts in a topic of middle size",
    "npmi": "how far a topic's words occur together within ten words, -1 to 1; 0 is chance",
    "c_v": "similarity of the contexts of a topic's words within 110 words, 0 to 1",
    "u_mass": "how surely a topic's words bring its better words along; 0 at best",
    "embedding_coherence": "mean cosine of a topic's words in this result's own embeddings",
    "diversity": "share of distinct words among the topics' words",
    "uniqueness": "mean of 1 over the topics that share a word; 1 is shared by none",
    "inverted_rbo": "how unlike the topics' word lists are, the first words counting most",
    "pairwise_jaccard": "mean overlap of the topics' word lists; 0 is none",
    "w_vacuous": "distance of a topic's words from those of all topics, in nats; 0 is none",
    "d_background": "distance of a topic from one spread evenly over the texts, in nats; 0 is none",
    "persistence": "stability of a topic in the density hierarchy",
    "recurrence": "overlap of a topic with its best match in replicates, 0 to 1",
    "recurrence_by_chance": "the same for labels drawn at random",
    "replicate_ari": "adjusted Rand index of two replicates; 0 is chance",
    "map_trustworthiness": "share of neighbours on the map that are no strangers; 1 is best",
    "map_continuity": "share of neighbours that the map does not tear away; 1 is best",
    "coordinates_trustworthiness": "as of the map, of the space in which topics were found",
    "coordinates_continuity": "as of the map, of the space in which topics were found",
    "truncated_share": "share of the texts that the encoder did not read to the end",
    "duplicate_share": "share of the rows with text that repeat another row's",
    "neighbor_recall": "share of the true neighbours that the search found",
    "label_coverage": "share of the labelled texts that are in a topic",
    "nmi": "what topics and labels tell of each other (V-measure); 1 is all",
    "ami": "the same beyond chance; 0 is chance",
    "ari": "pairs that topics and labels both keep together or apart, beyond chance",
    "homogeneity": "how far topics hold texts of one label",
    "completeness": "how far labels hold texts of one topic",
    "purity": "share of the texts in the largest label of their topic",
    "inverse_purity": "share of the texts in the largest topic of their label",
}

TOPIC_MEASURES = (
    "npmi", "c_v", "u_mass", "embedding_coherence", "uniqueness", "w_vacuous", "d_background",
    "persistence", "recurrence",
)  # fmt: skip

Row = tuple[str, float, float, float, int]
"""Measure, value, both ends of its interval, and the number of what was looked at."""


def report_card(
    result: TopicResult,
    *,
    labels: str | npt.ArrayLike | None = None,
    by_topic: bool = False,
    n_words: int = 10,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Tabulate what can be measured of a result: its topics, their words, stability and map.

    Parameters
    ----------
    result : TopicResult
    labels : str or array_like of shape (n_rows,), optional
        Known classes: the name of a column of the input, or one for each row; rows without one
        (None, NaN or an empty string) are left out.
    by_topic : bool
        Tabulate the topics instead, a row each.
    n_words : int
        Words of each topic that count, its best single ones.
    n_resamples : int
        Of the bootstrap behind the intervals.
    random_state : int, numpy.random.Generator or None
        Draws the samples of the bootstrap.

    Returns
    -------
    DataFrame
        Columns measure, value, low and high (a 95 % interval, NaN where there is none), n (what
        was looked at) and meaning. Means over topics have intervals of topics drawn anew; those
        of the map, of documents; agreement with labels, of documents with all of their rows. Rows
        named ``..._covered`` are on the texts in a topic: read them beside `label_coverage`.
        Measures that the result does not hold, such as stability that was not measured, are left
        out.

        With `by_topic`: columns topic, label, size (rows), share, the measures of a topic, and
        where stability was measured recurrence_low and recurrence_high, between which nine
        tenths of the replicates lie, and recurrence_by_chance.

    Raises
    ------
    InputError
        Where there is no such column, or the labels are not one for each row.

    Notes
    -----
    Measures of words are averages of habits: they tell nonsense from sense, and should not choose
    between two sensible models (Hoyle et al. 2021, "Is automated topic model evaluation broken?").
    Ask people: `topics.validation_sheets`.
    """
    if n_words < 2 or n_resamples < 1:
        raise InputError(
            f"n_words must be at least 2 and n_resamples at least 1; got {n_words}, {n_resamples}"
        )
    known = None if labels is None else _labels_of(result, labels)
    words = top_words(result, n_words) if result.topics else []
    scores = _score_topics(result, words, n_words)
    if by_topic:
        return _topic_table(result, scores)
    seed = resolve_seed(random_state)
    rows = [
        *_of_topics(result, words, scores, n_words, n_resamples, seed),
        *_of_projections(result, n_resamples, seed),
        *_of_the_input(result),
    ]
    if known is not None:
        rows += _of_labels(result, known, n_resamples, seed)
    frame = pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])
    covered = frame["measure"].str.endswith("_covered")
    names = frame["measure"].str.removesuffix("_covered")
    frame["meaning"] = names.map(MEANINGS) + np.where(covered, "; on the texts in a topic", "")
    return frame.astype({"value": np.float64, "low": np.float64, "high": np.float64, "n": np.int64})


def _score_topics(
    result: TopicResult, words: list[list[str]], n_words: int
) -> dict[str, Float64Array]:
    """Return each measure of the topics, shape (n_topics,); NaN where there is none."""
    tokens = result.tokens
    few = np.array([len(topic) < 2 for topic in words], dtype=bool)
    vacuous = background = np.empty(0)
    if result.topics:
        counts, labels = result.term_counts, result.clustering.labels
        by_topic = count_by_topic(counts.counts, labels, result.n_topics, result.documents.weights)
        single = np.flatnonzero(counts.lengths == 1)
        significance = topic_significance(by_topic[:, single], result.memberships)
        assert significance.background is not None
        vacuous, background = significance.vacuous, significance.background
    scores = {
        "npmi": npmi(words, tokens),
        "c_v": np.where(few, np.nan, c_v(words, tokens)),  # one word is coherent with itself
        "u_mass": u_mass(words, tokens),
        "embedding_coherence": _in_own_vectors(result, words),
        "uniqueness": topic_uniqueness(words, n_words),
        "w_vacuous": vacuous,
        "d_background": background,
        "persistence": np.array([topic.persistence for topic in result.topics], dtype=np.float64),
    }
    if result.stability is not None:
        scores["recurrence"] = result.stability.recurrence
    return scores


def _in_own_vectors(result: TopicResult, words: list[list[str]]) -> Float64Array:
    """Measure coherence in the embeddings of the result: a word is the mean of its documents."""
    wanted = {word for topic in words for word in topic}
    counts = result.term_counts
    columns = [i for i, term in enumerate(counts.terms) if term in wanted]
    vectors = {}
    if columns:
        middle = result.embeddings.mean(axis=0, dtype=np.float64)
        found = term_embeddings(counts.counts, result.embeddings, columns, origin=middle)
        vectors = {counts.terms[i]: vector for i, vector in zip(columns, found, strict=True)}
    return word_embedding_coherence(words, vectors, max(map(len, words), default=1) or 1)[0]


def _of_topics(
    result: TopicResult,
    words: list[list[str]],
    scores: dict[str, Float64Array],
    n_words: int,
    n_resamples: int,
    seed: int,
) -> list[Row]:
    """Return sizes, means over topics, and what is measured of all topics together."""
    sizes = [topic.size for topic in result.topics]
    n_rows = int(result.documents.weights.sum())
    n = len(words)
    means = [
        _mean_row(name, scores[name], n_resamples, seed)
        for name in TOPIC_MEASURES
        if name in scores
    ]
    place = TOPIC_MEASURES.index("uniqueness")
    rows = [
        _bare("coverage", result.coverage if n_rows else math.nan, n_rows),
        _bare("topics", result.n_topics, n_rows),
        _bare("median_size", float(np.median(sizes)) if sizes else math.nan, len(sizes)),
        *means[:place],
        _bare("diversity", diversity(words, n_words), n),
        _bare("inverted_rbo", inverted_rbo(words, n_words), n),
        _bare("pairwise_jaccard", pairwise_jaccard(words, n_words), n),
        *means[place:],
    ]
    measured = result.stability
    if measured is not None:
        if measured.chance is not None:
            rows.append(_bare("recurrence_by_chance", _mean(measured.chance), result.n_topics))
        pairs = measured.adjusted_rand
        rows.append(_bare("replicate_ari", _mean(pairs), len(pairs)))
    return rows


def _of_projections(result: TopicResult, n_resamples: int, seed: int) -> list[Row]:
    """Measure the map, and the space of the topics, on a sample of the documents."""
    n = len(result.documents)
    k = min(NEIGHBORS, (n - 1) // 2)
    if k < 1:
        return []
    # Documents are ordered by the hash of their content: evenly spaced ones are a fair sample.
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64))
    found = []
    for name, positions in (("map", result.map), ("coordinates", result.coordinates)):
        kept = trustworthiness_and_continuity(result.embeddings, positions, k, rows=rows)
        for measure, values in zip(("trustworthiness", "continuity"), kept, strict=True):
            found.append(_mean_row(f"{name}_{measure}", values, n_resamples, seed))
    return found


def _of_the_input(result: TopicResult) -> list[Row]:
    n = len(result.documents)
    n_rows = int(result.documents.weights.sum())
    truncated = [float(made.value) for made in result.decisions if made.name == "truncated"]
    return [
        *(_bare("truncated_share", value, n) for value in truncated[:1]),
        _bare("duplicate_share", (n_rows - n) / n_rows if n_rows else math.nan, n_rows),
        _bare("neighbor_recall", result.graph.recall, n),
    ]


def _of_labels(
    result: TopicResult, labels: npt.NDArray[Any], n_resamples: int, seed: int
) -> list[tuple[Any, ...]]:
    of_row = result.documents.of_row
    used = np.flatnonzero((of_row >= 0) & (labels != ""))
    if not len(used):
        raise InputError("no row with text has a label; name another column, or check its values")
    frame = agreement(
        labels[used],
        result.labels[used],
        n_resamples=n_resamples,
        units=of_row[used],
        random_state=seed,
    ).to_frame()
    rows = []
    for row in frame.itertuples():
        name = "label_coverage" if row.measure == "coverage" else str(row.measure)
        suffix = "_covered" if row.documents == "covered" else ""
        rows.append((name + suffix, row.value, row.low, row.high, row.n))
    return rows


def _labels_of(result: TopicResult, labels: Any) -> npt.NDArray[Any]:
    """Return the label of each row as a string, "" where there is none."""
    values = values_of(result, labels, "labels")[0].tolist()
    return np.array(["" if is_missing(v) else str(v).strip() for v in values], dtype=object)


def _topic_table(result: TopicResult, scores: dict[str, Float64Array]) -> pd.DataFrame:
    rows = [(topic.topic_id, topic.label, topic.size, topic.share) for topic in result.topics]
    frame = pd.DataFrame(rows, columns=["topic", "label", "size", "share"]).assign(**scores)
    measured = result.stability
    if measured is not None:
        frame["recurrence_low"], frame["recurrence_high"] = measured.low, measured.high
        if measured.chance is not None:
            frame["recurrence_by_chance"] = measured.chance
    return frame


def _bare(name: str, value: float, n: int) -> Row:
    return name, value, math.nan, math.nan, n


def _mean_row(name: str, values: npt.NDArray[np.float64], n_resamples: int, seed: int) -> Row:
    """Return the mean of what is known, with the interval of others drawn in their place."""
    known = values[~np.isnan(values)]
    low = high = math.nan
    if len(known) > 1:
        bounds = interval(resampled_means(known[:, None], n_resamples, seed)[:, 0], len(known))
        low, high = float(bounds[0]), float(bounds[1])
    return name, _mean(known), low, high, len(known)


def _mean(values: npt.NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
