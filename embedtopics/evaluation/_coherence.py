"""Coherence of topics by the co-occurrence of their words in documents, and their diversity.

All measures of coherence use the same counts of windows or documents, and equal gensim's
``CoherenceModel`` on the same texts, so that they are comparable with published values; the notes
of `coherence` list the conventions of gensim. One convention differs: gensim uses only the first
twenty words of a topic, unless ``topn`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.terms.results import TokenStream

EPSILON = 1e-12


class CooccurrenceCounts(NamedTuple):
    """Shares of the windows that hold the words of one topic, alone and in pairs.

    Shapes: `together` (n_distinct, n_distinct), single words on the diagonal; `order` (n_words,).
    """

    together: Float64Array
    order: Int64Array

    @property
    def single(self) -> Float64Array:
        """Share of the windows that hold each distinct word."""
        return np.diagonal(self.together)


@dataclass(frozen=True, eq=False)
class WordOccurrences:
    """Occurrences of the words of all topics in the stream: word by word, ascending.

    Shapes: (n_occurrences,), `bounds` (n_words + 1,), `offsets` (n_documents + 1,).
    """

    positions: Int64Array
    documents: Int64Array
    bounds: Int64Array
    offsets: Int64Array

    @classmethod
    def of_stream(
        cls, words: npt.NDArray[Any], positions: Int64Array, n_words: int, offsets: Int64Array
    ) -> WordOccurrences:
        """Sort occurrences, given in the order of the stream, by the word."""
        if n_words <= np.iinfo(np.uint16).max:
            words = words.astype(np.uint16)  # NumPy sorts short integers in linear time
        counts = np.bincount(words, minlength=n_words)
        order = np.argsort(words, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        documents = np.searchsorted(offsets, positions, side="right") - 1
        return cls(positions[order], documents[order], bounds, offsets)

    def count(self, words: Int64Array, window: int | None) -> Float64Array:
        """Return the number of windows, or documents, with each pair of words, symmetric."""
        n_each = self.bounds[words + 1] - self.bounds[words]
        ends = np.cumsum(n_each)
        number = np.repeat(np.arange(len(words)), n_each)
        places = np.arange(len(number)) + np.repeat(self.bounds[words] - ends + n_each, n_each)
        document = self.documents[places]
        # Occurrences of one word ascend, so that those in one document lie side by side.
        is_first = np.ones(len(number), dtype=bool)
        is_first[1:] = (np.diff(number) != 0) | (np.diff(document) != 0)
        if window is None:
            begin = document[is_first]
            return _shared(begin, begin + 1, number[is_first], len(words))
        starts, ends = self.offsets[document], self.offsets[document + 1]
        begin, end, holder = _intervals(self.positions[places], is_first, starts, ends, window)
        return _shared(begin, end, number[holder], len(words))


def count_together(
    topics: Sequence[Sequence[str]], tokens: TokenStream, window: int | None
) -> Iterator[CooccurrenceCounts]:
    """Count windows for each topic; the stream is read once for all of them."""
    n_windows = len(tokens)
    if window is not None:
        lengths = np.diff(tokens.offsets) - checked_count(window, "window")
        n_windows = int(np.maximum(lengths + 1, 1).sum())
    refuse_strings(topics)
    vocabulary = {word for topic in topics for word in topic}
    id_of = {word: i for i, word in enumerate(tokens.words) if word in vocabulary}
    # A stream cut from another one may name words that none of its documents holds.
    occurs = np.zeros(len(tokens.words), dtype=bool)
    occurs[tokens.ids] = True
    ids_by_topic = [
        np.array([id_of[w] for w in topic if w in id_of and occurs[id_of[w]]], dtype=np.int64)
        for topic in topics
    ]
    word_ids = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *ids_by_topic]))
    is_wanted = np.zeros(len(tokens.words), dtype=bool)
    is_wanted[word_ids] = True
    positions = np.flatnonzero(is_wanted[tokens.ids])
    numbers = np.searchsorted(word_ids, tokens.ids[positions])
    occurrences = WordOccurrences.of_stream(numbers, positions, len(word_ids), tokens.offsets)
    for ids in ids_by_topic:
        distinct, order = np.unique(ids, return_inverse=True)
        counts = occurrences.count(np.searchsorted(word_ids, distinct), window)
        yield CooccurrenceCounts(counts / max(n_windows, 1), order)


def refuse_strings(topics: Sequence[Sequence[str]]) -> None:
    """Refuse strings as topics: they would be read letter by letter."""
    for i, topic in enumerate(topics):
        if isinstance(topic, str):
            raise InputError("topics", "sequences of words", topic, "use lists of words", row=i)


def _intervals(
    position: Int64Array, is_first: BoolArray, starts: Int64Array, ends: Int64Array, window: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the intervals of windows that hold a word, and an occurrence that each belongs to.

    A window is named by the position of its first token; the intervals are half-open and disjoint.
    Each occurrence has a position, the bounds of its document, and whether it is the first of its
    word there.
    """
    last_window = np.maximum(starts, ends - window)
    initial = np.flatnonzero(is_first)
    run = np.cumsum(is_first) - 1
    run_ends = np.append(initial[1:], len(position))[run]

    # The window loses the word when the copy at `left` drops out, until the first copy at or
    # behind left + window comes in; it then stays until the next copy behind `left` drops out.
    # What the copies in between do not do, see the notes of `coherence`.
    span = int(ends.max(initial=0)) + window + 1
    key = run * span + position
    next_in = np.searchsorted(key, key + window)
    back_in = np.flatnonzero(next_in < run_ends)
    entry = np.maximum(position[initial] - window + 1, starts[initial])
    begin = np.concatenate([entry, position[next_in[back_in]] - window + 1])
    end = np.concatenate([position[initial], position[back_in + 1]]) + 1
    holder = np.concatenate([initial, back_in])
    end = np.minimum(end, last_window[holder] + 1)
    alive = np.flatnonzero(begin < end)
    return begin[alive], end[alive], holder[alive]


