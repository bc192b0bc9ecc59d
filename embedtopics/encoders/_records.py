"""Records of encoders in saved folders: what they may hold, and what may be loaded from them.

A saved folder is data that may come from anybody. The record of an encoder has the fields below and
no others, so that it cannot ask for the code of a checkpoint. What the record names is loaded from
this machine alone: from an installed package, from the cache of the hub, or from a local folder
that holds weights without code. Everything else has to be given by the caller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from embedtopics._utils.display import one_line
from embedtopics._utils.records import Record, parse_record
from embedtopics.errors import InputError, Remedy

# A record asks for no more than this; a number without a bound would take all memory or time.
MOST_DIMENSIONS = 2**16
MOST_EPOCHS = 1000

Dimensions = Annotated[int, Field(ge=1, le=MOST_DIMENSIONS)]
Seed = Annotated[int, Field(ge=0)]


FORMER_NAMES = {"dimensions": "truncate_dim", "max_length": "max_seq_length"}
"""Arguments of checkpoints in folders that earlier versions wrote, and what they are now."""


class CheckpointRecord(Record):
    """A transformer checkpoint, by its name on the hub or its folder."""

    name: Annotated[str, Field(min_length=1, max_length=4096)]
    revision: str | None = None
    pooling: str | list[str] | None = None
    normalize: bool | None = None
    truncate_dim: Dimensions | None = None
    max_seq_length: Annotated[int, Field(ge=1)] | None = None
    prompt: str | None = None
    prompts: dict[str, str] | None = None
    long_texts: Literal["auto", "truncate", "chunk"] = "auto"
    precision: Literal["auto", "float32", "int8", "float16", "bfloat16"] = "auto"


class StaticRecord(Record):
    """A table of token vectors, by its folder."""

    kind: Literal["static"]
    folder: Annotated[str, Field(min_length=1, max_length=4096)]


class RandomRecord(Record):
    """Random projections of word counts."""

    kind: Literal["random"]
    dimensions: Dimensions = 256
    random_state: Seed = 0


class RulesRecord(Record):
    """Rules by which texts become words; see `WordRules`."""

    segmenters: dict[str, str] | None = None
    lemmas: list[str] | None = None
    lemmatizer: str = ""
    social: str = ""
    own: str | None = None
    addresses: bool = False
    version: Literal[1, 2] = 1


class TfidfRecord(Record):
    """Weights of terms, before the fit."""

    kind: Literal["tfidf"]
    n_components: Dimensions | None = None
    stop_words: str | list[str] = "auto"
    ngram_range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = None
    words: str | list[str] | RulesRecord = "auto"
    all_words: bool = False
    random_state: Seed = 0


class FastTextRecord(Record):
    """Word vectors that are trained on the texts, before the fit."""

    kind: Literal["fasttext"]
    dimensions: Dimensions | None = None
    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] | None = None
    random_state: Seed = 0


EncoderRecord = CheckpointRecord | StaticRecord | RandomRecord | TfidfRecord | FastTextRecord

_BY_KIND: dict[str, type[EncoderRecord]] = {
    "fasttext": FastTextRecord,
    "random": RandomRecord,
    "static": StaticRecord,
    "tfidf": TfidfRecord,
}


def checked_arguments(settings: Any) -> dict[str, Any]:
    """Return the arguments of an encoder from its recorded settings, each of them checked."""
    if not isinstance(settings, Mapping):
        raise must_be_given("its record is no JSON object")
    kind = settings.get("kind")
    if kind is None:
        settings = {FORMER_NAMES.get(name, name): value for name, value in settings.items()}
    record_type = CheckpointRecord if kind is None else _BY_KIND.get(str(kind))
    if record_type is None:
        raise must_be_given(f"its record is of the unknown kind {str(kind)[:80]!r}")

    # Arguments of this session may be NumPy numbers and tuples; JSON has neither.
    try:
        content = json.dumps(dict(settings), default=lambda number: number.item())
        record = parse_record(record_type, content)
    except (AttributeError, TypeError, ValueError) as error:
        raise must_be_given(f"its record asks for more than data ({one_line(error)})") from None

    if isinstance(record, StaticRecord):
        check_local(record.folder)
    if isinstance(record, CheckpointRecord):
        check_local(record.name)
        _check_unambiguous(record.name)
    return record.model_dump(exclude_unset=True, exclude_none=True)


def check_local(path: str) -> None:
    """Refuse a path that no folder of this machine can have, such as ``//server/share``."""
    if path.replace("\\", "/").startswith("//") or "\0" in path:
        raise must_be_given(f"its record names no folder of this machine ({path[:200]!r})")


def _check_unambiguous(name: str) -> None:
    """Refuse a name on the hub that a folder here has, too: records of folders are absolute."""
    path = Path(name).expanduser()
    if not path.is_absolute() and path.is_dir():
        raise must_be_given(f"a folder here has the name of the recorded model, {name[:200]!r}")


def must_be_given(reason: str) -> InputError:
    """Return the error of a recorded encoder that only the caller may name."""
    remedy = Remedy("encoder", alternative="load the folder with encoder=")
    return InputError("encoder", f"given, because {reason}", remedy=remedy)
