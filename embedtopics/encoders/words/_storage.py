"""Fitted encoders of words in saved folders, as JSON and arrays.

::

    encoder.json           settings, words in the order of their columns or rows, fingerprint
    encoder.safetensors    TF-IDF: weights of terms, axes of the projection; fastText: vectors of
                           words and of trained n-grams, frequencies of words

An encoder that learned from texts has no other form in which it could be found again: the texts of
a classifier or an index are not stored, or are others by then.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import SavedFolder, open_saved, write_manifest
from embedtopics._utils.records import Record, read_record
from embedtopics.encoders.words._counts import TfidfEncoder, WordEncoder
from embedtopics.encoders.words._vectors import FastTextEncoder
from embedtopics.errors import CorruptFileError

ABOUT = "encoder.json"
ARRAYS = "encoder.safetensors"


class WordsRecord(Record):
    """A fitted encoder of words, without its arrays."""

    settings: dict[str, Any]
    words: list[str] = Field(min_length=1)
    left_out: list[str] = Field(default_factory=list)
    n_ngrams: int = Field(0, ge=0, le=10_000_000)
    fingerprint: str


def write_words(encoder: Any, folder: Path) -> bool:
    """Write a fitted encoder of words; False for others and for own functions."""
    from safetensors.numpy import save_file

    if not isinstance(encoder, TfidfEncoder | FastTextEncoder) or not encoder.is_fitted:
        return False
    settings = encoder.settings
    words = settings.get("words")
    if isinstance(words, dict) and "own" in words:
        return False

    stored, arrays = encoder.state()
    record = WordsRecord(settings=settings, fingerprint=str(encoder.fingerprint), **stored)
    (folder / ABOUT).write_text(json.dumps(record.model_dump()), "utf-8")
    save_file({name: np.ascontiguousarray(x) for name, x in arrays.items()}, folder / ARRAYS)
    return True


def read_words(saved: SavedFolder, path: Path) -> WordEncoder | None:
    """Return the encoder of words in an open folder; None if it holds none.

    Raises
    ------
    CorruptFileError
        If record and arrays do not fit together.
    """
    from safetensors.numpy import load

    from embedtopics.encoders._registry import encoder_from_settings

    if ABOUT not in saved.streams:
        return None
    record = read_record(WordsRecord, saved.streams[ABOUT].read(), path / ABOUT)
    arrays = load(saved.streams[ARRAYS].read())

    encoder = encoder_from_settings(record.settings)
    if not isinstance(encoder, TfidfEncoder | FastTextEncoder):
        raise CorruptFileError(f"{path} is damaged (its encoder is none of words); save again")
    encoder.restore(record.words, record.left_out, record.n_ngrams, arrays)
    if encoder.fingerprint != record.fingerprint:
        raise CorruptFileError(f"{path} is damaged (its encoder is another one); save again")
    return encoder


KIND = "encoder of words"
FORMAT = 1


def save_words(encoder: Any, folder: Path) -> None:
    """Write a new folder with a fitted encoder of words; other encoders leave none."""
    folder.mkdir()
    if write_words(encoder, folder):
        write_manifest(folder, KIND, FORMAT)
    else:
        folder.rmdir()


def load_words(folder: Path) -> WordEncoder | None:
    """Return the encoder that `save_words` wrote; None if there is no such folder."""
    from safetensors import SafetensorError

    if not folder.is_dir():
        return None
    with open_saved(folder, KIND, FORMAT) as saved:
        try:
            return read_words(saved, folder)
        except (KeyError, TypeError, ValueError, AttributeError, SafetensorError) as error:
            message = f"{folder} is damaged ({one_line(error)}); build the index again"
            raise CorruptFileError(message) from error
