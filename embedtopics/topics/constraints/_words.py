"""Constraints from words: those that topics use (seed words), and names of topics (zero-shot)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_number
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.terms._tokens import find_phrase, words_of
from embedtopics.topics.constraints._labels import checked_name, checked_weight
from embedtopics.topics.constraints._protocol import FitContext, note
from embedtopics.topics.results import TopicConstraints

ROUNDS = 2
"""Times that a similarity is averaged over neighbours: of the BBC News whose section is named,
the best name is right for 78% without, 89% with one round, 91% with two."""

LEAST_MATCH = 1.5
"""How far above its mean over all documents the similarity to a name must be, in units of what
the similarities to an unrelated direction spread (see `_spread`)."""

LEAST_PEAK = 2.25
"""How far above its mean the similarity to a name must be somewhere, in the same units. In BBC News
the five sections reach 2.5 to 5; gardening, knitting, chemistry and cooking, of which it has
nothing, 1.5 to 1.9."""

LEAST_LEAD = 0.75
"""How far the best name must be above the next, in the same units."""

LEAST_OF_WORDS = (0.25, 0.2, 0.1)
"""Peak, match and lead for vectors that count words. By TF-IDF, of the texts of BBC News that match
four of its sections, each described in four to six words, 91% are of it."""

OF_PEAK = 0.5
"""How near to its best documents the similarity to a name must come, as a share of what these are
above the mean. In the demo corpus *chess* drew football as well: 32% of its texts were of chess
without, 95% with it. Of BBC News, whose sections are broad, 49% of the texts match and not 55%."""

FEWEST = 5
"""Documents that a name must match; fewer are often an accident."""


class SeedWords:
    """Ties documents together that use the same seed words.

    A document is of the seed of whose words it holds the most different ones, if its embedding
    is nearer to the mean of the documents that hold them than to the mean of all. Documents of a
    seed are tied to the nearest others of it in the graph that coordinates are averaged over;
    embeddings and neighbours stay as they are. For keywords that prefer the seed words give
    ``weighting=ClassTfidf(seed_terms=...)``.

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
                holders = np.unique(find_phrase(stream, words_of(word, stream.rules))[1])
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
        return TopicConstraints(
            groups, tuple(self.seeds), probabilities, attraction=self.boost
        ), notes


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


