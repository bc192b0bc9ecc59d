"""Labelled units and their split into train, dev and test: whole sentences, never words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import excerpt
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.probing._tasks import PARTS, content_digest, key_of
from embedtopics.probing.results import HiddenStates, ProbeTask
from embedtopics.probing.words._uses import numbered
from embedtopics.protocols import BoolArray, Int64Array

TRAIN, DEV, TEST = range(3)
TEST_SHARE, DEV_SHARE = 0.2, 0.1
"""Shares of the units where a task has no parts."""
FEW_SENTENCES = 20
"""Sentences under which an interval is unreliable."""
SHOWN, SHOWN_CLASSES = 60, 10


@dataclass(frozen=True, eq=False)
class Labelled:
    """The units that have a label and a vector; `parts` is empty where they are to be split."""

    name: str
    unit: str
    rows: Int64Array
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, eq=False)
class Units:
    """Labelled units, split, in an order drawn by the texts of sentences and the seed alone."""

    rows: Int64Array
    target: Int64Array
    classes: tuple[str, ...]
    types: tuple[str, ...]  # the words
    group: Int64Array  # of equal sentences; ascending within a part
    part: Int64Array  # `TRAIN`, `DEV` or `TEST`, ascending
    name: str
    unit: str
    decisions: tuple[Decision, ...]

    def of(self, part: int) -> Int64Array:
        """Return the numbers of the units of one part."""
        return np.flatnonzero(self.part == part)


def labelled_units(states: HiddenStates, tags: ProbeTask | Sequence[Any]) -> Labelled:
    """Align labels with the rows of the states; leave out units without a label or a vector."""
    labels, unit = label_of_each_unit(states, tags), states.unit
    task = tags if isinstance(tags, ProbeTask) else None
    part_names = task.parts if task else ()
    is_good = len(part_names) == len(states.texts) and set(part_names) <= set(PARTS)
    if part_names and not is_good:
        raise InputError("parts", f"train, dev or test for each of {len(states.texts):,} texts")
    has_label = np.array([bool(label) for label in labels], dtype=bool)
    has_vector = ~states.missing
    usable = np.flatnonzero(has_label & has_vector)
    if not len(usable):
        raise InputError("tags", f"labels of some of the {len(labels):,} {unit}s", found="none")
    decisions = list(task.decisions if task else ())
    message = f"of {len(labels):,} {unit}s have no label and were left out."
    decisions += counted("probing", "unlabelled", int((~has_label).sum()), message)
    message = f"labelled {unit}s have no token, and so no vector, and were left out."
    decisions += counted("probing", "missing_words", int((has_label & ~has_vector).sum()), message)
    return Labelled(
        name=task.name if task else "labels",
        unit=unit,
        rows=usable,
        labels=tuple(labels[i] for i in usable.tolist()),
        parts=tuple(part_names[i] for i in states.of_text[usable].tolist()) if part_names else (),
        decisions=tuple(decisions),
    )


def _check_task(states: HiddenStates, task: ProbeTask) -> None:
    """Refuse a task on other units, or of other texts, than those of the states."""
    if states.unit != task.unit:
        raise InputError("states", f"of {task.unit}s", found=f"those of {states.unit}s")
    texts = [text if isinstance(text, str) else " ".join(text) for text in task.texts]
    if texts != list(states.texts):
        expected = f"of the {len(texts):,} texts of the task"
        raise InputError("states", expected, found="other texts")


def label_of_each_unit(states: HiddenStates, tags: ProbeTask | Sequence[Any]) -> list[str]:
    """Return one label per unit, from a flat sequence or one sequence per text."""
    if isinstance(tags, ProbeTask):
        _check_task(states, tags)
        tags = tags.labels
    values = tags.tolist() if isinstance(tags, np.ndarray) else list(tags)
    is_nested = [isinstance(of_text, (list, tuple, np.ndarray)) for of_text in values]
    each = f"each of the {len(states):,} {states.unit}s, or a sequence for each of"
    expected = f"a label for {each} the {len(states.texts):,} texts"
    n_expected = len(states.texts) if any(is_nested) else len(states)
    if len(values) != n_expected or len(set(is_nested)) > 1:
        raise InputError("tags", expected, found=f"{len(values):,}, {sum(is_nested):,} sequences")
    if any(is_nested):
        n_units = np.bincount(states.of_text, minlength=len(states.texts))
        for text, of_text in enumerate(values):
            if len(of_text) != n_units[text]:
                problem = f"{len(of_text):,} for {excerpt(states.texts[text], SHOWN)!r}"
                expected = f"a label for each of {n_units[text]:,} {states.unit}s"
                raise InputError("tags", expected, found=problem, row=text)
        values = [one for of_text in values for one in of_text]
    return [_label(one, row) for row, one in enumerate(values)]


def _label(value: Any, row: int) -> str:
    if not isinstance(value, str) and is_missing(value):
        return ""
    if isinstance(value, (str, bool, np.bool_)) or is_whole(value):
        return str(value)
    raise InputError("tags", "strings or integers", value, "bin numbers into classes", row=row)


def split_units(states: HiddenStates, labelled: Labelled, seed: int) -> Units:
    """Split units into parts, sentence by sentence."""
    classes, target = np.unique(np.array(labelled.labels, dtype=object), return_inverse=True)
    if len(classes) < 2:
        raise InputError("tags", "labels of at least two classes", found=f"only {classes[0]!r}")
    rows = labelled.rows
    group = number_sentences(states, seed)[rows]
    types = [states.words[row] for row in rows.tolist()]
    part, decisions = parts_of(labelled, group)
    # Copies of a sentence in different texts have different vectors: their texts decides the order.
    text = numbered(states.texts)[states.of_text[rows]]
    order = np.lexsort((target, states.position[rows], text, group, part))
    units = Units(
        rows=rows[order],
        target=target[order].astype(np.int64),
        classes=tuple(map(str, classes)),
        types=tuple(types[i] for i in order.tolist()),
        group=group[order],
        part=part[order],
        name=labelled.name,
        unit=labelled.unit,
        decisions=(*labelled.decisions, *decisions),
    )
    return replace(units, decisions=(*units.decisions, *_class_decisions(units)))


def number_sentences(states: HiddenStates, seed: int) -> Int64Array:
    """Return a random number for the sentence of each unit, equal but for white space and case."""
    of_unit = np.arange(len(states)) if states.unit == "text" else states.sentences
    begins = np.flatnonzero(np.diff(of_unit, prepend=-1))
    ends = np.append(begins[1:], len(of_unit))
    keys = [key_of(states.words[i:j]) for i, j in zip(begins, ends, strict=True)]
    numbers = numbered([content_digest(key, seed).hex() for key in keys])
    return np.repeat(numbers, ends - begins)


def parts_of(labelled: Labelled, group: Int64Array) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Return the part of each unit: that of the task, or whole groups up to the shares."""
    unit = labelled.unit
    if labelled.parts:
        part = np.array([PARTS.index(one) for one in labelled.parts], dtype=np.int64)
        return _completed_parts(part, group, unit)
    part = np.full(len(group), TRAIN, dtype=np.int64)
    for which, share in ((TEST, TEST_SHARE), (DEV, DEV_SHARE)):
        part[_first_groups(group, part, share * len(group), unit)] = which
    message = (
        f"Of {len(group):,} {unit}s, {np.sum(part == TRAIN):,} are for training, "
        f"{np.sum(part == DEV):,} for the choice of the penalty and {np.sum(part == TEST):,} for "
        f"the test; {len(np.unique(group)):,} distinct sentences were split."
    )
    return part, (Decision("probing", "parts", float(np.mean(part == TEST)), message),)


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
        raise InputError("tags", expected, remedy="give more", found=problem)
    return np.isin(group, selected)


