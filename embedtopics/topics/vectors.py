"""The documents' vectors, given by the caller or made by an encoder, checked row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus import Corpus
from embedtopics.encoders import encoder_from_settings, fitted, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors import unit_rows
from embedtopics.protocols import Encoder, FloatArray, Int64Array
from embedtopics.results import DistinctDocuments, Encoding, TopicResult
from embedtopics.topics.recorded import FITTED_ROWS, GIVEN, LEFT_OUT, TEXTS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "encode_documents", "encoder_of_given", "given_vectors",
    "matching_encoder", "recorded_encoder",
]  # fmt: skip


MOST_DENSE_BYTES = 1e9
"""Size up to which sparse vectors are written out in full."""

DOCUMENTS_TO_COMPARE = 16

ALIKE = 1 - 1e-4
"""Least cosine of two vectors of a document that count as the same: other processors, and other
versions of libraries, round otherwise."""

OF_ONE_SPACE = 0.5
"""Least cosine, in the median, of given vectors with those that an encoder makes of the texts. From
another encoder they are near 0; a title before the text leaves them near 1."""


def given_vectors(
    embeddings: npt.ArrayLike, corpus: Corpus, documents: Int64Array | None = None
) -> tuple[FloatArray, int]:
    """Return the unit vectors of documents from the vectors of the rows.

    Where rows of the same text have different vectors, the smallest in lexicographic order is
    taken, whatever the order of the rows.

    Parameters
    ----------
    embeddings : array_like of shape (n_rows, n_dimensions)
    corpus : Corpus
    documents : int64 ndarray, optional
        Documents that are wanted; by default all.

    Returns
    -------
    vectors : float32 ndarray of shape (n_wanted, n_dimensions)
    n_conflicts : int
        Wanted documents whose rows have different vectors.

    Raises
    ------
    InputError
        Where the shape is wrong, or a row that is needed is not finite or all zero.
    """
    given = np.asarray(embeddings)
    if given.ndim != 2 or len(given) != len(corpus):
        raise InputError(
            f"embeddings must have one row for each of the {len(corpus):,} texts; "
            f"got shape {given.shape}"
        )
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

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of str, length n
    rows : int64 ndarray of shape (n,)
        The caller's row of each text, for errors.
    show_progress : bool or None

    Returns
    -------
    vectors : float32 ndarray of shape (n, n_dimensions)
        Zeros for a text of which the encoder makes nothing, such as one without a known word.
    report : Encoding or None

    Raises
    ------
    InputError
        Where there is not one finite vector a text, or sparse ones are too many to be written out.
    """
    with_report = getattr(encoder, "encode_with_report", None)
    report = None if with_report is None else with_report(texts, show_progress=show_progress)
    made: Any = encoder.encode(texts) if report is None else report.embeddings
    vectors = _dense(made) if hasattr(made, "toarray") else np.asarray(made)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise InputError(
            f"an encoder must return one vector a text, {len(texts):,} rows; "
            f"{type(encoder).__name__} returned shape {vectors.shape}"
        )
    what = "the encoder's vectors"
    return unit_rows(vectors, what=what, row_numbers=rows, keep_zeros=True), report


def _dense(vectors: csr_matrix) -> npt.NDArray[Any]:
    """Write sparse vectors out in full."""
    n_bytes = 4.0 * vectors.shape[0] * vectors.shape[1]
    if n_bytes > MOST_DENSE_BYTES:
        raise InputError(
            f"expected sparse vectors of at most {MOST_DENSE_BYTES / 1e9:.0f} GB when written out, "
            f"got {vectors.shape[0]:,} of {vectors.shape[1]:,} dimensions ({n_bytes / 1e9:.1f} "
            'GB); take encoder="lsa", or TfidfEncoder with n_components or max_features'
        )
    return np.asarray(vectors.astype(np.float32).toarray())


def recorded_encoder(result: TopicResult) -> Encoder:
    """Make the encoder that a result was made with, from what was recorded of it.

    One that learnt from the documents learns from them again.

    Raises
    ------
    InputError
        Where it cannot be made again, or makes other vectors than it did.
    """
    settings = result.settings
    wanted = settings.get("encoder_settings")
    if isinstance(wanted, dict):
        return matching_encoder(encoder_from_settings(wanted), result)
    if settings.get("encoder") == GIVEN:
        raise InputError(
            "the model was fitted on given embeddings, and some texts are new to it; "
            "give their embeddings too, or the encoder that makes them"
        )
    raise InputError(
        f"the model was fitted with an encoder of your own ({settings.get('encoder')}), which "
        "cannot be loaded by name; give it with encoder=, or give the embeddings"
    )


