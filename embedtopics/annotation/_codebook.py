"""What a study fixes: its codebook, its design, and the random order of its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from embedtopics._utils.checks import (
    checked_choice,
    checked_count,
    checked_share,
    is_count,
    is_whole_text,
    resolve_seed,
)
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

KEYS = "1234567890abcdefghijklmnopqrstuvwxyz"
"""Keys in the order in which labels get them; other keys of the page are no letters or digits."""

MOST_LABELS = len(KEYS)
LONGEST_NAME = 200


@dataclass(frozen=True)
class Label:
    """One label of a codebook.

    Parameters
    ----------
    name : str
    key : str, optional
        The letter or digit that gives it on the page; by default the next digit that is free.
    definition : str
        When it applies, for coders.
    examples : tuple of str
    scheme : str
        What the label is an answer to, where a text is asked several things at once: it has at
        most one label of each.
    """

    name: str
    key: str = ""
    definition: str = ""
    examples: tuple[str, ...] = ()
    scheme: str = ""


def read_labels(labels: Any) -> tuple[Label, ...]:
    """Read labels: names, `Label`s, mappings with their fields, names with definitions or lists.

    A mapping to lists is of schemes, each with its labels.
    """
    if isinstance(labels, Mapping) and {type(one) for one in labels.values()} == {list}:
        labels = [
            replace(_read(label, row), scheme=str(scheme))
            for scheme, some in labels.items() for row, label in enumerate(some)
        ]  # fmt: skip
    elif isinstance(labels, Mapping):
        labels = [Label(name, definition=text) for name, text in labels.items()]
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence) or len(labels) < 2:
        raise InputError("labels", "a list of at least 2 labels", labels)
    read = [_read(label, row) for row, label in enumerate(labels)]
    if len(read) > MOST_LABELS:
        expected = f"at most {MOST_LABELS}, one for each key"
        raise InputError("labels", expected, found=f"{len(read)}")
    _refuse_repeated([label.name for label in read], "different names")
    _refuse_repeated([label.key for label in read if label.key], "labels with different keys")
    free = iter([key for key in KEYS if key not in {label.key for label in read}])
    return tuple(label if label.key else replace(label, key=next(free)) for label in read)


def _read(label: Any, row: int) -> Label:
    if isinstance(label, Mapping):
        unknown = set(label) - set(Label.__dataclass_fields__)
        if unknown or "name" not in label:
            expected = f"mappings with {', '.join(Label.__dataclass_fields__)}"
            raise InputError("labels", expected, dict(label), row=row)
        label = Label(**label)
    read = label if isinstance(label, Label) else Label(label)
    texts = [read.name, read.key, read.definition, read.scheme, *read.examples]
    if isinstance(read.examples, str) or not all(
        isinstance(text, str) and is_whole_text(text) for text in texts
    ):
        raise InputError("labels", "names, keys, definitions and examples of text", label, row=row)
    name = read.name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise InputError("labels", f"names of 1 to {LONGEST_NAME} characters", read.name, row=row)
    key = read.key.lower()
    if key and (len(key) != 1 or key not in KEYS):
        raise InputError("labels", "of keys that are one letter or digit", read.key, row=row)
    return replace(read, name=name, key=key, examples=tuple(read.examples))


def _refuse_repeated(values: list[str], expected: str) -> None:
    for row, value in enumerate(values):
        if value in values[:row]:
            raise InputError("labels", expected, found=f"{value!r} twice", row=row)


def as_json(labels: tuple[Label, ...]) -> list[dict[str, Any]]:
    """Return labels as a journal keeps them."""
    return [asdict(label) for label in labels]


KINDS = {
    "single": "softmax", "several": "multilabel", "ordinal": "ordinal", "spans": "multilabel",
}  # fmt: skip
"""Kinds of labels, and the head that learns them; of spans, which labels a text has."""

MANY = ("several", "spans")
"""Kinds of which a text may have any number."""


@dataclass(frozen=True)
class StudyDesign:
    """What a study fixes before its first label.

    Parameters
    ----------
    teach : float
        Share of the texts that the strategy picks; the others are the *count* stream, drawn at
        random, from which shares and quality are estimated.
    n_test : int
        Texts of the count stream from which no model ever learns; at most a tenth of all texts.
    overlap : float
        Share of the texts that every annotator labels.
    random_state : int or None
        Of the random order of the texts.
    strata : str, optional
        Column of the corpus by which the count stream is stratified, each stratum in proportion to
        its texts. Intervals are those of a simple random sample, and so rather too wide.
    """

    teach: float = 0.5
    n_test: int = 50
    overlap: float = 0.0
    random_state: int | None = 0
    strata: str | None = None

    def checked(self) -> StudyDesign:
        """Return the design with a seed, or refuse it."""
        return StudyDesign(
            checked_share(self.teach, "teach"), checked_count(self.n_test, "n_test", 0),
            checked_share(self.overlap, "overlap"), resolve_seed(self.random_state),
            self.strata,
        )  # fmt: skip


def checked_kind(kind: str) -> str:
    """Return a kind of labels, or refuse it."""
    return str(checked_choice(kind, "kind", KINDS))


def permanent_numbers(keys: list[str], seed: int, purpose: str) -> Float64Array:
    """Return a number between 0 and 1 for each text, which it keeps whatever else is there.

    They make a simple random sample of the texts with the smallest numbers, however many those
    are, and a sample that stays one when texts are added or removed (permanent random numbers;
    Ohlsson 1995, "Coordination of samples using permanent random numbers").
    """
    prefix = f"{seed}:{purpose}:".encode()
    digests = [blake2b(prefix + key.encode(), digest_size=8).digest() for key in keys]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.float64) / 2.0**64


def checked_annotator(by: str) -> str:
    """Return the name of an annotator, or refuse it."""
    if not isinstance(by, str) or not 0 < len(by) <= 200 or not by.isprintable():
        raise InputError("by", "a name of 1 to 200 characters", by)
    return by


def checked_spans(spans: Any, text: str, names: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """Return parts of a text in their order, or refuse them."""
    found: list[tuple[str, int, int]] = []
    for row, span in enumerate(spans):
        wanted = "(label, begin, end), in characters of the text"
        if not isinstance(span, (list, tuple)) or len(span) != 3:
            raise InputError("spans", wanted, span, row=row)
        name, begin, end = span
        checked_choice(name, "spans", names)
        if not (is_count(begin, 0) and is_count(end, 1) and begin < end <= len(text)):
            raise InputError("spans", wanted, span, row=row)
        found.append((name, int(begin), int(end)))
    found.sort(key=lambda one: one[1:])
    for row, (one, other) in enumerate(pairwise(found), 1):
        if other[1] < one[2]:
            raise InputError("spans", "parts that do not overlap", other, row=row)
    return tuple(found)


def count_order(keys: list[str], seed: int, strata: Sequence[Any] | None) -> list[int]:
    """Return the rows of texts in the order in which they are counted.

    Any first part of it is a simple random sample; with strata, one in proportion to their sizes:
    a stratum's texts are spread evenly, in an order of their own, from a random start.
    """
    numbers = permanent_numbers(keys, seed, "count")
    if strata is None:
        return list(map(int, np.argsort(numbers, kind="stable")))
    names = np.array([str(one) for one in strata], dtype=object)
    places = np.empty(len(keys))
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        start = permanent_numbers([str(name)], seed, "stratum")[0]
        order = rows[np.argsort(numbers[rows], kind="stable")]
        places[order] = (np.arange(len(rows)) + start) / len(rows)
    return list(map(int, np.lexsort((numbers, places))))


def refuse_two_of_a_scheme(
    names: Sequence[str], labels: Sequence[Label], row: int | None = None
) -> None:
    """Refuse two answers to one question."""
    schemes = [label.scheme for label in labels if label.scheme and label.name in names]
    if len(set(schemes)) < len(schemes):
        raise InputError("labels", "at most one label of each scheme", list(names), row=row)