class ZeroShot:
    """Topics named beforehand, and the other topics of the texts.

    Documents that match a name well become its seeded topic: its label is the name, and no
    automatic step merges or renames it. Other topics are found among the rest; outliers are
    assigned to both by their neighbours (see `TopicModel`'s `coverage`).

    Parameters
    ----------
    names : sequence of str, or mapping of str to str
        Names, or names with descriptions; the description, where there is one, is what documents
        are compared with.
    min_similarity : "auto" or float
        Least cosine similarity of a document to its best name, -1 to 1. "auto" compares
        similarities, averaged over neighbours, with one another; see Notes.
    embeddings : array_like of shape (n_names, n_dimensions), optional
        Vectors of the names, from the encoder of the documents; by default they are encoded.
        Never changed.

    Raises
    ------
    InputError
        Where there are no names, one is empty or repeated, or a parameter is bad.

    Notes
    -----
    Cosines between names and texts differ between encoders and names. "auto" takes similarities
    less their mean over all documents, averaged over each document's neighbours and theirs. A
    document matches its best name if that is at least 1.5 units, and leads the next by 0.75; a unit
    is the spread of similarities to a random direction, `sqrt((1 - |m|²) / d)` with m the mean
    vector and d its dimensions. A name that no document exceeds by 2.25, or that fewer than five
    match, is left out, with a decision; for one that all texts match give a number.

    For vectors without negative numbers, as of TF-IDF, the unit is the mean similarity of the
    documents that share a word with the name, and 2.25, 1.5 and 0.75 become 0.25, 0.2 and 0.1;
    describe names there in several words.

    Of BBC News, named by its five sections, all-MiniLM-L6-v2 matches 49% of the texts, 97% of them
    to their section; with outliers assigned it is 58%, at 95%.

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
        if min_similarity != "auto":
            expected = '"auto" or a cosine from -1 to 1'
            if not is_number(min_similarity) or not -1.0 <= float(min_similarity) <= 1.0:
                raise InputError("min_similarity", expected, min_similarity)
            min_similarity = float(min_similarity)
        self.min_similarity = min_similarity
        self.embeddings: FloatArray | None = None
        if embeddings is not None:
            given = np.asarray(embeddings)
            if given.ndim != 2 or len(given) != len(self.names):
                expected = f"one row for each of the {len(self.names)} names"
                raise InputError("embeddings", expected, found=f"shape {given.shape}")
            self.embeddings = unit_rows(given, what="the embeddings of names")

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
        """Return the documents that match each name.

        Raises
        ------
        InputError
            Where the names cannot be encoded, or their vectors have other dimensions than those
            of the documents.
        """
        vectors = self._vectors(context)
        # Not by BLAS: what its threads add up, they add in an order of their own.
        similarities = np.einsum("ij,kj->ik", context.embeddings, vectors, dtype=float)
        has_vector = (vectors != 0).any(axis=1)
        if self.min_similarity == "auto":
            matched, probabilities = _clear_matches(similarities, context)
            fewest = FEWEST
        else:
            # A name without a vector matches nothing; its similarity of 0 would match some.
            similarities[:, ~has_vector] = -np.inf
            matched, probabilities = _matches_from(similarities, float(self.min_similarity))
            fewest = 1
        matched[~(context.embeddings != 0).any(axis=1)] = -1
        n_matching = np.bincount(matched[matched >= 0], minlength=len(self.names))
        kept = np.flatnonzero(n_matching >= fewest)
        number = np.full(len(self.names) + 1, -1, dtype=np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        groups = number[matched]
        names = list(self.names)
        constraints = TopicConstraints(
            groups,
            tuple(names[i] for i in kept.tolist()),
            np.where(groups >= 0, probabilities, 0.0).astype(np.float32),
            is_fixed=True,
        )
        lost = [n for i, n in enumerate(names) if has_vector[i] and n_matching[i] < fewest]
        unknown = [name for i, name in enumerate(names) if not has_vector[i]]
        return constraints, _notes(constraints, context, lost, unknown)

    def _vectors(self, context: FitContext) -> FloatArray:
        """Return the vectors of the names, shape (n_names, n_dimensions)."""
        vectors = self.embeddings
        if vectors is None:
            vectors = context.encode(list(self.names.values()))
        if vectors.shape[1] != context.embeddings.shape[1]:
            expected = f"of {context.embeddings.shape[1]} dimensions, as those of the texts"
            found = f"{vectors.shape[1]} dimensions"
            raise InputError("embeddings", expected, remedy="use one encoder", found=found)
        return vectors


def _checked_names(names: Any) -> dict[str, str]:
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise InputError("names", "a list of names, or names with descriptions", names)
    pairs = names.items() if isinstance(names, Mapping) else ((name, name) for name in names)
    checked: dict[str, str] = {}
    for given, description in pairs:
        name = checked_name(given)
        if name.casefold() in {other.casefold() for other in checked}:
            raise InputError("names", "different", found=f"{name!r} twice")
        if not isinstance(description, str) or not description.strip():
            raise InputError("names", f"described by text ({name!r})", description)
        checked[name] = description
    if not checked:
        raise InputError("names", "at least one name", found="none")
    return checked


def _matches_from(similarities: Float64Array, least: float) -> tuple[Int32Array, Float64Array]:
    """Return the name of each document, or -1, and its similarity over the largest."""
    best = similarities.argmax(axis=1)
    top = similarities.max(axis=1)
    matches = top >= least
    largest = float(top[matches].max(initial=0.0))
    probabilities = np.clip(top / largest, 1e-3, 1.0) if largest > 0 else np.ones(len(top))
    return np.where(matches, best, -1).astype(np.int32), probabilities


def _clear_matches(
    similarities: Float64Array, context: FitContext
) -> tuple[Int32Array, Float64Array]:
    """Return the name that a document and its neighbours clearly match, or -1, and how clearly."""
    unit: float | Float64Array = _spread(context.embeddings)
    least_peak, least_match, least_lead = LEAST_PEAK, LEAST_MATCH, LEAST_LEAD
    if context.embeddings.min(initial=0.0) >= 0.0:  # words are counted
        least_peak, least_match, least_lead = LEAST_OF_WORDS
        # The mean similarity to each name of the documents that share a word with it.
        n_sharing = (similarities > 0).sum(axis=0)
        sums = np.einsum("ij->j", similarities)
        unit = np.where(n_sharing > 0, sums / np.maximum(n_sharing, 1), 1.0)
    centered = (similarities - similarities.mean(axis=0)) / unit
    for _ in range(ROUNDS):
        total = centered.copy()
        for column in context.graph.indices.T:
            total += centered[column]
        centered = total / (context.graph.k + 1)
    # A name that nothing reaches must not take the lead from another.
    there = np.flatnonzero(centered.max(axis=0) >= least_peak)
    if not len(there):
        return np.full(len(centered), -1, dtype=np.int32), np.zeros(len(centered))
    centered = centered[:, there]
    ordered = np.sort(centered, axis=1)
    lead = ordered[:, -1] - ordered[:, -2] if len(there) > 1 else ordered[:, -1]
    best = centered.argmax(axis=1)
    peaks = np.sort(centered, axis=0)[-FEWEST:].mean(axis=0)
    matches = (ordered[:, -1] >= least_match) & (lead >= least_lead)
    matches &= ordered[:, -1] >= OF_PEAK * peaks[best]
    probabilities = np.clip(lead / max(float(lead.max()), 1e-12), 1e-3, 1.0)
    return np.where(matches, there[best], -1).astype(np.int32), probabilities


def _spread(embeddings: FloatArray) -> float:
    """Return what the cosines with a random direction spread about their mean."""
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
    said = ", ".join(f"{name} {int(n):,}" for name, n in zip(names, n_rows, strict=True))
    joining = "; others may join by their neighbours" if said else ""
    message = f"Texts that match a name: {said or 'none'}{joining}."
    notes = [note("names", int(n_rows.sum()), message)]
    remedy = "describe them in several words that the texts use"
    if lost:
        why = f"Too few texts match these names, which were left out: {', '.join(lost)}"
        message = f"{why}; {remedy}, or give a min_similarity."
        notes.append(note("names_without_texts", lost, message))
    if unknown:
        why = f"The encoder knows no word of these names, which were left out: {', '.join(unknown)}"
        message = f"{why}; {remedy}."
        notes.append(note("names_without_vector", unknown, message))
    return notes
