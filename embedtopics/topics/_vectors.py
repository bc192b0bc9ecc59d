"""Vectors of documents, given or made by an encoder; the distinct ones; and those of topics.

A topic has two centroids. What is *about the topic* (which documents are typical of it, which topic
a question is about) weighs documents by their probabilities (`core_centroids`). What *treats topics
as sets of rows* (which are merged, where a document is added) weighs all rows the same
(`row_centroids`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._registry import encoder_from_settings, fitted, learns, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.terms._representative import centroid
from embedtopics.topics._describe import FITTED_ROWS, GIVEN, LEFT_OUT, TEXTS
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


MOST_DENSE_BYTES = 1e9
"""Size up to which sparse vectors are written out in full."""

DOCUMENTS_TO_COMPARE = 16

SAME = 1 - 1e-4
"""Least cosine of two vectors of a document that count as the same: other processors, and other
versions of libraries, round differently."""

OF_ONE_SPACE = 0.5
"""Least cosine, in the median, of given vectors with those that an encoder makes of the texts. From
another encoder they are near 0; a title before the text leaves them near 1."""


def given_vectors(
    embeddings: npt.ArrayLike, corpus: Corpus, documents: Int64Array | None = None
) -> tuple[FloatArray, int]:
    """Return the unit vectors of documents, the least of differing rows, and how many differ."""
    given = np.asarray(embeddings)
    if given.ndim != 2 or len(given) != len(corpus):
        expected = f"one row for each of the {len(corpus):,} texts"
        raise InputError("embeddings", expected, found=f"shape {given.shape}")
    distinct = corpus.distinct()
    if documents is None:
        documents = np.arange(len(distinct))
    rows, n_conflicts = distinct.first_rows[documents].copy(), 0
    repeated = np.flatnonzero(distinct.weights[documents] > 1)
    if len(repeated):
        order = np.argsort(distinct.of_row, kind="stable")
        ends = np.searchsorted(distinct.of_row[order], documents[repeated], side="right")
        for place, end in zip(repeated, ends, strict=True):
            same = order[end - distinct.weights[documents[place]] : end]
            candidates = given[same]
            if (candidates != candidates[0]).any():
                rows[place] = same[np.lexsort(candidates.T[::-1])[0]]
                n_conflicts += 1
    return unit_rows(given, rows=rows), n_conflicts


def encode_documents(
    encoder: Encoder, texts: Sequence[str], rows: Int64Array, show_progress: bool | None
) -> tuple[FloatArray, Encoding | None]:
    """Return the unit vectors that an encoder makes, and its report where it gives one."""
    with_report = getattr(encoder, "encode_with_report", None)
    report = None if with_report is None else with_report(texts, show_progress=show_progress)
    made: Any = encoder.encode(texts) if report is None else report.embeddings
    vectors = _dense(made) if hasattr(made, "toarray") else np.asarray(made)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        expected = f"an object that returns one vector a text, {len(texts):,} rows"
        found = f"shape {vectors.shape} from {type(encoder).__name__}"
        raise InputError("encoder", expected, found=found)
    what = "the encoder's vectors"
    return unit_rows(vectors, what=what, row_numbers=rows, keep_zeros=True), report


def _dense(vectors: csr_matrix) -> npt.NDArray[Any]:
    """Write sparse vectors out in full."""
    n_rows, width = vectors.shape
    n_bytes = 4.0 * n_rows * width
    if n_bytes > MOST_DENSE_BYTES:
        expected = f"one whose sparse vectors take at most {MOST_DENSE_BYTES / 1e9:.0f} GB in full"
        remedy = 'take encoder="lsa", or TfidfEncoder with n_components or max_features'
        found = f"{n_rows:,} of {width:,} dimensions ({n_bytes / 1e9:.1f} GB)"
        raise InputError("encoder", expected, remedy=remedy, found=found)
    return np.asarray(vectors.astype(np.float32).toarray())


def recorded_encoder(result: TopicResult) -> Encoder:
    """Make the encoder of a result again from its settings; where it was fitted, it is again."""
    settings = result.settings
    wanted = settings.get("encoder_settings")
    if isinstance(wanted, dict):
        return matching_encoder(encoder_from_settings(wanted), result)
    if settings.get("encoder") == GIVEN:
        expected = "given for new texts, because the model was fitted on embeddings alone"
        remedy = "give predict(texts, embeddings=...), or load with the encoder that made them"
        raise InputError("embeddings", expected, remedy=remedy)
    encoder = settings.get("encoder")
    expected = f"given, because that of the fit ({encoder}) cannot be loaded by name"
    raise InputError("encoder", expected, remedy="give encoder= or embeddings=")


def encoder_of_fit(
    result: TopicResult, given: Encoder | str | None = None, or_else: str = ""
) -> Encoder:
    """Return the encoder of a fit: the given one, checked, or that of the settings."""
    if given is not None:
        return matching_encoder(given, result)
    if isinstance(result.settings.get("encoder_settings"), dict):
        return recorded_encoder(result)
    made_by = result.settings.get("encoder")
    found = "given embeddings" if made_by == GIVEN else f"an encoder of your own ({made_by})"
    raise InputError("encoder", f"the encoder of the fit{or_else}", found=found)


def matching_encoder(encoder: Any, result: TopicResult) -> Encoder:
    """Return an encoder after making sure that it is the one of the fit; an unfitted one is fitted.

    One of another fingerprint passes where it makes the same vectors but for the last digits, one
    without a fingerprint where its vectors are of the space of the fit.
    """
    resolved = resolve_encoder(encoder)
    if not getattr(resolved, "is_fitted", True):
        resolved = fitted(resolved, _texts_of_fit(result))
    settings = result.settings
    expected = settings.get("encoder_fingerprint")
    found = getattr(resolved, "fingerprint", None)
    if expected is None and found is None and settings.get("encoder") != GIVEN:
        return resolved  # an object of the user's own
    if expected is None or found is None:
        texts = result.corpus.document_texts()
        _check_space(resolved, result.embeddings, texts, "give the one that made them")
        return resolved
    if expected == found:
        return resolved
    name = getattr(resolved, "name", resolved)
    of_fit = f"that of the fit ({settings.get('encoder')})"
    if not learns(resolved):
        remedy = "it has other weights or settings: load the model without an encoder, or fit again"
        raise InputError("encoder", of_fit, name, remedy)
    if not _makes_same_vectors(resolved, result):
        remedy = (
            "its settings or the texts that it learned from differ, or its training cannot be "
            "repeated (several workers): give the encoder of the fit, or fit again"
        )
        raise InputError("encoder", of_fit, name, remedy)
    return resolved


def _texts_of_fit(result: TopicResult) -> list[str]:
    """Return the texts that the encoder of a fit has learned from: not those that came later."""
    settings = result.settings
    if settings.get(TEXTS) == LEFT_OUT:
        why = f"that of the fit ({settings.get('encoder')}) learned from texts that were left out"
        expected = f"given, because {why} when the result was shared"
        raise InputError("encoder", expected, remedy="give encoder= or embeddings=")
    n_rows = settings.get(FITTED_ROWS, len(result.corpus))
    first_rows = result.documents.first_rows.tolist()
    texts = result.corpus.document_texts()
    return [text for text, row in zip(texts, first_rows, strict=True) if row < n_rows]


def encoder_of_given(
    make_encoder: Callable[[Sequence[str]], Encoder],
    is_named: bool,
    vectors: FloatArray,
    texts: Sequence[str],
) -> Encoder:
    """Return the encoder of the given vectors, checked on some texts."""
    if not is_named:
        remedy = "name the one that made them, TopicModel(encoder), or give ZeroShot(embeddings=)"
        raise InputError("encoder", "given to encode names beside embeddings", remedy=remedy)
    encoder = make_encoder(texts)
    _check_space(encoder, vectors, texts, "name the one that made them, or leave embeddings out")
    return encoder


def _check_space(encoder: Encoder, vectors: FloatArray, texts: Sequence[str], remedy: str) -> None:
    """Make sure that an encoder's vectors of some texts are similar to those that are there."""
    made, given = _sample(encoder, vectors, texts)
    if not len(given):
        return
    similarity = 0.0
    if made.shape == given.shape:
        similarity = float(np.median(np.einsum("ij,ij->i", made, given, dtype=np.float64)))
    if similarity < OF_ONE_SPACE:
        name = getattr(encoder, "name", type(encoder).__name__)
        expected = f"that of the given embeddings ({given.shape[1]} dimensions)"
        raise InputError("encoder", expected, name, remedy)


