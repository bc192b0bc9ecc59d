"""Constraints from words: seed words of topics, and names of topics (zero-shot)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.terms._tokens import find_phrase, words_of
from embedtopics.topics.constraints._apply import FitContext, note
from embedtopics.topics.constraints._labels import checked_name
from embedtopics.topics.results import TopicConstraints

ROUNDS = 2
"""Rounds of averaging a similarity over neighbors. Of BBC News the best name is right for 78%
without, 89% with one round, 91% with two."""

LEAST_MATCH = 1.5
"""Smallest similarity of a match above its mean over all documents, in units of the spread of
similarities to a random direction (see `_spread`)."""

LEAST_PEAK = 2.25
"""Smallest peak of the similarity to a name above its mean, in the same units. In BBC News the five
sections reach 2.5 to 5; gardening, knitting, chemistry and cooking, which it lacks, 1.5 to 1.9."""

LEAST_LEAD = 0.75
"""Smallest lead of the best name over the next, in the same units."""

LEAST_OF_WORDS = (0.25, 0.2, 0.1)
"""Peak, match and lead for vectors that count words. With TF-IDF, 91% of the BBC News texts that
match one of four sections, described in four to six words each, are of that section."""

OF_PEAK = 0.5
"""Smallest similarity of a match, as a share of the name's peak. In the demo corpus *chess* also
matched football: 32% of its texts were about chess without this limit, 95% with it. Of BBC News,
whose sections are broad, 49% of the texts match instead of 55%."""

BOOST = 0.5
"""Weight of the edges between a document and the nearest others of its seed. The edge to its
nearest neighbor has weight 1, other edges less."""

FEWEST = 5
"""Smallest number of matching documents of a name; fewer are often chance."""


class SeedWords:
    """Attract documents that use the same seed words.

    A document belongs to the seed with most of its words in the text, if its embedding is nearer to
    the mean of the documents with these words than to the mean of all. The fuzzy graph gets edges
    between a document and the nearest others of its seed; embeddings and neighbors do not change.

    Parameters
    ----------
    seeds : mapping of str to sequence of str, or sequence of sequences of str
        Words and phrases, by the name of the seed.

    Examples
    --------
    >>> SeedWords({"money": ["bank", "interest rate"]}).describe()
    {'kind': 'seed_words', 'seeds': {'money': ['bank', 'interest rate']}}
    """

    def __init__(self, seeds: Mapping[str, Sequence[str]] | Sequence[Sequence[str]]) -> None:
        self.seeds = _checked_seeds(seeds)

    def __repr__(self) -> str:
        return f"SeedWords({list(self.seeds)})"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        seeds = {name: list(words) for name, words in self.seeds.items()}
        return {"kind": "seed_words", "seeds": seeds}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the documents of each seed; refuse a seed whose words no document holds."""
        stream = context.tokens()
        n_words = np.zeros((len(context), len(self.seeds)), dtype=np.int32)
        missing = []
        for number, (name, words) in enumerate(self.seeds.items()):
            for word in words:
                holders = np.unique(find_phrase(stream, words_of(word, stream.rules))[1])
                n_words[holders, number] += 1
                if not len(holders):
                    missing.append(word)
            if not n_words[:, number].any():
                remedy = "look at the terms of the texts, or leave the seed out"
                raise InputError("seeds", f"words of the texts ({name!r})", words, remedy)
        groups = _nearest_seeds(n_words, context.embeddings)
        has_seed = groups >= 0
        weights = context.documents.weights[has_seed]
        n_rows = np.bincount(groups[has_seed], weights, minlength=len(self.seeds))
        counts = ", ".join(f"{name} {int(n):,}" for name, n in zip(self.seeds, n_rows, strict=True))
        notes = [note("seed_words", int(n_rows.sum()), f"Texts with seed words: {counts}.")]
        if missing:
            message = f"No text holds these seed words: {', '.join(missing)}."
            notes.append(note("missing_seed_words", missing, message))
        probabilities = has_seed.astype(np.float32)
        return TopicConstraints(groups, tuple(self.seeds), probabilities, attraction=BOOST), notes


def _checked_seeds(seeds: Any) -> dict[str, tuple[str, ...]]:
    named = seeds.items() if isinstance(seeds, Mapping) else ((None, words) for words in seeds)
    checked: dict[str, tuple[str, ...]] = {}
    for seed_name, words in named:
        if isinstance(words, str) or not words:
            raise InputError("seeds", "lists of words", words)
        unique = tuple(dict.fromkeys(" ".join(word.split()) for word in words))
        name = checked_name(", ".join(unique[:3]) if seed_name is None else seed_name)
        if name in checked:
            raise InputError("seeds", "of different names", name)
        checked[name] = unique
    return checked


