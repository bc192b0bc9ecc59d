"""A segment's vectors on disk, and what is known about them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_share, optional_count
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import FloatArray

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
    """
    values = np.asarray(vectors)
    if values.ndim != 2 or values.shape[1] < 1 or values.dtype.kind != "f":
        raise InputError(
            "vectors", "unit vectors of shape (n, d)", found=f"{values.dtype} of {values.shape}"
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
            found = f"length {norms[row]:.6g}"
            raise InputError("vectors", "of length 1", found=found, row=start + row)
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
    """Return the vectors, float32 or the bits of float16; mapped, or read."""
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


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write what is known, as JSON."""
    (folder / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", "utf-8")


def read_about(folder: Path) -> dict[str, Any]:
    """Read what is known, and hold the sizes of all files against it."""
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


# Which kind of index a segment's vectors take.

KINDS = ("flat", "ivf", "ivfpq", "sq", "hnsw")
"""Kinds that a segment may have; "sq" and "hnsw" only in folders of version 0.1. Graphs are not
read: these vectors are compared one by one until the index is compacted."""

FLAT_BYTES = 80_000_000
"""Bytes of vectors that one core reads in about 10 ms. A size and not a stop-watch decides, so that
the same vectors get the same kind of index on every machine, and under any load."""

LEAST_CODED = 256
"""Vectors from which codes can be learned; fewer are compared one by one."""


@dataclass(frozen=True)
class DenseSettings:
    """Options of the dense index; see `SearchIndex.build`."""

    kind: str = "auto"
    recall: float = 0.95
    memory_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "flat", "ivf"):
            raise InputError("kind", "'auto', 'flat' or 'ivf'", self.kind)
        checked_share(self.recall, "recall")
        checked_count(self.seed, "random_state", 0)
        optional_count(self.memory_limit, "memory_limit")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DenseSettings:
        """Return the settings of an index; those of version 0.1 have more, and more kinds."""
        kind = {"hnsw": "auto", "sq": "ivf", "ivfpq": "ivf"}.get(values["kind"], values["kind"])
        return cls(kind, values["recall"], values["memory_limit"], values["seed"])


def choose_kind(
    n: int, d: int, settings: DenseSettings, flat_bytes: int = FLAT_BYTES
) -> tuple[str, str]:
    """Return the kind of index for so many vectors, and why it is that."""
    size, limit = 4 * n * d, settings.memory_limit
    if settings.kind == "flat":
        return "flat", "asked for"
    if n < LEAST_CODED:
        asked = "; 'ivf' was asked for" if settings.kind == "ivf" else ""
        return "flat", f"{n:,} vectors are too few to learn codes from{asked}"
    if settings.kind == "auto":
        if settings.recall == 1.0:
            return "flat", "only a comparison with every vector finds all of the nearest"
        if size <= flat_bytes and (limit is None or size <= limit):
            return "flat", (
                f"{size:,} bytes of vectors are read in a few milliseconds; "
                f"up to {flat_bytes:,} every vector is compared"
            )
    # Codes of two bits a dimension, and eight bytes for the number of a vector.
    whole = size + n * (d // 4 + 8)
    if limit is None or whole <= limit:
        is_auto = settings.kind == "auto"
        why = f"{size:,} bytes of vectors are more than {flat_bytes:,}" if is_auto else "asked for"
        return "ivf", why
    reason = f"vectors in float32 and their codes would take {whole:,} bytes of {limit:,}"
    if whole - size // 2 > limit:
        reason += "; those in float16 are above the limit too, and stay on disk"
    return "ivfpq", reason
