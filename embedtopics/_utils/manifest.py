"""The record of a saved folder: its kind, its format, and the checksums of its files."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from embedtopics._utils.records import ForeignRecord, Record


def _checked_name(name: str) -> str:
    from embedtopics._utils.folders import is_below

    if not is_below(name):
        raise ValueError(f"the file {name[:200]!r} is not below the folder")
    return name


Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_checked_name)]


class FileRecord(Record):
    """Size and checksum of a file."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class ManifestHead(ForeignRecord):
    """What tells folders of another kind, or of a newer format, from damaged ones."""

    kind: str
    version: Annotated[int, Field(ge=1)]


class FolderManifest(Record):
    """Content of ``manifest.json``; people may edit the `unchecked` files."""

    kind: str
    version: Annotated[int, Field(ge=1)]
    files: dict[Name, FileRecord]
    unchecked: list[Name] = Field(default_factory=list)
