"""Phrases of a corpus: neighbouring words that stand together more often than by chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.tokenizing import readable, slabs
from embedtopics.encoders.whole_words import Vocabulary, word_reader
from embedtopics.protocols import Int64Array

__all__ = ["frequent_phrases"]

Float64Array = npt.NDArray[np.float64]


def frequent_phrases(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    *,
    max_phrases: int,
    min_count: int,
    min_npmi: float,
) -> list[str]:
    """Return phrases of two and three words, most frequent first.

    A phrase is a run of words with nothing but space between them, at least `min_count` times in
    the texts. Its normalised pointwise mutual information is

        ln(p(w1 ... wn) / (p(w1) ... p(wn))) / ((1 - n) ln p(w1 ... wn)),

    1 for words that never stand apart, 0 for words that meet by chance (Bouma 2009, equation 4,
    for n = 2). All probabilities are shares of the number of words.

    Parameters
    ----------
    vocabulary : Vocabulary
        Its tokenizer says what a word is.
    texts : sequence of str
    max_phrases : int
    min_count : int
    min_npmi : float
        Least normalised pointwise mutual information.

    Returns
    -------
    list of str
        Normalised words with one space between them, ordered by frequency, ties by the phrase.

    References
    ----------
    G. Bouma, "Normalized (pointwise) mutual information in collocation extraction", GSCL 2009.
    """
    if not max_phrases:
        return []
    ids, words = _read(vocabulary, texts, min_count)
    singles = np.bincount(ids, minlength=len(words) + 1)[1:]
    n_words = int(singles.sum())
    if not n_words:
        return []
    pairs, of_place, n_pairs = _runs(ids[:-1] - 1, ids[1:] - 1, len(words), min_count)
    first, second = np.divmod(pairs, len(words))
    expected = singles[first] * (singles[second] / n_words)
    found = _chosen(n_pairs, expected, n_words, 2, min_npmi, (first, second))
    if len(of_place) > 1 and len(pairs):
        triples, _, n_triples = _runs(of_place[:-1], ids[2:] - 1, len(words), min_count)
        pair, third = np.divmod(triples, len(words))
        expected = singles[first[pair]] * (singles[second[pair]] / n_words)
        expected = expected * (singles[third] / n_words)
        parts = (first[pair], second[pair], third)
        found += _chosen(n_triples, expected, n_words, 3, min_npmi, parts)
    named: dict[str, int] = {}
    for count, parts_of in found:
        phrase = " ".join(words[part] for part in parts_of)
        named[phrase] = named.get(phrase, 0) + count
    return sorted(named, key=lambda phrase: (-named[phrase], phrase))[:max_phrases]


def _read(
    vocabulary: Vocabulary, texts: Sequence[str], min_count: int
) -> tuple[Int64Array, list[str]]:
    """Return all words of all texts as numbers from 1, and the word of each number less one.

    0 is whatever is no frequent word, and stands between texts.
    """
    reader, raw = word_reader(vocabulary, texts, min_count)
    words = sorted({word for word in raw if word})
    number = {word: place for place, word in enumerate(words, start=1)}
    numbers = np.array([number.get(word, 0) for word in raw], dtype=np.int64)
    parts = [np.zeros(0, dtype=np.int64)]
    for slab in slabs(texts):
        found = reader.encode_batch_fast([readable(text) for text in slab])
        ids = chain.from_iterable(chain(encoding.ids, (0,)) for encoding in found)
        parts.append(numbers[np.fromiter(ids, dtype=np.int64)])
    return np.concatenate(parts), words


def _runs(
    left: Int64Array, right: Int64Array, n_right: int, min_count: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Count pairs of neighbours; those with a negative number are none.

    Returns
    -------
    pairs : int64 ndarray
        ``left * n_right + right`` of the frequent ones, ascending.
    of_place : int64 ndarray of shape (n_places,)
        Place in `pairs` of what stands in each place of the texts; -1 where that is not frequent.
    counts : int64 ndarray
    """
    keys = np.where((left >= 0) & (right >= 0), left * n_right + right, -1)
    pairs, counts = np.unique(keys[keys >= 0], return_counts=True)
    is_frequent = counts >= min_count
    pairs, counts = pairs[is_frequent], counts[is_frequent]
    if not len(pairs):
        return pairs, np.full(len(keys), -1, dtype=np.int64), counts
    place = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    return pairs, np.where(pairs[place] == keys, place, -1), counts


def _chosen(
    counts: Int64Array,
    expected: Float64Array,
    n_words: int,
    n: int,
    min_npmi: float,
    parts: tuple[Int64Array, ...],
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the count and the words of each run with enough mutual information."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(counts / expected) / ((1 - n) * np.log(counts / n_words))
    # A phrase that is the whole corpus has no information: 0 / 0.
    rows = np.flatnonzero(np.nan_to_num(scores, nan=-1.0) >= min_npmi)
    columns = [part[rows].tolist() for part in parts]
    return list(zip(counts[rows].tolist(), zip(*columns, strict=True), strict=True))
