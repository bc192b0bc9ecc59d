"""What an index records in JSON, read strictly: its settings, and those of a segment's postings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from embedtopics._utils.records import ForeignRecord, Record, parse_record
from embedtopics.retrieval.storage._catalog import CATALOG, damage

Count = Annotated[int, Field(ge=1)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _RecordedWords(Record):
    segmenters: dict[str, str] = Field(default_factory=dict)
    lemmas: list[str] = Field(default_factory=list)
    lemmatizer: str = ""
    social: Literal["", "kept", "split", "dropped"] = ""
    own: str | None = None
    addresses: bool = False
    version: Literal[1, 2] = 1


class RecordedLexical(Record):
    """The settings of lexical search."""

    stop_words: list[str]
    stems: list[str]
    k1: Number
    b: Annotated[float, Field(ge=0, le=1)]
    words: _RecordedWords | None = None


class LexicalAbout(Record):
    """The file that describes the postings of a segment."""

    format: int
    passages: Annotated[int, Field(ge=0)]
    settings: RecordedLexical


class _RecordedDense(ForeignRecord):
    """Earlier versions recorded more."""

    kind: Literal["auto", "flat", "ivf"]
    seed: Annotated[int, Field(ge=0)]


ColumnName = str | int


class _RecordedColumns(Record):
    text: ColumnName | list[ColumnName] | None = None
    id: ColumnName | None = None
    time: ColumnName | None = None


class _AttachedTopics(Record):
    columns: list[str]


class IndexSettings(Record):
    """The settings of an index; the record of an encoder is read where the encoder is made."""

    encoder: str | None
    encoder_fingerprint: str | None
    encoder_space: str | None
    encoder_settings: dict[str, Any] | None
    n_dimensions: Count
    words_only: bool = False
    passages: bool
    languages: list[str]
    dense: _RecordedDense
    lexical: RecordedLexical
    columns: _RecordedColumns = _RecordedColumns()
    topics: _AttachedTopics | None = None


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise CorruptFileError unless settings of a catalog have the form of those of an index."""
    try:
        parse_record(IndexSettings, json.dumps(settings))
    except ValueError as error:
        raise damage(CATALOG, f"its settings: {error}") from None
