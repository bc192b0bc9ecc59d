"""What a set of examples asks of an encoder: the figures by the kind of the examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.training.effects import statistics
from embedtopics.training.effects.embedding import Embedded, cosines
from embedtopics.training.effects.intervals import Figure
from embedtopics.training.examples import Examples

__all__ = ["SCORED", "figures_of", "in_order", "units_of"]

SCORED = ("graded", "nli", "triplets", "binary", "pairs")
"""Kinds of examples that similarities can be right or wrong about."""

CUTOFF = 10
"""Ranks that count in the mean reciprocal rank."""

DIGITS = 6
TIE = 10.0**-DIGITS
"""Cosines nearer than this are equal: vectors of single precision say no more, and an encoder that
runs on another machine shall be neither better nor worse for it."""

QUERIES_AT_ONCE = 256
LUMP, LARGEST_SHARE = 50, 0.2
"""Examples, and the share of them that hang together, from which on too little is left to draw."""

Float64Array = npt.NDArray[np.float64]


def in_order(examples: Examples) -> Int64Array:
    """Return the places of the examples in an order that is a function of their content."""
    labels: Sequence[Any] = (
        [0] * len(examples) if examples.labels is None else examples.labels.tolist()
    )
    keys = list(zip(*examples.columns, labels, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def units_of(examples: Examples) -> tuple[Int64Array, str]:
    """Tell which examples share a text, by way of others too: they are no independent witnesses.

    Parameters
    ----------
    examples : Examples

    Returns
    -------
    units : int64 ndarray of shape (n,)
        Numbered in the order of their first text.
    note : str
        Where everything hangs together, so that there is too little to draw from, examples are
        together that share their first text, and this says so.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    texts = sorted({text for column in examples.columns for text in column})
    place = {text: number for number, text in enumerate(texts)}
    columns = [np.array([place[text] for text in column]) for column in examples.columns]
    first = np.concatenate([columns[0]] * max(1, len(columns) - 1))
    other = np.concatenate(columns[1:] or columns)
    edges = coo_matrix((np.ones(len(first)), (first, other)), shape=(len(texts), len(texts)))
    _, component = connected_components(edges, directed=False)
    units = np.unique(component[columns[0]], return_inverse=True)[1]
    sizes = np.bincount(units)
    by_first = np.unique(columns[0], return_inverse=True)[1]
    is_one_lump = len(examples) >= LUMP and sizes.max() > LARGEST_SHARE * len(examples)
    if not is_one_lump or by_first.max() + 1 <= len(sizes):
        return units.astype(np.int64), ""
    return by_first.astype(np.int64), (
        "Many examples are connected by texts that they share: those with the same first "
        "text were drawn together, and the interval may be a little narrow."
    )


def figures_of(
    examples: Examples, before: Embedded, after: Embedded, units: Int64Array
) -> list[Figure]:
    """Return the figures of a set of examples.

    Parameters
    ----------
    examples : Examples
        Of a kind among `SCORED`.
    before, after : Embedded
    units : int64 ndarray of shape (n,)

    Returns
    -------
    list of Figure

    Raises
    ------
    InputError
        Where the labels leave nothing to tell.
    """
    made = {
        "graded": _graded, "nli": _inference, "triplets": _triplets, "binary": _binary,
        "pairs": _pairs,
    }[examples.kind](examples, (before, after))  # fmt: skip
    return [
        Figure(metric, statistic, scores[0], scores[1], truth, units[rows])
        for metric, statistic, scores, truth, rows in made
    ]


_Made = list[
    tuple[str, statistics.Statistic, list[Float64Array], npt.NDArray[Any], npt.NDArray[Any]]
]


def _graded(examples: Examples, encoders: tuple[Embedded, Embedded]) -> _Made:
    labels = _labels(examples)
    if np.ptp(labels) == 0:
        raise InputError(
            f"{_named(examples)}: expected graded examples with at least two different scores; all "
            f"are {labels[0]:g}"
        )
    scores = [_similarity(examples, encoder) for encoder in encoders]
    rows = np.arange(len(examples))
    return [
        ("Spearman correlation", statistics.spearman, scores, labels, rows),
        ("Pearson correlation", statistics.pearson, scores, labels, rows),
    ]


def _binary(examples: Examples, encoders: tuple[Embedded, Embedded]) -> _Made:
    labels = _labels(examples)
    if not 0 < np.count_nonzero(labels) < len(labels):
        raise InputError(
            f"{_named(examples)}: expected pairs of both labels, 1 and 0; all are {labels[0]:g}"
        )
    scores = [_similarity(examples, encoder) for encoder in encoders]
    rows = np.arange(len(examples))
    return [("average precision", statistics.average_precision, scores, labels, rows)]


