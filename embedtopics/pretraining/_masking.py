"""Choose the tokens to predict, and the tokens that replace them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

MASKED_SHARE = 0.15
"""Share of the tokens that are predicted (Devlin et al. 2019, section 3.1)."""

MASKED, REPLACED = 0.8, 0.1
"""Shares of the predicted tokens that the mask token and another token replace; the rest stays."""

LONGEST_SPAN, P_SPAN = 10, 0.2
"""Longest span in words, and the parameter of the geometric law (Joshi et al. 2020)."""

OCCURRENCES = 0.5
"""Probability that an occurrence of a listed word is predicted; below 1, so that it is read too."""

TRIES = 20
"""Draws per token: some spans fall on words that are already chosen."""

_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True, eq=False)
class Tokens:
    """A text as the model reads it; a masking chooses from its words.

    Parameters
    ----------
    ids : int64 ndarray of shape (n_tokens,)
        Special tokens at both ends included.
    words : int64 ndarray of shape (n_tokens,)
        Number of the word that each token is of, ascending; -1 for special tokens.
    surfaces : tuple of str, length n_tokens
        That word, in lower case and without punctuation at its ends; "" for special tokens.
    """

    ids: Int64Array
    words: Int64Array
    surfaces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, begin: int, end: int) -> Tokens:
        """Return the tokens from one place to before another."""
        return Tokens(self.ids[begin:end], self.words[begin:end], self.surfaces[begin:end])


def surface_of(piece: str) -> str:
    """Return a composed word in lower case, without punctuation and spaces at its ends."""
    piece = unicodedata.normalize("NFC", piece)
    return _EDGES.sub("", piece).lower() or piece.strip()


@dataclass(frozen=True, kw_only=True)
class RandomMasking:
    """Predict tokens drawn one by one (Devlin et al. 2019, section 3.1).

    Parameters
    ----------
    masked_share : float
        Share of the tokens to predict; at least one per text. The mask token replaces 80 % of
        these and another token 10 %; the rest stays.
    """

    masked_share: float = MASKED_SHARE

    def __post_init__(self) -> None:
        checked_between(self.masked_share, "masked_share", 0, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return name and fields by the keys of saved reports and checkpoints."""
        return {"masking": type(self).__name__, "share": self.masked_share}

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        places = np.flatnonzero(tokens.words >= 0)
        units = np.full(len(tokens), -1, dtype=np.int64)
        drawn = rng.choice(places, self._budget(len(places)), replace=False)
        units[drawn] = drawn
        return units

    def _budget(self, n: int) -> int:
        """Return the share of `n` tokens or words, at least one."""
        return min(n, max(1, round(self.masked_share * n)))


@dataclass(frozen=True, kw_only=True)
class WholeWordMasking(RandomMasking):
    """Predict all pieces of words, drawn one by one (Cui et al. 2021).

    The share is that of the words, so that a word of many pieces is predicted as often as a short
    one; of the tokens it is the share on average. For parameters see `RandomMasking`.
    """

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        words = rng.permutation(np.unique(tokens.words[tokens.words >= 0]))
        is_chosen = np.isin(tokens.words, words[: self._budget(len(words))])
        return np.where(is_chosen, np.arange(len(tokens)), -1)


@dataclass(frozen=True, kw_only=True)
class SpanMasking(RandomMasking):
    """Predict spans of words, hidden or replaced together (Joshi et al. 2020, section 3.1).

    The length of a span in words is drawn from a truncated geometric law, 3.8 on average. The share
    is that of the words, as in `WholeWordMasking`. For parameters see `RandomMasking`.
    """

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        words = tokens.words[tokens.words >= 0]
        names = np.unique(words)
        budget = self._budget(len(names))
        law = (1 - P_SPAN) ** np.arange(LONGEST_SPAN)
        law /= law.sum()

        span_of = np.full(len(names), -1, dtype=np.int64)
        n_taken = n_spans = 0
        for _ in range(TRIES * budget):
            begin = int(rng.integers(len(names)))
            length = 1 + int(rng.choice(LONGEST_SPAN, p=law))
            end = begin + min(length, budget - n_taken)
            if (span_of[begin:end] >= 0).any():
                continue
            span_of[begin:end] = n_spans
            n_spans += 1
            n_taken += len(span_of[begin:end])
            if n_taken >= budget:
                break

        units = np.full(len(tokens), -1, dtype=np.int64)
        units[tokens.words >= 0] = span_of[np.searchsorted(names, words)]
        return units


