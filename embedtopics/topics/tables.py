"""Results as data frames: one row a topic, a row of the input, or a term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.results import NOISE, Reason, TopicResult
from embedtopics.terms.best_terms import best_terms

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["documents", "table", "terms"]

NO_TOPIC = "(no topic)"


def table(
    result: TopicResult, *, n_terms: int = 5, n_examples: int = 1, n_characters: int = 160
) -> pd.DataFrame:
    """Tabulate the topics.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Keywords shown.
    n_examples : int
        Typical texts shown.
    n_characters : int
        Length at which a text is cut.

    Returns
    -------
    DataFrame
        Columns topic, size (rows), share (of the rows with text), recurrence (how far the topic
        comes back in replicates; only where stability was measured), label, terms and examples
        (lists); largest topic first, the rows in no topic last, under topic -1.
    """
    import pandas as pd

    rows = [
        {
            "topic": topic.topic_id,
            "size": topic.size,
            "share": topic.share,
            "label": topic.label,
            "terms": list(topic.keywords[:n_terms]),
            "examples": [
                shorten(result.corpus.texts[row], n_characters)
                for row in topic.representatives[:n_examples]
            ],
        }
        for topic in result.topics
    ]
    has_text = result.documents.of_row >= 0
    outside = int(np.sum(result.labels[has_text] == NOISE))
    if outside:
        share = outside / int(has_text.sum())
        rows.append(
            {"topic": NOISE, "size": outside, "share": share, "label": NO_TOPIC,
             "terms": [], "examples": []}
        )  # fmt: skip
    frame = pd.DataFrame(rows, columns=["topic", "size", "share", "label", "terms", "examples"])
    if result.stability is not None:
        recurrence = [*result.stability.recurrence.tolist(), *[np.nan] * bool(outside)]
        frame.insert(3, "recurrence", np.array(recurrence, dtype=np.float64))
    return frame


def documents(result: TopicResult) -> pd.DataFrame:
    """Tabulate the rows of the input, each with its topic.

    Returns
    -------
    DataFrame
        In the input's order and with its index; columns id, text, the input's other columns,
        then status ("text", "empty", "missing"), topic, label, reason (why it is in none),
        membership (share of the topic in the text), none (share of no topic), core (whether the
        text is in the topic's dense core), representative (whether it is one of the topic's
        typical texts), agreement (share of replicates in which the text stays
        with its topic; only where stability was measured), x and y (position on the map; NaN
        where there is no text). A column of the input with one of these names is kept under
        ``<name>_given``.
    """
    import pandas as pd

    corpus = result.corpus
    labels = result.labels
    names = [topic.label for topic in result.topics]
    positions = result.by_row(result.map, np.nan)
    own = np.zeros(len(result.documents), dtype=np.float32)
    inside = np.flatnonzero(result.clustering.labels != NOISE)
    if len(inside):
        own[inside] = np.asarray(
            result.memberships[inside, result.clustering.labels[inside]]
        ).ravel()
    made = {
        "status": np.array(["text", "empty", "missing"], dtype=object)[corpus.status],
        "topic": labels,
        "label": [names[label] if label != NOISE else NO_TOPIC for label in labels],
        "reason": [Reason(reason).text for reason in result.reasons.tolist()],
        "membership": result.by_row(own, np.nan),
        "none": result.by_row(result.none_shares, np.nan),
        "core": result.by_row(result.clustering.strengths > 0, False),
        "representative": _representative(result),
    }
    if result.stability is not None:
        made["agreement"] = result.by_row(result.stability.agreement, np.nan)
    made |= {"x": positions[:, 0], "y": positions[:, 1]}
    given = corpus.metadata.copy(deep=False)
    reserved = {"id", "text", *made}
    given.columns = pd.Index(
        [f"{name}_given" if name in reserved else name for name in given.columns]
    )
    first = pd.DataFrame({"id": list(corpus.ids), "text": list(corpus.texts)}, index=corpus.index)
    return pd.concat([first, given, pd.DataFrame(made, index=corpus.index)], axis=1)


def _representative(result: TopicResult) -> npt.NDArray[np.bool_]:
    """Return whether each row has a typical text of its topic."""
    of_row = result.documents.of_row
    rows = [row for topic in result.topics for row in topic.representatives]
    return np.isin(of_row, of_row[rows]) & (of_row >= 0)


def terms(result: TopicResult, *, n_terms: int = 50) -> pd.DataFrame:
    """Tabulate the terms of the topics.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Terms of each topic at most, by weight; those of a weight above 0.

    Returns
    -------
    DataFrame
        Columns topic, term, weight (class-TF-IDF), n_documents (distinct documents of the
        topic that hold the term) and keyword (whether it is one of the topic's keywords).
    """
    import pandas as pd
    from scipy.sparse import csr_matrix

    counts = result.term_counts
    labels = result.clustering.labels
    inside = np.flatnonzero(labels != NOISE)
    member = csr_matrix(
        (np.ones(len(inside), np.int32), (labels[inside], inside)),
        shape=(result.n_topics, len(labels)),
    )
    holders = (member @ (counts.counts > 0).astype(np.int32)).tocsr()
    frames = []
    best = best_terms(result.topic_terms, counts, n_terms)
    for topic, (columns, weights) in zip(result.topics, best, strict=True):
        names = [counts.terms[c] for c in columns]
        frames.append(
            pd.DataFrame(
                {
                    "topic": topic.topic_id,
                    "term": names,
                    "weight": weights,
                    "n_documents": np.asarray(holders[topic.topic_id, columns].todense()).ravel(),
                    "keyword": [name in topic.keywords for name in names],
                }
            )
        )
    if not frames:
        return pd.DataFrame(columns=["topic", "term", "weight", "n_documents", "keyword"])
    return pd.concat(frames, ignore_index=True)


def shorten(text: str, n_characters: int) -> str:
    """Return a text on one line, cut at a length.

    Examples
    --------
    >>> shorten("a long story about nothing", 12)
    'a long stor…'
    """
    line = " ".join(text.split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"
