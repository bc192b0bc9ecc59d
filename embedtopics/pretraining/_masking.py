"""Choose the tokens to predict, and the tokens that replace them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, is_dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between, checked_count
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.errors import InputError
from embedtopics.pretraining._tokens import Tokens
from embedtopics.protocols import Float64Array, Int64Array

LONGEST_SPAN, P_SPAN = 10, 0.2
"""Longest span in words, and the parameter of the geometric law (Joshi et al. 2020)."""

TRIES = 20
"""Draws per token: some spans fall on words that are already chosen."""


@dataclass(frozen=True, kw_only=True)
class RandomMasking:
    """Predict tokens drawn one by one (Devlin et al. 2019, section 3.1).

    Parameters
    ----------
    share : float
        Share of the tokens to predict; at least one per text.
    masked, replaced : float
        Shares of these that the mask token and another token replace; the rest stays.
    replacement : {"uniform", "unigram"}
        Draw other tokens uniformly, or by their frequency in the corpus.
    """

    share: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    replacement: str = "uniform"

    def __post_init__(self) -> None:
        checked_between(self.share, "share", 0, 1)
        checked_between(self.masked, "masked", 0, 1, closed=True)
        checked_between(self.replaced, "replaced", 0, 1 - self.masked, closed=True)
        if self.replacement not in ("uniform", "unigram"):
            raise InputError("replacement", '"uniform" or "unigram"', self.replacement)

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        places = np.flatnonzero(tokens.words >= 0)
        units = np.full(len(tokens), -1, dtype=np.int64)
        drawn = rng.choice(places, self._budget(len(places)), replace=False)
        units[drawn] = drawn
        return units

    def _budget(self, n_tokens: int) -> int:
        """Return the number of tokens to predict, at least one."""
        return min(n_tokens, max(1, round(self.share * n_tokens)))


@dataclass(frozen=True, kw_only=True)
class WholeWordMasking(RandomMasking):
    """Predict all pieces of words, drawn one by one (Cui et al. 2021).

    Words with more pieces than the rest of the share are skipped. For parameters see
    `RandomMasking`.
    """

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        words = tokens.words[tokens.words >= 0]
        masked_words = _words_within(
            words, rng.permutation(np.unique(words)), self._budget(len(words))
        )
        is_chosen = np.isin(tokens.words, masked_words)
        return np.where(is_chosen, np.arange(len(tokens)), -1)


@dataclass(frozen=True, kw_only=True)
class SpanMasking(RandomMasking):
    """Predict spans of words, hidden or replaced together (Joshi et al. 2020, section 3.1).

    The length of a span in words is drawn from a truncated geometric law, 3.8 on average by
    default.

    Parameters
    ----------
    p : float
        Parameter of the geometric law.
    longest : int
        Longest span in words.
    share, masked, replaced, replacement
        As in `RandomMasking`.
    """

    p: float = P_SPAN
    longest: int = LONGEST_SPAN

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_between(self.p, "p", 0, 1)
        checked_count(self.longest, "longest")

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        words = tokens.words[tokens.words >= 0]
        names, sizes = np.unique(words, return_counts=True)
        budget, n_taken, n_spans = self._budget(len(words)), 0, 0
        span_of = np.full(len(names), -1, dtype=np.int64)
        law = (1 - self.p) ** np.arange(self.longest)
        law /= law.sum()
        for _ in range(TRIES * budget):
            begin = int(rng.integers(len(names)))
            end = begin + 1 + int(rng.choice(self.longest, p=law))
            fits = np.cumsum(sizes[begin:end]) <= budget - n_taken
            # The first word may exceed the budget, so that something is predicted.
            n_words = int(fits.sum()) or int(not n_spans)
            if not n_words or (span_of[begin : begin + n_words] >= 0).any():
                continue
            span_of[begin : begin + n_words] = n_spans
            n_spans += 1
            n_taken += int(sizes[begin : begin + n_words].sum())
            if n_taken >= budget:
                break
        units = np.full(len(tokens), -1, dtype=np.int64)
        units[tokens.words >= 0] = span_of[np.searchsorted(names, words)]
        return units


@dataclass(frozen=True)
class SelectiveMasking(RandomMasking):
    """Predict listed words first, and fill up the share with others.

    After Timoneda and Vallejo Vera (2025), "Behind the mask: Random and selective masking in
    transformer models applied to specialized social science texts". In each text, occurrences of
    the words are drawn with probability `occurrences`, up to the share; the rest are random
    words.

    Parameters
    ----------
    words : iterable of str
        Single words, without regard to case.
    occurrences : float
        Probability that an occurrence is predicted; below 1, so that the words are also read.
    share, masked, replaced, replacement
        As in `RandomMasking`.
    """

    words: Iterable[str]
    occurrences: float = field(default=0.5, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = "a list of words, none blank"
        if isinstance(self.words, str) or not isinstance(self.words, Iterable):
            raise InputError("words", expected, self.words)
        words = list(self.words)
        for row, word in enumerate(words):
            if not isinstance(word, str) or not word.strip():
                raise InputError("words", expected, word, row=row)
            if len(word.split()) > 1:
                raise InputError("words", "single words", word, "give its words", row=row)
        if not words:
            raise InputError("words", expected, words)
        object.__setattr__(self, "words", tuple(sorted({word.strip().lower() for word in words})))
        checked_between(self.occurrences, "occurrences", 0, 1, closed=True)

    @classmethod
    def of_corpus(
        cls, corpus: Any, classes: Any, n_words: int = 200, **options: Any
    ) -> SelectiveMasking:
        """Choose the words by class-TF-IDF.

        Parameters
        ----------
        corpus : Corpus, or what `Corpus.of` takes
        classes : str or array_like
            Column of the corpus, or a class for each row.
        n_words : int
            Number of words; each class in turn gives its next best.
        **options
            Parameters of `SelectiveMasking`.

        Raises
        ------
        InputError
            If there are fewer than two classes, or no words.
        """
        return cls(words_of_classes(corpus, classes, checked_count(n_words, "n_words")), **options)

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        listed_words = set(self.words)
        is_listed = np.array(
            [surface in listed_words for surface in tokens.surfaces], dtype=np.bool_
        )
        words = tokens.words[tokens.words >= 0]
        listed = np.unique(tokens.words[is_listed & (tokens.words >= 0)])
        listed = rng.permutation(listed[rng.random(len(listed)) < self.occurrences])
        others = rng.permutation(np.setdiff1d(words, tokens.words[is_listed]))
        order = np.concatenate([listed, others])
        if not len(order):  # every word is listed, and none was drawn
            order = rng.permutation(np.unique(words))
        masked_words = _words_within(words, order, self._budget(len(words)))
        return np.where(np.isin(tokens.words, masked_words), np.arange(len(tokens)), -1)


def _words_within(words: Int64Array, order: Int64Array, budget: int) -> Int64Array:
    """Return the words, in order, whose tokens fit the budget; the first if none does."""
    names, sizes = np.unique(words, return_counts=True)
    fitting, left = [], budget
    for word, size in zip(order.tolist(), sizes[np.searchsorted(names, order)], strict=True):
        if size <= left:
            fitting.append(word)
            left -= size
            if not left:
                break
    return np.array(fitting or order[:1].tolist(), dtype=np.int64)


MASKINGS = {"random": RandomMasking, "whole_word": WholeWordMasking, "span": SpanMasking}


def resolve_masking(masking: Any) -> Any:
    """Return a masking by its name, or the object given."""
    if isinstance(masking, str) and masking in MASKINGS:
        return MASKINGS[masking]()
    if isinstance(masking, type) or not callable(getattr(masking, "choose", None)):
        names = ", ".join(MASKINGS)
        raise InputError("masking", f"{names}, or an object with a method choose", masking)
    return masking


def describe_masking(masking: Any) -> dict[str, Any]:
    """Return the class and parameters of a masking as JSON values."""
    values = vars(masking) if is_dataclass(masking) else {}
    return {"masking": type(masking).__name__, **values}


@dataclass(frozen=True, eq=False)
class Replacements:
    """Replacements of predicted tokens."""

    mask_id: int
    ids: Int64Array  # (n_ordinary,), tokens that are not special
    reaches: Float64Array  # (n_ordinary,), cumulated chances of these; the last is 1

    @classmethod
    def of(
        cls, mask_id: int, ordinary: Int64Array, blocks: Iterable[Tokens] | None
    ) -> Replacements:
        """Return replacements by frequency in the blocks, or uniform."""
        counts = np.zeros(int(ordinary.max()) + 1, dtype=np.float64)
        counts[ordinary] = 1.0
        if blocks is not None:
            frequencies = np.bincount(np.concatenate([block.ids for block in blocks]))
            counts[: len(frequencies)] *= frequencies[: len(counts)]
            counts[len(frequencies) :] = 0.0
        reaches = np.cumsum(counts[ordinary])
        return cls(mask_id, ordinary, reaches / reaches[-1])


def shown_tokens(
    tokens: Tokens,
    masking: Any,
    replacements: Replacements,
    rng: np.random.Generator,
    replaces_all: bool = False,
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return the masked ids of a text, and which tokens are predicted."""
    units = np.asarray(masking.choose(tokens, rng))
    if units.shape != (len(tokens),) or units.dtype.kind not in "iu":
        expected = "one whose choose() returns a whole number for each token"
        raise InputError("masking", expected, found=f"{units.dtype} of shape {units.shape}")
    is_predicted = (units >= 0) & (tokens.words >= 0)
    _, unit_of = np.unique(units[is_predicted], return_inverse=True)
    fates = rng.random(int(unit_of.max(initial=-1)) + 1)[unit_of]
    masked, replaced = 0.0, 1.0
    if not replaces_all:
        masked = float(getattr(masking, "masked", 0.8))
        replaced = float(getattr(masking, "replaced", 0.1))
    drawn = np.searchsorted(replacements.reaches, rng.random(len(fates)), side="right")
    drawn = replacements.ids[np.minimum(drawn, len(replacements.ids) - 1)]
    shown = tokens.ids.copy()
    now = np.where(fates < masked + replaced, drawn, tokens.ids[is_predicted])
    shown[is_predicted] = np.where(fates < masked, replacements.mask_id, now)
    return shown, is_predicted


