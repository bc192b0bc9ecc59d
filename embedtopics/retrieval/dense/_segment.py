"""The vectors of a segment on disk, and their search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics._utils.folders import parse_json
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import BoolArray, FloatArray, Int64Array
from embedtopics.retrieval.dense._codes import Codes, open_codes
from embedtopics.retrieval.dense._exact import (
    faiss_module,
    nearest_among,
    nearest_exactly,
    parts_of,
    work_on_parts,
)
from embedtopics.retrieval.storage._catalog import damage

KINDS = ("flat", "ivf")

FLAT_BYTES = 80_000_000
"""Bytes of vectors that one core reads in about 10 ms. A size decides, not a measured time, so that
the same vectors get the same kind of index on every machine and under any load."""

LEAST_CODED = 256
"""Minimum vectors for learning codes."""


@dataclass(frozen=True)
class DenseSettings:
    """Options of the dense index; see `SearchIndex.build`."""

    kind: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "flat", "ivf"):
            raise InputError("kind", "'auto', 'flat' or 'ivf'", self.kind)
        checked_count(self.seed, "random_state", 0)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DenseSettings:
        """Return stored settings; older versions stored more."""
        return cls(values["kind"], values["seed"])


def choose_kind(n: int, d: int, settings: DenseSettings) -> tuple[str, str]:
    """Return the kind of index for n vectors of d dimensions, and the reason."""
    size = 4 * n * d
    if settings.kind == "flat":
        return "flat", "requested"
    if n < LEAST_CODED:
        return "flat", f"{n:,} vectors are too few for codes"
    if settings.kind == "ivf":
        return "ivf", "requested"
    if size <= FLAT_BYTES:
        return "flat", (
            f"{size:,} bytes of vectors take a few milliseconds; search is exact up to "
            f"{FLAT_BYTES:,}"
        )
    return "ivf", f"{size:,} bytes of vectors are more than {FLAT_BYTES:,}"


ABOUT = "dense/dense.json"
FORMAT = 1

VECTORS = "vectors.f32"


def write_vectors(folder: Path, vectors: FloatArray) -> None:
    """Write vectors row by row, without a header."""
    np.ascontiguousarray(vectors, dtype="<f4").tofile(folder / VECTORS)


def read_vectors(folder: Path, n: int, d: int) -> FloatArray:
    """Map the vectors."""
    path, size = folder / VECTORS, 4 * n * d
    if not path.is_file():
        raise damage(path, "it is missing")
    if path.stat().st_size != size:
        raise damage(path, f"it has {path.stat().st_size:,} bytes instead of {size:,}")
    if not n:  # an empty file cannot be mapped
        return np.empty((0, d), dtype=np.float32)
    return np.asarray(np.memmap(path, dtype="<f4", mode="r", shape=(n, d)))


QUERIES_AT_ONCE = 16
"""Queries of one call of FAISS, which sums in another order from twenty on."""

FEW_ROWS = 20_000
"""Allowed rows up to which exact search takes a few milliseconds, less than a filtered index."""

FEW_SHARE = 0.05
"""Share of allowed rows up to which search is exact. Up to about a tenth, exact search was as fast
as a search of all lists."""

HALF = 0.5


@dataclass(frozen=True, eq=False)
class DenseSegment:
    """The vectors of one segment and their index; several threads may search."""

    kind: str
    vectors: FloatArray  # (n, d)
    index: Codes | None
    n_probe: int  # lists that are searched
    n_candidates: int  # for k = 10
    about: dict[str, Any]  # from `build_dense`

    def __len__(self) -> int:
        return len(self.vectors)

    def search(
        self, queries: FloatArray, k: int, mask: BoolArray | None = None
    ) -> tuple[FloatArray, Int64Array]:
        """Find the nearest vectors to each query (n_queries, d) among those of a mask (n,).

        A similarity depends neither on other queries nor on the index.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        n_allowed = len(self) if mask is None else int(np.count_nonzero(mask))
        if n_allowed == len(self):
            mask = None
        near = np.full((len(queries), k), -np.inf, dtype=np.float32)
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        n_nearest = min(k, n_allowed)
        if n_nearest and len(queries):
            if self._is_exact(n_allowed, n_nearest):
                nearest = self._search_exactly(queries, mask, n_nearest)
            else:
                nearest = self._search_index(queries, mask, n_allowed, n_nearest)
            near[:, :n_nearest], rows[:, :n_nearest] = nearest
        return near, rows

    def _is_exact(self, n_allowed: int, k: int) -> bool:
        """Return whether exact search is the best choice."""
        if self.index is None or 2 * self._n_candidates(k) >= n_allowed:
            return True
        few = max(FEW_ROWS, FEW_SHARE * len(self))
        return n_allowed < len(self) and n_allowed <= few

    def _search_exactly(
        self, queries: FloatArray, mask: BoolArray | None, k: int
    ) -> tuple[FloatArray, Int64Array]:
        allowed = np.arange(len(self)) if mask is None else np.flatnonzero(mask)
        return nearest_exactly(queries, self.vectors, allowed, k)

    def _n_candidates(self, k: int) -> int:
        return self.n_candidates * max(10, k) // 10

    def _search_index(
        self, queries: FloatArray, mask: BoolArray | None, n_allowed: int, k: int
    ) -> tuple[FloatArray, Int64Array]:
        """Compare candidates of the index; search exactly where they are too few."""
        index = self.index
        assert index is not None
        n_probe = index.n_lists
        # Allowed rows may all lie far away, as with a filter by subject. Where less than half are
        # allowed, all lists are searched, which costs little with short codes.
        share = n_allowed / len(self)
        if share >= HALF:
            further = max(1.0, k / 10.0) ** 0.5 / share
            n_probe = min(n_probe, int(np.ceil(self.n_probe * further)))
        n_candidates = min(n_allowed, self._n_candidates(k))
        selector = None
        if mask is not None:
            bits = np.packbits(mask, bitorder="little")  # the selector only refers to them
            selector = faiss_module().IDSelectorBitmap(bits)
        near = np.empty((len(queries), k), dtype=np.float32)
        rows = np.empty((len(queries), k), dtype=np.int64)

        def work(part: slice) -> None:
            candidates = index.candidates(queries[part], n_candidates, n_probe, selector)
            near[part], rows[part] = nearest_among(queries[part], self.vectors, candidates, k)

        work_on_parts(work, parts_of(len(queries), QUERIES_AT_ONCE))
        lacking = np.flatnonzero(rows[:, -1] < 0)
        if len(lacking):
            near[lacking], rows[lacking] = self._search_exactly(queries[lacking], mask, k)
        return near, rows


def open_dense(folder: str | Path) -> DenseSegment:
    """Open the files of `build_dense`."""
    folder = Path(folder)
    path = folder / ABOUT
    try:
        about = parse_json(path.read_bytes())
        version = int(about["format"])
        n, d = int(about["n"]), int(about["d"])
        kind = str(about["kind"])
        n_probe, n_candidates = (
            1 if about["parameters"].get(key) is None else int(about["parameters"][key])
            for key in ("n_probe", "n_candidates")
        )
        if n < 0 or min(d, n_probe, n_candidates, version) < 1:
            raise ValueError(f"{kind} index of {n} vectors with {d} dimensions")
    except FileNotFoundError:
        raise damage(path, "it is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damage(path, error) from error

    if version > FORMAT:
        raise CorruptFileError(
            f"{path} has format {version}, newer than this version reads ({FORMAT}); "
            "upgrade embedtopics"
        )
    if kind not in KINDS:
        raise damage(path, f"it names an index of unknown kind {kind!r}")

    vectors = read_vectors(folder, n, d)
    index = None if kind == "flat" else open_codes(folder / "dense", n, d)
    return DenseSegment(kind, vectors, index, n_probe, n_candidates, about)
