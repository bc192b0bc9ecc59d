"""Topic mixtures of texts, from windows that slide over their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share, is_whole
from embedtopics._occurrences import (
    Occurrences,
    find_occurrences,
    index_terms,
)
from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import TokenMixture, TopicResult
from embedtopics.terms import ClassTfidf, tokenize
from embedtopics.topics.mixtures.loadings import Loadings, load_topics

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["mixtures", "token_topics"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Windows:
    """How windows lie, and what counts."""

    size: int
    stride: int
    padding: bool
    least: float
    edges_only: bool


def mixtures(
    result: TopicResult,
    texts: Any = None,
    *,
    rows: Iterable[int] | None = None,
    window: int = 4,
    stride: int = 1,
    min_similarity: float = 0.1,
    padding: bool = False,
    over: str = "terms",
    weighting: ClassTfidf | None = None,
    batch_size: int = 1024,
) -> csr_matrix:
    """Estimate which topics each text holds, and how much of each.

    A window slides over the words of a text. The class-TF-IDF weights of the terms in it are
    compared with those of each topic; the cosines are added up over the windows of the text and
    scaled to sum 1. Unlike the memberships of a result, which say how its neighbours vote, a
    mixture can be traced to the words (`token_topics`), and a text may hold several topics.

    Parameters
    ----------
    result : TopicResult
    texts : Corpus or anything that `Corpus.of` takes, optional
        New texts. Without them the rows of the result are taken, whose words are stored.
    rows : iterable of int, optional
        Row numbers (positions, from 0) of the result; without them all.
    window : int
        Words in a window. A text with fewer is one window.
    stride : int
        Words from one window to the next, at most `window`. The last window ends with the text.
    min_similarity : float
        Cosines below it, from 0 to 1, count as 0.
    padding : bool
        Whether windows also reach over both ends of a text, so that its first and last words are
        in as many windows as the others.
    over : {"terms", "words"}
        What windows are counted in: words that begin or end a term, so that every window says as
        much; or all words, stop words and those in no term included, as in BERTopic's
        `approximate_distribution`. In both, terms count that lie within the window, n-grams as
        they stand in the text. On arXiv abstracts with 220 topics the largest share was that of
        the text's own topic in 57 % with "terms", in 53 % with "words".
    weighting : ClassTfidf, optional
        By default the one of the fit.
    batch_size : int
        Documents at once; it bounds the memory and changes no value.

    Returns
    -------
    csr_matrix of float32, shape (n_texts, n_topics)
        Rows sum to 1, or to 0 where there is no text, or no window is like any topic.

    Raises
    ------
    InputError
        If both texts and rows are given, there is no such row, a number makes no sense, or the
        result was weighed by a weighting of the user's own.
    """
    windows = _checked(window, stride, padding, min_similarity, over)
    checked_count(batch_size, "batch_size")
    if texts is not None and rows is not None:
        raise InputError("expected either texts or rows, got both")
    if texts is None:
        of_row = result.documents.of_row
        of_text = of_row if rows is None else of_row[_checked_rows(rows, len(of_row))]
        # Rows that share a text share its mixture.
        documents, place = np.unique(of_text, return_inverse=True)
        n_empty = int(np.sum(documents < 0))
        documents, place = documents[n_empty:], place - n_empty
        ids, offsets = result.tokens.ids, result.tokens.offsets
    else:
        corpus = Corpus.of(texts)
        ids, offsets = _known_words(corpus.document_texts(), result)
        place = corpus.distinct().of_row
        documents = np.arange(len(offsets) - 1)
    mixed = _mix(result, ids, offsets, documents, windows, weighting, int(batch_size))
    return _spread(mixed, place)


def token_topics(
    result: TopicResult,
    document: int | str,
    *,
    window: int = 4,
    stride: int = 1,
    min_similarity: float = 0.1,
    padding: bool = False,
    over: str = "terms",
    credit: str = "terms",
    weighting: ClassTfidf | None = None,
) -> TokenMixture:
    """Show which words of a text speak for which topics.

    Parameters
    ----------
    result : TopicResult
    document : int or str
        Row number (position, from 0) of the result, or a new text.
    window, stride, min_similarity, padding, over, weighting
        As in `mixtures`.
    credit : {"terms", "windows"}
        What a word is given: what its terms contribute to the cosines, a phrase in equal parts to
        its words, so that the words of a text add up to its mixture; or the cosine of every window
        that it is in, whoever makes it, as BERTopic's `calculate_tokens` does.

    Returns
    -------
    TokenMixture
        Of no words for a row without text. Its shares are those of `mixtures`.

    Raises
    ------
    InputError
        As in `mixtures`.
    """
    from scipy.sparse import csr_matrix

    from embedtopics.topics.mixtures._kernels import add_to_places

    windows = _checked(window, stride, padding, min_similarity, over)
    if credit not in ("terms", "windows"):
        raise InputError(f'credit must be "terms" or "windows"; got {credit!r}')
    if isinstance(document, str):
        read = tokenize([document])
        tokens = tuple(read.words[i] for i in read.ids)
        ids, offsets = _translated(read.ids, read.words, result), read.offsets
    else:
        (row,) = _checked_rows([document], len(result.documents.of_row))
        which = result.documents.of_row[[row]]
        ids, offsets = _taken(result.tokens.ids, result.tokens.offsets, which[which >= 0])
        tokens = tuple(result.tokens.words[i] for i in ids)
    n_topics = result.n_topics
    sums, shares = np.zeros((len(ids), n_topics)), np.zeros(n_topics, dtype=np.float32)
    if len(ids) and n_topics:
        index = index_terms(result.term_counts.terms, result.tokens.words)
        loadings = load_topics(result, weighting)
        found = find_occurrences(index, ids, offsets, edges_only=windows.edges_only)
        places = np.zeros((len(found.tokens), n_topics))
        _add(partial(add_to_places, credit == "terms"), found, loadings, windows, places)
        sums[found.tokens] = places
        mixed = _mix_batch(found, loadings, windows, n_topics)
        shares = mixed[0].astype(np.float32)
    return TokenMixture(tokens, csr_matrix(sums.astype(np.float32)), shares)


def _mix(
    result: TopicResult,
    ids: Int32Array,
    offsets: Int64Array,
    documents: Int64Array,
    windows: _Windows,
    weighting: ClassTfidf | None,
    batch_size: int,
) -> csr_matrix:
    """Return the mixtures of some documents of a stream of words."""
    from scipy.sparse import csr_matrix, vstack

    n_topics = result.n_topics
    if not (n_topics and len(documents)):
        return csr_matrix(np.zeros((len(documents), n_topics), dtype=np.float32))
    index = index_terms(result.term_counts.terms, result.tokens.words)
    loadings = load_topics(result, weighting)
    blocks = []
    for begin in range(0, len(documents), batch_size):
        some = _taken(ids, offsets, documents[begin : begin + batch_size])
        found = find_occurrences(index, *some, edges_only=windows.edges_only)
        blocks.append(csr_matrix(_mix_batch(found, loadings, windows, n_topics).astype(np.float32)))
    return csr_matrix(vstack(blocks, format="csr"))


def _mix_batch(found: Occurrences, loadings: Loadings, windows: _Windows, n_topics: int) -> Floats:
    """Return the mixtures of a batch of documents, shape (n_documents, n_topics)."""
    from embedtopics.topics.mixtures._kernels import add_to_documents

    sums = np.zeros((len(found.offsets) - 1, n_topics))
    _add(add_to_documents, found, loadings, windows, sums)
    totals = np.einsum("ij->i", sums)
    sums /= np.where(totals > 0, totals, 1.0)[:, None]
    return sums


def _add(
    kernel: Any, found: Occurrences, loadings: Loadings, windows: _Windows, sums: Floats
) -> None:
    kernel(
        found.offsets, found.first, found.terms, found.ends,
        loadings.factors, loadings.is_root, loadings.rows, loadings.topics, loadings.values,
        windows.size, windows.stride, windows.padding, windows.least, sums,
    )  # fmt: skip


def _known_words(texts: list[str], result: TopicResult) -> tuple[Int32Array, Int64Array]:
    """Return new texts as words of the result, -1 for others, and where each text begins."""
    read = tokenize(texts)
    return _translated(read.ids, read.words, result), read.offsets


def _translated(ids: Int32Array, words: tuple[str, ...], result: TopicResult) -> Int32Array:
    """Return ids of words as ids of the result's words; -1 for those that it does not know."""
    id_of = dict(zip(result.tokens.words, range(len(result.tokens.words)), strict=True))
    known = np.fromiter(map(id_of.get, words, repeat(-1)), dtype=np.int32, count=len(words))
    return known[ids]


