"""What a file that is no table holds: documents of paragraphs."""

from __future__ import annotations

from typing import NamedTuple


class FileText(NamedTuple):
    """One document; `remarks` are sentences on its file, with details."""

    paragraphs: list[str]
    metadata: dict[str, str]
    remarks: dict[str, str]
