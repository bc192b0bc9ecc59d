"""How often the terms of a topic occur together, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.coherence import EPSILON
from embedtopics.evaluation.cooccurrence import Places, n_windows_of, refuse_strings
from embedtopics.protocols import Int64Array
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
    seen, positions = _occurrences(terms, tokens)
    places = Places.of_stream(seen, positions, len(terms), tokens.offsets)
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


def _occurrences(terms: Sequence[str], tokens: TokenStream) -> tuple[Int64Array, Int64Array]:
    """Return where in the stream which terms begin, in the order of the stream."""
    wanted = {word for term in terms for word in term.split(" ")}
    id_of = {word: i for i, word in enumerate(tokens.words) if word in wanted}
    split = [[id_of.get(word, -1) for word in term.split(" ")] for term in terms]
    known = [(i, words) for i, words in enumerate(split) if min(words) >= 0]
    document = np.repeat(np.arange(len(tokens)), np.diff(tokens.offsets))
    # The number of each beginning of a term, and at which positions of the stream it stands.
    number: dict[tuple[int, ...], int] = {}
    for _, words in known:
        for n in range(1, len(words) + 1):
            number.setdefault(tuple(words[:n]), len(number))
    n_words = len(tokens.words)
    first = np.full(n_words + 1, -1, dtype=np.int64)
    for prefix, at in number.items():
        if len(prefix) == 1:
            first[prefix[0]] = at
    positions = np.flatnonzero(first[tokens.ids] >= 0)
    state = first[tokens.ids[positions]]
    columns, found = [], []
    for n in range(1, max((len(words) for _, words in known), default=0) + 1):
        column_of = np.full(len(number) + 1, -1, dtype=np.int64)
        for i, words in known:
            if len(words) == n:
                column_of[number[tuple(words)]] = i
        whole = np.flatnonzero(column_of[state] >= 0)
        columns.append(column_of[state[whole]])
        found.append(positions[whole])
        longer = {
            number[prefix[:-1]] * n_words + prefix[-1]: at
            for prefix, at in number.items()
            if len(prefix) == n + 1
        }
        positions, state = _extended(positions, state, n, longer, document, tokens, n_words)
    if not columns:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    joined, where = np.concatenate(columns), np.concatenate(found)
    order = np.argsort(where, kind="stable")
    return joined[order], where[order]


def _extended(
    positions: Int64Array,
    state: Int64Array,
    n: int,
    longer: dict[int, int],
    document: Int64Array,
    tokens: TokenStream,
    n_words: int,
) -> tuple[Int64Array, Int64Array]:
    """Return the positions at which beginnings of `n` words go on as beginnings of one more."""
    keys = np.array(sorted(longer), dtype=np.int64)
    inside = positions + n < len(tokens.ids)
    positions, state = positions[inside], state[inside]
    same = document[positions] == document[positions + n]
    positions, state = positions[same], state[same]
    if not len(keys) or not len(positions):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    key = state * n_words + tokens.ids[positions + n]
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    goes_on = keys[place] == key
    next_state = np.array([longer[k] for k in keys.tolist()], dtype=np.int64)
    return positions[goes_on], next_state[place[goes_on]]
