"""What is learnt from, what chooses, and what is measured on: whole sentences, never words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_level
from embedtopics.corpus import normalize_text
from embedtopics.errors import InputError
from embedtopics.probing.probes.labels import PARTS, Labelled
from embedtopics.probing.words.finding import numbered
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, HiddenStates

__all__ = ["DEV", "TEST", "TRAIN", "Units", "dealt_out", "numbered_sentences", "parts_of"]

TRAIN, DEV, TEST = range(3)
FEW_SENTENCES = 20
"""Sentences under which an interval says little of itself."""
SHOWN_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Units:
    """Labelled units, dealt out, in an order that comes from what they are alone.

    Sentences of one text stand together, in an order drawn at random by their text and the seed:
    the first units of a part are a random sample of its sentences.

    Parameters
    ----------
    rows : int64 ndarray of shape (n, 1) or (n, 2)
    target : int64 ndarray of shape (n,)
        Number of the class of each unit.
    classes : tuple of str
        Sorted.
    types : tuple of str
        The word itself; of a pair both words.
    group : int64 ndarray of shape (n,)
        Sentences that are equal, or hang together by pairs; ascending within a part.
    part : int64 ndarray of shape (n,)
        0 to learn from, 1 to choose by, 2 to measure on; ascending.
    name, unit : str
    decisions : tuple of Decision
    """

    rows: Int64Array
    target: Int64Array
    classes: tuple[str, ...]
    types: tuple[str, ...]
    group: Int64Array
    part: Int64Array
    name: str
    unit: str
    decisions: tuple[Decision, ...]

    def of(self, part: int) -> Int64Array:
        """Return the numbers of the units of one part."""
        return np.flatnonzero(self.part == part)


def dealt_out(
    states: HiddenStates, labelled: Labelled, *, test_share: float, dev_share: float, seed: int
) -> Units:
    """Deal units out into parts, sentence by sentence.

    Raises
    ------
    InputError
        If all have one label, or a part would be empty.
    """
    classes, target = np.unique(np.array(labelled.labels, dtype=object), return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"expected labels of at least two classes; all {len(target):,} {labelled.unit}s are "
            f"{classes[0]!r}"
        )
    sentence = numbered_sentences(states, seed)[labelled.rows]
    group = sentence[:, 0] if sentence.shape[1] == 1 else _connected(sentence)
    types, place = _types(states, labelled.rows)
    part, decisions = parts_of(labelled, group, test_share, dev_share)
    # Copies of a sentence in different texts have different vectors: their texts settle the order.
    text = numbered(states.texts)[states.of_text[labelled.rows]]
    order = np.lexsort([target, place, *text.T, *sentence.T, group, part])
    units = Units(
        rows=labelled.rows[order],
        target=target[order].astype(np.int64),
        classes=tuple(map(str, classes)),
        types=tuple(types[i] for i in order.tolist()),
        group=group[order],
        part=part[order],
        name=labelled.name,
        unit=labelled.unit,
        decisions=(*labelled.decisions, *decisions),
    )
    return replace(units, decisions=(*units.decisions, *_told_of_classes(units)))


def numbered_sentences(states: HiddenStates, seed: int) -> Int64Array:
    """Return a number for the sentence of each unit, equal for equal text, in random order.

    White space and case do not count. The order comes from the texts and the seed.
    """
    of_unit = np.arange(len(states)) if states.unit == "text" else states.sentences
    begins = np.flatnonzero(np.diff(of_unit, prepend=-1))
    ends = np.append(begins[1:], len(of_unit))
    digests = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        text = normalize_text(" ".join(states.words[begin:end])).casefold()
        digests.append(_digest(text, seed))
    numbers = np.unique(np.array(digests, dtype=np.uint64), return_inverse=True)[1]
    return np.repeat(numbers.astype(np.int64), ends - begins)


def parts_of(
    labelled: Labelled, group: Int64Array, test_share: float, dev_share: float
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Return the part of each unit: the one that was given, or dealt out group by group."""
    if not labelled.parts:
        return _shares_of(group, test_share, dev_share, labelled.unit)
    part = np.array([PARTS.index(one) for one in labelled.parts], dtype=np.int64)
    return _completed(part, group, dev_share, labelled.unit)