def _inference(examples: Examples, encoders: tuple[Embedded, Embedded]) -> _Made:
    """Ask whether what follows is nearer than what contradicts: of one premise, and of all."""
    labels = _labels(examples)
    entailed, contradicted = (
        np.isin(labels, [i for i, name in enumerate(examples.names) if _is(name, stem)])
        for stem in ("entail", "contrad")
    )
    if not entailed.any() or not contradicted.any():
        raise InputError(
            f"{_named(examples)}: expected pairs of the classes entailment and contradiction; the "
            f"classes are {', '.join(map(repr, examples.names)) or 'not named'}, with "
            f"{int(entailed.sum()):,} and {int(contradicted.sum()):,} pairs of those two"
        )
    scores = [_similarity(examples, encoder) for encoder in encoders]
    asked = np.flatnonzero(entailed | contradicted)
    of_both = [part[asked] for part in scores]
    made: _Made = [
        ("AUC, entailment against contradiction", statistics.auc, of_both, entailed[asked], asked)
    ]
    pairs = _same_premise(examples.columns[0], entailed, contradicted)
    if len(pairs):
        right = [(one[pairs[:, 0]] > one[pairs[:, 1]] + TIE).astype(float) for one in scores]
        made.append(
            ("entailed nearer than contradicted", statistics.mean, right, np.ones(len(pairs)),
             pairs[:, 0])
        )  # fmt: skip
    return made


def _is(name: str, stem: str) -> bool:
    return name.strip().casefold().startswith(stem)


def _same_premise(
    premises: Sequence[str], entailed: npt.NDArray[np.bool_], contradicted: npt.NDArray[np.bool_]
) -> Int64Array:
    """Return every two pairs of one premise, the entailed and the contradicted, shape (n, 2)."""
    of_premise: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, chosen in enumerate((entailed, contradicted)):
        for row in np.flatnonzero(chosen).tolist():
            of_premise[premises[row]][side].append(row)
    both = [(a, b) for one, other in of_premise.values() for a in one for b in other]
    return np.array(both, dtype=np.int64).reshape(-1, 2)


def _triplets(examples: Examples, encoders: tuple[Embedded, Embedded]) -> _Made:
    scores = []
    for encoder in encoders:
        anchor, positive, *negatives = (encoder.of(column) for column in examples.columns)
        hardest = np.max([cosines(anchor, negative) for negative in negatives], axis=0)
        scores.append((cosines(anchor, positive) > hardest + TIE).astype(float))
    rows = np.arange(len(examples))
    return [("accuracy", statistics.mean, scores, np.ones(len(rows)), rows)]


def _pairs(examples: Examples, encoders: tuple[Embedded, Embedded]) -> _Made:
    ranks = [_ranks(examples, encoder) for encoder in encoders]
    rows, truth = np.arange(len(examples)), np.ones(len(examples))
    reciprocal = [np.where(rank <= CUTOFF, 1 / rank, 0.0) for rank in ranks]
    at_one = [(rank == 1).astype(float) for rank in ranks]
    return [
        (f"MRR@{CUTOFF}", statistics.mean, reciprocal, truth, rows),
        ("accuracy@1", statistics.mean, at_one, truth, rows),
    ]


def _ranks(examples: Examples, encoder: Embedded) -> Float64Array:
    """Return the rank of each second text among all second texts, asked for by its first.

    Other texts that the same first text is paired with, and the first text itself, do not compete;
    of equals, the right one comes last.
    """
    from threadpoolctl import threadpool_limits

    queries, answers = examples.columns[:2]
    candidates = sorted(set(answers))
    place = {text: number for number, text in enumerate(candidates)}
    right: dict[str, set[int]] = defaultdict(set)
    for query, answer in zip(queries, answers, strict=True):
        right[query].add(place[answer])
    vectors = encoder.of(candidates).astype(np.float64)
    ranks = np.empty(len(queries))
    with threadpool_limits(limits=1, user_api="blas"):
        for begin in range(0, len(queries), QUERIES_AT_ONCE):
            asked = queries[begin : begin + QUERIES_AT_ONCE]
            similarity = encoder.of(asked).astype(np.float64) @ vectors.T
            for row, query in enumerate(asked):
                own = similarity[row, place[answers[begin + row]]]
                others = np.array(sorted(right[query] | {place.get(query, -1)} - {-1}))
                rivals = np.count_nonzero(similarity[row] > own - TIE)
                rivals -= np.count_nonzero(similarity[row, others] > own - TIE)
                ranks[begin + row] = 1 + rivals
    return ranks


def _similarity(examples: Examples, encoder: Embedded) -> Float64Array:
    first, second = examples.columns[:2]
    return np.round(cosines(encoder.of(first), encoder.of(second)), DIGITS)


def _labels(examples: Examples) -> npt.NDArray[Any]:
    if examples.labels is None:
        raise InputError(f"{_named(examples)}: expected a label for each example; got none")
    return examples.labels


def _named(examples: Examples) -> str:
    return examples.source or "the examples"
