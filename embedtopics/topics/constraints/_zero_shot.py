"""Topics that are named before anything is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_number
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.topics.constraints._labels import checked_name
from embedtopics.topics.constraints._protocol import FitContext, note
from embedtopics.topics.results import TopicConstraints

ROUNDS = 2
"""Times that a similarity is averaged over neighbours. Texts and names of one word are compared
with much noise: of the news in BBC News whose section is named, the best name is right for 78%
without, 89% with one round, 91% with two."""

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
"""Peak, match and lead for vectors that count words. The unit is what texts that share a word with
the name have in common with it on average, so that these are shares, about, of the texts around
that do. By TF-IDF, of the texts of BBC News that match four of its sections, each described in four
to six words, 91% are of it."""

OF_PEAK = 0.5
"""How near to its best documents the similarity to a name must come, as a share of what these are
above the mean. In the demo corpus *chess* drew football as well: 32% of its texts were of chess
without, 95% with it. Of BBC News, whose sections are broad, 49% of the texts match and not 55%."""

FEWEST = 5
"""Documents that a name must match; fewer are often an accident."""


class ZeroShot:
    """Topics named beforehand, and the other topics of the texts.

    Documents that match a name well become its seeded topic: its label is the name, and no
    automatic step merges or renames it, at any resolution. All other topics are found among the
    rest. Outliers are assigned to both by their neighbours (see `TopicModel`'s `coverage`).

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
    A cosine between a name of one word and a text has no natural threshold: it differs between
    encoders and names. "auto" takes similarities less their mean over all documents, averaged
    over each document's neighbours and theirs. A document matches its best name if that is at
    least 1.5 units, and leads the next name by 0.75; a unit is the spread of similarities to a
    random direction, sqrt((1 - |m|²) / d) with m the mean vector and d its dimensions. A name
    that no document exceeds by 2.25, or that fewer than five match, is left out, with a decision
    in the result. A name that all texts match equally cannot be found this way: give a number.

    For vectors without negative numbers, such as those of TF-IDF, the unit is the mean similarity
    of the documents that share a word with the name, and 2.25, 1.5 and 0.75 become 0.25, 0.2 and
    0.1. Give descriptions of several words there: *entertainment* alone finds the news on video
    games, which say the word.

    Of BBC News, named by its five sections, all-MiniLM-L6-v2 matches 49% of the texts, 97% of them
    to their section; with outliers assigned it is 58%, at 95%, and other topics hold the rest.

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
        self.min_similarity = _checked_similarity(min_similarity)
        self.embeddings = None if embeddings is None else self._checked_vectors(embeddings)

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

    def _checked_vectors(self, embeddings: npt.ArrayLike) -> FloatArray:
        given = np.asarray(embeddings)
        if given.ndim != 2 or len(given) != len(self.names):
            expected = f"one row for each of the {len(self.names)} names"
            raise InputError("embeddings", expected, found=f"shape {given.shape}")
        return unit_rows(given, what="the embeddings of names")


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


def _checked_similarity(value: Any) -> float | str:
    if isinstance(value, str) and value == "auto":
        return value
    if not is_number(value) or not -1.0 <= float(value) <= 1.0:
        raise InputError("min_similarity", '"auto" or a cosine from -1 to 1', value)
    return float(value)


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
    unit: float | Float64Array
    if context.embeddings.min(initial=0.0) >= 0.0:  # words are counted
        unit, (least_peak, least_match, least_lead) = _in_common(similarities), LEAST_OF_WORDS
    else:
        unit = _spread(context.embeddings)
        least_peak, least_match, least_lead = LEAST_PEAK, LEAST_MATCH, LEAST_LEAD
    centered = _averaged((similarities - similarities.mean(axis=0)) / unit, context.graph)
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


def _averaged(values: Float64Array, graph: NeighborGraph) -> Float64Array:
    """Average values over each document and its neighbours, and again over theirs."""
    for _ in range(ROUNDS):
        total = values.copy()
        for column in graph.indices.T:
            total += values[column]
        values = total / (graph.k + 1)
    return values


def _in_common(similarities: Float64Array) -> Float64Array:
    """Return the mean similarity to each name of the documents that share a word with it."""
    n_sharing = (similarities > 0).sum(axis=0)
    sums = np.einsum("ij->j", similarities)
    return np.where(n_sharing > 0, sums / np.maximum(n_sharing, 1), 1.0)


def _spread(embeddings: FloatArray) -> float:
    """Return what the cosines with a random direction spread about their mean."""
    mean = embeddings.mean(axis=0, dtype=np.float64)
    squares = float(np.einsum("ij,ij->", embeddings, embeddings, dtype=np.float64))
    variance = squares / len(embeddings) - float(np.einsum("i,i->", mean, mean))
    return float(np.sqrt(max(variance, 1e-12) / embeddings.shape[1]))


def _notes(
    constraints: TopicConstraints, context: FitContext, lost: list[str], unknown: list[str]
) -> list[Decision]:
    weights = context.documents.weights
    inside = constraints.groups >= 0
    n_rows = np.bincount(
        constraints.groups[inside], weights[inside], minlength=len(constraints.names)
    )
    said = ", ".join(
        f"{name} {int(n):,}" for name, n in zip(constraints.names, n_rows, strict=True)
    )
    joining = "; others may join by their neighbours" if said else ""
    message = f"Texts that match a name: {said or 'none'}{joining}."
    notes = [note("names", int(n_rows.sum()), message)]
    remedy = "describe them in several words that the texts use"
    if lost:
        message = (
            f"Too few texts match these names, which were left out: {', '.join(lost)}; {remedy}, "
            "or give a min_similarity."
        )
        notes.append(note("names_without_texts", lost, message))
    if unknown:
        message = (
            "The encoder knows no word of these names, which were left out: "
            f"{', '.join(unknown)}; {remedy}."
        )
        notes.append(note("names_without_vector", unknown, message))
    return notes
