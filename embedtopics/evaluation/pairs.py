"""How often the terms of a topic occur together, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics._occurrences import find_occurrences, index_terms
from embedtopics.evaluation.coherence import EPSILON
from embedtopics.evaluation.cooccurrence import Places, n_windows_of, refuse_strings
from embedtopics.results import TokenStream

__all__ = ["npmi_of_pairs"]


def npmi_of_pairs(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 10
) -> list[npt.NDArray[np.float64]]:
    """Measure the normalised pointwise mutual information of all pairs of a topic's terms.

    As `npmi`, whose values are means of these; but terms may have several words. One stands
    where its first word stands. All terms of all topics are looked for once.

    Parameters
    ----------
    topics : sequence of sequence of str
        Words, and n-grams with single spaces.
    tokens : TokenStream
    window : int or None
        Words in the sliding window; None takes whole documents.

    Returns
    -------
    list of float64 ndarray of shape (n_terms_of_topic, n_terms_of_topic)
        Symmetric; NaN on the diagonal, and for a term that no document holds.

    Raises
    ------
    InputError
        As `npmi`.

    Examples
    --------
    >>> from embedtopics.results import TokenStream
    >>> stream = TokenStream(
    ...     ids=np.array([0, 1, 0, 1, 2], dtype=np.int32),
    ...     offsets=np.array([0, 2, 4, 5]),
    ...     words=("goal", "match", "tax"),
    ... )
    >>> npmi_of_pairs([["goal", "match"]], stream, window=None)[0].round(6).tolist()
    [[nan, 1.0], [1.0, nan]]
    """
    n_windows = n_windows_of(tokens, window)
    refuse_strings(topics)
    terms = sorted({term for topic in topics for term in topic})
    column = {term: i for i, term in enumerate(terms)}
    index = index_terms(terms, tokens.words)
    found = find_occurrences(index, tokens.ids, tokens.offsets, edges_only=False)
    positions = np.repeat(np.arange(len(tokens.ids)), np.diff(found.first))
    places = Places.of_stream(found.terms, positions, len(terms), tokens.offsets)
    measured = []
    for topic in topics:
        distinct, order = np.unique([column[term] for term in topic], return_inverse=True)
        counted = places.count(distinct.astype(np.int64), window)[order][:, order]
        single = np.diagonal(counted) / max(n_windows, 1)
        joint = counted / max(n_windows, 1) + EPSILON
        expected = np.outer(single, single)
        np.fill_diagonal(expected, 0.0)
        is_known = expected > 0
        ratio = np.divide(joint, expected, out=np.ones_like(joint), where=is_known)
        values = np.log(ratio) / -np.log(joint)
        measured.append(np.where(is_known, values, np.nan))
    return measured