def _makes_same_vectors(encoder: Encoder, result: TopicResult) -> bool:
    """Return whether some documents of the fit get the vectors that they had, but for rounding."""
    made, kept = _sample(encoder, result.embeddings, result.corpus.document_texts())
    if made.shape != kept.shape:
        return False
    similarity = np.einsum("ij,ij->i", made, kept, dtype=np.float64)
    both_zero = ~made.any(axis=1) & ~kept.any(axis=1)
    return bool((both_zero | (similarity >= SAME)).all())


def _sample(
    encoder: Encoder, vectors: FloatArray, texts: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors that an encoder makes of some documents, and those that they have."""
    # Documents are ordered by a hash of their content, so that the first are a fair sample.
    some = texts[:DOCUMENTS_TO_COMPARE]
    made = encode_uncached(encoder, some) if some else vectors[:0]
    return made, vectors[: len(some)]


def encode_uncached(encoder: Encoder, texts: Sequence[str]) -> FloatArray:
    """Return the unit vectors of a few texts, which are not worth a file on disk."""
    plain = getattr(encoder, "uncached", encoder)
    return encode_documents(plain, list(texts), np.arange(len(texts)), False)[0]


@dataclass(frozen=True, eq=False)
class UniqueVectors:
    """The distinct vectors of documents, `first` (n_unique,) and `of_document` (n_documents,).

    Laid out one by one, equal ones would neighbour one another by chance, and be torn apart.
    """

    first: Int64Array
    of_document: Int64Array

    @property
    def all_distinct(self) -> bool:
        """Whether no two documents share a vector."""
        return len(self.first) == len(self.of_document)

    @property
    def rows(self) -> Int64Array | None:
        """The first documents, or None where they are all."""
        return None if self.all_distinct else self.first

    def of(self, values: FloatArray) -> FloatArray:
        """Return the values of each distinct vector."""
        return values if self.all_distinct else values[self.first]

    def spread(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Give every document the value of its vector."""
        return values if self.all_distinct else values[self.of_document]


def find_unique_vectors(vectors: FloatArray) -> UniqueVectors:
    """Find the documents that share a vector."""
    n_documents = len(vectors)
    # Equal vectors have equal sums, so that only documents of equal sums need be compared.
    sums = vectors.sum(axis=1, dtype=np.float64)
    order = np.argsort(sums, kind="stable")
    repeated = np.zeros(n_documents, dtype=bool)
    equal = sums[order][1:] == sums[order][:-1]
    repeated[order[1:][equal]] = repeated[order[:-1][equal]] = True
    of_first = np.arange(n_documents)
    seen: dict[bytes, int] = {}
    for document in np.flatnonzero(repeated).tolist():
        # Adding zero turns -0.0 into 0.0, which equals it but has other bytes.
        of_first[document] = seen.setdefault((vectors[document] + 0.0).tobytes(), document)
    first, of_document = np.unique(of_first, return_inverse=True)
    return UniqueVectors(first.astype(np.int64), of_document.astype(np.int64))


def spread_graph(graph: NeighborGraph, unique: UniqueVectors) -> NeighborGraph:
    """Give every document the neighbours of its vector."""
    if unique.all_distinct:
        return graph
    indices = unique.first[graph.indices][unique.of_document].astype(np.int32)
    return NeighborGraph(
        indices, graph.similarities[unique.of_document], graph.method, graph.recall
    )


def core_centroid(result: TopicResult, topic: int) -> Float64Array:
    """Return the unit mean vector of a topic's documents, weighted by their probabilities."""
    members = np.flatnonzero(result.clustering.labels == topic)
    return centroid(result.embeddings[members], result.clustering.probabilities[members])


def core_centroids(result: TopicResult) -> Float64Array:
    """Return `core_centroid` of every topic, shape (n_topics, n_dimensions)."""
    found = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        found[topic] = core_centroid(result, topic)
    return found


def row_centroids(result: TopicResult) -> Float64Array:
    """Return the unit mean vector of each topic's rows, shape (n_topics, n_dimensions)."""
    labels, weights = result.clustering.labels, result.documents.weights
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(result.n_topics + 1))
    sums = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        members = order[ends[topic] : ends[topic + 1]]
        # einsum and not BLAS, whose last bits depend on the number of threads.
        sums[topic] = np.einsum(
            "i,id->d", weights[members], result.embeddings[members], dtype=np.float64
        )
    return _unit(sums)


