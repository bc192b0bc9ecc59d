"""Results as data frames: one row a topic, a row of the input, or a term."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd

from embedtopics._utils.checks import optional_count, resolve_seed
from embedtopics._utils.display import excerpt
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._texts import as_column, replace_surrogates
from embedtopics.errors import InputError
from embedtopics.evaluation._sheets import (
    Sheet,
    coding_sample,
    document_intrusion,
    topic_intrusion,
    word_intrusion,
)
from embedtopics.protocols import RandomState
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._representative import best_terms
from embedtopics.topics._describe import top_words
from embedtopics.topics._relabel import own_shares
from embedtopics.topics.results import Reason, TopicResult

NO_TOPIC = "(no topic)"

LABEL_COLUMNS = ("label_auc", "keywords_auc", "label_worse")

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
        (lists); largest topic first, the rows in no topic last, under topic -1. Where labels were
        scored, also label_auc and keywords_auc (how well they find the topic's texts, see
        `score_labels`) and label_worse (whether the label does so worse).
    """
    rows = [
        {
            "topic": topic.topic_id,
            "size": topic.size,
            "share": topic.share,
            "label": topic.label,
            "terms": list(topic.keywords[:n_terms]),
            "examples": [
                excerpt(result.corpus.texts[row], n_characters)
                for row in topic.representatives[:n_examples]
            ],
        }
        for topic in result.topics
    ]
    has_text = result.documents.of_row >= 0
    outside = int(np.sum(result.labels[has_text] == NOISE))
    if outside:
        share = outside / int(has_text.sum())
        noise = {"topic": NOISE, "size": outside, "share": share, "label": NO_TOPIC}
        rows.append({**noise, "terms": [], "examples": []})
    frame = pd.DataFrame(rows, columns=["topic", "size", "share", "label", "terms", "examples"])
    if result.stability is not None:
        recurrence = [*result.stability.recurrence.tolist(), *[np.nan] * bool(outside)]
        frame.insert(3, "recurrence", np.array(recurrence, dtype=np.float64))
    if any(topic.label_auc is not None for topic in result.topics):
        aucs = [
            ((t.label_auc or (None,))[0], t.keywords_auc, t.is_label_worse) for t in result.topics
        ]
        aucs += [(None, None, False)] * bool(outside)
        for name, column in zip(LABEL_COLUMNS, zip(*aucs, strict=True), strict=True):
            frame[name] = np.array(column, dtype=bool if name == "label_worse" else np.float64)
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
    corpus, documents = result.corpus, result.documents
    labels = result.labels
    names = [topic.label for topic in result.topics]
    positions = result.by_row(result.map, np.nan)
    own = own_shares(result.memberships, result.clustering.labels)
    typical = [row for topic in result.topics for row in topic.representatives]
    of_row = documents.of_row
    made = {
        "status": np.array(["text", "empty", "missing"], dtype=object)[corpus.status],
        "topic": labels,
        "label": [names[label] if label != NOISE else NO_TOPIC for label in labels],
        "reason": [Reason(reason).text for reason in result.reasons.tolist()],
        "membership": result.by_row(own, np.nan),
        "none": result.by_row(result.none_shares, np.nan),
        "core": result.by_row(result.clustering.probabilities > 0, False),
        "representative": np.isin(of_row, of_row[typical]) & (of_row >= 0),
    }
    if result.stability is not None:
        made["agreement"] = result.by_row(result.stability.agreement, np.nan)
    made |= {"x": positions[:, 0], "y": positions[:, 1]}
    first = {
        "id": as_column(corpus.ids),
        "text": as_column(corpus.texts),
        "excerpt": [excerpt(text, EXCERPT) for text in corpus.texts],
    }
    given = corpus.metadata.copy(deep=False)
    reserved = {*first, *made}
    given.columns = pd.Index(
        [
            f"{name}_given" if name in reserved
            # Half of a character is in no column that pandas writes.
            else replace_surrogates(name) if isinstance(name, str) else name
            for name in given.columns
        ]
    )  # fmt: skip
    index = corpus.index
    return pd.concat(
        [pd.DataFrame(first, index=index), given, pd.DataFrame(made, index=index)], axis=1
    )


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
    counts = result.term_counts
    held = (counts.counts > 0).astype(np.int32)
    holders = count_by_topic(held, result.clustering.labels, result.n_topics).astype(np.int32)
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
                    "n_documents": holders[topic.topic_id, columns].toarray().ravel(),
                    "keyword": [name in topic.keywords for name in names],
                }
            )
        )
    if not frames:
        return pd.DataFrame(columns=["topic", "term", "weight", "n_documents", "keyword"])
    return pd.concat(frames, ignore_index=True)


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
    random_state: RandomState = 0,
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
    random_state : int, numpy.random.Generator or None
        Draws the questions.

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
    optional_count(n_questions, "n_questions")
    seed = resolve_seed(random_state)
    words = top_words(result, LISTED)
    texts = result.corpus.document_texts()
    labels, probabilities = result.clustering.labels, result.clustering.probabilities
    coding = coding_sample(
        texts, labels, words, n_per_topic=n_per_topic, n_decoys=n_decoys, random_state=seed
    )
    terms, n_texts = result.term_counts.terms, n_questions or N_TEXTS
    makers = (
        partial(word_intrusion, words, result.topic_terms, terms, n_questions=n_questions),
        partial(document_intrusion, texts, labels, probabilities, n_questions=n_questions),
        partial(topic_intrusion, texts, result.memberships, words, n_questions=n_texts),
    )
    sheets = []
    for make in makers:
        with suppress(InputError):  # fewer than two topics are large enough
            sheets.append(make(random_state=seed))
    return tuple(sheet for sheet in (*sheets, coding) if len(sheet))
