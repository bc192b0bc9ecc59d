"""A segment's vectors on disk, and what is known about them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray
from embedtopics.retrieval.dense._threads import faiss_module

__all__ = [
    "ABOUT", "FORMAT", "checked_vectors", "file_sizes", "read_about", "read_vectors", "write_about",
    "write_faiss", "write_vectors",
]  # fmt: skip

ABOUT = "dense/dense.json"
FORMAT = 1

ROWS_AT_ONCE = 8192
"""Vectors that are checked, or rounded, at a time."""

OFF_UNIT = 1e-3
"""What a norm may differ from one; vectors that were float16 before are of such norms."""

_DTYPES: dict[str, np.dtype[Any]] = {"vectors.f32": np.dtype("<f4"), "vectors.f16": np.dtype("<f2")}


def checked_vectors(vectors: Any) -> FloatArray:
    """Return unit vectors as float32, or refuse them.

    Zero vectors are let in: texts without a known word have them.

    Raises
    ------
    InputError
        If they are no table of finite numbers, or a row is of another length.
    """
    values = np.asarray(vectors)
    if values.ndim != 2 or values.shape[1] < 1 or values.dtype.kind != "f":
        raise InputError(
            "expected unit vectors as a float32 array of shape (n, d); got "
            f"{values.dtype} of shape {values.shape}"
        )
    with np.errstate(over="ignore"):  # too large is not finite, and refused as such
        values = np.asarray(values, dtype=np.float32, order="C")
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows = values[start : start + ROWS_AT_ONCE]
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(norms - 1.0) <= OFF_UNIT) | (norms == 0.0))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"expected vectors of length 1; row {start + row} has length {norms[row]:.6g}; "
                "divide each by its norm"
            )
    return values


def write_vectors(folder: Path, vectors: FloatArray, half: bool) -> str:
    """Write vectors row by row, without a header, and return the file's name.

    It takes its place when it is whole, so that `vectors` may be what is there, mapped.
    """
    name = "vectors.f16" if half else "vectors.f32"
    fresh = folder / f"{name}.new"
    try:
        with fresh.open("wb") as stream:
            for start in range(0, len(vectors), ROWS_AT_ONCE):
                stream.write(vectors[start : start + ROWS_AT_ONCE].astype(_DTYPES[name]).tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, folder / name)
    finally:
        fresh.unlink(missing_ok=True)
    return name


def read_vectors(folder: Path, name: str, n: int, d: int, mmap: bool) -> npt.NDArray[Any]:
    """Return the vectors, float32 or the bits of float16; mapped, or read.

    Raises
    ------
    CorruptFileError
        If the file is missing, or of another size.
    """
    dtype = np.dtype("<u2") if name == "vectors.f16" else np.dtype("<f4")
    path = folder / name
    _check_size(path, n * d * dtype.itemsize)
    if not n:
        return np.empty((0, d), dtype=dtype)
    try:
        if mmap:
            return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=(n, d)))
        values: npt.NDArray[Any] = np.fromfile(path, dtype=dtype).reshape(n, d)
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"{path} cannot be read ({error}); build again") from error
    values.flags.writeable = False
    return values


def write_faiss(index: Any, path: Path, flags: int = 0) -> None:
    """Write an index of FAISS.

    Raises
    ------
    OSError
        If it cannot be written, as for any other file; FAISS itself raises a RuntimeError.
    """
    try:
        faiss_module().write_index(index, str(path), flags)
    except RuntimeError as error:
        said = (str(error).splitlines() or ["RuntimeError"])[0]
        raise OSError(f"FAISS could not write {path.name} ({said})") from error


def file_sizes(folder: Path, names: list[str]) -> dict[str, int]:
    """Return the sizes of files in bytes."""
    return {name: (folder / name).stat().st_size for name in names}


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write what is known, as JSON."""
    (folder / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", "utf-8")


def read_about(folder: Path) -> dict[str, Any]:
    """Read what is known, and hold the sizes of all files against it.

    Raises
    ------
    CorruptFileError
        If something is missing, damaged, or of a newer format.
    """
    path = folder / ABOUT
    try:
        about = json.loads(path.read_text("utf-8"))
        found = int(about["format"])
        sizes = {str(name): int(size) for name, size in about["files"].items()}
        n, d = int(about["n"]), int(about["d"])
        kind, name = str(about["kind"]), str(about["vectors"])
        breadth = about["parameters"].get("breadth"), about["parameters"].get("n_candidates")
        well_formed = n >= 0 and d >= 1 and name in _DTYPES and name in sizes
        if not well_formed or not all(b is None or int(b) > 0 for b in breadth):
            raise ValueError(f"{kind} index of {n} vectors with {d} dimensions in {name}")
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing; build the segment again") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{path} is damaged ({error}); build again") from error
    if found > FORMAT:
        raise CorruptFileError(
            f"{path} is of format {found}, newer than this version reads ({FORMAT}); "
            "upgrade embedtopics"
        )
    for file, size in sizes.items():
        if ".." in Path(file).parts or Path(file).is_absolute():
            raise CorruptFileError(f"{path} is damaged (it lists {file!r}); build again")
        _check_size(folder / file, size)
    return dict(about)


def _check_size(path: Path, size: int) -> None:
    if not path.is_file():
        raise CorruptFileError(f"{path} is missing; build the segment again")
    if path.stat().st_size != size:
        raise CorruptFileError(
            f"{path} is damaged: it has {path.stat().st_size:,} bytes, not the {size:,} that "
            "were written; build the segment again"
        )
