"""Measures of a result: its topics, their words, stability and maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.corpus._classes import spell_class
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import evaluate_clustering
from embedtopics.evaluation._bootstrap import interval, resampled_means
from embedtopics.evaluation._coherence import c_v, diversity, npmi, topic_uniqueness, u_mass
from embedtopics.evaluation._maps import trustworthiness_and_continuity
from embedtopics.protocols import Float64Array, RandomState
from embedtopics.topics._describe import top_words
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends._by_group import values_of

SAMPLED = 150
"""Documents of the sample for trustworthiness and continuity of the map."""

NEIGHBORS = 15
N_WORDS = 10
"""Best single words of each topic that the measures use."""

MEANINGS = {
    "coverage": "share of the texts in a topic",
    "topics": "number of topics",
    "median_size": "median number of texts in a topic",
    "npmi": "NPMI coherence: co-occurrence of words within ten words, -1 to 1; 0 is chance",
    "c_v": "C_V coherence: similar contexts of a topic's words within 110 words, 0 to 1",
    "u_mass": "UMass coherence: document co-occurrence of a topic's words; at most 0",
    "diversity": "topic diversity: share of distinct words among the topics' words",
    "uniqueness": "topic uniqueness: mean of 1 over the number of topics with a word; at most 1",
    "persistence": "stability of a topic in the density hierarchy",
    "recurrence": "Jaccard overlap of a topic with its best match in replicates, 0 to 1",
    "recurrence_by_chance": "the same for randomly permuted labels",
    "replicate_ari": "adjusted Rand index of pairs of replicates; 0 is chance",
    "map_trustworthiness": "trustworthiness of the map; 1 is best",
    "map_continuity": "continuity of the map; 1 is best",
    "coordinates_trustworthiness": "trustworthiness of the clustered coordinates; 1 is best",
    "coordinates_continuity": "continuity of the clustered coordinates; 1 is best",
    "truncated_share": "share of the texts longer than the encoder reads",
    "duplicate_share": "share of the rows that repeat the text of another row",
    "neighbor_recall": "recall of the neighbor search",
    "label_coverage": "share of the labelled texts in a topic",
    "nmi": "V-measure of topics and labels (normalized mutual information)",
    "ami": "adjusted mutual information of topics and labels; 0 is chance",
    "ari": "adjusted Rand index of topics and labels; 0 is chance",
    "homogeneity": "homogeneity: topics hold texts of one label; 1 is best",
    "completeness": "completeness: labels hold texts of one topic; 1 is best",
}

Row = tuple[str, float, float, float, int]
"""Measure, value, interval (low, high), and sample size."""


def evaluate(
    result: FittedTopics,
    *,
    labels: str | npt.ArrayLike | None = None,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Tabulate the measures of a result: its topics, their words, stability and map.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    labels : str or array_like of shape (n_rows,), optional
        Known classes: a column of the input, or one label per row. Rows without a label (None, NaN
        or an empty string) are left out.
    n_resamples : int
        Bootstrap samples for the intervals.
    random_state : int, numpy.random.Generator or None
        Source of the bootstrap samples.

    Returns
    -------
    DataFrame
        Columns measure, value, low and high (95 % interval, NaN for none), n (sample size) and
        meaning. The bootstrap resamples topics for means over topics, and documents for the map
        and the agreement with labels. Rows named ``..._covered`` are about the texts in a topic;
        read them with `label_coverage`. Stability appears only if measured.

    Raises
    ------
    InputError
        If there is no such column, or the labels are not one per row.

    Notes
    -----
    Coherence separates nonsense from sensible topics, but should not choose between two sensible
    models (Hoyle et al. 2021, "Is automated topic model evaluation broken?"). Ask people with
    `embedtopics.annotation.validation_sheets`.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> measures = et.topics.evaluate(model, labels="theme", n_resamples=100)
    >>> measures["measure"].tolist()[:4]
    ['coverage', 'topics', 'median_size', 'npmi']
    """
    result = result_of(result)
    values = [] if labels is None else values_of(result, labels, "labels")[0].tolist()
    classes = np.array([spell_class(value) or "" for value in values], dtype=object)
    seed = resolve_seed(random_state)
    n = len(result.distinct)
    n_rows = int(result.distinct.weights.sum())
    truncated = [float(d.value) for d in result.decisions if d.name == "truncated"]
    n_resamples = checked_count(n_resamples, "n_resamples")
    mean = partial(_mean_row, n_resamples=n_resamples, seed=seed)

    rows = [
        *_of_topics(result, mean),
        *_of_projections(result, mean),
        *(_bare("truncated_share", value, n) for value in truncated[:1]),
        _bare("duplicate_share", (n_rows - n) / n_rows if n_rows else math.nan, n_rows),
        _bare("neighbor_recall", result.graph.recall, n),
    ]
    if labels is not None:
        rows += _of_labels(result, classes, n_resamples, seed)

    frame = pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])
    covered = frame["measure"].str.endswith("_covered")
    names = frame["measure"].str.removesuffix("_covered")
    frame["meaning"] = names.map(MEANINGS) + np.where(covered, "; on the texts in a topic", "")
    return frame.astype({"value": np.float64, "low": np.float64, "high": np.float64, "n": np.int64})


