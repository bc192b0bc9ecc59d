"""Results as data frames, and their export to files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_count
from embedtopics._utils.display import excerpt
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.annotation.results import SheetScore
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._table_files import format_of, write_tables
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.corpus._windows import PASSAGE_COLUMNS
from embedtopics.errors import InputError
from embedtopics.results import Exported
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._representative import best_terms
from embedtopics.topics._describe import weighted_words
from embedtopics.topics._relabel import own_shares
from embedtopics.topics.results import NO_TOPIC, Reason, TopicResult

EXCERPT = 160  # characters


def table(
    result: FittedTopics,
    *,
    n_terms: int = 5,
    n_examples: int = 1,
    n_characters: int = 160,
    scores: Sequence[SheetScore] = (),
) -> pd.DataFrame:
    """Tabulate the topics.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    n_terms : int
        Number of keywords.
    n_examples : int
        Number of representative texts.
    n_characters : int
        Largest length of a text.
    scores : sequence of SheetScore
        Scores of people's answers to `et.annotation.validation_sheets`; each adds a column.

    Returns
    -------
    DataFrame
        Columns topic, name, terms and examples (lists), theme (see `themes`), size (rows), share
        (of the rows with text), recurrence (only if stability was measured) and name_auc (of
        scored names, see `with_name_scores`). The largest topic is first; the rows in no topic are
        last, as topic -1. Scored names add keywords_auc and name_worse (whether the name separates
        texts worse than the keywords).

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> et.topics.table(model)["topic"].tolist()
    [0, 1, 2, 3, -1]
    """
    result = result_of(result)
    n_terms = checked_count(n_terms, "n_terms", 0)
    n_examples = checked_count(n_examples, "n_examples", 0)
    n_characters = checked_count(n_characters, "n_characters")
    if not isinstance(scores, Sequence) or not all(hasattr(score, "by_topic") for score in scores):
        raise InputError("scores", "a list of what et.annotation.score_sheet returned", scores)

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


def documents(result: FittedTopics) -> pd.DataFrame:
    """Tabulate the rows of the input, each with its topic.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel

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

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> documents = et.topics.documents(model)
    >>> documents.shape[0], list(documents.columns[:4])
    (120, ['id', 'text', 'excerpt', 'date'])
    """
    result = result_of(result)
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


def terms(result: FittedTopics, *, n_terms: int = 50, single_words: bool = False) -> pd.DataFrame:
    """Tabulate the terms of the topics.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    n_terms : int
        Largest number of terms per topic, by weight; terms have a weight above 0.
    single_words : bool
        Whether to list single words only, chosen and ordered like keywords: for comparisons with
        models of single words.

    Returns
    -------
    DataFrame
        Columns topic, term, weight (class-TF-IDF), n_documents (distinct documents of the topic
        with the term) and keyword (whether it is a keyword of the topic).

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> terms = et.topics.terms(model, n_terms=3)
    >>> list(terms.columns)
    ['topic', 'term', 'weight', 'n_documents', 'keyword']
    >>> terms["topic"].tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    >>> words = et.topics.terms(model, n_terms=10, single_words=True)
    >>> words["term"].str.contains(" ").any().item()
    False
    """
    result = result_of(result)
    n_terms = checked_count(n_terms, "n_terms", 0)
    counts = result.term_counts
    occurs = (counts.counts > 0).astype(np.int32)
    holders = count_by_topic(occurs, result.clustering.labels, result.n_topics).astype(np.int32)

    if single_words:
        column = {term: place for place, term in enumerate(counts.terms)}
        lists = [
            [(column[term], weight) for term, weight in row]
            for row in weighted_words(result, n_terms)
        ]
    else:
        best = best_terms(result.topic_terms, counts, n_terms)
        lists = [list(zip(columns, weights, strict=True)) for columns, weights in best]

    frames = []
    for topic, row in zip(result.topics, lists, strict=True):
        columns = np.array([place for place, _ in row], dtype=np.int64)
        names = [counts.terms[place] for place in columns]
        weights = np.array([weight for _, weight in row], dtype=np.float64)
        frame = pd.DataFrame({"topic": topic.topic_id, "term": names, "weight": weights})
        frame["n_documents"] = holders[topic.topic_id, columns].toarray().ravel()
        frames.append(frame.assign(keyword=[name in topic.keywords for name in names]))

    if not frames:
        return pd.DataFrame(columns=["topic", "term", "weight", "n_documents", "keyword"])
    return pd.concat(frames, ignore_index=True)


N_EXAMPLES = 3


def export(
    result: FittedTopics, out: str | Path, *, what: str | Sequence[str] | None = None
) -> Exported:
    """Write the tables of a result for other programs.

    The tables are topics, documents (the rows of the input with their results), terms, shares (see
    `document_shares`; of passages only), decisions (of the fit), history (edits after it) and
    settings.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    out : str or Path
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

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = et.topics.export(model, f"{folder}/topics.csv", what="topics")
    >>> [path.name for path in exported.paths]
    ['topics.csv']
    """
    result = result_of(result)
    suffix = format_of(out)
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
    return write_tables(tables, out)


def document_shares(result: FittedTopics) -> pd.DataFrame:
    """Return the share of each topic among the passages of each document.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
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

    Examples
    --------
    >>> import embedtopics as et
    >>> passages = et.Corpus("embedtopics:demo", limit=120).passages()
    >>> shares = et.topics.document_shares(et.TopicModel("tfidf", n_topics=4).fit(passages))
    >>> shares.shape
    (120, 6)
    """
    result = result_of(result)
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
