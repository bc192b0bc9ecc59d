"""The bodies of requests of the labelling page."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from embedtopics._utils.records import Record

Position = Annotated[int, Field(ge=0)]


class NextBody(Record):
    """The next text for a tab; a fresh tab gives back what it had."""

    tab: str
    fresh: bool = False


class LabelBody(Record):
    """Labels, or labelled parts (label, begin, end), for the text with a key."""

    key: str
    labels: tuple[str, ...]
    spans: tuple[tuple[str, Position, Position], ...] = ()
    unsure: bool = False
    note: str = ""
    stream: Literal["teach", "count"] | None = None


class SkipBody(Record):
    """The text with a key is skipped."""

    key: str
    note: str = ""


class UndoBody(Record):
    """The last answer is undone, and its text goes to a tab."""

    tab: str


class SearchBody(Record):
    """Words that texts contain."""

    query: str


class QueueBody(Record):
    """Texts that come next, by their keys."""

    keys: tuple[str, ...]


class HintBody(Record):
    """The text for which the model suggests a label."""

    key: str
