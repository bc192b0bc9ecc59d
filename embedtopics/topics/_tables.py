"""Results as data frames: one row a topic, a row of the input, or a term."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.evaluation._intrusion import (
    Sheet,
    coding_sample,
    document_intrusion,
    topic_intrusion,
    word_intrusion,
)
from embedtopics.terms._representative import best_terms
from embedtopics.topics._describe import top_words
from embedtopics.topics.results import Reason, TopicResult

if TYPE_CHECKING:
    import pandas as pd


NO_TOPIC = "(no topic)"

EXCERPT = 160
"""Characters of a text's excerpt."""


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
        In the input's order and with its index; columns id, text, excerpt (the text's beginning,
        on one line), the input's other columns, then status ("text", "empty", "missing"), topic,
        label, reason (why it is in none), membership (share of the topic in the text), none (share
        of no topic), core (whether the text is in the topic's dense core), representative (whether
        it is one of the topic's typical texts), agreement (share of replicates in which the text
        stays with its topic; only where stability was measured), x and y (position on the map; NaN
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
        "core": result.by_row(result.clustering.probabilities > 0, False),
        "representative": _representative(result),
    }
    if result.stability is not None:
        made["agreement"] = result.by_row(result.stability.agreement, np.nan)
    made |= {"x": positions[:, 0], "y": positions[:, 1]}
    given = corpus.metadata.copy(deep=False)
    reserved = {"id", "text", "excerpt", *made}
    given.columns = pd.Index(
        [f"{name}_given" if name in reserved else name for name in given.columns]
    )
    first = pd.DataFrame(
        {
            "id": list(corpus.ids),
            "text": list(corpus.texts),
            "excerpt": [shorten(text, EXCERPT) for text in corpus.texts],
        },
        index=corpus.index,
    )
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
    """Return a text on one line, cut at a length."""
    line = " ".join(text.split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"


# Sheets on which people judge the topics of a result.

LISTED = 20
"""Words of a topic among which no intruder is."""

N_TEXTS = 50
"""Texts that are asked about on the sheet of intruding topics."""


def validation_sheets(
    result: TopicResult,
    *,
    n_questions: int | None = None,
    n_per_topic: int = 10,
    n_decoys: int = 5,
    seed: int = 0,
) -> tuple[Sheet, ...]:
    """Make sheets on which people find intruders, and say which texts belong to which topic.

    Parameters
    ----------
    result : TopicResult
        Of two topics or more.
    n_questions : int, optional
        On each sheet of intruders; by default one a topic, and fifty texts for the intruding
        topic.
    n_per_topic, n_decoys : int
        See `embedtopics.evaluation.coding_sample`.
    seed : int

    Returns
    -------
    tuple of Sheet
        "word_intrusion", "document_intrusion", "topic_intrusion" and "coding"; one that the topics
        are too few or too small for is left out. Each text of the collection counts once.

    Raises
    ------
    InputError
        Where there are fewer than two topics.

    Examples
    --------
    >>> from embedtopics.evaluation import score_intrusion
    >>> for sheet in validation_sheets(result):  # doctest: +SKIP
    ...     sheet.write("sheets")
    >>> score_intrusion("sheets/word_intrusion.csv", "sheets/keys/word_intrusion.csv")
    ... # doctest: +SKIP
    """
    if result.n_topics < 2:
        raise InputError(
            f"people judge topics against others; the result has {result.n_topics}: fit with more"
        )
    words = top_words(result, LISTED)
    texts = result.corpus.document_texts()
    clustering = result.clustering
    if n_questions is not None and n_questions < 1:
        raise InputError(f"n_questions must be at least 1; got {n_questions}")
    coding = coding_sample(
        texts,
        clustering.labels,
        words,
        n_per_topic=n_per_topic,
        n_decoys=n_decoys,
        random_state=seed,
    )
    terms = result.term_counts.terms
    about_words = partial(word_intrusion, words, result.topic_terms, terms, n_questions=n_questions)
    about_texts = partial(
        document_intrusion,
        texts,
        clustering.labels,
        clustering.probabilities,
        n_questions=n_questions,
    )
    about_topics = partial(
        topic_intrusion, texts, result.memberships, words, n_questions=n_questions or N_TEXTS
    )
    sheets = []
    for make in (about_words, about_texts, about_topics):
        with suppress(InputError):  # fewer than two topics are large enough
            sheets.append(make(random_state=seed))
    return tuple(sheet for sheet in (*sheets, coding) if len(sheet))
