"""Labels as they are given, brought beside the rows of the states that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_whole
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, HiddenStates, ProbeTask

__all__ = [
    "Labelled", "check_unit", "label_of_each_unit", "labelled_units", "pair_rows", "start_of",
]  # fmt: skip

PARTS = ("train", "dev", "test")
SHOWN_WORDS = 8


@dataclass(frozen=True, eq=False)
class Labelled:
    """The units that have a label and a vector.

    Parameters
    ----------
    name, unit : str
        Of the task.
    rows : int64 ndarray of shape (n, 1) or (n, 2)
        Rows of the states: one for a word or a text, two for a pair.
    labels : tuple of str
        Of each unit.
    parts : tuple of str
        "train", "dev" or "test" of each unit; empty where they are to be dealt out.
    decisions : tuple of Decision
    """

    name: str
    unit: str
    rows: Int64Array
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    decisions: tuple[Decision, ...]


def labelled_units(
    states: HiddenStates,
    tags: ProbeTask | Sequence[Any],
    parts: Sequence[str] | None = None,
) -> Labelled:
    """Bring labels beside the rows of the states, and leave out what has no label or no vector.

    Parameters
    ----------
    states : HiddenStates
    tags : ProbeTask, or one sequence of labels a text, or one label a unit
        An empty string or None is no label.
    parts : sequence of str, optional
        "train", "dev" or "test" of each text (pairs: of each pair), in place of those of the task.

    Returns
    -------
    Labelled
        In the order in which the labels were given.

    Raises
    ------
    InputError
        If labels are not one for one with the units; the message names the text.
    """
    task = tags if isinstance(tags, ProbeTask) else None
    if task is not None:
        check_unit(states, task)
    given = parts if parts is not None else (task.parts if task else ())
    if task is not None and task.unit == "pair":
        rows, labels, of_part = _pairs(states, task)
    else:
        flat = tags.labels if isinstance(tags, ProbeTask) else tags
        labels = label_of_each_unit(states, flat)
        rows, of_part = np.arange(len(states))[:, None], states.of_text
    unit = task.unit if task else states.unit
    n_parts = len(labels) if unit == "pair" else len(states.texts)
    of_unit = _checked_parts(given, n_parts, of_part, "pairs" if unit == "pair" else "texts")
    has_label = np.array([bool(label) for label in labels], dtype=bool)
    is_missing = np.asarray(states.missing[rows].any(axis=1))
    kept = np.flatnonzero(has_label & ~is_missing)
    decisions = _left_out(has_label, is_missing, unit)
    if not len(kept):
        raise InputError(
            f"expected labels for some of the {len(labels):,} {unit}s that have vectors; got none"
        )
    return Labelled(
        name=task.name if task else "labels",
        unit=unit,
        rows=rows[kept].astype(np.int64),
        labels=tuple(labels[i] for i in kept.tolist()),
        parts=tuple(of_unit[i] for i in kept.tolist()) if of_unit else (),
        decisions=(*(task.decisions if task else ()), *decisions),
    )


def check_unit(states: HiddenStates, task: ProbeTask) -> None:
    """Refuse a task on other units, or of other texts, than those that have states."""
    wanted = {"word": ("word",), "text": ("text",), "pair": ("word", "text")}
    if task.unit not in wanted:
        raise InputError(
            f"expected a task on a word, text or pair; {task.name} is on {task.unit!r}"
        )
    if states.unit not in wanted[task.unit]:
        raise InputError(
            f"{task.name} asks for a label of each {task.unit}, and these are states of "
            f"{states.unit}s; expected states of {' or '.join(wanted[task.unit])}s"
        )
    if len(task.texts) != len(states.texts):
        raise InputError(
            f"{task.name} has {len(task.texts):,} texts and the states have "
            f"{len(states.texts):,}; expected states of the texts of the task"
        )
    for number, (text, read) in enumerate(zip(task.texts, states.texts, strict=True)):
        if (text if isinstance(text, str) else " ".join(text)) != read:
            raise InputError(
                f"text {number} of {task.name} is not the one that was read: "
                f"expected {start_of(states, number)}; make states of the texts of the task"
            )


def label_of_each_unit(states: HiddenStates, tags: Sequence[Any]) -> list[str]:
    """Return one label a unit, from a flat sequence or one sequence a text.

    Raises
    ------
    InputError
        If they are not one for one; the message names the text.
    """
    if isinstance(tags, str):
        raise InputError(f"expected a sequence of labels; got the one string {tags[:40]!r}")
    given = tags.tolist() if isinstance(tags, np.ndarray) else list(tags)
    is_nested = [isinstance(own, (list, tuple, np.ndarray)) for own in given]
    if not any(is_nested):
        if len(given) != len(states):
            raise InputError(
                f"expected a label for each of the {len(states):,} {states.unit}s, or one sequence "
                f"of labels for each of the {len(states.texts):,} texts; got {len(given):,} labels"
            )
        return [_label(one, row) for row, one in enumerate(given)]
    if not all(is_nested):
        single = is_nested.index(False)
        raise InputError(
            "expected one sequence of labels for each text, or one label for each unit; text "
            f"{single} has {given[single]!r} beside others that have sequences"
        )
    if len(given) != len(states.texts):
        raise InputError(
            f"expected labels for each of the {len(states.texts):,} texts; got those of "
            f"{len(given):,}"
        )
    n_units = np.bincount(states.of_text, minlength=len(states.texts))
    for text, own in enumerate(given):
        if len(own) != n_units[text]:
            raise InputError(
                f"text {text}, {start_of(states, text)}, has {n_units[text]:,} {states.unit}s and "
                f"{len(own):,} labels; expected a label for each"
            )
    flat = [one for own in given for one in own]
    return [_label(one, row) for row, one in enumerate(flat)]


def _pairs(states: HiddenStates, task: ProbeTask) -> tuple[Int64Array, list[str], npt.NDArray[Any]]:
    """Return the two rows and the label of each pair, and its own number."""
    pairs = np.asarray(task.pairs if task.pairs is not None else np.empty((0, 4)), dtype=np.int64)
    if pairs.shape != (len(task.labels), 4):
        raise InputError(
            f"expected {task.name} to have four numbers for each of its {len(task.labels):,} "
            f"labels: text, word, text, word; got shape {pairs.shape}"
        )
    rows = pair_rows(states, pairs)
    for number, own in enumerate(task.labels):
        if len(own) != 1:
            raise InputError(f"expected one label for pair {number} of {task.name}; got {len(own)}")
    labels = [_label(own[0], number) for number, own in enumerate(task.labels)]
    return rows, labels, np.arange(len(labels))


def pair_rows(states: HiddenStates, pairs: npt.NDArray[Any]) -> Int64Array:
    """Return the two rows of each pair, of shape (n_pairs, 2).

    Raises
    ------
    InputError
        If a pair names a text or a word that is not there.
    """
    pairs = np.asarray(pairs, dtype=np.int64)
    texts, words = pairs[:, ::2], pairs[:, 1::2]
    n_units = np.bincount(states.of_text, minlength=len(states.texts))
    first = np.concatenate([[0], np.cumsum(n_units)[:-1]])
    if states.unit == "text":
        words = np.zeros_like(words)
    is_text = (texts >= 0) & (texts < len(states.texts))
    is_word = is_text & (words >= 0) & (words < n_units[np.where(is_text, texts, 0)])
    if not is_word.all():
        pair = int(np.flatnonzero(~is_word.all(axis=1))[0])
        raise InputError(
            f"pair {pair} names words that are not there: expected text, word, text, word, from 0; "
            f"got {', '.join(map(str, pairs[pair].tolist()))} with {len(states.texts):,} texts"
        )
    return np.asarray(first[texts] + words)


def _label(value: Any, row: int) -> str:
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return ""
    if is_whole(value) or isinstance(value, (bool, np.bool_)):
        return str(value)
    raise InputError(
        f"expected classes as labels, strings or integers; label {row} is {value!r}: put numbers "
        "into classes first"
    )


def _checked_parts(given: Sequence[str], n: int, of_unit: npt.NDArray[Any], what: str) -> list[str]:
    if len(given) == 0:
        return []
    if isinstance(given, str) or len(given) != n:
        raise InputError(
            f"expected parts to name train, dev or test for each of the {n:,} {what}; got "
            f"{len(given):,}"
        )
    for number, part in enumerate(given):
        if part not in PARTS:
            raise InputError(
                f"expected parts to be {', '.join(PARTS)}; got {part!r} at number {number}"
            )
    return [str(given[i]) for i in of_unit.tolist()]


def _left_out(
    has_label: npt.NDArray[np.bool_], is_missing: npt.NDArray[np.bool_], unit: str
) -> tuple[Decision, ...]:
    decisions = []
    n_bare, n_missing = int((~has_label).sum()), int((is_missing & has_label).sum())
    if n_bare:
        message = f"{n_bare:,} of {len(has_label):,} {unit}s have no label and were left out."
        decisions.append(Decision("probing", "unlabelled", n_bare, message))
    if n_missing:
        message = (
            f"{n_missing:,} labelled {unit}s have no vector, because the tokenizer leaves nothing "
            "of them, and were left out."
        )
        decisions.append(Decision("probing", "missing_words", n_missing, message))
    return tuple(decisions)


def start_of(states: HiddenStates, text: int) -> str:
    """Return the first words of a text, quoted, for a message."""
    words = states.texts[text].split()
    more = " ..." if len(words) > SHOWN_WORDS else ""
    return repr(" ".join(words[:SHOWN_WORDS])[:80] + more)
