"""``config.json`` of a static encoder: what is read of it, and its types."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from embedtopics._utils.records import ForeignRecord

DEFAULT_MAX_LENGTH = 512
"""Default maximum number of tokens read of a text, as in model2vec."""


class Origin(ForeignRecord):
    """How a table was made, as far as a decision names it."""

    method: str = ""
    encoder: str = ""
    n_texts: int = 0
    agreement: float = 0.0


class OwnEntries(ForeignRecord):
    """Entries that model2vec does not define."""

    languages: list[str] | None = None
    made_from: dict[str, Any] | None = None


class StaticConfiguration(ForeignRecord):
    """Entries of model2vec, and ours."""

    normalize: bool | None = None
    max_length: Annotated[int, Field(ge=1)] | None = DEFAULT_MAX_LENGTH
    embedtopics: OwnEntries | None = None
