"""Hidden states on disk: one file of vectors per layer, and the positions of the units.

::

    <folder>/
        about.json              encoder, settings and decisions
        texts.json              the texts
        index.npz               of_text, sentences, spans, n_pieces
        layer-00.f16 ...        n_units x width little-endian numbers
        manifest.json           sizes and checksums of all these

Vectors are written block by block to ``.<name>.unfinished``, which is renamed when it is complete.
A process that is killed leaves it there, and the next one with the same arguments resumes after the
last block that was written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import (
    MANIFEST,
    parse_json,
    read_manifest,
    replacing_file,
    write_manifest,
)
from embedtopics.decisions import Decision
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.probing.results import HiddenStates
from embedtopics.protocols import FloatArray

KIND = "hidden states"
VERSION = 1
_PROGRESS = "progress.json"
_INDEX = ("of_text", "sentences", "spans", "n_pieces")
_MOST = float(np.finfo(np.float16).max)
_EXTENSIONS = {"float16": "f16", "float32": "f32"}


@dataclass(frozen=True, eq=False)
class StatesWriter:
    """A store that is being written."""

    folder: Path
    empty: HiddenStates
    width: int
    dtype: str
    description: Mapping[str, Any]

    @property
    def unfinished(self) -> Path:
        """The folder that is written to."""
        return _unfinished(self.folder)

    @property
    def paths(self) -> list[Path]:
        """The file of each layer."""
        return [_path(self.unfinished, layer, self.dtype) for layer in self.empty.layers]

    def begin(self) -> None:
        """Write all but the vectors, unless it was begun before."""
        folder, empty = self.unfinished, self.empty
        if (folder / _PROGRESS).is_file():
            for left in folder.glob(".writing-*"):
                shutil.rmtree(left)
            return
        with _disk_errors(self.folder):
            if folder.is_dir():  # interrupted before it was begun
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
        _write_json(folder / "texts.json", list(empty.texts))
        self._write_about(())
        with replacing_file(folder / "index.npz") as path:
            np.savez(path, **{name: getattr(empty, name) for name in _INDEX})
        for path in self.paths:
            path.write_bytes(b"")
        _write_json(folder / _PROGRESS, {"units": 0, "clipped": 0})

    def done(self) -> tuple[int, int]:
        """Return how many units are done, the rest cut off, and how many numbers were clipped."""
        progress = _read_json(self.unfinished / _PROGRESS)
        n_units = int(progress["units"])
        for path in self.paths:
            size = n_units * self.width * np.dtype(self.dtype).itemsize
            n_bytes = path.stat().st_size if path.is_file() else 0
            if n_bytes < size:
                damage = f"it has {n_bytes:,} bytes of {size:,}; delete {self.unfinished}"
                raise CorruptFileError(f"{path} is damaged: {damage}")
            if n_bytes > size:
                os.truncate(path, size)
        return n_units, int(progress["clipped"])

    def append(self, vectors: FloatArray, n_units: int, n_clipped: int) -> int:
        """Write a block of all layers, (n_layers, n_new, width), then the progress."""
        for path, layer in zip(self.paths, vectors, strict=True):
            if self.dtype == "float16":
                n_clipped += int((np.abs(layer) > _MOST).sum())
                np.clip(layer, -_MOST, _MOST, out=layer)
            with _disk_errors(self.folder), path.open("ab") as file:
                file.write(layer.astype(np.dtype(self.dtype).newbyteorder("<")).data)
                file.flush()
                os.fsync(file.fileno())
        _write_json(self.unfinished / _PROGRESS, {"units": n_units, "clipped": n_clipped})
        return n_clipped

    def finish(self, decisions: Sequence[Decision]) -> HiddenStates:
        """Rename the folder, and open it."""
        folder = self.unfinished
        self._write_about(decisions)
        with _disk_errors(self.folder):
            # Checksums of large files take minutes: until they are there, work can resume.
            write_manifest(folder, KIND, VERSION, exclude=(_PROGRESS,))
            with suppress(OSError):  # it is missing, or not empty
                self.folder.rmdir()
            folder.rename(self.folder)
            (self.folder / _PROGRESS).unlink()
        shape, named = (len(self.empty.of_text), self.width), str(self.folder)
        vectors = _map_vectors(self.folder, self.empty.layers, shape, self.dtype)
        return replace(self.empty, vectors=vectors, folder=named, decisions=tuple(decisions))

    def _write_about(self, decisions: Sequence[Decision]) -> None:
        content = {
            **self.description,
            "encoder": self.empty.encoder,
            "fingerprint": self.empty.fingerprint,
            "width": self.width,
            "decisions": [vars(decision) for decision in decisions],
        }
        _write_json(self.unfinished / "about.json", content)


def unfinished_about(folder: Path) -> dict[str, Any] | None:
    """Return the description of an unfinished store, or None if there is none."""
    folder = _unfinished(folder)
    if not (folder / _PROGRESS).is_file():
        return None
    about: dict[str, Any] = _read_json(folder / "about.json")
    return about


def open_states(folder: str | os.PathLike[str]) -> HiddenStates:
    """Open the hidden states in a folder, and check all files.

    Parameters
    ----------
    folder : str or path

    Returns
    -------
    HiddenStates
        Its vectors are memory-mapped.

    Raises
    ------
    InputError
        If the folder does not exist, or its extraction is unfinished.
    CorruptFileError
        If the folder holds other files, or a file is missing, truncated or changed.
    """
    return open_store(Path(folder))[0]


def open_store(folder: Path) -> tuple[HiddenStates, dict[str, Any]]:
    """Return hidden states, and the description of their store."""
    if not (folder / MANIFEST).exists() and (_unfinished(folder) / _PROGRESS).is_file():
        remedy = "call hidden_states with the same arguments to resume"
        raise InputError("folder", "finished hidden states", str(folder), remedy)
    read_manifest(folder, KIND, VERSION)
    about: dict[str, Any] = _read_json(folder / "about.json")
    try:
        texts = tuple(_read_json(folder / "texts.json"))
        with np.load(folder / "index.npz", allow_pickle=False) as arrays:
            index = {name: arrays[name] for name in _INDEX}
        shape, layers = (len(index["of_text"]), int(about["width"])), tuple(about["layers"])
        states = assemble(
            texts,
            index,
            layers=layers,
            vectors=_map_vectors(folder, layers, shape, about["dtype"]),
            folder=str(folder),
            decisions=tuple(Decision(**each) for each in about["decisions"]),
            **{name: about[name] for name in ("unit", "pooling", "encoder", "fingerprint")},
        )
        return states, about
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
        raise CorruptFileError(f"{folder} is damaged ({error}); extract again") from error


def assemble(texts: tuple[str, ...], index: Mapping[str, Any], **others: Any) -> HiddenStates:
    """Return hidden states, with the words and positions that follow from the index."""
    of_text, spans = index["of_text"], index["spans"]
    begins = np.searchsorted(of_text, np.arange(len(texts)))
    sizes = np.diff(begins, append=len(of_text))
    return HiddenStates(
        texts=texts,
        words=tuple(
            texts[text][begin:end]
            for text, (begin, end) in zip(of_text.tolist(), spans.tolist(), strict=True)
        ),
        position=(np.arange(len(of_text)) - np.repeat(begins, sizes)).astype(np.int32),
        **index,
        **others,
    )


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"could not write {folder}: {error.strerror or error}; free some space, and call "
            "hidden_states with the same arguments to resume; or name another folder."
        ) from error


def _unfinished(folder: Path) -> Path:
    folder = Path(os.path.abspath(folder))
    return folder.with_name(f".{folder.name}.unfinished")


def _path(folder: Path, layer: int, dtype: str) -> Path:
    return folder / f"layer-{layer:02d}.{_EXTENSIONS[dtype]}"


def _map_vectors(
    folder: Path, layers: Sequence[int], shape: tuple[int, int], dtype: str
) -> tuple[Any, ...]:
    kind = np.dtype(dtype).newbyteorder("<")
    if not shape[0]:  # an empty file cannot be mapped
        return tuple(np.zeros(shape, dtype=kind) for _ in layers)
    return tuple(
        np.memmap(_path(folder, layer, dtype), dtype=kind, mode="r", shape=shape)
        for layer in layers
    )


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"{path} is damaged ({error}); extract again") from error


def _write_json(path: Path, content: Any) -> None:
    with replacing_file(path) as fresh:
        fresh.write_text(json.dumps(content), "utf-8")
