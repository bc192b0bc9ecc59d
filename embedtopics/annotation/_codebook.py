"""The codebook and the design of a study, and the random order of its texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from embedtopics._utils.checks import (
    checked_between,
    checked_choice,
    checked_count,
    is_count,
    resolve_seed,
)
from embedtopics.corpus._classes import is_absent
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

KEYS = "1234567890abcdefghijklmnopqrstuvwxyz"
"""Default keys of labels, in order; other commands of the page use no letters or digits."""

MAX_LABELS = len(KEYS)
MAX_NAME = 200


@dataclass(frozen=True)
class Label:
    """One label of a codebook.

    Parameters
    ----------
    name : str
    key : str, optional
        Letter or digit of the label on the page; by default the next free digit.
    definition : str
        Definition of the label for annotators.
    examples : tuple of str

    Examples
    --------
    >>> import embedtopics as et
    >>> label = et.annotation.Label("rail", key="r", definition="Trains and stations.")
    >>> label.name, label.key
    ('rail', 'r')
    """

    name: str
    key: str = ""
    definition: str = ""
    examples: tuple[str, ...] = ()


def read_labels(labels: Any) -> tuple[Label, ...]:
    """Read a codebook: names, `Label`s or mappings of their fields; or definitions by name."""
    if isinstance(labels, Mapping):
        labels = [Label(name, definition=text) for name, text in labels.items()]
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence) or len(labels) < 2:
        raise InputError("codebook", "a list of at least 2 labels", labels)
    read = [_read(label, row) for row, label in enumerate(labels)]
    if len(read) > MAX_LABELS:
        expected = f"at most {MAX_LABELS}, one for each key"
        raise InputError("codebook", expected, found=f"{len(read)}")
    for field in ("name", "key"):
        values = [getattr(label, field) for label in read]
        for row, value in enumerate(values):
            if value and value in values[:row]:
                expected = f"labels with different {field}s"
                raise InputError("codebook", expected, found=f"{value!r} twice", row=row)
    free = iter([key for key in KEYS if key not in {label.key for label in read}])
    return tuple(label if label.key else replace(label, key=next(free)) for label in read)


def _read(label: Any, row: int) -> Label:
    if isinstance(label, Mapping):
        unknown = set(label) - set(Label.__dataclass_fields__)
        if unknown or "name" not in label:
            expected = f"mappings with {', '.join(Label.__dataclass_fields__)}"
            raise InputError("codebook", expected, dict(label), row=row)
        label = Label(**label)

    read = label if isinstance(label, Label) else Label(label)
    expected = "names, keys, definitions and lists of examples, all of text"
    if not isinstance(read.examples, list | tuple):
        raise InputError("codebook", expected, label, row=row)
    texts = [read.name, read.key, read.definition, *read.examples]
    if not all(isinstance(text, str) and replace_surrogates(text) == text for text in texts):
        raise InputError("codebook", expected, label, row=row)

    name = spell_name(read.name)
    if not 0 < len(name) <= MAX_NAME:
        raise InputError("codebook", f"names of 1 to {MAX_NAME} characters", read.name, row=row)

    key = read.key.lower()
    if key and (len(key) != 1 or key not in KEYS):
        raise InputError("codebook", "of keys that are one letter or digit", read.key, row=row)
    return replace(read, name=name, key=key, examples=tuple(read.examples))


def spell_name(name: str) -> str:
    """Return the one spelling of a label: composed characters (Unicode NFC), single spaces."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def check_new_codebook(labels: tuple[Label, ...]) -> None:
    """Refuse names that stand for a missing value wherever classes are read, such as "None"."""
    for row, label in enumerate(labels):
        if is_absent(label.name):
            remedy = 'choose another name, such as "no label fits"'
            expected = "names that do not stand for a missing value"
            raise InputError("codebook", expected, label.name, remedy, row=row)


def as_json(labels: tuple[Label, ...]) -> list[dict[str, Any]]:
    """Return labels in the format of the journal."""
    return [asdict(label) for label in labels]


KINDS = {"single": "softmax", "several": "multilabel", "ordinal": "ordinal", "spans": "multilabel"}
"""The head of the model for each kind of labels; for spans it predicts the labels of a text."""

MULTILABEL = ("several", "spans")
"""Kinds with any number of labels per text."""


@dataclass(frozen=True)
class StudyDesign:
    """The design of a study, fixed before the first label.

    Parameters
    ----------
    teach : float
        Share of the texts that the strategy picks. The other texts, the *count* stream, are drawn
        at random; shares and quality are estimated from them.
    n_test : int
        Count texts that no model learns from; at most a tenth of all texts.
    overlap : float
        Share of the texts that every annotator labels.
    random_state : int or None
        Seed of the random order of the texts.
    """

    teach: float = 0.5
    n_test: int = 50
    overlap: float = 0.0
    random_state: int | None = 0

    def checked(self) -> StudyDesign:
        """Return the design with a resolved seed, or refuse it."""
        return StudyDesign(
            teach=checked_between(self.teach, "teach", 0, 1, closed=True),
            n_test=checked_count(self.n_test, "n_test", 0),
            overlap=checked_between(self.overlap, "overlap", 0, 1, closed=True),
            random_state=resolve_seed(self.random_state),
        )


def permanent_numbers(keys: list[str], seed: int, purpose: str) -> Float64Array:
    """Return a number between 0 and 1 for each text, independent of the other texts.

    The texts with the smallest numbers are a simple random sample of any size, and remain one when
    texts are added or removed (Ohlsson 1995, "Coordination of samples using permanent random
    numbers").
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
    """Return the parts of a text in order, or refuse them."""
    parts: list[tuple[str, int, int]] = []
    expected = "(label, begin, end), in characters of the text"
    if isinstance(spans, str | Mapping) or not isinstance(spans, Iterable):
        raise InputError("spans", f"a list of {expected}", spans)

    for row, span in enumerate(spans):
        if not isinstance(span, (list, tuple)) or len(span) != 3:
            raise InputError("spans", expected, span, row=row)
        name, begin, end = span
        name = spell_name(name) if isinstance(name, str) else name
        checked_choice(name, "spans", names)
        if not (is_count(begin, 0) and is_count(end, 1) and begin < end <= len(text)):
            raise InputError("spans", expected, span, row=row)
        parts.append((name, int(begin), int(end)))

    parts.sort(key=lambda part: part[1:])
    for row, (part, following) in enumerate(pairwise(parts), 1):
        if following[1] < part[2]:
            raise InputError("spans", "parts that do not overlap", following, row=row)
    return tuple(parts)


def count_order(keys: list[str], seed: int) -> list[int]:
    """Return the rows of the texts in the random order of the count stream."""
    return list(map(int, np.argsort(permanent_numbers(keys, seed, "count"), kind="stable")))
