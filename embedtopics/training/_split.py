"""Examples to learn from and examples to measure on, without a text in common."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count, checked_level, resolve_seed
from embedtopics.corpus._texts import normalize_text
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, Remedy, name_rows
from embedtopics.protocols import Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training.results import ExampleOverlap

LEAST_HELD_OUT = 20
"""Examples below which a figure means next to nothing: a share of one half is then uncertain by a
fifth in either direction."""

Unit = tuple[str, ...]


def text_key(text: str) -> str:
    """Return the form in which texts are the same sentence: white space and case do not count."""
    return normalize_text(text).casefold()


def in_order(examples: Examples) -> Int64Array:
    """Return the places of the examples in an order that depends on their content alone."""
    labels = [] if examples.labels is None else [examples.labels.tolist()]
    keys = list(zip(*examples.columns, *labels, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def split(
    examples: Examples, share: float = 0.1, random_state: Any = 42, *, least: int = LEAST_HELD_OUT
) -> tuple[Examples, Examples]:
    """Hold out part of the examples, so that no text is on both sides.

    Examples that have a text in common, directly or by way of others, stay together. Otherwise
    part of what is measured would be memorized.

    Parameters
    ----------
    examples : Examples
    share : float
        Of the examples that are held out, between 0 and 1.
    random_state : int, Generator or None
        The same integer holds out the same examples, in whatever order they are given.
    least : int
        Fewest examples that may be held out.

    Returns
    -------
    train, held_out : Examples
        In their order; the share that was reached is among the `decisions` of both.

    Raises
    ------
    InputError
        If fewer than `least` can be held out: too few examples, or too many that share texts.
    """
    checked_level(share, "share")
    seed = resolve_seed(random_state)
    checked_count(least, "least", 1)
    groups, order = _connected(examples, seed)
    sizes = np.bincount(groups, minlength=len(order))
    wanted = round(share * len(examples))
    left = min(wanted, len(examples) - 1)
    is_held = np.zeros(len(order), dtype=bool)
    for group in order.tolist():
        if sizes[group] <= left:
            is_held[group] = True
            left -= int(sizes[group])
    held = is_held[groups]
    n_held, largest = int(held.sum()), int(sizes.max(initial=0))
    if n_held < least:
        together = ""
        if largest > max(wanted, 1):
            mined = "; split pairs before negatives are mined" * (examples.kind == "triplets")
            together = f", {largest:,} of them connected by shared texts{mined}"
        source = examples.source or "examples"
        found = f"{n_held} of {len(examples):,} from {source}{together}"
        remedy = f"{_uncertainty(n_held, least)}; give more examples, or a file to validate on"
        enough = f"large enough to hold out {least} examples or more"
        raise InputError("share", enough, found=found, remedy=remedy)
    message = (
        f"{n_held:,} of {len(examples):,} examples ({n_held / len(examples):.1%}) were held out; "
        f"no text is on both sides. Examples fall into {len(order):,} groups that share texts, the "
        f"largest of {largest:,}."
    )
    decision = Decision("training", "held_out_share", n_held / len(examples), message)
    train, rest = (examples.take(np.flatnonzero(side)) for side in (~held, held))
    return train.noting(decision), rest.noting(decision)


def require_size(examples: Examples, least: int = LEAST_HELD_OUT) -> None:
    """Refuse to measure on a handful of examples."""
    if len(examples) < least:
        found = f"{len(examples)} from {examples.source or 'examples'}"
        remedy = _uncertainty(len(examples), least)
        raise InputError("validation", f"of {least} examples or more", found=found, remedy=remedy)


def _uncertainty(n: int, least: int) -> str:
    """Say how uncertain a share is that is measured on so many examples."""
    from embedtopics.evaluation._shares import wilson

    parts = []
    for size in filter(None, (n, max(400, 2 * least))):
        low, high = wilson(size / 2, size)
        parts.append(f"{float(low):.0%} to {float(high):.0%} on {size} examples")
    return f"the 95 % interval of an accuracy of 50 % is {', '.join(parts)}"


def _connected(examples: Examples, seed: int) -> tuple[Int64Array, Int64Array]:
    """Return the group of each example, by shared texts, and the groups in a random order."""
    import pandas as pd

    keys = [text_key(text) for column in examples.columns for text in column]
    codes, distinct = pd.factorize(np.array(keys, dtype=object))
    of_example = codes.reshape(len(examples.columns), len(examples))
    group_of_text = connected_texts(of_example)
    n_groups = int(group_of_text.max(initial=-1)) + 1
    # The least digest names a group, so that the order comes from the texts and the seed; it is
    # hashed once more, because the least of many is small.
    least: list[bytes] = [b"\xff" * 16] * n_groups
    for key, group in zip(distinct.tolist(), group_of_text.tolist(), strict=True):
        least[group] = min(least[group], _digest(key.encode("utf-8", "surrogatepass"), seed))
    again = [_digest(name, seed) for name in least]
    order = np.array(sorted(range(n_groups), key=again.__getitem__), dtype=np.int64)
    return group_of_text[of_example[0]].astype(np.int64), order


def connected_texts(of_example: Int64Array) -> Int64Array:
    """Return the group of each text that examples, (n_columns, n_examples), connect by others."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_texts = int(of_example.max(initial=-1)) + 1
    first = np.broadcast_to(of_example[0], of_example.shape)
    ends = first.ravel(), of_example.ravel()
    links = coo_matrix((np.ones(of_example.size, np.int8), ends), shape=(n_texts, n_texts))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def _digest(content: bytes, seed: int) -> bytes:
    return hashlib.blake2b(content, digest_size=16, key=str(seed).encode()).digest()


