"""How well the words of a topic go together, and how little the topics repeat each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import TokenStream

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

__all__ = ["diversity", "npmi"]

_EPSILON = 1e-12


def npmi(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 10
) -> npt.NDArray[np.float64]:
    """Measure the coherence of each topic by normalised pointwise mutual information.

    For two words, with probabilities over windows and e = 1e-12,

        NPMI(a, b) = log((p(a, b) + e) / (p(a) p(b))) / -log(p(a, b) + e),

    from -1 (never together) over 0 (independent) to 1 (only together); a topic's value is the
    mean over its pairs (Bouma 2009; Aletras and Stevenson 2013; Röder et al. 2015, C_NPMI).

    Parameters
    ----------
    topics : sequence of sequence of str
        The words of each topic, as the tokens write them; usually the best ten.
    tokens : TokenStream
        The reference documents, most often those that the topics came from.
    window : int or None
        Words in the sliding window, one step a word; a shorter document is one window.
        None takes whole documents.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        NaN for a topic of which the documents know fewer than two words.

    Raises
    ------
    InputError
        If `window` is below 1, or a topic is a single string.

    Notes
    -----
    The values are those of gensim's ``CoherenceModel(coherence="c_npmi")`` on the same texts,
    so that they compare with published ones. That includes three habits of gensim: words that
    no document holds are left out; a pair that is in all windows counts as -1; and when one of
    two copies of a word leaves the sliding window, both are forgotten, until a new copy enters.

    Examples
    --------
    >>> from embedtopics.results import TokenStream
    >>> stream = TokenStream(
    ...     ids=np.array([0, 1, 0, 1, 2], dtype=np.int32),
    ...     offsets=np.array([0, 2, 4, 5]),
    ...     words=("goal", "match", "tax"),
    ... )
    >>> npmi([["goal", "match"], ["goal", "tax"]], stream, window=None).round(6).tolist()
    [1.0, -0.945566]
    """
    if window is not None and window < 1:
        raise InputError(f"window must be at least 1 word, or None for documents; got {window}")
    known = _known_words(topics, tokens)
    word_ids = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *known]))
    if len(word_ids) == 0:
        return np.full(len(topics), np.nan)
    column = np.full(len(tokens.words), -1, dtype=np.int64)
    column[word_ids] = np.arange(len(word_ids))
    positions = np.flatnonzero(column[tokens.ids] >= 0)
    seen = column[tokens.ids[positions]]
    if window is None:
        presence, weights = _presence_in_documents(seen, positions, tokens.offsets, len(word_ids))
        n_windows = len(tokens)
    else:
        presence, weights = _presence_in_windows(
            seen, positions, tokens.offsets, window, len(word_ids)
        )
        n_windows = int(np.maximum(np.diff(tokens.offsets) - window + 1, 1).sum())
    together = (presence.T @ presence.multiply(weights[:, None])).tocsr() / n_windows
    single = together.diagonal()
    return np.array([_mean_npmi(together, single, column[ids]) for ids in known])


def diversity(topics: Sequence[Sequence[str]], n: int = 10) -> float:
    """Return the share of distinct words among the first `n` words of all topics.

    Near 1, the topics speak of different things; near 1 / n_topics, they repeat each other
    (Dieng et al. 2020).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    n : int
        Words of each topic that count.

    Returns
    -------
    float
        In [0, 1]; NaN without any word.

    Raises
    ------
    InputError
        If `n` is below 1, or a topic is a single string.

    Examples
    --------
    >>> diversity([["tax", "cut"], ["tax", "rise"]])
    0.75
    """
    if n < 1:
        raise InputError(f"n must be at least 1 word; got {n}")
    _refuse_strings(topics)
    words = [word for topic in topics for word in topic[:n]]
    return len(set(words)) / len(words) if words else float("nan")


def _refuse_strings(topics: Sequence[Sequence[str]]) -> None:
    """Refuse topics that would be read letter by letter."""
    for i, topic in enumerate(topics):
        if isinstance(topic, str):
            raise InputError(
                f"each topic must be a sequence of words; topic {i} is the string {topic!r}; "
                "put its words in a list"
            )


def _known_words(topics: Sequence[Sequence[str]], tokens: TokenStream) -> list[Int64Array]:
    """Return the ids of the words of each topic, those left out that the documents lack."""
    _refuse_strings(topics)
    wanted = {word for topic in topics for word in topic}
    # A stream cut from another one may name words that none of its documents holds.
    occurs = np.bincount(tokens.ids, minlength=len(tokens.words)) > 0
    id_of = {word: i for i, word in enumerate(tokens.words) if word in wanted and occurs[i]}
    return [
        np.array([id_of[word] for word in topic if word in id_of], dtype=np.int64)
        for topic in topics
    ]


def _presence_in_documents(
    seen: Int64Array, positions: Int64Array, offsets: Int64Array, n_words: int
) -> tuple[csc_matrix, npt.NDArray[np.float64]]:
    """Return which document holds which word, and the documents' weights, all one."""
    document = np.searchsorted(offsets, positions, side="right") - 1
    n_documents = len(offsets) - 1
    cells = np.unique(document * n_words + seen)
    return _incidence(cells // n_words, cells % n_words, (n_documents, n_words)), np.ones(
        n_documents
    )


