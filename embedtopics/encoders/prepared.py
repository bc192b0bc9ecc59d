"""Models made ready for this machine, kept in the cache folder.

::

    <cache folder>/models-1/<key>-<variant>/
        model.onnx  tokenizer.json  about.json

A folder is written beside its place and moved there when it is whole. Its files have checksums; a
damaged one is named, thrown away, and made again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.loading import Vocabulary
from embedtopics.encoders.resolve import contents_of

__all__ = ["FORMAT", "UNFINISHED", "Prepared", "key_of", "read_prepared", "write_prepared"]

FORMAT = "models-1"
"""Folder of this format; one of a later format is left alone."""

UNFINISHED = ".new-"
"""What the name of a folder begins with that is being written, or was when its process ended."""

_logger = logging.getLogger("embedtopics")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model for ONNX Runtime with its tokenizer.

    Parameters
    ----------
    model : bytes
    vocabulary : Vocabulary
    cosine : float
        Lowest cosine of its vectors with those of torch, on sample texts.
    """

    model: bytes
    vocabulary: Vocabulary
    cosine: float


def key_of(
    checkpoint: Checkpoint, pooling: tuple[str, ...], layers: int | tuple[float, ...]
) -> str:
    """Return what tells a prepared model from others: weights, tokenizer and pooling."""
    parts = (contents_of(checkpoint), checkpoint.lower_case, pooling, layers)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def read_prepared(root: Path, key: str, variant: str) -> Prepared | None:
    """Return a prepared model, or None where there is none that can be used.

    Parameters
    ----------
    root : Path
        The cache folder.
    key : str
        Of `key_of`.
    variant : str
        Such as "float32".
    """
    from tokenizers import Tokenizer

    folder = root / FORMAT / f"{key}-{variant}"
    if not folder.is_dir():
        return None
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text("utf-8"))
        model, tokenizer = (folder / name for name in ("model.onnx", "tokenizer.json"))
        content, words = model.read_bytes(), tokenizer.read_bytes()
        for name, data in ((model.name, content), (tokenizer.name, words)):
            if about["sha256"][name] != hashlib.sha256(data).hexdigest():
                raise ValueError(f"{name} is not what was written")
        vocabulary = Vocabulary(
            Tokenizer.from_buffer(words), int(about["pad_id"]), int(about["unknown_id"])
        )
        cosine = float(about["cosine"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        _logger.warning("The prepared model in %s is damaged (%s); made again.", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Prepared(content, vocabulary, cosine)


def write_prepared(root: Path, key: str, variant: str, name: str, prepared: Prepared) -> None:
    """Keep a prepared model; where the disk does not take it, say so once and go on.

    Parameters
    ----------
    root, key, variant
        As in `read_prepared`.
    name : str
        Of the encoder, for people.
    prepared : Prepared
    """
    folder = root / FORMAT / f"{key}-{variant}"
    words = prepared.vocabulary.tokenizer.to_str().encode()
    files = {"model.onnx": prepared.model, "tokenizer.json": words}
    about = {
        "encoder": name,
        "variant": variant,
        "pad_id": prepared.vocabulary.pad_id,
        "unknown_id": prepared.vocabulary.unknown_id,
        "cosine": prepared.cosine,
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }
    files["about.json"] = json.dumps(about, indent=1).encode()
    fresh = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
        for file, data in files.items():
            with (fresh / file).open("wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
        fresh.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # another process may have been faster
            _logger.warning(
                "The model made ready for this machine cannot be kept in %s (%s); it will be made "
                "again each time.", folder.parent, error
            )  # fmt: skip
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