def matching_encoder(encoder: Any, result: TopicResult) -> Encoder:
    """Return an encoder after making sure that it is the one of the fit.

    One that learns, and has not learnt yet, learns from the documents of the fit. One that has
    learnt passes, too, if some of these get the vectors that they had: on another machine, what is
    learnt differs in the last digits. One that cannot be told by its fingerprint must make vectors
    of some documents that are of the space of the fit.

    Raises
    ------
    InputError
        Where its fingerprint differs from the recorded one, or its vectors are of another space.
    """
    resolved = resolve_encoder(encoder)
    if not getattr(resolved, "is_fitted", True):
        resolved = fitted(resolved, _texts_of_fit(result))
    settings = result.settings
    expected = settings.get("encoder_fingerprint")
    found = getattr(resolved, "fingerprint", None)
    if expected is None and found is None and settings.get("encoder") != GIVEN:
        return resolved  # an object of the user's own, who knows it
    if expected is None or found is None:
        texts = result.corpus.document_texts()
        _check_space(resolved, result.embeddings, texts, "give the one that made them")
        return resolved
    if expected == found:
        return resolved
    if not hasattr(resolved, "fit"):
        raise InputError(
            f"expected the encoder of the fit ({settings.get('encoder')}); "
            f"{getattr(resolved, 'name', resolved)!r} has other weights or settings, so its "
            "vectors cannot be compared; load the model without naming an encoder, or fit again"
        )
    if not _makes_same_vectors(resolved, result):
        raise InputError(
            f"expected the vectors of the fit ({settings.get('encoder')}), but "
            f"{getattr(resolved, 'name', resolved)!r} makes others: it is set otherwise, has "
            "learnt from other texts, or its training cannot be repeated (several workers); give "
            "the encoder of the fit with encoder=, or fit again"
        )
    return resolved


def _texts_of_fit(result: TopicResult) -> list[str]:
    """Return the texts that the encoder of a fit has learnt from: not those that came later."""
    settings = result.settings
    if settings.get(TEXTS) == LEFT_OUT:
        raise InputError(
            f"the encoder of the fit ({settings.get('encoder')}) learnt from texts that were left "
            "out when the result was shared, and cannot be made again; give it with encoder=, or "
            "give the embeddings"
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
    """Return the encoder that made the vectors that were given, as far as can be told.

    Parameters
    ----------
    make_encoder : callable
    is_named : bool
        Whether the caller said who it is.
    vectors : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors of the texts.
    texts : sequence of str

    Raises
    ------
    InputError
        Where nobody was named, or what was named makes vectors of another space.
    """
    if not is_named:
        raise InputError(
            "names have to be encoded as the texts were, whose embeddings were given; name the "
            "encoder that made them, TopicModel(encoder), or give ZeroShot(..., embeddings=)"
        )
    encoder = make_encoder(texts)
    _check_space(encoder, vectors, texts, "name the one that made them, or leave embeddings out")
    return encoder


def _check_space(encoder: Encoder, vectors: FloatArray, texts: Sequence[str], remedy: str) -> None:
    """Make sure that an encoder's vectors of some texts are much like those that are there."""
    # Documents are ordered by a hash of their content, so that the first are a fair sample.
    some = list(texts[:DOCUMENTS_TO_COMPARE])
    if not some:
        return
    made, _ = encode_documents(
        getattr(encoder, "uncached", encoder), some, np.arange(len(some)), False
    )
    given = vectors[: len(some)]
    alike = 0.0
    if made.shape == given.shape:
        alike = float(np.median(np.einsum("ij,ij->i", made, given, dtype=np.float64)))
    if alike < OF_ONE_SPACE:
        raise InputError(
            f"expected the encoder of the given embeddings ({given.shape[1]} dimensions), but "
            f"{getattr(encoder, 'name', type(encoder).__name__)!r} makes others of the same texts; "
            f"{remedy}"
        )


def _makes_same_vectors(encoder: Encoder, result: TopicResult) -> bool:
    """Tell whether some documents of the fit get the vectors that they had, but for rounding."""
    # Documents are ordered by a hash of their content, so that the first are a fair sample.
    rows = result.documents.first_rows[:DOCUMENTS_TO_COMPARE]
    texts = result.corpus.document_texts()[: len(rows)]
    made, _ = encode_documents(encoder, texts, rows, False)
    kept = result.embeddings[: len(rows)]
    if made.shape != kept.shape:
        return False
    cosines = np.einsum("ij,ij->i", made, kept, dtype=np.float64)
    both_zero = ~made.any(axis=1) & ~kept.any(axis=1)
    return bool((both_zero | (cosines >= ALIKE)).all())
