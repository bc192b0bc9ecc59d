"""Candidates from short codes, in the nearest of many lists.

Dimensions, or pairs of them, are each coded by four bits, whose meaning k-means learns; the codes
of 32 vectors at a time are compared with a query in the registers of the processor (André,
Kermarrec and Le Scouarnec 2015, "Cache locality is not enough"). Codes are of the vectors
themselves and not of what is left of them in their list: then a query needs a single table.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._exact import faiss_module, one_thread, parts_of, work_on_parts

CODE_FILES = ("codes.faiss", "axes.npy")

BITS = 4
"""Bits of a code."""

KEPT_VARIANCE = 0.95
"""Share of the variance that the coded dimensions hold."""

LISTS = 2.0
"""Lists, as a multiple of the root of the number of vectors."""

ITERATIONS = 10
"""Of the k-means that finds the lists."""

POINTS = 32
"""Vectors for each list from which that learns."""

MOST_TRAINING_ROWS = 20_000
"""Vectors from which the axes and the codes are learned."""

ROWS_AT_ONCE = 8192
"""Vectors that are coded at a time."""

SEEDS = 2**31
"""FAISS's k-means takes seeds below this."""

ONE_QUERY_AT_A_TIME = 11
"""The FAISS scan that visits the lists of each query in their own order, nearest first, and so
finds the same whatever other queries there are; with one query it is also the fastest."""


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
        self, queries: FloatArray, n_wanted: int, breadth: int, allowed: Any | None
    ) -> Int64Array:
        """Return rows that may be near, (n_queries, n_wanted); -1 where there are no more."""
        faiss = faiss_module()
        asking = _projected(queries, self.axes)
        how = faiss.IVFSearchParameters(nprobe=min(breadth, self.n_lists), sel=allowed)
        found: Int64Array = self.index.search(asking, n_wanted, params=how)[1]
        return found


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
    index.pq.cp.min_points_per_centroid = 1  # no warning: what is learned is measured
    with one_thread():
        index.train(_projected(some, axes))
    _fill(index, quantizer, vectors, axes)
    packed = faiss.IndexIVFPQFastScan(index)
    try:
        faiss.write_index(packed, str(folder / CODE_FILES[0]))
    except RuntimeError as error:
        raise OSError(f"FAISS could not write {CODE_FILES[0]} ({_first_line(error)})") from error
    np.save(folder / CODE_FILES[1], axes, allow_pickle=False)


def open_codes(folder: Path, n: int, d: int) -> Codes:
    """Read the files, and make sure that they are of these vectors."""
    faiss = faiss_module()
    path = folder / CODE_FILES[0]
    try:
        index = faiss.read_index(str(path))
    except Exception as error:  # FAISS raises RuntimeError, and others by way of SWIG
        raise CorruptFileError(f"{path} is damaged ({_first_line(error)}); build again") from error
    try:
        axes: npt.NDArray[Any] = np.load(folder / CODE_FILES[1], allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CorruptFileError(f"{folder / CODE_FILES[1]} is damaged; build again") from error
    if axes.ndim != 2 or axes.shape[1] != d or axes.dtype != np.float32:
        raise CorruptFileError(
            f"{folder / CODE_FILES[1]} is not of vectors with {d} dimensions; build again"
        )
    if (
        not isinstance(index, faiss.IndexIVFPQFastScan)
        or (index.ntotal, index.d) != (n, len(axes))
        or index.metric_type != faiss.METRIC_INNER_PRODUCT
    ):
        raise CorruptFileError(f"{path} does not hold codes of {n:,} vectors; build again")
    index.implem = ONE_QUERY_AT_A_TIME
    return Codes(index, np.ascontiguousarray(axes))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _sample(vectors: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    if len(vectors) <= most:
        return np.ascontiguousarray(vectors)
    rows = np.sort(rng.choice(len(vectors), most, replace=False))
    some: FloatArray = vectors[rows]
    return some


def _main_axes(some: FloatArray) -> FloatArray:
    """Return the directions of largest variance, as lines; an odd number is made even by zeros."""
    from threadpoolctl import threadpool_limits

    d = some.shape[1]
    with threadpool_limits(limits=1, user_api="blas"):
        spread = np.atleast_2d(np.cov(some, rowvar=False, dtype=np.float64))
        variances, axes = np.linalg.eigh(spread)
    share = np.cumsum(variances[::-1]) / max(float(variances.sum()), np.finfo(np.float64).tiny)
    wanted = int(np.searchsorted(share, KEPT_VARIANCE)) + 1
    kept = min(d, -(-wanted // 8) * 8)  # whole vector registers
    main = np.zeros((kept + kept % 2, d), dtype=np.float32)
    main[:kept] = axes[:, ::-1].T[:kept]
    return main


def _projected(vectors: FloatArray, axes: FloatArray) -> FloatArray:
    """Return coordinates along the axes, each the same whatever other vectors there are."""
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