def overlap(train: Examples, test: Examples) -> ExampleOverlap:
    """Count what of a test set occurs in a training set.

    A pair counts in either order of its sides, unless both sets are of premises and hypotheses.
    A triplet counts as the pairs of its anchor with each of the others. Labels do not matter.

    Parameters
    ----------
    train, test : Examples
        Of any kinds.

    Returns
    -------
    ExampleOverlap
        See its `summary`.
    """
    is_directed = train.kind == test.kind == "nli"
    of_train = {unit for units in _units(train, is_directed) for unit in units}
    of_test = _units(test, is_directed)
    texts_of_train = {key for side in _keys(train) for key in side}
    sides = _keys(test)
    texts_of_test = {key for side in sides for key in side}
    seen = np.array([[key in texts_of_train for key in side] for side in sides], dtype=bool)
    repeated = [place for place, units in enumerate(of_test) if not of_train.isdisjoint(units)]
    return ExampleOverlap(
        n_train=len(train),
        n_test=len(test),
        n_shared_texts=len(texts_of_train & texts_of_test),
        repeated=np.array(repeated, dtype=np.int64),
        known=np.flatnonzero(seen.all(axis=0)),
        touched=np.flatnonzero(seen.any(axis=0)),
    )


def refuse_overlap(
    train: Examples,
    held_out: Examples,
    *,
    allow: bool = False,
    what: str = "held-out",
    used_for: str = "training",
) -> tuple[Decision, ...]:
    """Refuse examples that were learned from, or chose the weights; report texts in common."""
    found = overlap(train, held_out)
    n_repeated = len(found.repeated)
    if n_repeated and not allow:
        rows = name_rows(held_out.rows[found.repeated].tolist())
        wanted = f"of other examples than the {used_for} set"
        inside = f"{n_repeated:,} of {len(held_out):,} that are in it ({rows})"
        remedy = Remedy("allow_overlap", True, "take them out of the training examples")
        raise InputError(what, wanted, found=inside, remedy=remedy)
    if not len(found.touched):
        return ()
    name = "overlap_allowed" if n_repeated else "shared_texts"
    value = n_repeated or len(found.touched)
    text = found.summary.replace("training set", f"{used_for} set").replace("test", what, 1)
    return (Decision("training", name, value, text),)


def without(train: Examples, held_out: Sequence[Examples], texts: bool) -> Examples:
    """Leave out the examples that are in held-out sets, or (`texts`) share a text with them."""
    is_left = np.ones(len(train), dtype=bool)
    for test in held_out:
        is_directed = train.kind == test.kind == "nli"
        of_both: list[Any] = [
            list(zip(*_keys(each), strict=True)) if texts else _units(each, is_directed)
            for each in (train, test)
        ]
        forbidden = {unit for units in of_both[1] for unit in units}
        is_left &= [forbidden.isdisjoint(units) for units in of_both[0]]
    if not is_left.any():
        raise InputError("held_out", "other examples", found=f"all {len(train):,} examples in it")
    n_left_out = int((~is_left).sum())
    what = "have a text of" if texts else "are in"
    message = f"{n_left_out:,} of {len(train):,} examples {what} a held-out set and were left out."
    decision = Decision("training", "left_out_for_test", n_left_out, message)
    return train.take(np.flatnonzero(is_left)).noting(decision)


def _keys(examples: Examples) -> list[list[str]]:
    return [[text_key(text) for text in column] for column in examples.columns]


def _units(examples: Examples, is_directed: bool) -> list[set[Unit]]:
    """Return what each example is known by: its pairs, or its texts where it has no pairs."""
    sides = _keys(examples)
    if examples.kind in ("texts", "distilled"):
        return [{(key,) for key in keys} for keys in zip(*sides, strict=True)]

    def unit(anchor: str, other: str) -> Unit:
        return (anchor, other) if is_directed or anchor <= other else (other, anchor)

    return [{unit(first, key) for key in rest} for first, *rest in zip(*sides, strict=True)]