def _shares_of(
    group: Int64Array, test_share: float, dev_share: float, unit: str
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Give whole groups to the test and the dev part until their shares are reached.

    Raises
    ------
    InputError
        If there are too few sentences.
    """
    checked_level(test_share, "test_share")
    checked_level(dev_share, "dev_share")
    if test_share + dev_share >= 1:
        raise InputError(
            "expected test_share and dev_share to leave something to learn from; got "
            f"{test_share:g} and {dev_share:g}"
        )
    part = np.full(len(group), TRAIN, dtype=np.int64)
    for which, share in ((TEST, test_share), (DEV, dev_share)):
        part[_some(group, part, share * len(group), unit)] = which
    message = (
        f"Of {len(group):,} {unit}s, {np.sum(part == TRAIN):,} were learnt from, "
        f"{np.sum(part == DEV):,} chose the penalty and {np.sum(part == TEST):,} were measured on; "
        f"whole sentences were dealt out, {len(np.unique(group)):,} distinct ones."
    )
    return part, (Decision("probing", "parts", float(np.mean(part == TEST)), message),)


def _some(group: Int64Array, part: Int64Array, wanted: float, unit: str) -> npt.NDArray[np.bool_]:
    """Return the units of the first groups still to learn from that fit into what is wanted."""
    numbers, sizes = np.unique(group[part == TRAIN], return_counts=True)
    room = max(1, round(wanted))
    taken = []
    for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
        if size <= room:
            taken.append(number)
            room -= size
    if not taken and len(numbers) > 1:  # a handful of long sentences: one of them has to do
        taken = [int(numbers[sizes.argmin()])]
    if not taken or len(taken) == len(numbers):
        raise InputError(
            f"expected at least three distinct sentences to deal out; the {len(group):,} {unit}s "
            f"are of {len(np.unique(group)):,} that share no text: give more, or parts"
        )
    return np.isin(group, taken)


def _completed(
    part: Int64Array, group: Int64Array, dev_share: float, unit: str
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Check parts that were given, and take what is missing of dev from train."""
    for which in (TRAIN, TEST):
        if not (part == which).any():
            raise InputError(
                f"expected labelled {unit}s in the train and the test part; got none in "
                f"{PARTS[which]}"
            )
    decisions = []
    if not (part == DEV).any():
        checked_level(dev_share, "dev_share")
        part = part.copy()
        wanted = dev_share * float(np.sum(part == TRAIN))
        part[_some(group, part, wanted, unit) & (part == TRAIN)] = DEV
        message = (
            f"The parts name no {unit}s to choose the penalty by: {np.sum(part == DEV):,} of the "
            "train part were taken."
        )
        decisions.append(Decision("probing", "dev_from_train", int(np.sum(part == DEV)), message))
    both = np.isin(group[part == TEST], group[part != TEST])
    if both.any():
        message = (
            f"{both.sum():,} of the {len(both):,} {unit}s of the test part, as it was given, are "
            "in sentences that stand in the other parts as well."
        )
        decisions.append(Decision("probing", "test_in_train", int(both.sum()), message))
    return part, tuple(decisions)


def _connected(sentence: Int64Array) -> Int64Array:
    """Group pairs that share a sentence, directly or by way of others; in random order."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = int(sentence.max()) + 1
    links = coo_matrix((np.ones(len(sentence)), (sentence[:, 0], sentence[:, 1])), shape=(n, n))
    of_sentence = connected_components(links, directed=False)[1]
    # Components are numbered anew by their first sentence, whose number is random.
    _, first, component = np.unique(of_sentence, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[component[sentence[:, 0]]])


def _types(states: HiddenStates, rows: Int64Array) -> tuple[list[str], Int64Array]:
    """Return the type of each unit, and its place in its text, or among pairs by its words."""
    if rows.shape[1] == 1:
        flat = rows[:, 0]
        return [states.words[i] for i in flat.tolist()], states.position[flat].astype(np.int64)
    types = [f"{states.words[u]} {states.words[v]}" for u, v in rows.tolist()]
    return types, np.asarray(states.position[rows] @ [len(states) + 1, 1], dtype=np.int64)


def _told_of_classes(units: Units) -> tuple[Decision, ...]:
    decisions = []
    sizes = np.bincount(units.target, minlength=len(units.classes))
    in_train = np.bincount(units.target[units.of(TRAIN)], minlength=len(units.classes))
    if np.count_nonzero(in_train) < 2:
        raise InputError(
            f"expected at least two classes to learn from; all {in_train.sum():,} {units.unit}s of "
            f"the train part are {units.classes[int(in_train.argmax())]!r}: give more sentences"
        )
    if (sizes == 1).any():
        named = [units.classes[i] for i in np.flatnonzero(sizes == 1).tolist()]
        message = (
            f"{_listed(named)} stood once: such a class cannot be both learnt and measured, "
            "and weighs as much as any other in macro F1."
        )
        decisions.append(Decision("probing", "single_examples", named, message))
    in_test = np.bincount(units.target[units.of(TEST)], minlength=len(units.classes))
    unseen = np.flatnonzero((in_test > 0) & (in_train == 0))
    if len(unseen):
        named = [units.classes[i] for i in unseen.tolist()]
        message = (
            f"{_listed(named)} are in the test part and not in the train part: "
            f"{in_test[unseen].sum():,} of {in_test.sum():,} {units.unit}s that are measured on "
            "cannot be right."
        )
        decisions.append(Decision("probing", "unseen_classes", named, message))
    n_sentences = len(np.unique(units.group[units.of(TEST)]))
    if n_sentences < FEW_SENTENCES:
        message = (
            f"The test part has {n_sentences} distinct sentences: intervals from so few are rough."
        )
        decisions.append(Decision("probing", "few_sentences", n_sentences, message))
    return tuple(decisions)


def _listed(named: Sequence[str]) -> str:
    kind = "Class" if len(named) == 1 else "Classes"
    more = f" and {len(named) - SHOWN_CLASSES} more" if len(named) > SHOWN_CLASSES else ""
    return f"{kind} {', '.join(map(repr, named[:SHOWN_CLASSES]))}{more}"


def _digest(text: str, seed: int) -> int:
    found = blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(found.digest(), "big")