def _shared(begin: Int64Array, end: Int64Array, word: Int64Array, n_words: int) -> Float64Array:
    """Return the length that the intervals of two words share; of one word on the diagonal.

    An interval is compared with those that begin before it ends. Sums of whole numbers, so exact.
    """
    order = np.argsort(begin, kind="stable")
    begin, end, word = begin[order], end[order], word[order]
    together = np.zeros(n_words * n_words)
    first = np.arange(len(begin))
    for behind in range(1, len(begin)):
        first = first[: np.searchsorted(first, len(begin) - behind)]
        first = first[begin[first + behind] < end[first]]
        if not len(first):
            break
        second = first + behind
        length = np.minimum(end[first], end[second]) - begin[second]
        together += np.bincount(
            word[first] * n_words + word[second], length, minlength=n_words * n_words
        )
    pairs: Float64Array = together.reshape(n_words, n_words)
    pairs += pairs.T.copy()
    np.fill_diagonal(pairs, np.bincount(word, end - begin, minlength=n_words))
    return pairs


WINDOWS = {"npmi": 10, "c_v": 110, "u_mass": None}
"""Usual window of each measure in words (Röder et al. 2015); None is a whole document."""

N_TERMS = 10
"""Words of each topic of a result that are compared."""


def coherence(
    topics: FittedTopics | Sequence[Sequence[str]],
    tokens: TokenStream | None = None,
    measure: str = "npmi",
    *,
    window: int | str | None = "auto",
) -> Float64Array:
    """Measure the coherence of each topic by the co-occurrence of its words in documents.

    "npmi": normalised pointwise mutual information. For two words, with probabilities over windows
    and e = 1e-12,

        NPMI(a, b) = log((p(a, b) + e) / (p(a) p(b))) / -log(p(a, b) + e),

    from -1 (never together) over 0 (independent) to 1 (only together); a topic's value is the
    mean over its pairs (Bouma 2009; Aletras and Stevenson 2013; Röder et al. 2015, C_NPMI).

    "c_v": each word is a vector of its NPMI with all words of the topic, itself included; the value
    is the mean cosine of these vectors with their sum (Röder, Both and Hinneburg 2015). Words that
    never co-occur also have similar vectors, so that topics of rare unrelated words can score high:
    compare with "npmi".

    "u_mass": with probabilities over documents, the mean over all pairs of
    log((p(a, b) + e) / p(b)), where b stands before a in the topic; 0 is best (Mimno et al. 2011;
    U_Mass of Röder et al. 2015; the paper adds one document to the joint count instead of e).

    Parameters
    ----------
    topics : TopicResult, fitted TopicModel or sequence of sequence of str
        Of a result, the best ten single words of each topic. Words of your own are spelled as in
        `tokens`, best first.
    tokens : TokenStream, optional
        The reference documents: ``result.tokens`` of a result. By default those of `topics`.
    measure : {"npmi", "c_v", "u_mass"}
    window : int, "auto" or None
        Words in the sliding window, which moves by one word; a shorter document is one window.
        None uses whole documents. "auto" is 10 for "npmi", 110 for "c_v" and None for "u_mass",
        which has no other.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        NaN for a topic with fewer than two words that occur in the documents; for "c_v", 1 for a
        topic with one such word, NaN for one without any.

    Raises
    ------
    InputError
        If words are given without `tokens`, the window is not possible, or a topic is a single
        string.

    Notes
    -----
    The values equal gensim's ``CoherenceModel`` ("c_npmi", "c_v", "u_mass") on the same texts, with
    its three conventions: words that occur in no document are left out; a pair in all windows
    counts as -1; and if one of two copies of a word leaves the sliding window, the window loses the
    word until a new copy enters.

    References
    ----------
    Röder, Both and Hinneburg (2015), "Exploring the space of topic coherence measures".
    Mimno et al. (2011), "Optimizing semantic coherence in topic models".

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo", limit=200))
    >>> et.evaluation.coherence(model).shape == (model.result_.n_topics,)
    True
    >>> tokens = et.TopicModel("tfidf").fit(["goal match"] * 9 + ["tax law"] * 9).result_.tokens
    >>> words = [["goal", "match"], ["goal", "tax"]]
    >>> et.evaluation.coherence(words, tokens, "npmi", window=None).round(2).tolist()
    [1.0, -0.95]
    """
    checked_choice(measure, "measure", WINDOWS)
    if window == "auto":
        window = WINDOWS[measure]
    elif measure == "u_mass" and window is not None:
        raise InputError("window", 'None or "auto" for u_mass', window)

    words = words_of(topics)
    if tokens is None:
        if words is topics:
            remedy = "pass result.tokens, the documents of a result"
            raise InputError("tokens", "given with lists of words", None, remedy)
        tokens = result_of(topics, "topics").tokens
    if not isinstance(tokens, TokenStream):
        remedy = "pass result.tokens of a TopicResult"
        if words is not topics:
            remedy = "leave it out: a model or a result has its own"
        raise InputError("tokens", "the documents of a result", tokens, remedy)

    compute = {"npmi": npmi, "c_v": c_v}
    if measure == "u_mass":
        return u_mass(words, tokens)
    if isinstance(window, str):
        raise InputError("window", 'a number of words, "auto" or None', window)
    return compute[measure](words, tokens, window=window)


