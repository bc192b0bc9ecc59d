"""Records: JSON from outside, read through pydantic models that refuse what they do not know.

Saved folders, checkpoints, request bodies and answers of language models are untrusted. A record
names every field with its type. Other fields and values of other types are refused, so that nothing
that a file adds has an effect.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from embedtopics.errors import CorruptFileError
from embedtopics.results import Decision

LONGEST_PROBLEM = 300
"""Characters of the description of a problem, which may quote names of the untrusted JSON."""


class Record(BaseModel):
    """JSON whose fields and types are all known.

    Values are never converted: ``"1"`` is no integer, ``1`` no string, and ``1.0`` no integer.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DecisionRecord(Record):
    """The fields of a `Decision`."""

    stage: str
    name: str
    value: Any
    message: str

    def decision(self) -> Decision:
        """Return the decision."""
        return Decision(self.stage, self.name, self.value, self.message)


class ForeignRecord(BaseModel):
    """JSON of another program: the named fields have their types, the others are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


AnyRecord = TypeVar("AnyRecord", bound=BaseModel)


def parse_record(model: type[AnyRecord], content: str | bytes) -> AnyRecord:
    """Parse JSON as a record; a ValueError names the first field at fault."""
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise ValueError(problem_of(error)) from None


def read_record(model: type[AnyRecord], content: str | bytes, source: object) -> AnyRecord:
    """Parse the JSON of a saved file as a record; a CorruptFileError names `source`, the file."""
    try:
        return parse_record(model, content)
    except ValueError as error:
        message = f"{str(source)[:500]} is damaged: {error}; save again or restore it from a copy"
        raise CorruptFileError(message) from None


def problem_of(error: ValidationError) -> str:
    """Describe the first problem of a validation in one line, without quoting values."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    reason = message[:1].lower() + message[1:]
    problem = f"{field}: {reason}" if field else reason
    return " ".join(problem.split())[:LONGEST_PROBLEM]