@dataclass(frozen=True)
class SelectiveMasking(RandomMasking):
    """Predict listed words first, and fill up the share with others.

    After Timoneda and Vallejo Vera (2025), "Behind the mask: Random and selective masking in
    transformer models applied to specialized social science texts". In each text, half of the
    occurrences of the words are drawn, until the share of the tokens is reached; random words fill
    it up. The last of the listed words may exceed the share, so that words of many pieces are
    predicted too.

    Parameters
    ----------
    words : iterable of str
        Single words, without regard to case.
    masked_share : float
        Share of the tokens to predict; at least one of each text.

    Examples
    --------
    >>> import embedtopics as et
    >>> masking = et.pretraining.SelectiveMasking(["Tax", "budget"], masked_share=0.2)
    >>> masking.words
    ('budget', 'tax')
    """

    words: Iterable[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        words = [self.words] if isinstance(self.words, str) else list(self.words)
        for row, word in enumerate(words):
            if len(word.split()) != 1:
                raise InputError("words", "single words", word, row=row)
        if not words:
            raise InputError("words", "a list of words", words)
        object.__setattr__(self, "words", tuple(sorted({surface_of(word) for word in words})))

    def to_dict(self) -> dict[str, Any]:
        """Return name and fields by the keys of saved reports and checkpoints."""
        return {**super().to_dict(), "words": self.words}

    @classmethod
    def of_corpus(cls, corpus: Any, labels: Any, n_words: int = 200) -> SelectiveMasking:
        """Choose the words by class-TF-IDF.

        Parameters
        ----------
        corpus : Corpus, or what `Corpus` takes
        labels : str or array_like
            Column of the corpus, or a class for each row.
        n_words : int
            Number of words; each class in turn gives its next best.

        Raises
        ------
        InputError
            If there are fewer than two classes, or no words.
        """
        from embedtopics.terms._counts import count_by_topic, count_terms
        from embedtopics.terms._stop_words import function_words
        from embedtopics.terms._tokens import tokenize
        from embedtopics.terms._weighting import ClassTfidf

        read = as_corpus(corpus)
        require_text(read)
        if isinstance(labels, str):
            if labels not in read.metadata:
                raise InputError("labels", "a column of the corpus", labels)
            labels = read.metadata[labels]
        labels = align_values(labels, read, "labels", "a class for each row of the corpus")

        names = [spell_class(value) for value in labels]
        order = sorted({name for name in names if name is not None})
        if len(order) < 2:
            got = f"{len(order)} classes for {len(names):,} rows"
            raise InputError("labels", "at least two, one for each row of the corpus", found=got)

        number_of = {name: number for number, name in enumerate(order)}
        class_of_row = np.array([-1 if name is None else number_of[name] for name in names])
        tokens = tokenize(read.texts)
        plain = function_words(tokens, class_of_row)
        counted = count_terms(tokens, ngram_range=(1, 1), function_words=plain)
        weights = (
            ClassTfidf(bm25=True)
            .fit_transform(count_by_topic(counted.counts, class_of_row))
            .toarray()
        )

        ranked = [np.argsort(-row, kind="stable")[: (row > 0).sum()].tolist() for row in weights]
        turns = chain.from_iterable(zip_longest(*ranked))
        words = dict.fromkeys(counted.terms[place] for place in turns if place is not None)
        if not words:
            raise InputError("corpus", "one with words for the classes")
        return cls(islice(words, n_words))

    def choose(self, tokens: Tokens, rng: np.random.Generator) -> Int64Array:
        """Return a number for each token: -1 if it is not predicted."""
        listed_words = set(self.words)
        is_listed = np.array(
            [surface in listed_words for surface in tokens.surfaces], dtype=np.bool_
        )
        words, sizes = np.unique(tokens.words[tokens.words >= 0], return_counts=True)
        is_listed_word = np.isin(words, tokens.words[is_listed])

        # Listed words until the share of the tokens is reached.
        n_left = self._budget(int(sizes.sum()))
        listed = words[is_listed_word]
        chosen: list[int] = []
        for word in rng.permutation(listed[rng.random(len(listed)) < OCCURRENCES]).tolist():
            if n_left <= 0:
                break
            chosen.append(word)
            n_left -= int(sizes[np.searchsorted(words, word)])

        # Other words with equal chances, as many as fill up the share on average.
        others = words[~is_listed_word]
        if n_left > 0 and len(others):
            n_others = n_left * len(others) / sizes[~is_listed_word].sum()
            drawn = rng.permutation(others)
            chosen += drawn[: math.floor(n_others + rng.random())].tolist()
        if not chosen:
            candidates = others if len(others) else words
            chosen = [int(rng.choice(candidates))]
        return np.where(np.isin(tokens.words, chosen), np.arange(len(tokens)), -1)


MASKINGS = {"random": RandomMasking, "whole_word": WholeWordMasking, "span": SpanMasking}


def masking_of(masking: Any, masked_share: float) -> RandomMasking:
    """Return a masking by its name and share, or the object that is given."""
    if not isinstance(masking, RandomMasking):
        make = MASKINGS[checked_choice(masking, "masking", MASKINGS)]
        return make(masked_share=masked_share)
    if masked_share not in (MASKED_SHARE, masking.masked_share):
        remedy = f"{type(masking).__name__}(..., masked_share={masked_share})"
        raise InputError("masked_share", "left out with an object", masked_share, remedy)
    return masking


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
    masking: RandomMasking,
    replacements: Replacements,
    rng: np.random.Generator,
    replaces_all: bool = False,
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return the masked ids of a text, and which tokens are predicted."""
    units = masking.choose(tokens, rng)
    is_predicted = (units >= 0) & (tokens.words >= 0)
    _, unit_of = np.unique(units[is_predicted], return_inverse=True)
    fates = rng.random(int(unit_of.max(initial=-1)) + 1)[unit_of]
    masked, replaced = (0.0, 1.0) if replaces_all else (MASKED, REPLACED)
    drawn = np.searchsorted(replacements.reaches, rng.random(len(fates)), side="right")
    drawn = replacements.ids[np.minimum(drawn, len(replacements.ids) - 1)]
    shown = tokens.ids.copy()
    now = np.where(fates < masked + replaced, drawn, tokens.ids[is_predicted])
    shown[is_predicted] = np.where(fates < masked, replacements.mask_id, now)
    return shown, is_predicted
