"""Labelled units and their split into train, dev and test: whole sentences, never words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_level, is_whole
from embedtopics._utils.display import excerpt
from embedtopics.corpus._texts import is_missing, normalize_text
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.probing._tasks import PARTS, first_connected
from embedtopics.probing.results import HiddenStates, ProbeTask
from embedtopics.probing.words._uses import numbered
from embedtopics.protocols import BoolArray, Int64Array

TRAIN, DEV, TEST = range(3)
FEW_SENTENCES = 20
"""Sentences under which an interval is unreliable."""
SHOWN, SHOWN_CLASSES = 60, 10
STATES_OF = {"word": ("word",), "text": ("text",), "pair": ("word", "text")}


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
    types: tuple[str, ...]  # the words, of a pair both
    group: Int64Array  # of equal sentences, or those that pairs connect; ascending within a part
    part: Int64Array  # `TRAIN`, `DEV` or `TEST`, ascending
    name: str
    unit: str
    decisions: tuple[Decision, ...]

    def of(self, part: int) -> Int64Array:
        """Return the numbers of the units of one part."""
        return np.flatnonzero(self.part == part)


def labelled_units(
    states: HiddenStates, tags: ProbeTask | Sequence[Any], parts: Sequence[str] | None = None
) -> Labelled:
    """Align labels with the rows of the states; leave out units without a label or a vector."""
    task = tags if isinstance(tags, ProbeTask) else None
    if task is not None and task.unit == "pair":
        _check_task(states, task)
        rows, labels, of_part = _pairs(states, task)
    else:
        labels = label_of_each_unit(states, tags)
        rows, of_part = np.arange(len(states))[:, None], states.of_text.astype(np.int64)
    unit = task.unit if task else states.unit
    part_names = parts if parts is not None else (task.parts if task else ())
    n_parts, what = len(states.texts), "texts"
    if unit == "pair":
        n_parts, what = len(labels), "pairs"
    is_good = (
        not isinstance(part_names, str)
        and len(part_names) == n_parts
        and set(part_names) <= set(PARTS)
    )
    if len(part_names) and not is_good:
        raise InputError(
            "parts", f"train, dev or test for each of the {n_parts:,} {what}", part_names
        )
    has_label = np.array([bool(label) for label in labels], dtype=bool)
    has_vector = ~states.missing[rows].any(axis=1)
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
        rows=rows[usable].astype(np.int64),
        labels=tuple(labels[i] for i in usable.tolist()),
        parts=tuple(str(part_names[i]) for i in of_part[usable].tolist())
        if len(part_names)
        else (),
        decisions=tuple(decisions),
    )


def _check_task(states: HiddenStates, task: ProbeTask) -> None:
    """Refuse a task on other units, or of other texts, than those of the states."""
    kinds = STATES_OF.get(task.unit)
    if kinds is None:
        raise InputError("tags", "a task on words, texts or pairs", task.unit)
    if states.unit not in kinds:
        expected = f"of {' or '.join(kinds)}s, as {task.name} is on {task.unit}s"
        raise InputError("states", expected, found=f"those of {states.unit}s")
    texts = [text if isinstance(text, str) else " ".join(text) for text in task.texts]
    if len(texts) != len(states.texts):
        problem, expected = (
            f"{len(states.texts):,} texts",
            f"of the {len(texts):,} texts of the task",
        )
        raise InputError("states", expected, found=problem)
    for row, (text, text_of_states) in enumerate(zip(texts, states.texts, strict=True)):
        if text != text_of_states:
            raise InputError(
                "states", "of the texts of the task", found=start_of(text_of_states), row=row
            )


def label_of_each_unit(states: HiddenStates, tags: ProbeTask | Sequence[Any]) -> list[str]:
    """Return one label per unit, from a flat sequence or one sequence per text."""
    if isinstance(tags, ProbeTask):
        _check_task(states, tags)
        tags = tags.labels
    if isinstance(tags, str):
        raise InputError("tags", "a sequence of labels", tags)
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
                problem = f"{len(of_text):,} for {start_of(states.texts[text])}"
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


def _pairs(states: HiddenStates, task: ProbeTask) -> tuple[Int64Array, list[str], Int64Array]:
    """Return the two rows and the label of each pair, and its own number."""
    pairs = np.asarray([] if task.pairs is None else task.pairs, dtype=np.int64)
    if pairs.shape != (len(task.labels), 4) or any(len(one) != 1 for one in task.labels):
        expected = f"text, word, text, word for each of the {len(task.labels):,} single labels"
        raise InputError("pairs", expected, found=f"shape {pairs.shape}")
    texts, words = pairs[:, ::2], pairs[:, 1::2]
    n_units = np.bincount(states.of_text, minlength=len(states.texts))
    first = np.concatenate([[0], np.cumsum(n_units)[:-1]])
    if states.unit == "text":
        words = np.zeros_like(words)
    is_text = (texts >= 0) & (texts < len(states.texts))
    is_word = is_text & (words >= 0) & (words < n_units[np.where(is_text, texts, 0)])
    if not is_word.all():
        row = int(np.flatnonzero(~is_word.all(axis=1))[0])
        raise InputError("pairs", "text, word, text, word, from 0", pairs[row].tolist(), row=row)
    labels = [_label(one[0], number) for number, one in enumerate(task.labels)]
    return np.asarray(first[texts] + words), labels, np.arange(len(labels))


def start_of(text: str) -> str:
    """Return the beginning of a text, quoted, for a message."""
    return repr(excerpt(text, SHOWN))


def split_units(
    states: HiddenStates, labelled: Labelled, *, test_share: float, dev_share: float, seed: int
) -> Units:
    """Split units into parts, sentence by sentence."""
    classes, target = np.unique(np.array(labelled.labels, dtype=object), return_inverse=True)
    if len(classes) < 2:
        raise InputError("tags", "labels of at least two classes", found=f"only {classes[0]!r}")
    rows = labelled.rows
    sentence = number_sentences(states, seed)[rows]
    group = sentence[:, 0]
    if labelled.unit == "pair":
        group = np.unique(first_connected(sentence), return_inverse=True)[1]
    types = [" ".join(states.words[row] for row in unit_rows) for unit_rows in rows.tolist()]
    # The position in the text, or among pairs both positions.
    place = states.position[rows].astype(np.int64) @ [len(states) + 1, 1][-rows.shape[1] :]
    part, decisions = parts_of(labelled, group, test_share, dev_share)
    # Copies of a sentence in different texts have different vectors: their texts decides the order.
    text = numbered(states.texts)[states.of_text[rows]]
    order = np.lexsort([target, place, *text.T, *sentence.T, group, part])
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
    digests = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        text = normalize_text(" ".join(states.words[begin:end])).casefold()
        key = str(seed).encode()
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
        digests.append(int.from_bytes(digest, "big"))
    numbers = np.unique(np.array(digests, dtype=np.uint64), return_inverse=True)[1]
    return np.repeat(numbers.astype(np.int64), ends - begins)


def parts_of(
    labelled: Labelled, group: Int64Array, test_share: float, dev_share: float
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Return the part of each unit: the given one, or whole groups up to the shares."""
    unit = labelled.unit
    if labelled.parts:
        part = np.array([PARTS.index(one) for one in labelled.parts], dtype=np.int64)
        return _completed_parts(part, group, dev_share, unit)
    checked_level(test_share, "test_share")
    checked_level(dev_share, "dev_share")
    if test_share + dev_share >= 1:
        raise InputError("test_share", f"less than 1 with a dev_share of {dev_share:g}", test_share)
    part = np.full(len(group), TRAIN, dtype=np.int64)
    for which, share in ((TEST, test_share), (DEV, dev_share)):
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
        raise InputError("tags", expected, remedy="give more, or parts", found=problem)
    return np.isin(group, selected)


def _completed_parts(
    part: Int64Array, group: Int64Array, dev_share: float, unit: str
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Check parts that were given, and take a missing dev part from train."""
    for which in (TRAIN, TEST):
        if not (part == which).any():
            expected = f"with labelled {unit}s in train and test"
            raise InputError("parts", expected, found=f"none in {PARTS[which]}")
    decisions = []
    if not (part == DEV).any():
        checked_level(dev_share, "dev_share")
        part = part.copy()
        n_units = dev_share * float(np.sum(part == TRAIN))
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