def _presence_in_windows(
    seen: Int64Array, positions: Int64Array, offsets: Int64Array, window: int, n_words: int
) -> tuple[csc_matrix, npt.NDArray[np.float64]]:
    """Return which stretch of like windows holds which word, and how many windows it is.

    A window is named by the position of its first token. Each word is in the windows of some
    half-open intervals; between two ends of any interval nothing changes, so that all those
    windows make one weighted row.
    """
    order = np.argsort(seen, kind="stable")
    word, position = seen[order], positions[order]
    document = np.searchsorted(offsets, position, side="right") - 1
    first_window = offsets[document]
    last_window = np.maximum(first_window, offsets[document + 1] - window)

    # Occurrences of one word in one document lie side by side and ascend.
    run_starts = np.ones(len(word), dtype=bool)
    run_starts[1:] = (word[1:] != word[:-1]) | (document[1:] != document[:-1])
    run = np.cumsum(run_starts) - 1
    run_ends = np.append(np.flatnonzero(run_starts)[1:], len(word))[run]

    # The window loses the word when the copy at `left` drops out, until the first copy at or
    # behind left + window comes in; it then stays until the next copy behind `left` drops out.
    # What the copies in between do not do, see the notes of `npmi`.
    span = int(offsets[-1]) + window + 1
    key = run * span + position
    next_in = np.searchsorted(key, key + window)
    back_in = np.flatnonzero(next_in < run_ends)
    begin = position[next_in[back_in]] - window + 1
    end = position[back_in + 1] + 1
    initial = np.flatnonzero(run_starts)
    begin = np.concatenate(
        [np.maximum(position[initial] - window + 1, first_window[initial]), begin]
    )
    end = np.concatenate([position[initial] + 1, end])
    holder = np.concatenate([initial, back_in])
    end = np.minimum(end, last_window[holder] + 1)
    alive = np.flatnonzero(begin < end)
    begin, end, holder = begin[alive], end[alive], holder[alive]

    is_bound = np.zeros(int(offsets[-1]) + 1, dtype=bool)
    is_bound[begin] = is_bound[end] = True
    bounds = np.flatnonzero(is_bound)
    row_at = np.cumsum(is_bound) - 1
    low = row_at[begin]
    n_rows = row_at[end] - low
    within = np.arange(n_rows.sum()) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    rows = np.repeat(low, n_rows) + within
    presence = _incidence(rows, np.repeat(word[holder], n_rows), (len(bounds), n_words))
    return presence, np.append(np.diff(bounds), 0).astype(np.float64)


def _incidence(rows: Int64Array, columns: Int64Array, shape: tuple[int, int]) -> csc_matrix:
    """Return a matrix of ones at the given, distinct places."""
    from scipy.sparse import csc_matrix

    return csc_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def _mean_npmi(together: Any, single: npt.NDArray[np.float64], columns: Int64Array) -> float:
    """Return the mean over all pairs of a topic's words."""
    if len(columns) < 2:
        return float("nan")
    first, second = np.triu_indices(len(columns), k=1)
    joint = together[columns][:, columns].toarray()[first, second] + _EPSILON
    expected = single[columns[first]] * single[columns[second]]
    return float(np.mean(np.log(joint / expected) / -np.log(joint)))
