"""Examples to learn from and examples to measure on, without a text in common."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_level
from embedtopics._randomness import resolve_seed
from embedtopics.corpus import normalize_text
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision
from embedtopics.training.examples import Examples, with_decisions

__all__ = ["LEAST_HELD_OUT", "require_size", "split", "text_key"]

LEAST_HELD_OUT = 20
"""Examples under which a figure says next to nothing: a share of a half is then uncertain by a
fifth in either direction."""


def text_key(text: str) -> str:
    """Return the form in which texts are the same sentence: white space and case do not count."""
    return normalize_text(text).casefold()


def split(
    examples: Examples, share: float = 0.1, seed: int = 42, *, least: int = LEAST_HELD_OUT
) -> tuple[Examples, Examples]:
    """Hold out part of the examples, so that no text is on both sides.

    A premise has several hypotheses, and a sentence stands in several pairs: examples that have a
    text in common, directly or by way of others, stay together. Otherwise what is measured is in
    part what was learned by heart.

    Parameters
    ----------
    examples : Examples
    share : float
        Of the examples that are held out, between 0 and 1.
    seed : int
        The same examples are held out for one seed, in whatever order they are given.
    least : int
        Fewest examples that may be held out.

    Returns
    -------
    train, held_out : Examples
        In their order; the share that was reached is among the `decisions` of both.

    Raises
    ------
    InputError
        If fewer than `least` can be held out, or nothing is left to learn from: too few
        examples, or too many of them hang together.
    """
    checked_level(share, "share")
    seed = resolve_seed(seed)
    checked_count(least, "least", 1)
    groups, order = _connected(examples, seed)
    sizes = np.bincount(groups, minlength=len(order))
    wanted = round(share * len(examples))
    room = min(wanted, len(examples) - 1)
    is_held = np.zeros(len(order), dtype=bool)
    for group in order.tolist():
        if sizes[group] <= room:
            is_held[group] = True
            room -= int(sizes[group])
    held = is_held[groups]
    n_held, largest = int(held.sum()), int(sizes.max(initial=0))
    if n_held < least:
        together = ""
        if largest > max(wanted, 1):
            mined = ", split pairs before negatives are mined" * (examples.kind == "triplets")
            together = (
                f"; {largest:,} of them hang together by texts that they share: hold out another "
                f"set{mined}"
            )
        raise InputError(
            f"{examples.source or 'examples'}: expected to hold out at least {least} examples, got "
            f"{n_held} of {len(examples):,} with share={share:g}{together}; "
            f"{_why_more(n_held, least)}; give more examples, a larger share, or examples that are "
            "held out already"
        )
    message = (
        f"{n_held:,} of {len(examples):,} examples ({n_held / len(examples):.1%}) were held out; "
        f"no text is on both sides. Examples fall into {len(order):,} groups that share texts, the "
        f"largest of {largest:,}."
    )
    decision = Decision("training", "held_out_share", n_held / len(examples), message)
    train, rest = (examples.take(np.flatnonzero(side)) for side in (~held, held))
    return with_decisions(train, decision), with_decisions(rest, decision)


def require_size(
    examples: Examples, least: int = LEAST_HELD_OUT, *, what: str = "validation"
) -> None:
    """Refuse to measure on a handful of examples.

    Parameters
    ----------
    examples : Examples
    least : int
        Lower it to allow fewer.
    what : str
        What the examples are for, for the message.

    Raises
    ------
    InputError
        If there are fewer; the message says how uncertain a figure would be.
    """
    checked_count(least, "least", 0)
    if len(examples) < least:
        raise InputError(
            f"{examples.source or 'examples'}: expected at least {least} {what} examples, got "
            f"{len(examples)}; {_why_more(len(examples), least)}; give more, or allow fewer with "
            "least="
        )


def _why_more(n: int, least: int) -> str:
    """Say how uncertain a share is that is measured on so many examples."""
    from embedtopics.evaluation.shares import wilson

    def interval(size: int) -> str:
        low, high = wilson(size / 2, size)
        return f"from {float(low):.0%} to {float(high):.0%}"

    enough = max(400, 2 * least)
    if not n:
        return f"an accuracy of 50 % on {enough} examples means {interval(enough)} (95 %)"
    return (
        f"an accuracy of 50 % on {n} examples means {interval(n)} (95 %), on {enough} "
        f"{interval(enough)}"
    )


def _connected(examples: Examples, seed: int) -> tuple[Int64Array, Int64Array]:
    """Group examples that share texts; return each example's group, and groups in random order.

    The order comes from the texts and the seed, not from the examples' places.
    """
    import pandas as pd
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    keys = [text_key(text) for column in examples.columns for text in column]
    codes, distinct = pd.factorize(np.array(keys, dtype=object))
    of_example = codes.reshape(len(examples.columns), len(examples))
    first = np.broadcast_to(of_example[0], of_example.shape)
    n_texts = len(distinct)
    links = coo_matrix(
        (np.ones(of_example.size, dtype=np.int8), (first.ravel(), of_example.ravel())),
        shape=(n_texts, n_texts),
    )
    n_groups, group_of_text = connected_components(links, directed=False)
    # The least digest names a group; it is hashed once more, because the least of many is small.
    least: list[bytes] = [b"\xff" * 16] * n_groups
    for key, group in zip(distinct.tolist(), group_of_text.tolist(), strict=True):
        least[group] = min(least[group], _digest(key.encode("utf-8", "surrogatepass"), seed))
    again = [_digest(name, seed) for name in least]
    order: npt.NDArray[np.int64] = np.array(
        sorted(range(n_groups), key=again.__getitem__), dtype=np.int64
    )
    return group_of_text[of_example[0]].astype(np.int64), order


def _digest(content: bytes, seed: int) -> bytes:
    return hashlib.blake2b(content, digest_size=16, key=str(seed).encode()).digest()