def _of_topics(result: TopicResult, mean: Callable[[str, Float64Array], Row]) -> list[Row]:
    """Return sizes, means over topics, and measures of all topics together."""
    words, tokens = top_words(result, N_WORDS) if result.topics else [], result.tokens
    sizes, n_rows = [topic.size for topic in result.topics], int(result.distinct.weights.sum())
    few = np.array([len(topic) < 2 for topic in words], dtype=bool)
    persistence = np.array([topic.persistence for topic in result.topics], dtype=np.float64)
    rows = [
        _bare("coverage", result.coverage if n_rows else math.nan, n_rows),
        _bare("topics", result.n_topics, n_rows),
        _bare("median_size", float(np.median(sizes)) if sizes else math.nan, len(sizes)),
        mean("npmi", npmi(words, tokens)),
        mean("c_v", np.where(few, np.nan, c_v(words, tokens))),  # undefined for one word
        mean("u_mass", u_mass(words, tokens)),
        _bare("diversity", diversity(words, N_WORDS), len(words)),
        mean("uniqueness", topic_uniqueness(words, N_WORDS)),
        mean("persistence", persistence),
    ]
    if (measured := result.stability) is not None:
        rows.append(mean("recurrence", measured.recurrence))
        if measured.chance is not None:
            rows.append(_bare("recurrence_by_chance", _mean(measured.chance), result.n_topics))
        pairs = measured.adjusted_rand
        rows.append(_bare("replicate_ari", _mean(pairs), len(pairs)))
    return rows


def _of_projections(result: TopicResult, mean: Callable[[str, Float64Array], Row]) -> list[Row]:
    """Measure the map and the clustered coordinates on a sample of the documents."""
    n = len(result.distinct)
    k = min(NEIGHBORS, (n - 1) // 2)
    if k < 1:
        return []
    # Documents are in the order of their content hash: evenly spaced ones are a random sample.
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).astype(np.int64))
    rows_of_maps = []
    for name, positions in (("map", result.map), ("coordinates", result.coordinates)):
        of_documents = trustworthiness_and_continuity(result.embeddings, positions, k, rows=rows)
        for measure, values in zip(("trustworthiness", "continuity"), of_documents, strict=True):
            rows_of_maps.append(mean(f"{name}_{measure}", values))
    return rows_of_maps


def _of_labels(
    result: TopicResult, labels: npt.NDArray[Any], n_resamples: int, seed: int
) -> list[tuple[Any, ...]]:
    of_row = result.distinct.of_row
    used = np.flatnonzero((of_row >= 0) & (labels != ""))
    if not len(used):
        raise InputError("labels", "known for at least one row with text", found="none")
    frame = evaluate_clustering(
        labels[used],
        result.labels[used],
        n_resamples=n_resamples,
        units=of_row[used],
        random_state=seed,
    ).to_frame()
    names = frame["measure"].replace("coverage", "label_coverage")
    names += np.where(frame["documents"] == "covered", "_covered", "")
    return list(zip(names, *(frame[name] for name in ("value", "low", "high", "n")), strict=True))


def _bare(name: str, value: float, n: int) -> Row:
    return name, value, math.nan, math.nan, n


def _mean_row(name: str, values: Float64Array, n_resamples: int, seed: int) -> Row:
    """Return the mean of the values without NaN, with its bootstrap interval."""
    values = values[~np.isnan(values)]
    low = high = math.nan
    if len(values) > 1:
        bounds = interval(resampled_means(values[:, None], n_resamples, seed)[:, 0], len(values))
        low, high = float(bounds[0]), float(bounds[1])
    return name, _mean(values), low, high, len(values)


def _mean(values: Float64Array) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan
