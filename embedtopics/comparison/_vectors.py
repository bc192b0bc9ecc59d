"""Vectors of each encoder, dense or sparse, with their cost and their neighbours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import spell_count
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments, LanguageShares
from embedtopics.decisions import Decision
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder, as_encoder, can_encode
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders._space import GIVEN, describe_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_partial_graph, build_sparse_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass
class ComparisonLog:
    """Decisions, and the seconds of each stage in order."""

    decisions: list[Decision] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    def note(self, stage: str, name: str, value: Any, message: str) -> None:
        self.decisions.append(Decision(stage, name, value, message))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - begin


WARMING_TEXTS = 4
"""Number of texts that a checkpoint encodes before timing, which loads it."""

TIMED_TEXTS = 128
"""Number of texts for timing an encoder whose vectors are cached on disk."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of one encoder, dense or csr, scaled to length 1; zero without information.

    Shapes: `rows` (n_documents, n_dimensions), `has_vector` (n_documents,). `seconds` is NaN for
    given vectors.
    """

    name: str
    rows: FloatArray | csr_matrix
    has_vector: npt.NDArray[np.bool_]
    seconds: float
    settings: Mapping[str, Any]

    @property
    def megabytes(self) -> float:
        """Memory of the vectors in megabytes."""
        parts = [self.rows] if isinstance(self.rows, np.ndarray) else [
            self.rows.data, self.rows.indices, self.rows.indptr
        ]  # fmt: skip
        return sum(part.nbytes for part in parts) / 1e6


def name_encoders(encoders: Any) -> dict[str, Any]:
    """Return encoders by their names."""
    named: dict[str, Any] = {}
    if isinstance(encoders, Mapping):
        named |= encoders
    elif isinstance(encoders, (str, os.PathLike)) or not isinstance(encoders, Sequence):
        raise InputError(
            "encoders", "a list of encoders or their names, or a dict of name -> encoder or "
            "vectors", found=type(encoders).__name__,
        )  # fmt: skip
    else:
        for spec in encoders:
            is_path = isinstance(spec, (str, os.PathLike))
            if not is_path and not can_encode(spec):
                raise InputError(
                    "encoders", "encoders or names", found=type(spec).__name__,
                    remedy="pass vectors in a dict of name -> array",
                )  # fmt: skip
            name = os.fspath(spec) if is_path else as_encoder(spec).name
            if name in named:
                raise InputError(
                    "encoders", "of different names", found=f"{name!r} twice",
                    remedy="pass a dict of name -> encoder",
                )  # fmt: skip
            named[name] = spec
    if len(named) < 2:
        raise InputError("encoders", "at least two", found=f"{len(named)}")
    for name in named:
        if not isinstance(name, str) or not name.strip():
            raise InputError("encoders", "named by non-empty strings", name)
    return named


def open_encoder(spec: Any) -> Any:
    """Return the encoder of a name (cached), folder or object; return vectors unchanged."""
    is_encoder = isinstance(spec, (str, os.PathLike)) or can_encode(spec)
    return resolve_encoder(spec, cached=True) if is_encoder else spec


def make_vectors(
    log: ComparisonLog,
    name: str,
    spec: Any,
    corpus: Corpus,
    texts: Sequence[str],
    shares: LanguageShares,
    show_progress: bool | None,
) -> Vectors:
    """Encode the documents, or select their rows from given vectors, (n_rows, n_dimensions)."""
    documents = corpus.distinct()
    if can_encode(spec):
        matrix, seconds, settings = _encode(log, name, spec, texts, shares, show_progress)
        rows, numbers = np.arange(len(texts)), documents.first_rows
        if matrix.shape[0] != len(texts):
            expected = f"an encoder that returns {len(texts):,} rows, one a text"
            raise InputError(name, expected, found=f"shape {matrix.shape}")
    else:
        matrix, seconds, settings = _as_matrix(spec, name), float("nan"), {"encoder": GIVEN}
        if matrix.shape[0] != len(corpus):
            expected = f"vectors with {len(corpus):,} rows, one for each of the corpus"
            raise InputError(name, expected, found=f"shape {matrix.shape}")
        rows, n_conflicts = _chosen_rows(matrix, documents)
        numbers = rows
        log.note("encoder", "given", name, f"The vectors of {name} were given, not computed here.")
        if n_conflicts:
            repeated = spell_count(n_conflicts, "text that repeats was", "texts that repeat were")
            log.note("encoder", "conflicting_embeddings", n_conflicts,
                     f"{repeated} given different vectors as {name}; one of them was taken for "
                     "all rows of the text.")  # fmt: skip
    unit, has_vector = _unit(matrix, rows, numbers, name)
    n_without = int((~has_vector).sum())
    if n_without:
        log.note("encoder", "no_vector", n_without,
                 f"{name} gives zero vectors to {n_without:,} of {len(texts):,} texts. With it, "
                 "they have no neighbours and count as errors in accuracies. On its map they have "
                 "their position on the other encoders' maps.")  # fmt: skip
    return Vectors(name, unit, has_vector, seconds, settings)


def _encode(
    log: ComparisonLog,
    name: str,
    encoder: BaseEncoder,
    texts: Sequence[str],
    shares: LanguageShares,
    show_progress: bool | None,
) -> tuple[Any, float, dict[str, Any]]:
    """Return the vectors, the seconds of encoding, and the description of the encoder."""
    encoder = encoder.reading_to_ends(texts)
    warning = language_warning(encoder, shares)
    log.decisions += [] if warning is None else [warning]
    if encoder.uncached is not encoder:
        encoder.uncached.encode(texts[:WARMING_TEXTS])
    begin = time.perf_counter()
    encoder = encoder.fitted_to(texts)
    report = encoder.encode_with_report(texts, show_progress=show_progress)
    if report.truncated_share > 0:
        log.note("encoder", "truncated", report.truncated_share,
                 f"{report.truncated_share:.1%} of the texts are longer than {name} reads; "
                 f"{report.unseen_token_share:.1%} of all tokens were not read.")  # fmt: skip
    seconds = time.perf_counter() - begin
    log.decisions += encoder.decisions
    if report.n_cached:
        sample = list(texts[:TIMED_TEXTS])  # they are in random order
        begin = time.perf_counter()
        encoder.uncached.encode(sample)
        seconds = (time.perf_counter() - begin) * len(texts) / len(sample)
        log.note("encoder", "estimated_seconds", seconds,
                 f"{report.n_cached:,} vectors of {name} were in the cache. Its time was estimated "
                 f"by encoding {len(sample)} texts again.")  # fmt: skip
    return _as_matrix(report.embeddings, name), seconds, describe_encoder(encoder)


def _as_matrix(vectors: Any, name: str) -> Any:
    from scipy.sparse import csr_matrix, issparse

    is_sparse = issparse(vectors)
    matrix: Any = csr_matrix(vectors) if is_sparse else np.asarray(vectors)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or matrix.shape[1] == 0:
        shape = f"shape {matrix.shape} of {matrix.dtype}"
        raise InputError(name, "a 2-d array of numbers, one row per text", found=shape)
    return matrix


def _chosen_rows(vectors: Any, documents: DistinctDocuments) -> tuple[Int64Array, int]:
    """Return the row whose vector stands for each document, and how many had a choice.

    Of different vectors the smallest in lexicographic order is taken, whatever the order of rows.
    """
    rows = documents.first_rows.copy()
    order = np.argsort(documents.of_row, kind="stable")
    ends = np.searchsorted(documents.of_row[order], np.arange(len(documents)), side="right")
    n_conflicts = 0
    for document in np.flatnonzero(documents.weights > 1).tolist():
        same = order[ends[document] - documents.weights[document] : ends[document]]
        candidates = vectors[same]
        if not isinstance(candidates, np.ndarray):
            filled = np.unique(candidates.indices)
            candidates = candidates[:, filled].toarray()
        if candidates.shape[1] and (candidates != candidates[0]).any():
            rows[document] = same[np.lexsort(candidates.T[::-1])[0]]
            n_conflicts += 1
    return rows, n_conflicts


def _unit(
    matrix: Any, rows: Int64Array, numbers: Int64Array, name: str
) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return rows scaled to length 1 as float32, and whether they are non-zero."""
    what = f"the vectors of {name!r}"
    if isinstance(matrix, np.ndarray):
        unit = unit_rows(matrix, what=what, rows=rows, row_numbers=numbers, keep_zeros=True)
        return unit, np.asarray(unit.any(axis=1))
    sparse = matrix[rows].astype(np.float64)
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    lengths = np.sqrt(np.asarray(sparse.multiply(sparse).sum(axis=1)).ravel())
    if not np.isfinite(lengths).all():
        row = int(numbers[~np.isfinite(lengths)].min())
        raise InputError(f"{what} must be finite; row {row} holds NaN or an infinite value")
    sparse.data /= np.repeat(lengths, np.diff(sparse.indptr))
    return sparse.astype(np.float32), lengths > 0


def neighbor_graph(log: ComparisonLog, vectors: Vectors, k: int, seed: int) -> NeighborGraph:
    """Find the k neighbours of every document; fillers have similarity 0."""
    with_vector = np.flatnonzero(vectors.has_vector)
    n_documents = len(vectors.has_vector)
    if len(with_vector) < k + 2:
        raise InputError(
            f"encoder {vectors.name!r} has vectors for {len(with_vector)} of {n_documents} "
            f"documents; {k} neighbours need at least {k + 2}: use more texts or a smaller k"
        )
    if not isinstance(vectors.rows, np.ndarray):
        return build_sparse_graph(vectors.rows, k)
    graph = build_partial_graph(vectors.rows, k, vectors.has_vector, seed)
    if graph.method != "exact":
        log.note("neighbors", "recall", graph.recall,
                 f"The neighbour search for {vectors.name} is approximate; it found "
                 f"{graph.recall:.1%} of the true neighbours of a sample.")  # fmt: skip
    return graph
