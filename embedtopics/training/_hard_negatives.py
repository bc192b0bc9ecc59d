"""Hard negatives: near texts that are no positive, and not positives that nobody has marked.

The nearest texts of an anchor teach most and are the likeliest to be unmarked positives: training
on those undoes what it should do. Candidates that are too near in proportion to the positive are
left out: TopK-PercPos of "NV-Retriever: Improving text embedding models with effective
hard-negative mining" (Moreira et al. 2024), at 95 % as there.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_number
from embedtopics.corpus._hashing import is_missing
from embedtopics.corpus.results import Decision
from embedtopics.encoders._registry import fitted, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import nearest, unit_rows
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training._examples import Examples, read_examples
from embedtopics.training._split import text_key

_GUARDS = {
    "too near": "nearer than the limit that the positive sets",
    "group": "of a group of the anchor",
    "alike": "nearly the same text as the anchor or a positive",
}


def mine_hard_negatives(
    examples: Examples,
    encoder: Any,
    *,
    n_negatives: int = 1,
    share: float | None = 0.95,
    margin: float | None = None,
    alike: float | None = 0.98,
    skip_top: int = 0,
    depth: int = 100,
    groups: Sequence[Any] | None = None,
    candidates: Sequence[str] | None = None,
) -> Examples:
    """Give each pair the nearest texts that are not its positive.

    A candidate is never a text that stands in any pair with the anchor, on either side, nor the
    anchor itself; white space and case do not count. Where an anchor has several positives, the
    farthest of them sets the limit.

    Parameters
    ----------
    examples : Examples
        Of kind "pairs".
    encoder : Encoder, str or path
        For the cosine similarities; one that is better than that to be trained makes fewer
        mistakes. An encoder that learns from texts is fitted to these.
    n_negatives : int
        Of each pair.
    share : float or None
        Largest similarity of a negative, as a share of that of the positive: below a positive of
        similarity s, ``s - (1 - share) * abs(s)``.
    margin : float or None
        A negative must also be less similar than the positive by at least this.
    alike : float or None
        Similarity to the anchor, or to a positive of it, from which on a candidate is a copy.
    skip_top : int
        Leave out so many of the nearest texts that are left, and take the next ones.
    depth : int
        Nearest texts that are examined for each anchor, those paired with it not counted.
    groups : sequence, optional
        A label for each example, such as its author or topic. Texts of examples with one label are
        no negatives of one another; None and NaN are no label.
    candidates : sequence of str, optional
        More texts that may be negatives, besides the positives of other pairs.

    Returns
    -------
    mined : Examples
        Of kind "triplets", with `n_negatives` columns of negatives, the nearest first. Pairs with
        fewer are left out. What was left out, and how near the negatives are, is in `decisions`.

    Raises
    ------
    InputError
        If the examples are not pairs, a parameter is out of range, or no pair is left.

    Notes
    -----
    No guard finds all unmarked positives. Of 700 images with five captions each (Multi30k), two
    captions were paired and the other three left among the candidates; all-MiniLM-L6-v2 took one
    of the three for the hardest negative of 67 % of the pairs without a guard, of 29 % with
    ``share=0.95``, of 11 % with ``share=0.8``, and of 9 % and 4 % with ``skip_top=5`` and 10
    alone. Skip some where many positives may be unmarked.
    """
    read_examples(examples, "pairs")
    checked_count(n_negatives, "n_negatives")
    checked_count(skip_top, "skip_top", 0)
    wanted = skip_top + n_negatives
    checked_count(depth, "depth", wanted)
    for name, value, high in (
        ("share", share, 1.0),
        ("margin", margin, 2.0),
        ("alike", alike, 1.0),
    ):
        if value is not None and (not is_number(value) or not 0.0 <= value <= high):
            raise InputError(name, f"a number from 0 to {high:g}, or None", value)
    if groups is not None and len(groups) != len(examples):
        raise InputError(
            "groups", f"one for each of {len(examples):,} examples", found=f"{len(groups):,}"
        )
    links = _Links.of(examples, groups, candidates)
    maker = fitted(resolve_encoder(encoder), links.texts)
    encoder_name = str(getattr(maker, "name", type(maker).__name__))
    made = maker.encode(links.texts)
    if not isinstance(made, np.ndarray):
        raise InputError("encoder", 'one of dense vectors, such as "lsa"', encoder_name)
    vectors = unit_rows(made, keep_zeros=True)
    pair_similarity = np.einsum(
        "ij,ij->i", vectors[links.anchors], vectors[links.positives], dtype=np.float64
    )
    limits = np.full(len(links.texts), np.inf)
    np.minimum.at(limits, links.anchors, pair_similarity)
    limits = _limits(limits, share, margin)
    found, left_out = _search(links, vectors, limits, alike, wanted, depth)
    kept = np.flatnonzero([len(found[anchor]) == wanted for anchor in links.anchors.tolist()])
    if not len(kept):
        counts = ", ".join(
            f"{count:,} {_GUARDS[guard]}" for guard, count in sorted(left_out.items())
        )
        raise InputError(
            "n_negatives",
            "at most the number that pass for some pair",
            found=f"fewer for all {len(examples):,} pairs ({counts or 'no candidates'})",
            remedy="give candidates, raise share or depth, or lower skip_top",
        )
    chosen = [found[int(links.anchors[place])][skip_top:] for place in kept.tolist()]
    negatives = tuple(
        tuple(links.texts[row[rank][0]] for row in chosen) for rank in range(n_negatives)
    )
    similarity = (
        float(np.mean([near for row in chosen for _, near in row])),
        float(pair_similarity[kept].mean()),
    )
    taken = examples.take(kept)
    taken = replace(taken, kind="triplets", columns=(*taken.columns, *negatives))
    n_left_out = len(examples) - len(kept)
    return taken.noting(*_account(n_left_out, n_negatives, left_out, encoder_name, similarity))


@dataclass(frozen=True, eq=False)
class _Links:
    """Distinct texts, in an order of their own, and which of them belong together."""

    texts: list[str]  # sorted, so that nothing depends on the order of the examples
    anchors: Int64Array  # (n_examples,), places in `texts`
    positives: Int64Array  # (n_examples,), places in `texts`
    pool: Int64Array  # (n_pool,), places of the texts that may be negatives, ascending
    partners: dict[int, set[int]]  # texts that stand in a pair with a text
    groups: dict[int, set[Hashable]]  # labels of the examples that a text stands in

    @classmethod
    def of(
        cls, examples: Examples, labels: Sequence[Any] | None, candidates: Sequence[str] | None
    ) -> _Links:
        extra = () if candidates is None else read_examples(candidates, "texts").columns[0]
        shortest: dict[str, str] = {}
        for text in (*examples.columns[0], *examples.columns[1], *extra):
            key = text_key(text)
            shortest[key] = min(text, shortest.get(key, text))
        place = {key: number for number, key in enumerate(sorted(shortest))}

        def places(column: Sequence[str]) -> Int64Array:
            return np.array([place[text_key(text)] for text in column], dtype=np.int64)

        anchors, positives = places(examples.columns[0]), places(examples.columns[1])
        partners: dict[int, set[int]] = defaultdict(set)
        groups: dict[int, set[Hashable]] = defaultdict(set)
        known = [None] * len(examples) if labels is None else list(labels)
        for anchor, positive, label in zip(
            anchors.tolist(), positives.tolist(), known, strict=True
        ):
            partners[anchor].add(positive)
            partners[positive].add(anchor)
            if not is_missing(label):
                groups[anchor].add(label)
                groups[positive].add(label)
        return cls(
            texts=[shortest[key] for key in sorted(shortest)],
            anchors=anchors,
            positives=positives,
            pool=np.unique(np.concatenate([positives, places(extra)])),
            partners=partners,
            groups=groups,
        )


def _search(
    links: _Links,
    vectors: FloatArray,
    limits: npt.NDArray[np.float64],
    alike: float | None,
    wanted: int,
    depth: int,
) -> tuple[dict[int, list[tuple[int, float]]], Counter[str]]:
    """Return the nearest texts of each anchor that pass, and how many did not, by the guard."""
    anchors = np.unique(links.anchors)
    # More by those that are passed over, so that `depth` means the same for every anchor.
    k = depth + 1 + max(len(links.partners[anchor]) for anchor in anchors.tolist())
    indices, similarities = nearest(vectors[anchors], vectors[links.pool], k)
    positives_of: dict[int, list[int]] = defaultdict(list)
    for anchor, positive in zip(links.anchors.tolist(), links.positives.tolist(), strict=True):
        positives_of[anchor].append(positive)
    einsum = partial(np.einsum, "ij,j->i", dtype=np.float64)
    left_out: Counter[str] = Counter()
    found: dict[int, list[tuple[int, float]]] = {}
    for row, anchor in enumerate(anchors.tolist()):
        paired = links.partners[anchor] | {anchor}
        own_groups = links.groups.get(anchor, set())
        copied = vectors[[anchor, *positives_of[anchor]]]
        passed: list[tuple[int, float]] = []
        ranked = zip(links.pool[indices[row]].tolist(), similarities[row].tolist(), strict=True)
        candidates = [(text, near) for text, near in ranked if text not in paired]
        for text, similarity in candidates[:depth]:
            if len(passed) == wanted:
                break
            if similarity > limits[anchor]:
                left_out["too near"] += 1
            elif own_groups and not own_groups.isdisjoint(links.groups.get(text, ())):
                left_out["group"] += 1
            elif alike is not None and float(einsum(copied, vectors[text]).max()) >= alike:
                left_out["alike"] += 1
            else:
                passed.append((text, similarity))
        found[anchor] = passed
    return found, left_out


def _limits(
    positive: npt.NDArray[np.float64], share: float | None, margin: float | None
) -> npt.NDArray[np.float64]:
    """Return how similar a negative may be to each anchor, from the similarity of the positive."""
    limits = np.full(len(positive), np.inf)
    known = np.isfinite(positive)  # texts that are no anchors have no positive
    if share is not None:
        limits[known] = positive[known] - (1.0 - share) * np.abs(positive[known])
    if margin is not None:
        limits[known] = np.minimum(limits[known], positive[known] - margin)
    return limits


def _account(
    n_left_out: int,
    n_negatives: int,
    left_out: Counter[str],
    name: str,
    similarity: tuple[float, float],
) -> list[Decision]:
    negative, positive = similarity
    found: list[tuple[str, Any, str]] = [
        ("hard_negatives", name, f"{n_negatives} hard negatives a pair were mined with {name}.")
    ]
    for guard, n in sorted(left_out.items()):
        message = f"{n:,} candidates were left out: {_GUARDS[guard]}."
        found.append((f"negatives_left_out_{guard.replace(' ', '_')}", n, message))
    if n_left_out:
        message = f"{n_left_out:,} pairs had too few negatives that pass and were left out."
        found.append(("pairs_without_negatives", n_left_out, message))
    message = f"Mean similarity to the anchor: {negative:.3f} of negatives, {positive:.3f} of "
    value = negative if math.isfinite(negative) else 0.0
    found.append(("negative_similarity", value, f"{message}positives."))
    return [Decision("training", *each) for each in found]
