"""Topics of passages -> topics of the texts that they are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embedtopics.errors import InputError
from embedtopics.results import PassageTopics, TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["passage_topics"]


def passage_topics(result: TopicResult, shares: csr_matrix | None = None) -> PassageTopics:
    """Add up the topics of passages for the long texts that they are of.

    For a result of `Corpus.passages`: the share of a topic in a text is the mean of its shares in
    the passages, each as heavy as it is long.

    Parameters
    ----------
    result : TopicResult
        Its corpus has the columns ``passage_of``, ``passage_start`` and ``passage_stop``.
    shares : csr_matrix of shape (n_rows, n_topics), optional
        Shares of topics in each passage, such as those of `mixtures`; by default the
        memberships.

    Returns
    -------
    PassageTopics
        A text whose passages hold no text has no share of any topic.

    Raises
    ------
    InputError
        If the corpus is not one of passages, or `shares` has another shape.
    """
    from scipy.sparse import csr_matrix

    frame = result.corpus.metadata
    lacking = [n for n in ("passage_of", "passage_start", "passage_stop") if n not in frame]
    if lacking:
        raise InputError(
            f"expected a corpus of passages, as Corpus.passages makes it; there is no column "
            f"{lacking[0]!r}"
        )
    of_row = result.documents.of_row
    has_text = np.flatnonzero(of_row >= 0)
    if shares is None:
        spread = csr_matrix(
            (np.ones(len(has_text)), (has_text, of_row[has_text])),
            shape=(len(of_row), len(result.documents)),
        )
        shares = csr_matrix(spread @ result.memberships)
    elif shares.shape != (len(of_row), result.n_topics):
        raise InputError(
            f"shares must have a row for each of the {len(of_row)} passages and a column for each "
            f"of the {result.n_topics} topics; got shape {shares.shape}"
        )
    number: dict[str, int] = {}
    text_of = np.array(
        [number.setdefault(str(name), len(number)) for name in frame["passage_of"]], dtype=np.int64
    )
    lengths = (frame["passage_stop"] - frame["passage_start"]).to_numpy(dtype=np.float64)[has_text]
    texts = text_of[has_text]
    total = np.bincount(texts, lengths, minlength=len(number))
    weights = csr_matrix(
        (lengths / np.maximum(total[texts], 1.0), (texts, has_text)),
        shape=(len(number), len(of_row)),
    )
    return PassageTopics(
        tuple(number),
        csr_matrix(weights @ shares, dtype=np.float32),
        np.bincount(texts, minlength=len(number)).astype(np.int64),
    )
