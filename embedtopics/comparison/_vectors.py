"""Vectors of each encoder, dense or sparse, with their cost and their neighbours."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import LanguageShares
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._foreign import as_encoder, can_encode
from embedtopics.encoders._registry import GIVEN, describe_encoder, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_partial_graph, build_sparse_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, counted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


WARMING_TEXTS = 4
"""Number of texts that a checkpoint encodes before timing, which loads it."""

TIMED_TEXTS = 128
"""Number of texts for timing an encoder whose vectors are cached on disk."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of one encoder, dense or csr, scaled to length 1; zero without information."""

    name: str
    rows: FloatArray | csr_matrix  # (n_documents, n_dimensions)
    has_vector: npt.NDArray[np.bool_]  # (n_documents,)
    seconds: float  # NaN for given vectors
    settings: Mapping[str, Any]

    @property
    def megabytes(self) -> float:
        """Memory of the vectors in megabytes."""
        rows = self.rows
        parts = [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]
        return sum(part.nbytes for part in parts) / 1e6


def open_encoders(encoders: Any) -> dict[str, Any]:
    """Return encoders and vectors by name; a wrong name fails at once."""
    named: dict[str, Any] = {}
    specs = encoders
    if isinstance(encoders, Mapping):
        named = dict(encoders)
        specs = ()
    elif isinstance(encoders, (str, os.PathLike)):
        specs = [encoders]

    for spec in specs:
        if not is_encoder(spec):
            remedy = "pass vectors in a dict of name -> array"
            raise InputError("encoders", "encoders or names", type(spec).__name__, remedy)
        name = as_encoder(spec).name if can_encode(spec) else os.fspath(spec)
        if name in named:
            raise InputError("encoders", "of different names", name, "pass a dict by name")
        named[name] = spec

    if len(named) < 2:
        raise InputError("encoders", "at least two", found=f"{len(named)}")

    # Word counts with all words: without "who" and "where", other encoders would look better.
    for name, spec in named.items():
        if is_encoder(spec):
            named[name] = resolve_encoder(spec, cached=True, all_words=True)
    return named


def is_encoder(spec: Any) -> bool:
    """Return whether it is an encoder, its name or its folder; otherwise it is vectors."""
    return isinstance(spec, (str, os.PathLike)) or can_encode(spec)


def make_vectors(
    decisions: list[Decision],
    name: str,
    spec: Any,
    corpus: Corpus,
    shares: LanguageShares,
    show_progress: bool | None,
) -> Vectors:
    """Encode the documents, or select their rows from given vectors, (n_rows, n_dimensions)."""
    documents, texts = corpus.distinct(), corpus.document_texts()
    if can_encode(spec):
        matrix, seconds, settings = _encode(decisions, name, spec, texts, shares, show_progress)
        rows, numbers = np.arange(len(texts)), documents.first_rows
    else:
        matrix = _as_matrix(np.asarray(spec), name, len(corpus))
        seconds, settings = float("nan"), {"encoder": GIVEN}
        # Of different vectors of one text, the smallest in lexicographic order is taken, whatever
        # the order of the rows.
        of_row = documents.of_row
        order = np.lexsort((*matrix.T[::-1], of_row))
        rows = numbers = order[np.searchsorted(of_row[order], np.arange(len(texts)))]
        differs = (matrix != matrix[rows[of_row]]).any(axis=1) & (of_row >= 0)
        message = f"The vectors of {name} were given, not computed here."
        decisions.append(Decision("encoder", "given", name, message))
        decisions += counted(
            "encoder", "conflicting_embeddings", len(np.unique(of_row[differs])),
            f"texts have rows with different vectors of {name}; one of them was taken.",
        )  # fmt: skip
    unit, has_vector = _unit(matrix, rows, numbers, name)
    decisions += counted(
        "encoder", "no_vector", int((~has_vector).sum()),
        f"texts have zero vectors with {name}: they have no neighbours, count as errors in "
        "accuracies, and have their position on the other encoders' maps.",
    )  # fmt: skip
    return Vectors(name, unit, has_vector, seconds, settings)


def _encode(
    decisions: list[Decision],
    name: str,
    encoder: BaseEncoder,
    texts: Sequence[str],
    shares: LanguageShares,
    show_progress: bool | None,
) -> tuple[Any, float, dict[str, Any]]:
    """Return the vectors, the seconds of encoding, and the description of the encoder."""
    encoder = encoder.reading_to_ends(texts)
    warning = language_warning(encoder, shares)
    decisions += [] if warning is None else [warning]
    if encoder.uncached is not encoder:
        encoder.uncached.encode(texts[:WARMING_TEXTS])
    begin = time.perf_counter()
    encoder = encoder.fitted_to(texts)
    report = encoder.encode_with_report(texts, show_progress=show_progress)
    if report.truncated_share > 0:
        message = f"{report.truncated_share:.1%} of the texts are longer than {name} reads; "
        message += f"{report.unseen_token_share:.1%} of all tokens were not read."
        decisions.append(Decision("encoder", "truncated", report.truncated_share, message))
    seconds = time.perf_counter() - begin
    decisions += encoder.decisions
    if report.n_cached:
        sample = list(texts[:TIMED_TEXTS])  # they are in random order
        begin = time.perf_counter()
        encoder.uncached.encode(sample)
        seconds = (time.perf_counter() - begin) * len(texts) / len(sample)
        message = (
            f"{report.n_cached:,} vectors of {name} were in the cache. Its time was estimated "
        )
        message += f"by encoding {len(sample)} texts again."
        decisions.append(Decision("encoder", "estimated_seconds", seconds, message))
    return _as_matrix(report.embeddings, name, len(texts)), seconds, describe_encoder(encoder)


def _as_matrix(vectors: Any, name: str, n_rows: int) -> Any:
    from scipy.sparse import csr_matrix, issparse

    matrix: Any = csr_matrix(vectors) if issparse(vectors) else np.asarray(vectors)  # type: ignore[call-overload]
    if matrix.ndim != 2 or matrix.shape[0] != n_rows:
        raise InputError(name, f"a vector for each of {n_rows:,} texts", f"shape {matrix.shape}")
    return matrix


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


def neighbor_graph(decisions: list[Decision], vectors: Vectors, k: int, seed: int) -> NeighborGraph:
    """Find the k neighbours of every document; fillers have similarity 0."""
    with_vector = np.flatnonzero(vectors.has_vector)
    n_documents = len(vectors.has_vector)
    if len(with_vector) < k + 2:
        expected = f"vectors for at least {k + 2} texts, for {k} neighbours"
        raise InputError(vectors.name, expected, found=f"{len(with_vector)} of {n_documents}")
    if not isinstance(vectors.rows, np.ndarray):
        return build_sparse_graph(vectors.rows, k)
    graph = build_partial_graph(vectors.rows, k, vectors.has_vector, seed)
    if graph.method != "exact":
        message = f"The neighbour search for {vectors.name} is approximate; it found "
        message += f"{graph.recall:.1%} of the true neighbours of a sample."
        decisions.append(Decision("neighbors", "recall", graph.recall, message))
    return graph