def words_of_classes(corpus: Any, classes: Any, n_words: int) -> list[str]:
    """Return words by class-TF-IDF, one of each class in turn."""
    from embedtopics.terms._counts import count_by_topic, count_terms
    from embedtopics.terms._stop_words import function_words
    from embedtopics.terms._tokens import tokenize
    from embedtopics.terms._weighting import ClassTfidf

    read = Corpus.of(corpus)
    require_text(read)
    if isinstance(classes, str):
        if classes not in read.metadata:
            raise InputError("classes", "a column of the corpus", classes)
        classes = read.metadata[classes]
    names = np.asarray(classes, dtype=object).astype(str)
    if len(names) != len(read) or len(set(names.tolist())) < 2:
        got = f"{len(set(names.tolist()))} classes for {len(names):,} rows"
        raise InputError("classes", "at least two, one for each row of the corpus", found=got)
    _, labels = np.unique(names, return_inverse=True)
    tokens = tokenize(read.texts)
    plain = function_words(tokens, labels)
    counted = count_terms(tokens, ngram_range=(1, 1), function_words=plain)
    weights = ClassTfidf(bm25=True).fit_transform(count_by_topic(counted.counts, labels)).toarray()
    ranked = [np.argsort(-row, kind="stable")[: (row > 0).sum()].tolist() for row in weights]
    turns = chain.from_iterable(zip_longest(*ranked))
    found_words = dict.fromkeys(counted.terms[place] for place in turns if place is not None)
    if not found_words:
        raise InputError("corpus", "one with words for the classes")
    return list(islice(found_words, n_words))
