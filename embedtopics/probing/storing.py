"""Hidden states on disk: a file of vectors a layer, and where in the texts the units are.

::

    <folder>/
        about.json              what was read by which encoder, and how
        texts.json              the texts
        index.npz               of_text, sentences, spans, n_pieces
        layer-00.f16 ...        n_units x width little-endian numbers
        manifest.json           sizes and checksums of all these

Vectors are written to a hidden folder beside, ``.<name>.unfinished``, block by block; it takes its
final name when it is whole. A process that is killed leaves it there, and the next one with the
same arguments goes on behind the last block that was written.
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

from embedtopics._files import (
    MANIFEST,
    check_output_folder,
    read_manifest,
    replacing_file,
    write_manifest,
)
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision, HiddenStates

__all__ = [
    "Writer", "assemble", "begin_store", "check_folder", "open_states", "open_store",
    "refuse_another", "unfinished_about",
]  # fmt: skip

KIND = "hidden states"
VERSION = 1
_PROGRESS = "progress.json"
_MOST = float(np.finfo(np.float16).max)
_EXTENSIONS = {"float16": "f16", "float32": "f32"}
_CALLED = {
    "weights": "another encoder", "texts": "other texts", "max_length": "another max_length",
    "layers": "other layers", "unit": "another unit", "pooling": "another pooling",
    "dtype": "another dtype",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Writer:
    """A store that is being written.

    Parameters
    ----------
    folder : Path
        Where it will be.
    empty : HiddenStates
        All but the vectors.
    width : int
    dtype : str
    description : mapping
        What the vectors depend on.
    """

    folder: Path
    empty: HiddenStates
    width: int
    dtype: str
    description: Mapping[str, Any]

    @property
    def unfinished(self) -> Path:
        """The folder that is written to."""
        return _unfinished(self.folder)

    def done(self) -> tuple[int, int]:
        """Return how many units are done, and how many numbers were cut to what float16 holds.

        What was written behind them, by a process that was killed, is cut off.

        Raises
        ------
        CorruptFileError
            If a file holds less than was written to it.
        """
        progress = _read_json(self.unfinished / _PROGRESS)
        n_units = int(progress["units"])
        for path in self._paths():
            size = n_units * self.width * np.dtype(self.dtype).itemsize
            found = path.stat().st_size if path.is_file() else 0
            if found < size:
                raise CorruptFileError(
                    f"{path} is damaged: it has {found:,} bytes, not the {size:,} that were "
                    f"written; delete {self.unfinished} and begin again"
                )
            if found > size:
                os.truncate(path, size)
        return n_units, int(progress["clipped"])

    def append(self, vectors: FloatArray, n_units: int, n_clipped: int) -> int:
        """Write a block of all layers, and then that it is there.

        Parameters
        ----------
        vectors : float32 ndarray of shape (n_layers, n_new, width)
            Overwritten.
        n_units : int
            Units that are done with these.
        n_clipped : int
            Numbers that were cut before.

        Returns
        -------
        int
            Numbers that were cut so far.
        """
        for path, layer in zip(self._paths(), vectors, strict=True):
            if self.dtype == "float16":
                n_clipped += int((np.abs(layer) > _MOST).sum())
                np.clip(layer, -_MOST, _MOST, out=layer)
            with _on_disk(self.folder), path.open("ab") as file:
                file.write(layer.astype(np.dtype(self.dtype).newbyteorder("<")).data)
                file.flush()
                os.fsync(file.fileno())
        _write_json(
            self.unfinished / _PROGRESS,
            {"units": n_units, "clipped": n_clipped},
        )
        return n_clipped

    def finish(self, decisions: Sequence[Decision]) -> HiddenStates:
        """Give the folder its name, and open it."""
        folder = self.unfinished
        _write_json(folder / "about.json", _about(self, decisions))
        with _on_disk(self.folder):
            # Checksums of large files take minutes: until they are there, work can go on.
            write_manifest(folder, KIND, VERSION, but=(_PROGRESS,))
            with suppress(OSError):  # it is not there, or holds something
                self.folder.rmdir()
            folder.rename(self.folder)
            (self.folder / _PROGRESS).unlink()
        vectors = _map_vectors(
            self.folder, self.empty.layers, (len(self.empty.of_text), self.width), self.dtype
        )
        return replace(
            self.empty, vectors=vectors, folder=str(self.folder), decisions=tuple(decisions)
        )

    def _paths(self) -> list[Path]:
        return [_path(self.unfinished, layer, self.dtype) for layer in self.empty.layers]


def unfinished_about(folder: Path) -> dict[str, Any] | None:
    """Return what an unfinished store says of itself, or None where there is none."""
    folder = _unfinished(folder)
    if not (folder / _PROGRESS).is_file():
        return None
    about: dict[str, Any] = _read_json(folder / "about.json")
    return about


def check_folder(folder: Path) -> None:
    """Make sure, before the work, that a store can be written.

    Raises
    ------
    InputError
        If there are other files, or nothing can be written.
    """
    check_output_folder(folder, KIND)


def begin_store(writer: Writer) -> None:
    """Write all but the vectors, unless it was begun before.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    folder = writer.unfinished
    if (folder / _PROGRESS).is_file():
        for left in folder.glob(".writing-*"):
            shutil.rmtree(left)
        return
    with _on_disk(writer.folder):
        if folder.is_dir():  # killed before it was begun
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    empty = writer.empty
    _write_json(folder / "texts.json", list(empty.texts))
    _write_json(folder / "about.json", _about(writer, ()))
    with replacing_file(folder / "index.npz") as path:
        np.savez(
            path, of_text=empty.of_text, sentences=empty.sentences, spans=empty.spans,
            n_pieces=empty.n_pieces,
        )  # fmt: skip
    for path in writer._paths():
        path.write_bytes(b"")
    _write_json(folder / _PROGRESS, {"units": 0, "clipped": 0})


