"""Labelled units and their split into train, dev and test: whole sentences, never words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import excerpt
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.probing._tasks import PARTS, content_digest, key_of
from embedtopics.probing.results import HiddenStates, ProbeTask
from embedtopics.probing.words._uses import numbered
from embedtopics.protocols import BoolArray, Int64Array
from embedtopics.results import Decision, counted

TRAIN, DEV, TEST = range(3)
TEST_SHARE, DEV_SHARE = 0.2, 0.1
"""Shares of the units where a task has no parts."""
FEW_SENTENCES = 20
"""Sentences under which an interval is unreliable."""
SHOWN, SHOWN_CLASSES = 60, 10


@dataclass(frozen=True, eq=False)
class Units:
    """Labelled units, split, in an order drawn by the texts of sentences and the seed alone."""

    rows: Int64Array
    target: Int64Array
    classes: tuple[str, ...]
    types: tuple[str, ...]  # the words as the encoder reads them
    group: Int64Array  # of equal sentences; ascending within a part
    part: Int64Array  # `TRAIN`, `DEV` or `TEST`, ascending
    name: str
    unit: str
    decisions: tuple[Decision, ...]

    def of(self, part: int) -> Int64Array:
        """Return the numbers of the units of one part."""
        return np.flatnonzero(self.part == part)


def label_units(states: HiddenStates, labels: ProbeTask | Sequence[Any], seed: int) -> Units:
    """Align labels with the rows of the states, and split the units with a label and a vector."""
    task = labels if isinstance(labels, ProbeTask) else None
    label_of_unit = label_of_each_unit(states, labels)
    unit = states.unit
    has_label = np.array([bool(label) for label in label_of_unit], dtype=bool)
    rows = np.flatnonzero(has_label & ~states.missing)
    if not len(rows):
        raise InputError("labels", f"labels of some of the {len(states):,} {unit}s", found="none")

    message = f"of {len(states):,} {unit}s have no label and were left out."
    decisions = counted("probing", "unlabelled", int((~has_label).sum()), message)
    message = f"labelled {unit}s have no token, and so no vector, and were left out."
    n_missing = int((has_label & states.missing).sum())
    decisions += counted("probing", "missing_words", n_missing, message)

    classes, target = np.unique(np.array(label_of_unit, dtype=object)[rows], return_inverse=True)
    if len(classes) < 2:
        raise InputError("labels", "labels of at least two classes", found=f"only {classes[0]!r}")

    group = number_sentences(states, seed)[rows]
    if task and task.parts:
        part, notes = _completed_parts(_part_of_each_unit(states, task)[rows], group, unit)
    else:
        part, notes = _drawn_parts(group, unit)

    # Copies of a sentence in different texts have different vectors: the texts decide the order.
    text = numbered(states.texts)[states.of_text[rows]]
    order = np.lexsort((target, states.position[rows], text, group, part))
    words = [states.words[row] for row in rows[order].tolist()]
    of_task = task.decisions if task else ()

    units = Units(
        rows=rows[order],
        target=target[order].astype(np.int64),
        classes=tuple(map(str, classes)),
        types=tuple(states.forms.get(word, word) for word in words),
        group=group[order],
        part=part[order],
        name=task.name if task else "labels",
        unit=unit,
        decisions=(*of_task, *decisions, *notes),
    )
    return replace(units, decisions=(*units.decisions, *_class_decisions(units)))


def label_of_each_unit(states: HiddenStates, labels: ProbeTask | Sequence[Any]) -> list[str]:
    """Return one label per unit, from a flat sequence or one sequence per text."""
    if isinstance(labels, ProbeTask):
        if states.unit != labels.unit:
            raise InputError(
                "states", f"states of {labels.unit}s", found=f"states of {states.unit}s"
            )
        texts = [text if isinstance(text, str) else " ".join(text) for text in labels.texts]
        if texts != list(states.texts):
            expected = f"states of the {len(texts):,} texts of the task"
            raise InputError("states", expected, found="other texts")
        values: list[Any] = list(labels.labels)
    elif isinstance(labels, str) or not hasattr(labels, "__iter__"):
        remedy = "call et.probing.probe(states, labels)"
        raise InputError("labels", "a ProbeTask, or a sequence of labels", labels, remedy)
    else:
        values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    is_nested = [isinstance(of_text, (list, tuple, np.ndarray)) for of_text in values]
    n_expected = len(states.texts) if any(is_nested) else len(states)
    if len(values) != n_expected or len(set(is_nested)) > 1:
        expected = f"a label for each of {len(states):,} {states.unit}s, or a sequence for each of "
        expected += f"{len(states.texts):,} texts"
        raise InputError("labels", expected, found=f"{len(values):,}, {sum(is_nested):,} sequences")
    if any(is_nested):
        n_units = np.bincount(states.of_text, minlength=len(states.texts))
        for text, of_text in enumerate(values):
            if len(of_text) != n_units[text]:
                problem = f"{len(of_text):,} for {excerpt(states.texts[text], SHOWN)!r}"
                expected = f"a label for each of {n_units[text]:,} {states.unit}s"
                raise InputError("labels", expected, found=problem, row=text)
        values = [one for of_text in values for one in of_text]
    return [_label(one, row) for row, one in enumerate(values)]


def _label(value: Any, row: int) -> str:
    if not isinstance(value, str) and is_missing(value):
        return ""
    if isinstance(value, (str, bool, np.bool_)) or is_whole(value):
        return str(value)
    raise InputError("labels", "strings or integers", value, "bin numbers into classes", row=row)


def number_sentences(states: HiddenStates, seed: int) -> Int64Array:
    """Return a random number for the sentence of each unit, equal but for white space and case."""
    of_unit = np.arange(len(states)) if states.unit == "text" else states.sentences
    begins = np.flatnonzero(np.diff(of_unit, prepend=-1))
    ends = np.append(begins[1:], len(of_unit))
    keys = [key_of(states.words[i:j]) for i, j in zip(begins, ends, strict=True)]
    numbers = numbered([content_digest(key, seed).hex() for key in keys])
    return np.repeat(numbers, ends - begins)


def _part_of_each_unit(states: HiddenStates, task: ProbeTask) -> Int64Array:
    """Return the part of each unit that a task gives to its text."""
    if len(task.parts) != len(states.texts) or not set(task.parts) <= set(PARTS):
        raise InputError("parts", f"train, dev or test for each of {len(states.texts):,} texts")
    return np.array([PARTS.index(part) for part in task.parts], dtype=np.int64)[states.of_text]


def _drawn_parts(group: Int64Array, unit: str) -> tuple[Int64Array, list[Decision]]:
    """Return the part of each unit: whole groups up to the shares of dev and test."""
    part = np.full(len(group), TRAIN, dtype=np.int64)
    for which, share in ((TEST, TEST_SHARE), (DEV, DEV_SHARE)):
        part[_first_groups(group, part, share * len(group), unit)] = which
    n_train, n_dev, n_test = np.bincount(part, minlength=3).tolist()
    message = (
        f"Of {len(group):,} {unit}s, {n_train:,} are for training, {n_dev:,} for the choice of the "
        f"penalty and {n_test:,} for the test; {len(np.unique(group)):,} distinct sentences were "
        "split."
    )
    return part, [Decision("probing", "parts", n_test / len(group), message)]


def _first_groups(group: Int64Array, part: Int64Array, n_units: float, unit: str) -> BoolArray:
    """Return the units of the first groups of the train part that fit into a number of units."""
    numbers, sizes = np.unique(group[part == TRAIN], return_counts=True)
    n_free = max(1, round(n_units))
    selected = []
    for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
        if size <= n_free:
            selected.append(number)
            n_free -= size
    if not selected and len(numbers) > 1:  # a few long sentences: take one of them
        selected = [int(numbers[sizes.argmin()])]
    if not selected or len(selected) == len(numbers):
        problem = f"{len(np.unique(group)):,} without text in common"
        expected = f"{unit}s of at least three distinct sentences"
        raise InputError("labels", expected, remedy="give more", found=problem)
    return np.isin(group, selected)


def _completed_parts(
    part: Int64Array, group: Int64Array, unit: str
) -> tuple[Int64Array, list[Decision]]:
    """Check the parts of a task, and take a missing dev part from train."""
    for which in (TRAIN, TEST):
        if not (part == which).any():
            expected = f"with labelled {unit}s in train and test"
            raise InputError("parts", expected, found=f"none in {PARTS[which]}")
    decisions = []
    if not (part == DEV).any():
        n_units = DEV_SHARE * float(np.sum(part == TRAIN))
        part[_first_groups(group, part, n_units, unit) & (part == TRAIN)] = DEV
        n = int(np.sum(part == DEV))
        message = f"There is no dev part: {n:,} {unit}s of the train part choose the penalty."
        decisions.append(Decision("probing", "dev_from_train", n, message))
    both = np.isin(group[part == TEST], group[part != TEST])
    message = f"of {len(both):,} test {unit}s are in sentences of other parts too."
    decisions += counted("probing", "test_in_train", int(both.sum()), message)
    return part, decisions


def _class_decisions(units: Units) -> tuple[Decision, ...]:
    """Report classes and sentences that are too few; refuse a train part of one class."""
    n_classes = len(units.classes)
    in_train, in_test, sizes = (
        np.bincount(units.target[members], minlength=n_classes)
        for members in (units.of(TRAIN), units.of(TEST), slice(None))
    )
    if np.count_nonzero(in_train) < 2:
        problem = f"only {units.classes[int(in_train.argmax())]!r}"
        raise InputError("labels", "labels of two classes in the train part", found=problem)
    decisions = []
    if (sizes == 1).any():
        named = [units.classes[i] for i in np.flatnonzero(sizes == 1).tolist()]
        message = f"{_listed(named)} occurred once, and cannot be both learned and tested."
        decisions.append(Decision("probing", "single_examples", named, message))
    unseen = np.flatnonzero((in_test > 0) & (in_train == 0))
    if len(unseen):
        named = [units.classes[i] for i in unseen.tolist()]
        message = f"{_listed(named)} occurred only in the test part: no probe can be right on "
        message += f"{in_test[unseen].sum():,} of {in_test.sum():,} test {units.unit}s."
        decisions.append(Decision("probing", "unseen_classes", named, message))
    n = len(np.unique(units.group[units.of(TEST)]))
    if n < FEW_SENTENCES:
        message = f"The test part has only {n} distinct sentences, so the intervals are rough."
        decisions.append(Decision("probing", "few_sentences", n, message))
    return tuple(decisions)


def _listed(named: Sequence[str]) -> str:
    kind = "Class" if len(named) == 1 else "Classes"
    more = f" and {len(named) - SHOWN_CLASSES} more" if len(named) > SHOWN_CLASSES else ""
    return f"{kind} {', '.join(map(repr, named[:SHOWN_CLASSES]))}{more}"
