"""Results as data frames, their measures, their export to files, and sheets for people."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import excerpt
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._table_files import format_of, write_tables
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.corpus._windows import PASSAGE_COLUMNS
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import agreement
from embedtopics.evaluation._bootstrap import interval, resampled_means
from embedtopics.evaluation._coherence import c_v, diversity, npmi, topic_uniqueness, u_mass
from embedtopics.evaluation._maps import trustworthiness_and_continuity
from embedtopics.evaluation._sheets import (
    Sheet,
    document_intrusion,
    optimal_label,
    topic_fit,
    word_intrusion,
)
from embedtopics.evaluation.results import SheetScore
from embedtopics.protocols import Float64Array, RandomState
from embedtopics.results import Exported
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._representative import best_terms
from embedtopics.topics._describe import top_words
from embedtopics.topics._relabel import own_shares
from embedtopics.topics.results import NO_TOPIC, Reason, TopicResult
from embedtopics.topics.trends._by_group import values_of

EXCERPT = 160  # characters


def table(
    result: TopicResult,
    *,
    n_terms: int = 5,
    n_examples: int = 1,
    n_characters: int = 160,
    scores: Sequence[SheetScore] = (),
) -> pd.DataFrame:
    """Tabulate the topics.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Number of keywords.
    n_examples : int
        Number of representative texts.
    n_characters : int
        Largest length of a text.
    scores : sequence of SheetScore
        Scores of people's answers to `validation_sheets`; each adds a column.

    Returns
    -------
    DataFrame
        Columns topic, name, terms and examples (lists), theme (see `themes`), size (rows), share
        (of the rows with text), recurrence (only if stability was measured) and name_auc (of
        scored names, see `score_labels`). The largest topic is first; the rows in no topic are
        last, as topic -1. Scored names add keywords_auc and name_worse (whether the name separates
        texts worse than the keywords).
    """
    n_terms = checked_count(n_terms, "n_terms", 0)
    n_examples = checked_count(n_examples, "n_examples", 0)
    n_characters = checked_count(n_characters, "n_characters")
    if not isinstance(scores, Sequence) or not all(hasattr(score, "by_topic") for score in scores):
        raise InputError("scores", "a list of what evaluation.score_sheet returns", scores)

    theme_of = {topic: theme.label for theme in result._themes for topic in theme.topics}
    rows = [
        {
            "topic": topic.topic_id,
            "name": topic.name,
            "terms": list(topic.keywords[:n_terms]),
            "examples": [
                excerpt(result.corpus.texts[row], n_characters)
                for row in topic.representatives[:n_examples]
            ],
            "theme": theme_of[topic.topic_id],
            "size": topic.size,
            "share": topic.share,
        }
        for topic in result.topics
    ]

    has_text = result.distinct.of_row >= 0
    outside = int(np.sum(result.labels[has_text] == NOISE))
    if outside:
        share = outside / int(has_text.sum())
        noise = {"topic": NOISE, "name": NO_TOPIC, "size": outside, "share": share}
        rows.append({**noise, "terms": [], "examples": [], "theme": ""})

    columns = ["topic", "name", "terms", "examples", "theme", "size", "share"]
    frame = pd.DataFrame(rows, columns=columns)
    blank = [np.nan] * bool(outside)

    if result.stability is not None:
        frame["recurrence"] = [*result.stability.recurrence.tolist(), *blank]
    if any(topic.name_auc is not None for topic in result.topics):
        intervals = [topic.name_auc or (np.nan,) for topic in result.topics]
        frame["name_auc"] = [*(interval[0] for interval in intervals), *blank]
        if any(topic.is_named for topic in result.topics):
            of_keywords = [topic.keywords_auc for topic in result.topics]
            frame["keywords_auc"] = np.array([*of_keywords, *blank], dtype=np.float64)
            worse = [topic.is_name_worse for topic in result.topics]
            frame["name_worse"] = [*worse, *[False] * len(blank)]

    for score in scores:
        frame[score.task] = frame["topic"].map(score.by_topic.set_index("topic")["precision"])
    return frame


def documents(result: TopicResult) -> pd.DataFrame:
    """Tabulate the rows of the input, each with its topic.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    DataFrame
        In the order and with the index of the input. Columns id, text, excerpt (the beginning of
        the text), the other columns of the input, then status ("text", "empty", "missing"), topic,
        topic_name, reason (why it is in no topic), membership (share of the topic in the text),
        none (share of no topic), core (whether the text is in the dense core of the topic),
        representative, agreement (share of replicates in which the text stays with its topic; only
        if stability was measured), x and y (position on the map; NaN without text). A column of
        the input with one of these names is renamed ``<name>_given``.
    """
    corpus, documents = result.corpus, result.distinct
    labels = result.labels
    names = [topic.name for topic in result.topics]
    positions = result.by_row(result.map, np.nan)
    shares = own_shares(result.memberships, result.clustering.labels)
    typical = [row for topic in result.topics for row in topic.representatives]
    of_row = documents.of_row
    columns = {
        "status": np.array(["text", "empty", "missing"], dtype=object)[corpus.status],
        "topic": labels,
        "topic_name": [names[label] if label != NOISE else NO_TOPIC for label in labels],
        "reason": [Reason(reason).text for reason in result.reasons.tolist()],
        "membership": result.by_row(shares, np.nan),
        "none": result.by_row(result.none_shares, np.nan),
        "core": result.by_row(result.clustering.probabilities > 0, False),
        "representative": np.isin(of_row, of_row[typical]) & (of_row >= 0),
    }
    if result.stability is not None:
        columns["agreement"] = result.by_row(result.stability.agreement, np.nan)
    columns |= {"x": positions[:, 0], "y": positions[:, 1]}
    first = {
        "id": [*corpus.ids],
        "text": [*corpus.texts],
        "excerpt": [excerpt(text, EXCERPT) for text in corpus.texts],
    }
    metadata = corpus.metadata.copy(deep=False)
    reserved = {*first, *columns}

    def renamed(name: Any) -> Any:
        if name in reserved:
            return f"{name}_given"
        # pandas does not write half of a surrogate pair.
        return replace_surrogates(name) if isinstance(name, str) else name

    metadata.columns = pd.Index([renamed(name) for name in metadata.columns])
    frames = [pd.DataFrame(part, index=corpus.index) for part in (first, columns)]
    return pd.concat([frames[0], metadata, frames[1]], axis=1)


def terms(result: TopicResult, *, n_terms: int = 50) -> pd.DataFrame:
    """Tabulate the terms of the topics.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Largest number of terms per topic, by weight; terms have a weight above 0.

    Returns
    -------
    DataFrame
        Columns topic, term, weight (class-TF-IDF), n_documents (distinct documents of the topic
        with the term) and keyword (whether it is a keyword of the topic).
    """
    n_terms = checked_count(n_terms, "n_terms", 0)
    counts = result.term_counts
    occurs = (counts.counts > 0).astype(np.int32)
    holders = count_by_topic(occurs, result.clustering.labels, result.n_topics).astype(np.int32)

    frames = []
    best = best_terms(result.topic_terms, counts, n_terms)
    for topic, (columns, weights) in zip(result.topics, best, strict=True):
        names = [counts.terms[c] for c in columns]
        frame = pd.DataFrame({"topic": topic.topic_id, "term": names, "weight": weights})
        frame["n_documents"] = holders[topic.topic_id, columns].toarray().ravel()
        frames.append(frame.assign(keyword=[name in topic.keywords for name in names]))

    if not frames:
        return pd.DataFrame(columns=["topic", "term", "weight", "n_documents", "keyword"])
    return pd.concat(frames, ignore_index=True)


LISTED = 20
"""Best words of a topic, which cannot be intruders."""


def validation_sheets(result: TopicResult, *, random_state: RandomState = 0) -> tuple[Sheet, ...]:
    """Make sheets of questions to people: which words and texts do not belong, which names fit.

    Parameters
    ----------
    result : TopicResult
        A result with two topics or more.
    random_state : int, numpy.random.Generator or None
        Source of the random questions.

    Returns
    -------
    tuple of Sheet
        "word_intrusion", "document_intrusion", "optimal_label" and "topic_fit", except sheets
        that need more or larger topics: a question for each topic, three in the last. Each distinct
        text counts once. `embedtopics.annotation.ask` puts them on a page.

    Raises
    ------
    InputError
        If there are fewer than two topics.

    Examples
    --------
    >>> from embedtopics.evaluation import score_sheet
    >>> for sheet in validation_sheets(result):  # doctest: +SKIP
    ...     sheet.write("sheets")
    >>> score_sheet("sheets/word_intrusion.csv", "sheets/keys/word_intrusion.csv")
    ... # doctest: +SKIP
    """
    if result.n_topics < 2:
        raise InputError("result", "one with two topics or more", found=str(result.n_topics))
    seed = resolve_seed(random_state)
    words, texts = top_words(result, LISTED), result.corpus.document_texts()
    clustering, names = result.clustering, [topic.name for topic in result.topics]
    terms = [", ".join(w for w in t.keywords[:8] if w not in t.name) for t in result.topics]
    topics = [f"{label} ({more})" for label, more in zip(names, terms, strict=True)]
    sheets = (
        word_intrusion(words, result.topic_terms, result.term_counts.terms, seed),
        document_intrusion(texts, clustering.labels, clustering.probabilities, seed),
        optimal_label(texts, result.memberships, names, seed),
        topic_fit(texts, clustering.labels, topics, seed),
    )
    return tuple(sheet for sheet in sheets if len(sheet))


N_EXAMPLES = 3


def export(
    result: TopicResult, path: str | Path, *, what: str | Sequence[str] | None = None
) -> Exported:
    """Write the tables of a result for other programs.

    The tables are topics, documents (the rows of the input with their results), terms, shares (see
    `document_shares`; of passages only), decisions (of the fit), history (edits after it) and
    settings.

    Parameters
    ----------
    result : TopicResult
    path : str or Path
        ``NAME.xlsx`` for one workbook with a sheet for each table (needs the extra "files");
        ``NAME.csv``, ``.tsv``, ``.parquet`` or ``.jsonl`` for one table; a name without a suffix
        for a folder with a csv file for each table. An existing file is replaced; an existing
        folder is replaced only if this function wrote it.
    what : str or sequence of str, optional
        Tables to write; by default all, or the documents if the file holds one table.

    Returns
    -------
    Exported
        The files, and notes of changes: texts that a spreadsheet would run as a formula get a
        leading apostrophe in csv and tsv files; a workbook cannot hold texts of more than 32,767
        characters, time zones, control characters, or integers of more than 15 digits.

    Raises
    ------
    InputError
        If the format or a table is unknown, if the file cannot be written, or if a table has more
        rows than a sheet can hold.
    MissingExtraError
        If openpyxl, which writes workbooks, is not installed.
    """
    suffix = format_of(path)
    if what is None:
        has_passages = PASSAGE_COLUMNS[0] in result.corpus.metadata
        names = [name for name in TABLES if name != "shares" or has_passages]
        names = names if suffix in ("", "xlsx") else ["documents"]
    else:
        selected = [what] if isinstance(what, str) else list(what)
        if not selected or not set(selected) <= set(TABLES):
            raise InputError("what", f"tables among {', '.join(TABLES)}", what)
        names = [name for name in TABLES if name in selected]
    tables = {name: TABLES[name](result) for name in names}
    if "topics" in tables and suffix in ("", "csv", "tsv", "xlsx"):
        tables["topics"] = without_lists(tables["topics"])
    return write_tables(tables, path)


def document_shares(result: TopicResult) -> pd.DataFrame:
    """Return the share of each topic among the passages of each document.

    Parameters
    ----------
    result : TopicResult
        Of a corpus of passages (see `Corpus.passages`).

    Returns
    -------
    DataFrame
        One row for each document, in the order of the corpus, with its id as index. The column
        passages counts its passages with text; the columns 0, 1, ... and -1 (no topic) hold shares
        that sum to 1, or NaN without such a passage.

    Raises
    ------
    InputError
        If the rows are not passages.
    """
    name = PASSAGE_COLUMNS[0]
    if name not in result.corpus.metadata:
        remedy = "fit corpus.passages(), or --passages on the command line"
        raise InputError("result", "one of a corpus of passages", result, remedy)
    has_text = result.distinct.of_row >= 0
    ids = result.corpus.metadata[name]
    counts = pd.crosstab(ids[has_text], result.labels[has_text])
    topics = [*range(result.n_topics), NOISE]
    counts = counts.reindex(index=ids.unique(), columns=topics, fill_value=0)
    n_passages = counts.sum(axis=1)
    shares = counts.div(n_passages, axis=0)
    shares.insert(0, "passages", n_passages)
    return shares.rename_axis(index="document", columns=None)


def without_lists(topics: pd.DataFrame) -> pd.DataFrame:
    """Return a table of topics with joined terms and one column for each example."""
    flat = topics.assign(terms=topics["terms"].map(", ".join))
    for place in range(N_EXAMPLES):
        flat[f"example_{place + 1}"] = [
            examples[place] if len(examples) > place else "" for examples in flat["examples"]
        ]
    return flat.drop(columns="examples")


def _decisions(result: TopicResult) -> pd.DataFrame:
    lines = [(d.stage, d.name, _as_json(d.value), d.message) for d in result.decisions]
    return pd.DataFrame(lines, columns=["stage", "name", "value", "message"])


def _history(result: TopicResult) -> pd.DataFrame:
    from embedtopics.topics.editing._labels import history

    return history(result).assign(parameters=[_as_json(e.parameters) for e in result.history])


def _settings(result: TopicResult) -> pd.DataFrame:
    lines = []
    for section in ("settings", "versions", "timings"):
        for name, value in getattr(result, section).items():
            text = value if isinstance(value, str) else _as_json(value)
            lines.append((section.replace("timings", "seconds"), str(name), text))
    return pd.DataFrame(lines, columns=["section", "name", "value"])


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


TABLES: dict[str, Callable[[TopicResult], pd.DataFrame]] = {
    "topics": lambda result: table(result, n_terms=10, n_examples=N_EXAMPLES, n_characters=300),
    "documents": documents,
    "terms": terms,
    "shares": lambda result: (
        document_shares(result).rename(columns={NOISE: "none"}).rename(columns=str).reset_index()
    ),
    "decisions": _decisions,
    "history": _history,
    "settings": _settings,
}


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


def report_card(
    result: TopicResult,
    *,
    labels: str | npt.ArrayLike | None = None,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Tabulate the measures of a result: its topics, their words, stability and map.

    Parameters
    ----------
    result : TopicResult
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
    `topics.validation_sheets`.
    """
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
    frame = agreement(
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
