"""What training and test examples have in common, and ways to be rid of it."""

from __future__ import annotations

import numpy as np

from embedtopics.corpus.tables import name_rows
from embedtopics.errors import InputError
from embedtopics.results import Decision, ExampleOverlap
from embedtopics.training.examples import Examples, with_decisions
from embedtopics.training.splitting import text_key

__all__ = ["overlap", "refuse_overlap", "without_examples_of", "without_sentences_of"]

_ALONE = ("texts", "taught")
_USES = {
    "training": ("are not learned from", "train"),
    "validation": ("do not decide which weights are kept", "validation"),
}
"""What the examples of a set do to the weights, and what the set is called as an argument."""

Unit = tuple[str, ...]


def overlap(train: Examples, test: Examples) -> ExampleOverlap:
    """Tell what of a test set occurs in a training set.

    A pair counts in either order of its sides, unless both sets are of premises and hypotheses.
    A triplet counts as the pairs of its anchor with each of the others. Labels do not matter.

    Parameters
    ----------
    train, test : Examples
        Of any kinds.

    Returns
    -------
    ExampleOverlap
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
        n_shared_examples=len(of_train & {unit for units in of_test for unit in units}),
        n_shared_texts=len(texts_of_train & texts_of_test),
        n_test_texts=len(texts_of_test),
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
    """Refuse to measure on examples that were learned from, or that chose the weights.

    Parameters
    ----------
    train, held_out : Examples
    allow : bool
        Measure all the same, and say so.
    what : str
        What the held-out examples are called in messages, such as "test".
    used_for : {"training", "validation"}
        What the first set is for: validation examples decide which weights are kept, so that a
        figure on the same examples is too high as well.

    Returns
    -------
    tuple of Decision
        What the sets have in common; empty if they have no text in common. Texts that both know,
        in different examples, are told and not refused.

    Raises
    ------
    InputError
        If an example is in both; the message names the first rows.
    """
    found = overlap(train, held_out)
    n_repeated = len(found.repeated)
    if n_repeated and not allow:
        use, first = _USES[used_for]
        raise InputError(
            f"{held_out.source or what}: expected {what} examples that {use}, got "
            f"{n_repeated:,} of {len(held_out):,} that are in the {used_for} set "
            f"({name_rows(held_out.rows[found.repeated].tolist())}); take them out of the "
            f"{used_for} set with without_examples_of({first}, held_out), or, where it is meant, "
            "allow it (allow=True; allow_overlap=True of a fit)"
        )
    if not len(found.touched):
        return ()
    name = "overlap_allowed" if n_repeated else "shared_texts"
    value = n_repeated or len(found.touched)
    said = found.summary.replace("training set", f"{used_for} set").replace("test", what, 1)
    return (Decision("training", name, value, said),)


def without_sentences_of(train: Examples, *held_out: Examples) -> Examples:
    """Leave out the training examples that have a text of a test set.

    Parameters
    ----------
    train : Examples
    *held_out : Examples
        Of any kinds.

    Returns
    -------
    left : Examples
        How many were left out is in `decisions`.

    Raises
    ------
    InputError
        If none is left.

    Examples
    --------
    >>> from embedtopics.training import read_examples
    >>> train = read_examples([("A dog.", "An animal."), ("A cat.", "A pet.")], "pairs")
    >>> test = read_examples([("a  DOG.", "A stone.")], "pairs")
    >>> without_sentences_of(train, test).columns
    (('A cat.',), ('A pet.',))
    """
    forbidden = {key for test in held_out for side in _keys(test) for key in side}
    kept = [
        place
        for place, keys in enumerate(zip(*_keys(train), strict=True))
        if forbidden.isdisjoint(keys)
    ]
    return _left(train, kept, "have a text of a test set")


def without_examples_of(train: Examples, *held_out: Examples) -> Examples:
    """Leave out the training examples that are in a test set, whatever their labels.

    Texts that both know in different examples stay; `without_sentences_of` leaves out these too,
    which of some published sets takes nearly everything.

    Parameters
    ----------
    train : Examples
    *held_out : Examples
        Of any kinds; see `overlap` for what counts as the same example.

    Returns
    -------
    left : Examples
        How many were left out is in `decisions`.

    Raises
    ------
    InputError
        If none is left.
    """
    of_train = {is_directed: _units(train, is_directed) for is_directed in (False, True)}
    is_left = np.ones(len(train), dtype=bool)
    for test in held_out:
        is_directed = train.kind == test.kind == "nli"
        forbidden = {unit for units in _units(test, is_directed) for unit in units}
        is_left &= [forbidden.isdisjoint(units) for units in of_train[is_directed]]
    return _left(train, np.flatnonzero(is_left).tolist(), "are in a test set")


def _left(train: Examples, kept: list[int], why: str) -> Examples:
    n_left_out = len(train) - len(kept)
    if not kept:
        raise InputError(
            f"{train.source or 'train'}: expected training examples that are left, got none: all "
            f"{len(train):,} {why}; hold out other examples"
        )
    message = f"{n_left_out:,} of {len(train):,} training examples {why} and were left out."
    decision = Decision("training", "left_out_for_test", n_left_out, message)
    return with_decisions(train.take(kept), decision)


def _keys(examples: Examples) -> list[list[str]]:
    return [[text_key(text) for text in column] for column in examples.columns]


def _units(examples: Examples, is_directed: bool) -> list[set[Unit]]:
    """Return what each example is known by: its pairs, or its texts where it has no pairs."""
    sides = _keys(examples)
    if examples.kind in _ALONE:
        return [{(key,) for key in keys} for keys in zip(*sides, strict=True)]

    def unit(anchor: str, other: str) -> Unit:
        return (anchor, other) if is_directed or anchor <= other else (other, anchor)

    return [{unit(first, key) for key in rest} for first, *rest in zip(*sides, strict=True)]
