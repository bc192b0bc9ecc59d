"""Prepared models in the cache folder."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.encoders._base import MODELS, placing
from embedtopics.encoders.sentence._checkpoint import Checkpoint
from embedtopics.encoders.sentence._graph import WORDS, Table, UnsupportedModelError
from embedtopics.encoders.sentence._loading import PlainVocabulary

_logger = logging.getLogger("embedtopics")

# <cache folder>/models-1/<key>-<variant>/ holds model.onnx, tokenizer.json and about.json, and the
# vectors of its tokens in float32, mapped into memory: processes share them. It is written beside
# its place and moved there when it is whole. Its files have checksums; a damaged one is named,
# thrown away, and made again.

_TABLE = f"{WORDS}.f32"


_GRAPHS = 1
"""Version of the graphs; another one prepares all models again."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model for ONNX Runtime, with its tokenizer."""

    model: bytes
    table: Table
    vocabulary: PlainVocabulary


def key_of(
    checkpoint: Checkpoint, pooling: tuple[str, ...], layers: int | tuple[float, ...]
) -> str:
    """Return the key of a prepared model: a hash of weights, tokenizer and pooling."""
    parts = (_GRAPHS, checkpoint.contents, checkpoint.lower_case, pooling, layers)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def read_prepared(root: Path, key: str, variant: str) -> Prepared | None:
    """Return a prepared model, or None if there is no usable one."""
    from tokenizers import Tokenizer

    folder = root / MODELS / f"{key}-{variant}"
    if not folder.is_dir():
        return None
    refusal = read_refusal(root, key, variant)
    if refusal:
        raise UnsupportedModelError(refusal)
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text("utf-8"))
        model, tokenizer = (folder / name for name in ("model.onnx", "tokenizer.json"))
        content, words = model.read_bytes(), tokenizer.read_bytes()
        shape = tuple(map(int, about["shape"]))
        table = Table(WORDS, np.memmap(folder / _TABLE, np.float32, "r", shape=shape))
        files: dict[str, Any] = {model.name: content, tokenizer.name: words, _TABLE: table.values}
        for name, data in files.items():
            if about["sha256"][name] != hashlib.sha256(data).hexdigest():
                raise ValueError(f"{name} is not what was written")
        vocabulary = PlainVocabulary(
            Tokenizer.from_buffer(words), int(about["pad_id"]), int(about["unknown_id"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        _logger.warning("The prepared model in %s is damaged (%s); made again.", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Prepared(content, table, vocabulary)


def read_refusal(root: Path, key: str, variant: str) -> str | None:
    """Return why a model could not be prepared; "" if it could, None if it was not tried."""
    try:
        about = (root / MODELS / f"{key}-{variant}" / "about.json").read_text("utf-8")
        return str(json.loads(about).get("refused", ""))
    except (OSError, ValueError, AttributeError):
        return None


def write_refusal(root: Path, key: str, variant: str, name: str, reason: str) -> None:
    """Store why a model could not be prepared, so that it is tried only once."""
    about = {"encoder": name, "variant": variant, "refused": " ".join(reason.split())[:300]}
    _keep(root / MODELS / f"{key}-{variant}", {"about.json": json.dumps(about).encode()})


def write_prepared(root: Path, key: str, variant: str, name: str, prepared: Prepared) -> None:
    """Store a prepared model."""
    words = prepared.vocabulary.tokenizer.to_str().encode()
    files: dict[str, Any] = {
        "model.onnx": prepared.model,
        "tokenizer.json": words,
        _TABLE: prepared.table.values,
    }
    about: dict[str, Any] = {
        "encoder": name,
        "variant": variant,
        "pad_id": prepared.vocabulary.pad_id,
        "unknown_id": prepared.vocabulary.unknown_id,
        "shape": prepared.table.values.shape,
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }
    files["about.json"] = json.dumps(about, indent=1).encode()
    _keep(root / MODELS / f"{key}-{variant}", files)


def _keep(folder: Path, files: Mapping[str, Any]) -> None:
    """Write a folder atomically; log a warning if that fails."""
    try:
        with placing(folder) as fresh:
            for file, data in files.items():
                with (fresh / file).open("wb") as opened:
                    opened.write(data)
                    opened.flush()
                    os.fsync(opened.fileno())
    except OSError as error:
        _logger.warning(
            "The prepared model cannot be stored in %s (%s); it is prepared again each time.",
            folder.parent, error,
        )  # fmt: skip