def words_of(topics: Any, n_terms: int = N_TERMS) -> Sequence[Sequence[str]]:
    """Return the best single words of each topic of a result; lists of words as they are."""
    is_words = isinstance(topics, Sequence) and not isinstance(topics, (str, bytes))
    if is_words or isinstance(topics, np.ndarray):
        words: Sequence[Sequence[str]] = topics
        return words
    return result_of(topics, "topics")._single_words(n_terms)


def npmi(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 10
) -> Float64Array:
    """Measure C_NPMI, (n_topics,); see `coherence`."""
    return _means_over_pairs(topics, tokens, window, _npmi)


def c_v(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 110
) -> Float64Array:
    """Measure C_V, (n_topics,); see `coherence`."""
    return np.array(
        [_mean_cosine(_npmi(counts), counts) for counts in count_together(topics, tokens, window)],
        dtype=np.float64,
    )


def u_mass(topics: Sequence[Sequence[str]], tokens: TokenStream) -> Float64Array:
    """Measure U_Mass, (n_topics,); see `coherence`."""
    return _means_over_pairs(
        topics, tokens, None, lambda c: np.log((c.together + EPSILON) / c.single[None, :])
    )


def _npmi(counts: CooccurrenceCounts) -> Float64Array:
    together, expected = counts.together + EPSILON, np.outer(counts.single, counts.single)
    return np.asarray(np.log(together / expected) / -np.log(together))