def _completed_parts(
    part: Int64Array, group: Int64Array, unit: str
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Check parts that were given, and take a missing dev part from train."""
    for which in (TRAIN, TEST):
        if not (part == which).any():
            expected = f"with labelled {unit}s in train and test"
            raise InputError("parts", expected, found=f"none in {PARTS[which]}")
    decisions = []
    if not (part == DEV).any():
        part = part.copy()
        n_units = DEV_SHARE * float(np.sum(part == TRAIN))
        part[_first_groups(group, part, n_units, unit) & (part == TRAIN)] = DEV
        n = int(np.sum(part == DEV))
        message = f"There is no dev part: {n:,} {unit}s of the train part choose the penalty."
        decisions.append(Decision("probing", "dev_from_train", n, message))
    both = np.isin(group[part == TEST], group[part != TEST])
    if both.any():
        message = (
            f"{both.sum():,} of {len(both):,} test {unit}s are in sentences of other parts too."
        )
        decisions.append(Decision("probing", "test_in_train", int(both.sum()), message))
    return part, tuple(decisions)


def _class_decisions(units: Units) -> tuple[Decision, ...]:
    """Report classes and sentences that are too few; refuse a train part of one class."""
    n_classes = len(units.classes)
    in_train, in_test, sizes = (
        np.bincount(units.target[members], minlength=n_classes)
        for members in (units.of(TRAIN), units.of(TEST), slice(None))
    )
    if np.count_nonzero(in_train) < 2:
        problem = f"only {units.classes[int(in_train.argmax())]!r}"
        raise InputError("tags", "of two classes in the train part", found=problem)
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