def _taken(
    ids: Int32Array, offsets: Int64Array, documents: Int64Array
) -> tuple[Int32Array, Int64Array]:
    """Return the words of some documents, and where each of these begins."""
    lengths = offsets[documents + 1] - offsets[documents]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    position = np.arange(ends[-1]) + np.repeat(offsets[documents] - ends[:-1], lengths)
    return ids[position], ends


def _spread(mixed: csr_matrix, place: Int64Array) -> csr_matrix:
    """Return the row of `mixed` at each place; nothing where it is below 0."""
    from scipy.sparse import csr_matrix

    has_text = np.flatnonzero(place >= 0)
    chosen = csr_matrix(
        (np.ones(len(has_text), dtype=np.float32), (has_text, place[has_text])),
        shape=(len(place), mixed.shape[0]),
    )
    return csr_matrix(chosen @ mixed, dtype=np.float32)


def _checked_rows(rows: Iterable[int], n_rows: int) -> Int64Array:
    """Return row numbers after making sure that there are such rows."""
    if isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
        raise InputError(f"rows must be row numbers, from 0 up; got {rows!r}")
    given = list(rows)
    for row in given:
        if not is_whole(row) or not 0 <= row < n_rows:
            raise InputError(
                f"expected rows from 0 to {n_rows - 1}, those of the input; got {row!r}"
            )
    return np.array(given, dtype=np.int64)


def _checked(window: Any, stride: Any, padding: bool, least: Any, over: str) -> _Windows:
    """Return how windows lie, or say what is wrong."""
    for name, number in (("window", window), ("stride", stride)):
        checked_count(number, name)
    if stride > window:
        raise InputError(
            f"stride must be at most window = {window}, so that no word is passed over; got "
            f"{stride}"
        )
    checked_share(least, "min_similarity")
    if over not in ("words", "terms"):
        raise InputError(f'over must be "words" or "terms"; got {over!r}')
    return _Windows(int(window), int(stride), bool(padding), float(least), over == "terms")
