"""What can be said of a word without looking at its vector, and labels that mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array, RandomState

__all__ = ["control_labels", "control_target", "most_frequent", "most_frequent_of_type"]


def control_labels(
    words: Sequence[str], labels: Sequence[str], *, random_state: RandomState = 0
) -> tuple[str, ...]:
    """Give each word type a label at random, so that only memory can answer.

    A probe that learns these labels as well as the real ones shows what it can learn by heart, and
    not what the vectors hold (Hewitt and Liang 2019, "Designing and interpreting probes with
    control tasks", section 2). The label of a type is drawn from how frequent the labels are; it
    depends on the type, the frequencies and the seed, and on nothing else.

    Parameters
    ----------
    words : sequence of str
        Such as those of HiddenStates; case counts.
    labels : sequence of str
        Whose frequencies count; empty strings are no labels. They need not be those of `words`.
    random_state : int, Generator or None

    Returns
    -------
    tuple of str
        One label a word, the same for the same word.

    Raises
    ------
    InputError
        Without any label.

    Examples
    --------
    >>> first, second, third = control_labels(["bank", "river", "bank"], ["NOUN", "VERB"] * 9)
    >>> first == third
    True
    """
    classes, counts = np.unique([str(one) for one in labels if one], return_counts=True)
    if not len(classes):
        raise InputError("expected labels to draw control labels from; got none")
    drawn = control_target(words, counts, resolve_seed(random_state))
    return tuple(str(classes[i]) for i in drawn.tolist())


def control_target(types: Sequence[str], counts: npt.NDArray[np.int_], seed: int) -> Int64Array:
    """Draw a class for each type by how frequent the classes are; one for each of the types given.

    Parameters
    ----------
    types : sequence of str
    counts : int ndarray of shape (n_classes,)
    seed : int
    """
    shares = np.cumsum(counts) / np.sum(counts)
    key = f"control {seed}".encode()
    drawn: dict[str, float] = {}
    for one in types:
        if one not in drawn:
            found = blake2b(one.encode(errors="surrogatepass"), digest_size=8, key=key)
            # The upper 53 bits: a float holds them exactly, below 1.
            drawn[one] = (int.from_bytes(found.digest(), "big") >> 11) / 2**53
    place = np.searchsorted(shares, [drawn[one] for one in types], side="right")
    return np.asarray(np.minimum(place, np.flatnonzero(counts)[-1]), dtype=np.int64)


def most_frequent(target: Int64Array, n_classes: int, n: int) -> Int64Array:
    """Answer with the most frequent class, of equals the first."""
    return np.full(n, np.bincount(target, minlength=n_classes).argmax(), dtype=np.int64)


def most_frequent_of_type(
    types: Sequence[str], target: Int64Array, asked: Sequence[str], n_classes: int
) -> Int64Array:
    """Answer with the most frequent class of the type, or of all where the type is new.

    Of equals, that which is more frequent among all.

    Parameters
    ----------
    types : sequence of str
        Learnt from.
    target : int64 ndarray
        Their classes.
    asked : sequence of str
    n_classes : int
    """
    of_all = np.bincount(target, minlength=n_classes)
    number = {one: i for i, one in enumerate(dict.fromkeys(types))}
    known = np.array([number[one] for one in types], dtype=np.int64)
    cells, counts = np.unique(known * n_classes + target, return_counts=True)
    rank = np.lexsort([-(cells % n_classes), of_all[cells % n_classes], counts])
    best = np.empty(len(number), dtype=np.int64)
    best[cells[rank] // n_classes] = cells[rank] % n_classes  # the last, and best, stays
    majority = int(of_all.argmax())
    return np.array(
        [best[number[one]] if one in number else majority for one in asked], dtype=np.int64
    )
