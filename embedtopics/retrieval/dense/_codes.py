"""Product quantization in inverted lists, which gives candidates (IVF-PQ FastScan of FAISS).

k-means learns a code of four bits for each pair of dimensions. The processor compares a query with
the codes of 32 vectors at a time in its registers (André, Kermarrec and Le Scouarnec 2015, "Cache
locality is not enough"). Codes describe vectors and not residuals, so that a query needs one table.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import one_line
from embedtopics._utils.machine import one_blas_thread
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._exact import faiss_module, one_thread, parts_of, work_on_parts
from embedtopics.retrieval.storage._catalog import damage

CODE_FILES = ("codes.faiss", "axes.npy")

BITS = 4
"""Bits of a code."""

MIN_VARIANCE = 0.95
"""Share of the variance in the coded dimensions."""

LISTS = 2.0
"""Number of lists, as a multiple of the square root of the number of vectors."""

ITERATIONS = 10
"""Iterations of the k-means of the lists."""

POINTS = 32
"""Training vectors for each list."""

MOST_TRAINING_ROWS = 20_000
"""Training vectors of the axes and codes."""

ROWS_AT_ONCE = 8192
"""Vectors coded at a time."""

SEEDS = 2**31
"""Upper bound of seeds of k-means in FAISS."""

ONE_QUERY_AT_A_TIME = 11
"""The FAISS scan that visits the lists of each query nearest first, independently of other queries;
it is also the fastest for one query."""


@dataclass(frozen=True, eq=False)
class Codes:
    """A faiss.IndexIVFPQFastScan of coordinates along `axes`, (n_kept, d)."""

    index: Any
    axes: FloatArray

    @property
    def n_lists(self) -> int:
        """Lists of the index."""
        return int(self.index.nlist)

    def candidates(
        self, queries: FloatArray, n_candidates: int, n_probe: int, allowed: Any | None
    ) -> Int64Array:
        """Return rows that may be near, (n_queries, n_candidates); -1 if there are no more."""
        faiss = faiss_module()
        coordinates = _projected(queries, self.axes)
        options = faiss.IVFSearchParameters(nprobe=min(n_probe, self.n_lists), sel=allowed)
        rows: Int64Array = self.index.search(coordinates, n_candidates, params=options)[1]
        if rows.min(initial=-1) < -1 or rows.max(initial=-1) >= self.index.ntotal:
            raise damage(CODE_FILES[0], "its lists hold rows that do not exist")
        return rows


def build_codes(folder: Path, vectors: FloatArray, seed: int) -> None:
    """Learn lists and codes, code all vectors (n, d), and write the files."""
    faiss = faiss_module()
    n = len(vectors)
    rng = np.random.default_rng(seed)
    n_lists = min(int(LISTS * np.sqrt(n)), n)
    some = _sample(vectors, MOST_TRAINING_ROWS, rng)
    axes = _main_axes(some)
    learning = _projected(_sample(vectors, POINTS * n_lists, rng), axes)
    quantizer = faiss.IndexFlatIP(len(axes))
    quantizer.add(_centroids(learning, n_lists, seed))
    index = faiss.IndexIVFPQ(
        quantizer, len(axes), n_lists, len(axes) // 2, BITS, faiss.METRIC_INNER_PRODUCT
    )
    index.by_residual = False
    index.pq.cp.seed = seed % SEEDS
    index.pq.cp.min_points_per_centroid = 1  # no warning: recall is measured
    with one_thread():
        index.train(_projected(some, axes))
    _fill(index, quantizer, vectors, axes)
    packed = faiss.IndexIVFPQFastScan(index)
    try:
        faiss.write_index(packed, str(folder / CODE_FILES[0]))
    except RuntimeError as error:
        raise OSError(f"FAISS could not write {CODE_FILES[0]} ({one_line(error)})") from error
    np.save(folder / CODE_FILES[1], axes, allow_pickle=False)


def open_codes(folder: Path, n: int, d: int) -> Codes:
    """Read the files, and check that they fit n vectors of d dimensions."""
    faiss = faiss_module()
    path = folder / CODE_FILES[0]
    try:
        index = faiss.read_index(str(path))
    except Exception as error:  # FAISS raises RuntimeError and errors of SWIG
        raise damage(path, one_line(error)) from error

    try:
        axes: npt.NDArray[Any] = np.load(folder / CODE_FILES[1], allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise damage(folder / CODE_FILES[1], error) from error

    if axes.ndim != 2 or axes.shape[1] != d or axes.dtype != np.float32:
        raise damage(folder / CODE_FILES[1], f"it is not of vectors with {d} dimensions")
    if (
        not isinstance(index, faiss.IndexIVFPQFastScan)
        or (index.ntotal, index.d) != (n, len(axes))
        or index.metric_type != faiss.METRIC_INNER_PRODUCT
    ):
        raise damage(path, f"it does not hold codes of {n:,} vectors")

    index.implem = ONE_QUERY_AT_A_TIME
    return Codes(index, np.ascontiguousarray(axes))


def _sample(vectors: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    if len(vectors) <= most:
        return np.ascontiguousarray(vectors)
    rows = np.sort(rng.choice(len(vectors), most, replace=False))
    some: FloatArray = vectors[rows]
    return some


def _main_axes(some: FloatArray) -> FloatArray:
    """Return the principal axes (n_axes, d); a zero axis makes an odd number even."""
    d = some.shape[1]
    with one_blas_thread():
        spread = np.atleast_2d(np.cov(some, rowvar=False, dtype=np.float64))
        variances, axes = np.linalg.eigh(spread)
    share = np.cumsum(variances[::-1]) / max(float(variances.sum()), np.finfo(np.float64).tiny)
    n_needed = int(np.searchsorted(share, MIN_VARIANCE)) + 1
    n_axes = min(d, -(-n_needed // 8) * 8)  # whole vector registers
    main = np.zeros((n_axes + n_axes % 2, d), dtype=np.float32)
    main[:n_axes] = axes[:, ::-1].T[:n_axes]
    return main


def _projected(vectors: FloatArray, axes: FloatArray) -> FloatArray:
    """Return coordinates along the axes, independent of other vectors."""
    from embedtopics.retrieval.dense._kernels import projected

    out = np.empty((len(vectors), len(axes)), dtype=np.float32)
    projected(np.ascontiguousarray(vectors), axes, out)
    return out


def _centroids(learning: FloatArray, n_lists: int, seed: int) -> FloatArray:
    faiss = faiss_module()
    if n_lists == 1:
        return np.zeros((1, learning.shape[1]), dtype=np.float32)
    clusters: Any = faiss.Kmeans(
        learning.shape[1], n_lists, niter=ITERATIONS, spherical=True, seed=seed % SEEDS,
        min_points_per_centroid=1, max_points_per_centroid=POINTS,
    )  # fmt: skip
    with one_thread():
        clusters.train(learning)
    centroids: FloatArray = clusters.centroids
    return centroids


def _fill(index: Any, quantizer: Any, vectors: FloatArray, axes: FloatArray) -> None:
    faiss = faiss_module()
    parts = parts_of(len(vectors), ROWS_AT_ONCE)
    coordinates = np.empty((len(vectors), len(axes)), dtype=np.float32)
    lists = np.empty(len(vectors), dtype=np.int64)

    def place(part: slice) -> None:
        coordinates[part] = _projected(vectors[part], axes)
        lists[part] = quantizer.search(coordinates[part], 1)[1][:, 0]

    work_on_parts(place, parts)
    index.add_core(len(vectors), faiss.swig_ptr(coordinates), None, faiss.swig_ptr(lists))
