"""``about.json``, the record of a prepared model in the cache.

It is strictly typed, because the folder of the cache may hold what another program wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from embedtopics._utils.records import Record, parse_record

MOST_VALUES = 2**31
"""Most rows, and most columns, of a table of token vectors."""

MOST_BYTES = 2**16
"""Largest record; it has a name, a reason and three checksums."""

Size = Annotated[int, Field(ge=1, le=MOST_VALUES)]
TokenId = Annotated[int, Field(ge=-1, le=MOST_VALUES)]


class PreparedRecord(Record):
    """The record of a prepared model, or of the reason why it could not be prepared."""

    encoder: str
    variant: str
    refused: str = ""
    shape: Annotated[list[Size], Field(min_length=2, max_length=2)] | None = None
    sha256: dict[str, str] = Field(default_factory=dict)
    pad_id: TokenId | None = None
    unknown_id: TokenId | None = None


def read_about(folder: Path) -> PreparedRecord:
    """Read the record of a prepared model; a ValueError or an OSError if it is not usable."""
    path = folder / "about.json"
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("about.json is too large")
    return parse_record(PreparedRecord, path.read_bytes())