def _means_over_pairs(
    topics: Sequence[Sequence[str]],
    tokens: TokenStream,
    window: int | None,
    measure: Callable[[CooccurrenceCounts], Float64Array],
) -> Float64Array:
    """Return the mean over all pairs of each word of a topic with those before it."""
    means = []
    for counts in count_together(topics, tokens, window):
        rows, columns = np.tril_indices(len(counts.order), k=-1)
        values = measure(counts)[counts.order[rows], counts.order[columns]]
        means.append(float(np.mean(values)) if len(rows) else np.nan)
    return np.array(means, dtype=np.float64)


def _mean_cosine(values: Float64Array, counts: CooccurrenceCounts) -> float:
    """Return the mean cosine of the words' vectors with the sum of these."""
    if len(counts.order) == 0:
        return float("nan")
    times = np.bincount(counts.order).astype(np.float64)
    vectors = values * times  # a word named twice counts twice in the vectors of the others
    total = times @ vectors
    lengths = np.sqrt((vectors * vectors).sum(axis=1) * (total * total).sum())
    cosines = (vectors * total).sum(axis=1) / lengths
    return float((cosines * times).sum() / times.sum())


def diversity(topics: FittedTopics | Sequence[Sequence[str]], n_terms: int = 10) -> float:
    """Return the share of distinct words among the first words of all topics.

    Values near 1 mean different words; values near 1 / n_topics mean equal words (Dieng et al.
    2020).

    Parameters
    ----------
    topics : TopicResult, fitted TopicModel or sequence of sequence of str
        Words of each topic, best first; of a result, its best single words.
    n_terms : int
        Words of each topic that are compared.

    Returns
    -------
    float
        In [0, 1]; NaN without any word.

    Raises
    ------
    InputError
        If `n_terms` is below 1, or a topic is a single string.

    Examples
    --------
    >>> import embedtopics as et
    >>> et.evaluation.diversity([["tax", "cut"], ["tax", "rise"]])
    0.75
    """
    checked_count(n_terms, "n_terms")
    lists = words_of(topics, n_terms)
    refuse_strings(lists)
    words = [word for topic in lists for word in topic[:n_terms]]
    return len(set(words)) / len(words) if words else float("nan")


def topic_uniqueness(topics: Sequence[Sequence[str]], n_terms: int = 10) -> Float64Array:
    """Return the mean of 1 / c(w) over the words of each topic, (n_topics,); NaN without words.

    c(w) counts the topics with w among their first words (Nan et al. 2019, "Topic modeling with
    Wasserstein autoencoders", TU).
    """
    lists = [list(dict.fromkeys(topic))[:n_terms] for topic in topics]
    column = {word: i for i, word in enumerate(dict.fromkeys(w for words in lists for w in words))}
    holds = np.zeros((len(lists), len(column)), dtype=bool)
    for topic, words in enumerate(lists):
        holds[topic, [column[word] for word in words]] = True
    worth = np.where(holds, 1.0 / np.maximum(holds.sum(axis=0), 1), 0.0).sum(axis=1)
    n_words = holds.sum(axis=1)
    uniqueness = np.full(len(lists), np.nan)
    np.divide(worth, n_words, out=uniqueness, where=n_words > 0)
    return uniqueness
