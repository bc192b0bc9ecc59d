"""Constraints from words that topics are expected to use."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TokenStream
from embedtopics.topics.constraints._labels import checked_name, checked_weight
from embedtopics.topics.constraints._protocol import FitContext, note
from embedtopics.topics.results import TopicConstraints


class SeedWords:
    """Ties documents together that use the same seed words.

    A document is of the seed of whose words it holds the most different ones, if its embedding
    is nearer to the mean of the documents that hold them than to the mean of all: a word in
    passing, or in another sense, does not count. Documents of a seed are tied to the nearest
    others of it in the layout, so that scattered ones are found together. Embeddings and
    neighbours stay as they are.

    For keywords that prefer the seed words give ``weighting=ClassTfidf(seed_terms=...)``.

    Parameters
    ----------
    seeds : mapping of str to sequence of str, or sequence of sequences of str
        Words and phrases, by the name of the seed.
    boost : float
        Weight, above 0 up to 1, of the ties between a document and the nearest others of its seed;
        that to its nearest neighbour of all has 1, those to its other neighbours less.

    Raises
    ------
    InputError
        Where there are no words, a name is repeated, or the boost is out of range.

    Examples
    --------
    >>> SeedWords({"money": ["bank", "interest rate"]}).describe()
    {'kind': 'seed_words', 'seeds': {'money': ['bank', 'interest rate']}, 'boost': 0.5}
    """

    def __init__(
        self, seeds: Mapping[str, Sequence[str]] | Sequence[Sequence[str]], *, boost: float = 0.5
    ) -> None:
        self.seeds = _checked_seeds(seeds)
        self.boost = checked_weight(boost, "boost")

    def __repr__(self) -> str:
        return f"SeedWords({list(self.seeds)}, boost={self.boost})"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        seeds = {name: list(words) for name, words in self.seeds.items()}
        return {"kind": "seed_words", "seeds": seeds, "boost": self.boost}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the documents of each seed.

        Raises
        ------
        InputError
            Where no document holds any word of a seed.
        """
        stream = context.tokens()
        n_words = np.zeros((len(context), len(self.seeds)), dtype=np.int32)
        missing = []
        for number, (name, words) in enumerate(self.seeds.items()):
            for word in words:
                holders = _holders(stream, word)
                n_words[holders, number] += 1
                if not len(holders):
                    missing.append(word)
            if not n_words[:, number].any():
                remedy = "look at the terms of the texts, or leave the seed out"
                raise InputError("seeds", f"words of the texts ({name!r})", words, remedy)
        groups = _nearest_seeds(n_words, context.embeddings)
        known = groups >= 0
        weights = context.documents.weights[known]
        n_rows = np.bincount(groups[known], weights, minlength=len(self.seeds))
        said = ", ".join(f"{name} {int(n):,}" for name, n in zip(self.seeds, n_rows, strict=True))
        notes = [note("seed_words", int(n_rows.sum()), f"Texts tied by seed words: {said}.")]
        if missing:
            message = f"No text holds these seed words: {', '.join(missing)}."
            notes.append(note("missing_seed_words", missing, message))
        probabilities = known.astype(np.float32)
        return TopicConstraints(groups, tuple(self.seeds), probabilities, tie=self.boost), notes


def _checked_seeds(seeds: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(seeds, (str, bytes)) or not hasattr(seeds, "__iter__"):
        raise InputError("seeds", "a mapping of names to lists of words", seeds)
    named = seeds.items() if isinstance(seeds, Mapping) else ((None, words) for words in seeds)
    checked: dict[str, tuple[str, ...]] = {}
    for given, words in named:
        listed = () if isinstance(words, (str, bytes)) else tuple(words)
        if not listed or not all(isinstance(word, str) and word.strip() for word in listed):
            of_name = "" if given is None else f" for {given!r}"
            raise InputError("seeds", f"lists of words{of_name}", words)
        unique = tuple(dict.fromkeys(" ".join(word.split()) for word in listed))
        name = checked_name(", ".join(unique[:3]) if given is None else given)
        if name in checked:
            raise InputError("seeds", "of different names", name)
        checked[name] = unique
    if not checked:
        raise InputError("seeds", "lists of words", found="none")
    return checked


def _holders(stream: TokenStream, phrase: str) -> Int64Array:
    """Return the documents that hold a word or a phrase, ascending."""
    wanted = tokenize([phrase])
    ids = [_number(stream.words, wanted.words[i]) for i in wanted.ids.tolist()]
    if not ids or -1 in ids:
        return np.empty(0, dtype=np.int64)
    at = np.flatnonzero(stream.ids == ids[0])
    at = at[at + len(ids) <= len(stream.ids)]
    for place, word in enumerate(ids[1:], start=1):
        at = at[stream.ids[at + place] == word]
    first = np.searchsorted(stream.offsets, at, side="right") - 1
    last = np.searchsorted(stream.offsets, at + len(ids) - 1, side="right") - 1
    return np.unique(first[first == last])


def _number(words: Sequence[str], word: str) -> int:
    """Return the number of a word; -1 where no text holds it."""
    place = bisect_left(words, word)
    return place if place < len(words) and words[place] == word else -1


def _nearest_seeds(n_words: Int32Array, embeddings: FloatArray) -> Int32Array:
    """Return the seed of each document, -1 where it has none."""
    means = np.stack(
        [_mean(embeddings[column > 0]) for column in n_words.T] + [_mean(embeddings)], axis=1
    )
    similarities = np.einsum("ij,jk->ik", embeddings.astype(np.float64), means)
    to_seeds, to_all = similarities[:, :-1], similarities[:, -1]
    most = n_words.max(axis=1)
    is_best = (n_words == most[:, None]) & (most > 0)[:, None]
    best = np.where(is_best, to_seeds, -np.inf)
    chosen = best.argmax(axis=1).astype(np.int32)
    nearer = best.max(axis=1) >= to_all
    return np.where(nearer, chosen, -1).astype(np.int32)


def _mean(vectors: FloatArray) -> Any:
    """Return the direction of the mean of unit vectors; zeros where they cancel out."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = np.sqrt(np.einsum("i,i->", mean, mean))
    return mean / length if length > 0 else mean
