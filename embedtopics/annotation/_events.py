"""The events of a study as strict records: its beginning, answers, and undone answers.

An event is one object of JSON, with its number `n` in the journal, from 0, and its time. The first
event holds the codebook and the design.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, RootModel

from embedtopics._utils.records import Record, parse_record

KIND = "embedtopics annotation"
VERSION = 1
"""Format of the events, in the first of them."""

Count = Annotated[int, Field(ge=0)]


class LabelRecord(Record):
    """A label of the codebook."""

    name: str
    key: str = ""
    definition: str = ""
    examples: tuple[str, ...] = ()


class DesignRecord(Record):
    """The design of a study."""

    teach: float
    n_test: int
    overlap: float
    random_state: int | None


class StudyEvent(Record):
    """The beginning of a study; `test` holds the keys of the test texts."""

    n: Literal[0]
    time: str
    event: Literal["study"]
    kind: Literal["embedtopics annotation"]
    version: Literal[1]
    labels_kind: Literal["single", "several", "ordinal", "spans"]
    pairs: bool = False
    labels: tuple[LabelRecord, ...]
    design: DesignRecord
    test: tuple[str, ...]
    n_texts: Count = 0


class AnswerEvent(Record):
    """An answer to the text with the key `text`; `labels` is None if it was skipped."""

    n: Count
    time: str
    event: Literal["answer"]
    text: str
    id: str
    by: str
    stream: Literal["teach", "count"]
    n_texts: Count = 0
    labels: tuple[str, ...] | None
    unsure: bool
    note: str
    spans: tuple[tuple[str, Count, Count], ...] = ()


class UndoEvent(Record):
    """The end of the last answer of an annotator."""

    n: Count
    time: str
    event: Literal["undo"]
    by: str


Event: TypeAlias = StudyEvent | AnswerEvent | UndoEvent


class _AnyEvent(RootModel[Annotated[Event, Field(discriminator="event")]]):
    pass


def parse_event(content: str | bytes, n: int) -> Event:
    """Parse the event with the number `n`; a ValueError gives the reason if it is none."""
    event = parse_record(_AnyEvent, content).root
    if event.n != n:
        raise ValueError(f"it has the number {event.n} in place of {n}")
    if isinstance(event, StudyEvent) != (n == 0):
        raise ValueError("a study begins with its codebook, and has one")
    return event


def text_of_event(entry: Mapping[str, Any]) -> str:
    """Return the JSON of an event on one line, in ASCII."""
    return json.dumps(entry, ensure_ascii=True, allow_nan=False)
