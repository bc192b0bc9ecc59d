"""Dependency trees as distances, and how well other distances rebuild them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.probing.probes.labels import start_of
from embedtopics.protocols import Int64Array
from embedtopics.results import HiddenStates

__all__ = [
    "Tree", "edges_found", "mean_rank_correlation", "read_trees", "spanning_tree",
    "tree_distances",
]  # fmt: skip

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tree:
    """One sentence: its words that have vectors, and how they hang together.

    Parameters
    ----------
    rows : int64 ndarray of shape (n_words,)
        Of the states.
    distances : float64 ndarray of shape (n_words, n_words)
        Number of edges between two words.
    edges : frozenset of (int, int)
        Places in `rows`, the lower first; between words that count.
    counts : bool ndarray of shape (n_words,)
        False for punctuation, which is no part of what is rebuilt.
    """

    rows: Int64Array
    distances: Float64Array
    edges: frozenset[tuple[int, int]]
    counts: npt.NDArray[np.bool_]


def read_trees(states: HiddenStates, heads: Sequence[str], *, punctuation: bool) -> list[Tree]:
    """Read the tree of each sentence that has heads, and two words or more with a vector.

    Parameters
    ----------
    states : HiddenStates
    heads : sequence of str
        Of each unit: the place of its head in its sentence, from 1, and 0 for the root; empty
        strings in sentences without a tree.
    punctuation : bool
        Whether punctuation counts as a word.

    Raises
    ------
    InputError
        If the heads of a sentence are no tree; the message names it.
    """
    begins = np.flatnonzero(np.diff(states.sentences, prepend=states.sentences[0] - 1))
    is_missing = states.missing
    trees = []
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(states)], strict=True):
        own = heads[begin:end]
        if not any(own):
            continue
        places = _checked_heads(own, states, begin)
        distances = tree_distances(places)
        kept = np.flatnonzero(~is_missing[begin:end])
        if len(kept) < 2:
            continue
        counts = np.array(
            [punctuation or not _is_punctuation(states.words[begin + i]) for i in kept.tolist()]
        )
        number = {int(place): i for i, place in enumerate(kept) if counts[i]}
        links = [(place, head - 1) for place, head in enumerate(places) if head]
        edges = frozenset(
            (min(number[a], number[b]), max(number[a], number[b]))
            for a, b in links
            if a in number and b in number
        )
        trees.append(Tree(begin + kept, distances[np.ix_(kept, kept)], edges, counts))
    return trees


def tree_distances(heads: Sequence[int]) -> Float64Array:
    """Return the number of edges between any two words, shape (n, n).

    Parameters
    ----------
    heads : sequence of int
        Of each word: the place of its head from 1, and 0 for the root.

    Raises
    ------
    ValueError
        If they are no tree.

    Examples
    --------
    >>> tree_distances([2, 0, 2, 3])[0].tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    children: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for place, head in enumerate(heads):
        children[head].append(place)
    if len(children[0]) != 1:
        raise ValueError(f"they have {len(children[0])} roots")
    distances = np.zeros((len(heads), len(heads)))
    order = [children[0][0]]
    for at, node in enumerate(order):
        known = order[:at]
        if known:
            steps = distances[heads[node] - 1, known] + 1
            distances[node, known] = distances[known, node] = steps
        order += children[node + 1]
    if len(order) != len(heads):
        raise ValueError(f"{len(heads) - len(order)} words hang in a circle")
    return distances


def spanning_tree(distances: Float64Array) -> set[tuple[int, int]]:
    """Return the edges of the tree of least total distance (Prim 1957); of equals the first.

    Parameters
    ----------
    distances : float64 ndarray of shape (n, n)

    Returns
    -------
    set of (int, int)
        The lower place first.
    """
    n = len(distances)
    nearest = distances[0].copy() if n else np.empty(0)
    link = np.zeros(n, dtype=np.int64)
    is_out = np.arange(n) > 0
    edges = set()
    for _ in range(n - 1):
        place = int(np.where(is_out, nearest, np.inf).argmin())
        other = int(link[place])
        edges.add((min(place, other), max(place, other)))
        is_out[place] = False
        closer = distances[place] < nearest
        nearest[closer] = distances[place][closer]
        link[closer] = place
    return edges


def edges_found(tree: Tree, distances: Float64Array) -> int:
    """Return how many edges of a tree the least spanning tree of other distances has."""
    counted = np.flatnonzero(tree.counts)
    found = spanning_tree(distances[np.ix_(counted, counted)])
    places = counted.tolist()
    return sum((places[a], places[b]) in tree.edges for a, b in found)


def mean_rank_correlation(tree: Tree, distances: Float64Array) -> float:
    """Return the mean over words of Spearman's correlation of distances from them.

    The distance of a word to itself is among them, as in the figures of Hewitt and Manning. A
    word from which all distances are equal has a correlation of 0.
    """
    from scipy.stats import rankdata

    found, wanted = (
        ranks - ranks.mean(axis=1, keepdims=True)
        for ranks in (rankdata(distances, axis=1), rankdata(tree.distances, axis=1))
    )
    below = np.sqrt(np.square(found).sum(axis=1) * np.square(wanted).sum(axis=1))
    above = (found * wanted).sum(axis=1)
    return float(np.divide(above, below, out=np.zeros_like(above), where=below > 0).mean())


def _checked_heads(own: Sequence[str], states: HiddenStates, begin: int) -> list[int]:
    text = int(states.of_text[begin])
    where = f"the sentence of text {text}, {start_of(states, text)},"
    for place, head in enumerate(own, start=1):
        if not head.isdecimal() or int(head) > len(own) or int(head) == place:
            raise InputError(
                f"expected heads from 0 to {len(own)}, and none of itself, in {where} got "
                f"{head!r} at word {place}"
            )
    heads = [int(head) for head in own]
    try:
        tree_distances(heads)
    except ValueError as error:
        raise InputError(f"expected the heads of {where} to be a tree; {error}") from None
    return heads


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(one).startswith("P") for one in word)