def open_states(folder: str | os.PathLike[str]) -> HiddenStates:
    """Open hidden states that were written to a folder; every file is checked, none is loaded.

    Parameters
    ----------
    folder : str or path

    Returns
    -------
    HiddenStates
        Its vectors are mapped into memory, and read as they are used.

    Raises
    ------
    InputError
        If there is no such folder, or its extraction was not finished.
    CorruptFileError
        If it holds something else, or a file is missing, truncated or changed.

    Examples
    --------
    >>> states = open_states("states")  # doctest: +SKIP
    >>> states.layer(8).shape  # doctest: +SKIP
    (204577, 384)
    """
    return open_store(Path(folder))[0]


def open_store(folder: Path) -> tuple[HiddenStates, dict[str, Any]]:
    """Return hidden states, and what their store says of itself.

    Raises
    ------
    InputError, CorruptFileError
    """
    about = _read_about(folder)
    try:
        texts = tuple(_read_json(folder / "texts.json"))
        with np.load(folder / "index.npz", allow_pickle=False) as arrays:
            index = {name: arrays[name] for name in ("of_text", "sentences", "spans", "n_pieces")}
        shape, layers = (len(index["of_text"]), int(about["width"])), tuple(about["layers"])
        vectors = _map_vectors(folder, layers, shape, about["dtype"])
        states = assemble(
            texts, index, layers=layers, unit=about["unit"], pooling=about["pooling"],
            encoder=about["encoder"], fingerprint=about["fingerprint"], folder=str(folder),
            decisions=tuple(Decision(**each) for each in about["decisions"]), vectors=vectors,
        )  # fmt: skip
        return states, about
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise CorruptFileError(f"{folder} is damaged ({error}); extract again") from error


def assemble(texts: tuple[str, ...], index: Mapping[str, Any], **others: Any) -> HiddenStates:
    """Return hidden states; what of them follows from the index is filled in."""
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


def _read_about(folder: Path) -> dict[str, Any]:
    """Return what a store says of itself, after every file was checked."""
    if not (folder / MANIFEST).exists() and (_unfinished(folder) / _PROGRESS).is_file():
        raise InputError(
            f"expected finished hidden states in {folder}, got unfinished ones; call hidden_states "
            "with the same arguments to go on"
        )
    read_manifest(folder, KIND, VERSION)
    about: dict[str, Any] = _read_json(folder / "about.json")
    return about


def refuse_another(
    found: Mapping[str, Any], wanted: Mapping[str, Any], folder: str | os.PathLike[str]
) -> None:
    """Make sure that a store holds what is wanted.

    Raises
    ------
    InputError
        Names all that differs.
    """
    differs = [
        f"{words} ({found.get(key)} instead of {wanted[key]})"
        if key not in ("weights", "texts") else words
        for key, words in _CALLED.items()
        if found.get(key) != wanted[key]
    ]  # fmt: skip
    if differs:
        raise InputError(
            f"expected {folder} to hold the states that are asked for; it holds those of "
            f"{', '.join(differs)}; name another folder, or delete this one"
        )


def _about(writer: Writer, decisions: Sequence[Decision]) -> dict[str, Any]:
    empty = writer.empty
    return {
        **writer.description,
        "encoder": empty.encoder,
        "fingerprint": empty.fingerprint,
        "width": writer.width,
        "decisions": [vars(decision) for decision in decisions],
    }


@contextmanager
def _on_disk(folder: Path) -> Iterator[None]:
    """Say in one sentence that a disk is full, or gone."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"could not write {folder}: {error.strerror or error}; free some space, and call "
            "hidden_states with the same arguments to go on; or name another folder"
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
    if not shape[0]:  # nothing cannot be mapped
        return tuple(np.zeros(shape, dtype=kind) for _ in layers)
    return tuple(
        np.memmap(_path(folder, layer, dtype), dtype=kind, mode="r", shape=shape)
        for layer in layers
    )


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"{path} is damaged ({error}); extract again") from error


def _write_json(path: Path, content: Any) -> None:
    with replacing_file(path) as fresh:
        fresh.write_text(json.dumps(content), "utf-8")
