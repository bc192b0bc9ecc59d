"""The documents' vectors, given by the caller or made by an encoder, checked row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments, Encoding
from embedtopics.encoders._registry import encoder_from_settings, fitted, learns, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Encoder, FloatArray, Int64Array
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
    """Return the unit vectors of documents from the vectors of the rows.

    Where rows of the same text have different vectors, the smallest in lexicographic order is
    taken, whatever the order of the rows.

    Shapes: `embeddings` (n_rows, n_dimensions) -> `vectors` (n_wanted, n_dimensions).
    """
    given = np.asarray(embeddings)
    if given.ndim != 2 or len(given) != len(corpus):
        expected = f"one row for each of the {len(corpus):,} texts"
        raise InputError("embeddings", expected, found=f"shape {given.shape}")
    distinct = corpus.distinct()
    if documents is None:
        documents = np.arange(len(distinct))
    rows, n_conflicts = _chosen_rows(given, distinct, documents)
    return unit_rows(given, rows=rows), n_conflicts


def _chosen_rows(
    given: npt.NDArray[Any], distinct: DistinctDocuments, documents: Int64Array
) -> tuple[Int64Array, int]:
    """Return the row whose vector stands for each document, and how many had a choice."""
    rows = distinct.first_rows[documents].copy()
    repeated = np.flatnonzero(distinct.weights[documents] > 1)
    if not len(repeated):
        return rows, 0
    order = np.argsort(distinct.of_row, kind="stable")
    ends = np.searchsorted(distinct.of_row[order], documents[repeated], side="right")
    n_conflicts = 0
    for place, end in zip(repeated, ends, strict=True):
        same = order[end - distinct.weights[documents[place]] : end]
        candidates = given[same]
        if (candidates != candidates[0]).any():
            rows[place] = same[np.lexsort(candidates.T[::-1])[0]]
            n_conflicts += 1
    return rows, n_conflicts


def encode_documents(
    encoder: Encoder, texts: Sequence[str], rows: Int64Array, show_progress: bool | None
) -> tuple[FloatArray, Encoding | None]:
    """Return the unit vectors that an encoder makes, and its report where it gives one.

    Shapes: `rows` (n,) -> `vectors` (n, n_dimensions).
    """
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
        raise InputError(
            "encoder",
            f"one whose sparse vectors take at most {MOST_DENSE_BYTES / 1e9:.0f} GB in full",
            remedy='take encoder="lsa", or TfidfEncoder with n_components or max_features',
            found=f"{n_rows:,} of {width:,} dimensions ({n_bytes / 1e9:.1f} GB)",
        )
    return np.asarray(vectors.astype(np.float32).toarray())


def recorded_encoder(result: TopicResult) -> Encoder:
    """Make the encoder of a result again from its settings; where it was fitted, it is again."""
    settings = result.settings
    wanted = settings.get("encoder_settings")
    if isinstance(wanted, dict):
        return matching_encoder(encoder_from_settings(wanted), result)
    if settings.get("encoder") == GIVEN:
        raise InputError(
            "embeddings",
            "given for new texts, because the model was fitted on embeddings without an encoder",
            remedy="give predict(texts, embeddings=...), or fit and load with the encoder that "
            'made them, such as TopicModel("all-MiniLM-L6-v2")',
        )
    expected = (
        f"given, because that of the fit ({settings.get('encoder')}) cannot be loaded by name"
    )
    raise InputError("encoder", expected, remedy="give encoder= or embeddings=")


def matching_encoder(encoder: Any, result: TopicResult) -> Encoder:
    """Return an encoder after making sure that it is the one of the fit.

    One that is fitted on texts, and is not fitted yet, is fitted on the documents of the fit. One
    of another fingerprint passes where some documents get the vectors that they had: on another
    machine, what is learned differs in the last digits. One without a fingerprint must make
    vectors of some documents that are of the space of the fit.
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
        raise InputError(
            "encoder",
            f"given, because that of the fit ({settings.get('encoder')}) learned from texts that "
            "were left out when the result was shared",
            remedy="give encoder= or embeddings=",
        )
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
    """Return the encoder of the given vectors, checked on some texts.

    Shapes: `vectors` (n_documents, n_dimensions).
    """
    if not is_named:
        raise InputError(
            "encoder",
            "given to encode names beside embeddings",
            remedy="name the encoder that made them, TopicModel(encoder), or give "
            "ZeroShot(..., embeddings=)",
        )
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
    cosines = np.einsum("ij,ij->i", made, kept, dtype=np.float64)
    both_zero = ~made.any(axis=1) & ~kept.any(axis=1)
    return bool((both_zero | (cosines >= SAME)).all())


def _sample(
    encoder: Encoder, vectors: FloatArray, texts: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return the vectors that an encoder makes of some documents, and those that they have."""
    # Documents are ordered by a hash of their content, so that the first are a fair sample.
    some = list(texts[:DOCUMENTS_TO_COMPARE])
    if not some:
        return vectors[:0], vectors[:0]
    plain = getattr(encoder, "uncached", encoder)
    made, _ = encode_documents(plain, some, np.arange(len(some)), False)
    return made, vectors[: len(some)]