def _nearest_seeds(n_words: Int32Array, embeddings: FloatArray) -> Int32Array:
    """Return the seed of each document, -1 for none."""
    means = np.stack(
        [_mean(embeddings[column > 0]) for column in n_words.T] + [_mean(embeddings)], axis=1
    )
    similarities = np.einsum("ij,jk->ik", embeddings.astype(np.float64), means)
    to_seeds, to_all = similarities[:, :-1], similarities[:, -1]
    most = n_words.max(axis=1)
    is_best = (n_words == most[:, None]) & (most > 0)[:, None]
    best = np.where(is_best, to_seeds, -np.inf)
    nearest = best.argmax(axis=1).astype(np.int32)
    nearer = best.max(axis=1) >= to_all
    return np.where(nearer, nearest, -1).astype(np.int32)


def _mean(vectors: FloatArray) -> Any:
    """Return the direction of the mean of unit vectors; zeros if they cancel out."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = np.sqrt(np.einsum("i,i->", mean, mean))
    return mean / length if length > 0 else mean


class ZeroShot:
    """Name topics before the fit, and find the other topics of the texts.

    Documents that match a name become its seeded topic: its label is the name, and no automatic
    step merges or renames it. The rest is clustered. Label propagation assigns outliers to both
    (see `TopicModel`'s `coverage`).

    Parameters
    ----------
    names : sequence of str, or mapping of str to str
        Names, or names with descriptions, which replace the names in comparisons.
    min_similarity : "auto" or float
        Smallest cosine of a document and its best name, -1 to 1. "auto" compares similarities
        averaged over neighbors; see Notes.
    embeddings : array_like of shape (n_names, n_dimensions), optional
        Vectors of the names, from the encoder of the documents; by default the names are encoded.

    Notes
    -----
    Cosines of names and texts differ between encoders and names. "auto" subtracts the mean over all
    documents and averages over neighbors, twice. A document matches its best name with at least 1.5
    units and a lead of 0.75 units; a unit is the spread of similarities to a random direction,
    `sqrt((1 - |m|²) / d)` with m the mean vector and d its dimensions. A name with a peak below
    2.25 units or fewer than five matches is left out, with a decision. For a name that all texts
    match, pass a number.

    For vectors without negative numbers, such as TF-IDF, the unit is the mean similarity of the
    documents that share a word with the name, and 2.25, 1.5 and 0.75 become 0.25, 0.2 and 0.1.
    Describe such names in several words.

    With the five sections of BBC News as names, all-MiniLM-L6-v2 matches 49% of the texts, 97% of
    them to their section; with assigned outliers 58%, at 95%.

    Examples
    --------
    >>> ZeroShot(["sport", "politics"]).describe()["names"]
    {'sport': 'sport', 'politics': 'politics'}
    """

    def __init__(
        self,
        names: Sequence[str] | Mapping[str, str],
        *,
        min_similarity: float | str = "auto",
        embeddings: npt.ArrayLike | None = None,
    ) -> None:
        self.names = _checked_names(names)
        self.min_similarity = min_similarity
        self.embeddings: FloatArray | None = None
        if embeddings is not None:
            self.embeddings = unit_rows(np.asarray(embeddings), what="the embeddings of names")

    def __repr__(self) -> str:
        return f"ZeroShot({list(self.names)}, min_similarity={self.min_similarity!r})"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        return {
            "kind": "zero_shot",
            "names": dict(self.names),
            "min_similarity": self.min_similarity,
            "embeddings": None if self.embeddings is None else "given",
        }

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the documents that match each name."""
        vectors = self._vectors(context)
        # Not by BLAS: its order of summation depends on its threads.
        similarities = np.einsum("ij,kj->ik", context.embeddings, vectors, dtype=float)
        has_vector = (vectors != 0).any(axis=1)
        if self.min_similarity == "auto":
            matched, probabilities = _clear_matches(similarities, context)
            fewest = FEWEST
        else:
            # A name without a vector matches nothing, although its similarity is 0.
            similarities[:, ~has_vector] = -np.inf
            matched, probabilities = _matches_from(similarities, float(self.min_similarity))
            fewest = 1
        matched[~(context.embeddings != 0).any(axis=1)] = -1
        n_matching = np.bincount(matched[matched >= 0], minlength=len(self.names))
        matching = np.flatnonzero(n_matching >= fewest)
        number = np.full(len(self.names) + 1, -1, dtype=np.int32)
        number[matching] = np.arange(len(matching), dtype=np.int32)
        groups = number[matched]
        names = list(self.names)
        constraints = TopicConstraints(
            groups,
            tuple(names[i] for i in matching.tolist()),
            np.where(groups >= 0, probabilities, 0.0).astype(np.float32),
            is_fixed=True,
        )
        lost = [n for i, n in enumerate(names) if has_vector[i] and n_matching[i] < fewest]
        unknown = [name for i, name in enumerate(names) if not has_vector[i]]
        notes = _notes(constraints, context, lost, unknown)
        for decision in notes[1:]:
            warnings.warn(decision.message, stacklevel=2)
        return constraints, notes

    def _vectors(self, context: FitContext) -> FloatArray:
        """Return the vectors of the names, shape (n_names, n_dimensions)."""
        vectors = self.embeddings
        if vectors is None:
            vectors = context.encode(list(self.names.values()))
        if vectors.shape[1] != context.embeddings.shape[1]:
            expected = f"of {context.embeddings.shape[1]} dimensions, like those of the texts"
            shape = f"{vectors.shape[1]} dimensions"
            raise InputError("embeddings", expected, remedy="use one encoder", found=shape)
        return vectors


def _checked_names(names: Any) -> dict[str, str]:
    if isinstance(names, str):
        raise InputError("names", "a list of names, or names with descriptions", names)
    pairs = names.items() if isinstance(names, Mapping) else ((name, name) for name in names)
    checked: dict[str, str] = {}
    for text, description in pairs:
        name = checked_name(text)
        if name.casefold() in map(str.casefold, checked):
            raise InputError("names", "different", found=f"{name!r} twice")
        checked[name] = description
    if not checked:
        raise InputError("names", "at least one name", found="none")
    return checked


def _matches_from(similarities: Float64Array, least: float) -> tuple[Int32Array, Float64Array]:
    """Return the name of each document, or -1, and its similarity relative to the largest."""
    best = similarities.argmax(axis=1)
    top = similarities.max(axis=1)
    matches = top >= least
    largest = float(top[matches].max(initial=0.0))
    probabilities = np.clip(top / largest, 1e-3, 1.0) if largest > 0 else np.ones(len(top))
    return np.where(matches, best, -1).astype(np.int32), probabilities


def _clear_matches(
    similarities: Float64Array, context: FitContext
) -> tuple[Int32Array, Float64Array]:
    """Return the name that each document clearly matches, or -1, and its relative lead."""
    unit: float | Float64Array = _spread(context.embeddings)
    least_peak, least_match, least_lead = LEAST_PEAK, LEAST_MATCH, LEAST_LEAD
    if context.embeddings.min(initial=0.0) >= 0.0:  # words are counted
        least_peak, least_match, least_lead = LEAST_OF_WORDS
        # The mean similarity to a name of the documents that share a word with it.
        n_sharing = (similarities > 0).sum(axis=0)
        sums = np.einsum("ij->j", similarities)
        unit = np.where(n_sharing > 0, sums / np.maximum(n_sharing, 1), 1.0)
    centered = (similarities - similarities.mean(axis=0)) / unit
    for _ in range(ROUNDS):
        total = centered.copy()
        for column in context.graph.indices.T:
            total += centered[column]
        centered = total / (context.graph.k + 1)
    # A name that no document reaches must not reduce the lead of another.
    reached = np.flatnonzero(centered.max(axis=0) >= least_peak)
    if not len(reached):
        return np.full(len(centered), -1, dtype=np.int32), np.zeros(len(centered))
    centered = centered[:, reached]
    ordered = np.sort(centered, axis=1)
    lead = ordered[:, -1] - ordered[:, -2] if len(reached) > 1 else ordered[:, -1]
    best = centered.argmax(axis=1)
    peaks = np.sort(centered, axis=0)[-FEWEST:].mean(axis=0)
    matches = (ordered[:, -1] >= least_match) & (lead >= least_lead)
    matches &= ordered[:, -1] >= OF_PEAK * peaks[best]
    probabilities = np.clip(lead / max(float(lead.max()), 1e-12), 1e-3, 1.0)
    return np.where(matches, reached[best], -1).astype(np.int32), probabilities


def _spread(embeddings: FloatArray) -> float:
    """Return the standard deviation of the cosines with a random direction."""
    mean = embeddings.mean(axis=0, dtype=np.float64)
    squares = float(np.einsum("ij,ij->", embeddings, embeddings, dtype=np.float64))
    variance = squares / len(embeddings) - float(np.einsum("i,i->", mean, mean))
    return float(np.sqrt(max(variance, 1e-12) / embeddings.shape[1]))


def _notes(
    constraints: TopicConstraints, context: FitContext, lost: list[str], unknown: list[str]
) -> list[Decision]:
    weights, groups, names = context.documents.weights, constraints.groups, constraints.names
    inside = groups >= 0
    n_rows = np.bincount(groups[inside], weights[inside], minlength=len(names))
    counts = ", ".join(f"{name} {int(n):,}" for name, n in zip(names, n_rows, strict=True))
    message = f"Texts that match a name: {counts or 'none'}."
    notes = [note("names", int(n_rows.sum()), message)]
    remedy = "describe them in several words that the texts use"
    if lost:
        why = f"Too few texts match these names, which were left out: {', '.join(lost)}"
        message = f"{why}; {remedy}, or pass min_similarity."
        notes.append(note("names_without_texts", lost, message))
    if unknown:
        why = f"The encoder knows no word of these names, which were left out: {', '.join(unknown)}"
        message = f"{why}; {remedy}."
        notes.append(note("names_without_vector", unknown, message))
    return notes
