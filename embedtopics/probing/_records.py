"""The record of hidden states in their folder: the encoder, the options and the decisions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from embedtopics._utils.records import DecisionRecord, Record

Count = Annotated[int, Field(ge=0)]


class StatesRecord(Record):
    """Content of ``about.json``."""

    weights: str
    texts: str
    max_length: int
    unit: Literal["word", "token"]
    pooling: Literal["mean", "none"]
    dtype: Literal["float16", "float32"]
    n_layers: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    encoder: str
    fingerprint: str
    tokens_per_batch: Count = 0
    layers: Annotated[list[Count], Field(min_length=1)]
    decisions: list[DecisionRecord]
    forms: dict[str, str] = Field(default_factory=dict)