def cosines(first: Float64Array, second: Float64Array) -> Float64Array:
    """Return the cosine of each row of one array with each of another; 0 where a row is zero."""
    return np.asarray(np.einsum("id,jd->ij", _unit(first), _unit(second)))


def term_cosines(rows: csr_matrix) -> Float64Array:
    """Return the cosines of all pairs of sparse rows; an empty one has 0, and 1 with itself."""
    from embedtopics.topics._kernels import add_products

    by_term = unit_term_rows(rows).tocsc()
    by_term.sum_duplicates()  # sorts the rows of each column, too
    found: Float64Array = np.zeros((rows.shape[0], rows.shape[0]))
    add_products(
        by_term.indptr.astype(np.int64),
        by_term.indices.astype(np.int32),
        by_term.data.astype(np.float64),
        found,
    )
    found = np.tril(found) + np.tril(found, -1).T
    np.fill_diagonal(found, 1.0)
    return np.clip(found, -1.0, 1.0)


def topic_cosines(result: TopicResult, by: str) -> Float64Array:
    """Return the cosines of all pairs of topics, by their weighted terms or their mean vectors."""
    if checked_choice(by, "by", ("terms", "embeddings")) == "terms":
        return term_cosines(result.topic_terms)
    means = row_centroids(result)
    return cosines(means, means)


