"""The documents of a topic, chosen to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import NOISE, Reason, TopicResult
from embedtopics.topics.likeness import core_centroid
from embedtopics.topics.reading.choosing import WAYS, Candidates, chosen
from embedtopics.topics.reading.columns import string_column
from embedtopics.topics.reading.concordance import document_weights
from embedtopics.topics.reading.selecting import Period, drawn, rows_of_topics, selected_rows
from embedtopics.topics.tables import shorten

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read"]


def read(
    result: TopicResult,
    topic: int,
    *,
    how: str = "central",
    n: int = 10,
    seed: int = 0,
    period: Period = None,
    group: Any = None,
    where: Any = None,
    characters: int | None = None,
) -> pd.DataFrame:
    """Choose documents of a topic to read.

    Each text comes once, however many rows hold it. What is chosen does not depend on the order
    of the rows.

    Parameters
    ----------
    result : TopicResult
    topic : int
        -1 for documents in no topic; nothing is the middle of these, so that "central" starts
        with those that have the largest share of no topic.
    how : {"central", "typical", "diverse", "boundary", "random"}
        - "central": nearest to the topic's centroid (the mean of its vectors, weighted by their
          strengths), near duplicates of a text before left out;
        - "typical": central, and not all alike; the first five of a topic are its
          representatives;
        - "diverse": each the one least like those before it, among the half of the documents
          nearest to the centroid: the breadth of the topic;
        - "boundary": with the largest share of another topic, which is named;
        - "random": by lot, which is what a topic should be judged by.
    n : int
        Documents at most.
    seed : int
        Of the lot, which is drawn by the content of the texts.
    period : str, int or pair, optional
        Only rows of a period, such as "2021", "2021-05" or ("2020-03-01", "2021"), both ends
        included; None leaves an end open.
    group : mapping or value, optional
        Only rows with a value in a column, such as ``{"source": "Le Monde"}``, or, of the group
        column, the value alone.
    where : array_like or Series of bool, optional
        Only rows of a mask.
    characters : int, optional
        Length at which texts are cut, on one line; by default they come as they were given.

    Returns
    -------
    DataFrame
        With the index labels of the rows, the first for each text among those selected. Columns
        id, text, score (by what the documents are ordered: the cosine with the centroid, or the
        share of no topic; for "diverse" the cosine with the nearest document before; for
        "boundary" the other topic's share; for "random" the number drawn, from 0 to 1), topic,
        membership (share of the topic, or of none, in the text), second_topic, second_label and
        second_share (of the other topic with the largest share; -1, "" and 0 where there is
        none), reason (why it is in no topic), date, group and rows (how many of the rows hold the
        text). Without rows where none is left.

    Raises
    ------
    InputError
        If there is no such topic, group or column, no dates are known, or an argument is bad.
    """
    checked_count(n, "n")
    optional_count(characters, "characters")
    if how not in WAYS:
        raise InputError(f"expected how among {', '.join(WAYS)}; got {how!r}")
    drawn(result.documents.hashes[:0], seed)  # a bad seed is refused whatever the way
    rows = rows_of_topics(result, [topic])
    rows &= selected_rows(result, period=period, group=group, where=where)
    weights, first_rows = document_weights(result, rows)
    documents = np.flatnonzero(weights)
    second, share = _second_topics(result, documents)
    closeness = _closeness(result, int(topic), documents)
    candidates = Candidates(result, documents, closeness, share, seed)
    places, scores = chosen(candidates, how, n)
    at = documents[places]
    frame = _frame(result, int(topic), at, first_rows[at], characters)
    frame.insert(2, "score", scores)
    frame.insert(5, "second_topic", second[places])
    labels = [result.topics[t].label if t != NOISE else "" for t in second[places].tolist()]
    frame.insert(6, "second_label", string_column(labels, frame.index))
    frame.insert(7, "second_share", share[places])
    frame["rows"] = weights[at]
    return frame


def _frame(
    result: TopicResult,
    topic: int,
    documents: Int64Array,
    rows: Int64Array,
    characters: int | None,
) -> pd.DataFrame:
    """Return what is known of some documents of a topic, beside other topics."""
    import pandas as pd

    corpus = result.corpus
    if topic == NOISE:
        own = result.none_shares[documents].astype(np.float64)
    else:
        own = np.asarray(result.memberships[documents, topic].todense(), np.float64).ravel()
    texts = [corpus.texts[row] for row in rows.tolist()]
    nothing = pd.Series([None] * len(rows), dtype=object)
    dates = nothing.astype("datetime64[us]") if corpus.time is None else corpus.time.iloc[rows]
    groups = nothing if corpus.group is None else corpus.group.iloc[rows]
    index = corpus.index[rows]
    texts = texts if characters is None else [shorten(text, characters) for text in texts]
    reasons = [Reason(reason).text for reason in result.reasons[rows].tolist()]
    return pd.DataFrame(
        {
            "id": string_column([corpus.ids[row] for row in rows.tolist()], index),
            "text": string_column(texts, index),
            "topic": np.full(len(rows), topic, dtype=np.int32),
            "membership": own,
            "reason": string_column(reasons, index),
            "date": dates.array,
            "group": groups.array,
        },
        index=index,
    )


def _closeness(result: TopicResult, topic: int, documents: Int64Array) -> npt.NDArray[np.float64]:
    """Return the cosine of each document with the middle of a topic, shape (n_documents,).

    For documents in no topic, which have no middle, it is their share of no topic.
    """
    if topic == NOISE:
        return result.none_shares[documents].astype(np.float64)
    middle = core_centroid(result, topic)
    return np.asarray(np.einsum("id,d->i", result.embeddings[documents], middle))


def _second_topics(
    result: TopicResult, documents: Int64Array
) -> tuple[Int64Array, npt.NDArray[np.float64]]:
    """Return the topic beside its own with the largest share in each document, and this share.

    -1 and 0 where a document has a share of no other; ties go to the lower topic.
    """
    shares = result.memberships[documents]
    row = np.repeat(np.arange(len(documents)), np.diff(shares.indptr))
    other = (shares.indices != result.clustering.labels[documents][row]) & (shares.data > 0)
    row, topics, values = row[other], shares.indices[other], shares.data[other]
    order = np.lexsort((topics, -values, row))
    first = order[np.diff(row[order], prepend=-1) > 0]
    second = np.full(len(documents), NOISE, dtype=np.int64)
    share = np.zeros(len(documents))
    second[row[first]], share[row[first]] = topics[first], values[first]
    return second, share
