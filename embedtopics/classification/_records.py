"""Records of saved classifiers: the JSON in their folders."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from embedtopics._utils.records import DecisionRecord, Record

Seed = Annotated[int, Field(ge=0)] | None
Method = Literal["frozen", "few_shot", "fine_tune", "auto"]
Classes = list[str] | list[int] | list[float] | list[bool]


class ClassifierParameters(Record):
    """Parameters of a `TextClassifier`, without its encoder and its classes."""

    method: Method
    head: Literal["softmax", "ordinal", "multilabel"]
    pairs: bool = False
    class_weight: Literal["balanced"] | list[tuple[str | int | float | bool, float]] | None
    calibration: Literal["temperature"] | None
    training: dict[str, Any] | None
    random_state: Seed


class ClassifierRecord(Record):
    """Content of ``classifier.json`` of a `TextClassifier`."""

    parameters: ClassifierParameters
    classes: Annotated[Classes, Field(min_length=1)]
    order: Classes | None
    method: Method | None = None
    encoder: dict[str, Any] | None
    encoder_name: str
    decisions: list[DecisionRecord]
    test_log: dict[str, Annotated[int, Field(ge=0)]]
    versions: dict[str, str] = Field(default_factory=dict)


class TokenClassifierRecord(Record):
    """Content of ``classifier.json`` of a `TokenClassifier`."""

    method: Literal["frozen", "fine_tune"]
    training: dict[str, Any] | None
    random_state: Seed
    classes: Annotated[list[str], Field(min_length=2)]
    max_length: Annotated[int, Field(ge=1)]
    encoder: dict[str, Any] | None