def unit_term_rows(rows: csr_matrix) -> csr_matrix:
    """Return sparse rows scaled to length one; rows without entries stay so."""
    from scipy.sparse import csr_matrix

    scaled = csr_matrix(rows, dtype=np.float64, copy=True)
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(scaled.indptr))
    return scaled


def _unit(rows: Float64Array) -> Float64Array:
    lengths = np.sqrt(np.einsum("id,id->i", rows, rows))
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0)[:, None])


def centroids(
    embeddings: FloatArray, labels: Int32Array, n_topics: int, weights: Int64Array | None = None
) -> Float64Array:
    """Add up the vectors of each topic's documents, shape (n_topics, n_dimensions)."""
    from scipy.sparse import csr_matrix

    members = np.flatnonzero(labels >= 0)
    counts = np.ones(len(members)) if weights is None else weights[members].astype(np.float64)
    indicator = csr_matrix((counts, (labels[members], members)), shape=(n_topics, len(labels)))
    return np.asarray(indicator @ embeddings, dtype=np.float64)


def tightness(sums: Float64Array, sizes: npt.NDArray[np.int64]) -> Float64Array:
    """Return the mean cosine similarity of two different documents of each group, (n_groups,)."""
    squares = np.einsum("id,id->i", sums, sums)
    pairs = sizes * (sizes - 1.0)
    out = np.full(len(sums), np.nan)
    np.divide(squares - sizes, pairs, out=out, where=pairs > 0)
    return out
