"""Character references of web pages, such as ``&amp;``, in texts that came from a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.entities import html5
from typing import Any

import pandas as pd

from embedtopics.results import Decision

_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")


def describe_entities(texts: Iterable[str], metadata: pd.DataFrame) -> list[Decision]:
    """Report the rows whose text or metadata hold character references; none is decoded.

    They can be meant: a text may be about HTML.
    """
    references = [_first_reference(text) for text in texts]
    for name, dtype in metadata.dtypes.items():
        if not (pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)):
            continue
        for row, cell in enumerate(metadata[name].tolist()):
            references[row] = references[row] or _first_reference(cell)

    present = [reference for reference in references if reference]
    if not present:
        return []
    message = (
        f"Character references of web pages, such as {present[0]}, are read as they stand "
        f"(rows: {len(present):,}); decode them with html.unescape if the texts are from pages."
    )
    return [Decision("corpus", "character_references", len(present), message)]


def _first_reference(cell: Any) -> str:
    """Return the first reference of a text that HTML knows, or ""."""
    if not isinstance(cell, str) or "&" not in cell:
        return ""
    for match in _REFERENCE.finditer(cell):
        reference = match[0]
        if reference[1] == "#" or reference[1:] in html5:
            return reference
    return ""
