"""Split examples without a text in common, and find overlaps between sets."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_between, checked_count, resolve_seed
from embedtopics.errors import InputError, Remedy, name_rows
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision
from embedtopics.training._examples import Examples, text_key
from embedtopics.training.results import ExampleOverlap

LEAST_HELD_OUT = 20
"""Fewest examples of a validation set: with fewer, a share of one half is uncertain by a fifth."""


def in_order(examples: Examples) -> Int64Array:
    """Return the positions of the examples, ordered by content."""
    labels = [] if examples.labels is None else [examples.labels.tolist()]
    keys = list(zip(*examples.columns, *labels, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def train_test_split(
    examples: Examples,
    test_size: float = 0.1,
    *,
    min_size: int = LEAST_HELD_OUT,
    random_state: Any = 0,
) -> tuple[Examples, Examples]:
    """Hold out part of the examples, so that no text is on both sides.

    Examples that share a text, directly or through others, stay together, because memorized texts
    would raise the figures.

    Parameters
    ----------
    examples : Examples
    test_size : float
        Share of the examples to hold out, between 0 and 1.
    min_size : int
        Fewest examples that may be held out.
    random_state : int, Generator or None
        The same integer holds out the same examples, in any order of the rows.

    Returns
    -------
    train, test : Examples
        Both in their order; their `decisions` report the share that was reached.

    Raises
    ------
    InputError
        If fewer than `min_size` can be held out, because examples are few or share texts.

    Examples
    --------
    >>> import embedtopics as et
    >>> rows = [(f"question {n}", f"answer {n}") for n in range(200)]
    >>> pairs = et.training.read_examples(rows, "pairs")
    >>> train, test = et.training.train_test_split(pairs, 0.25)
    >>> len(train), len(test)
    (150, 50)
    """
    if not isinstance(examples, Examples):
        remedy = "read them: et.training.read_examples(source, kind)"
        raise InputError("examples", "Examples", examples, remedy)
    checked_between(test_size, "test_size", 0, 1)
    seed = resolve_seed(random_state)
    checked_count(min_size, "min_size", 1)
    groups, order = _connected(examples, seed)
    sizes = np.bincount(groups, minlength=len(order))
    n_wanted = round(test_size * len(examples))
    left = min(n_wanted, len(examples) - 1)
    is_held = np.zeros(len(order), dtype=bool)
    for group in order.tolist():
        if sizes[group] <= left:
            is_held[group] = True
            left -= int(sizes[group])
    is_held_out = is_held[groups]
    n_held, largest = int(is_held_out.sum()), int(sizes.max(initial=0))
    if n_held < min_size:
        together = ""
        if largest > max(n_wanted, 1):
            mined = "; split pairs before negatives are mined" * (examples.kind == "triplets")
            together = f", {largest:,} of them connected by shared texts{mined}"
        source = examples.source or "examples"
        got = f"{n_held} of {len(examples):,} from {source}{together}"
        remedy = "give more examples, or a file to validate on"
        enough = f"large enough to hold out {min_size} examples or more"
        raise InputError("test_size", enough, found=got, remedy=remedy)
    message = (
        f"{n_held:,} of {len(examples):,} examples ({n_held / len(examples):.1%}) were held out; "
        f"no text is on both sides. Examples fall into {len(order):,} groups that share texts, the "
        f"largest of {largest:,}."
    )
    decision = Decision("training", "held_out_share", n_held / len(examples), message)
    train, rest = (examples.take(np.flatnonzero(side)) for side in (~is_held_out, is_held_out))
    return train._noting(decision), rest._noting(decision)


def require_size(examples: Examples, min_size: int = LEAST_HELD_OUT) -> None:
    """Refuse a validation set of fewer than `min_size` examples."""
    if len(examples) < min_size:
        got = f"{len(examples)} from {examples.source or 'examples'}"
        raise InputError("validation", f"of {min_size} examples or more", found=got)


def _connected(examples: Examples, seed: int) -> tuple[Int64Array, Int64Array]:
    """Return the group of each example, by shared texts, and the groups in a random order."""
    import pandas as pd

    keys = [text_key(text) for column in examples.columns for text in column]
    codes, distinct = pd.factorize(np.array(keys, dtype=object))
    of_example = codes.reshape(len(examples.columns), len(examples))
    group_of_text = connected_texts(of_example)
    n_groups = int(group_of_text.max(initial=-1)) + 1
    # The least digest identifies a group, so that the order depends on texts and seed alone. It is
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
    """Count the examples of a test set that occur in a training set.

    A pair counts in either order of its sides, unless both sets are of premises and hypotheses.
    A triplet counts as the pairs of its anchor with each of the others. Labels do not matter.

    Parameters
    ----------
    train, test : Examples
        Examples of any kinds.

    Returns
    -------
    ExampleOverlap
        See its `summary`.

    Examples
    --------
    >>> import embedtopics as et
    >>> train = et.training.read_examples([("a car", "a bus"), ("a cat", "a dog")], "pairs")
    >>> test = et.training.read_examples([("A  car", "a bus"), ("a cat", "a fish")], "pairs")
    >>> et.training.overlap(train, test)
    ExampleOverlap(2 test examples, 1 repeated, 1 known, 2 touched)
    """
    is_directed = train.kind == test.kind == "nli"
    of_train = {unit for units in example_units(train, is_directed) for unit in units}
    of_test = example_units(test, is_directed)
    texts_of_train = {key for side in text_keys(train) for key in side}
    sides = text_keys(test)
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
    """Refuse held-out examples that are in another set, and report shared texts."""
    shared = overlap(train, held_out)
    n_repeated = len(shared.repeated)
    if n_repeated and not allow:
        rows = name_rows(held_out.rows[shared.repeated].tolist())
        expected = f"of other examples than the {used_for} set"
        inside = f"{n_repeated:,} of {len(held_out):,} that are in it ({rows})"
        remedy = Remedy("allow_overlap", True, f"take them out of the {used_for} examples")
        raise InputError(what, expected, found=inside, remedy=remedy)
    if not len(shared.touched):
        return ()
    name = "overlap_allowed" if n_repeated else "shared_texts"
    value = n_repeated or len(shared.touched)
    text = shared.summary.replace("training set", f"{used_for} set").replace("test", what, 1)
    return (Decision("training", name, value, text),)


def text_keys(examples: Examples) -> list[list[str]]:
    """Return the keys of all texts, a list for each column."""
    return [[text_key(text) for text in column] for column in examples.columns]


def example_units(examples: Examples, is_directed: bool) -> list[set[tuple[str, ...]]]:
    """Return the pairs of each example, in either order; its texts where it has no pairs."""
    sides = text_keys(examples)
    if examples.kind in ("texts", "labelled"):
        return [{(key,) for key in keys} for keys in zip(*sides, strict=True)]

    def unit(anchor: str, other: str) -> tuple[str, ...]:
        return (anchor, other) if is_directed or anchor <= other else (other, anchor)

    return [{unit(first, key) for key in rest} for first, *rest in zip(*sides, strict=True)]
