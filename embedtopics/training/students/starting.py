"""What a student starts from: its texts, its vocabulary, and each token as the teacher sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus import Corpus, require_text
from embedtopics.encoders.static_files import parse_tokenizer
from embedtopics.encoders.token_bags import bag_tokens, unknown_token
from embedtopics.encoders.tokenizing import slabs
from embedtopics.encoders.whole_words import (
    Vocabulary,
    add_words,
    frequent_split_words,
    plain_vocabulary,
)
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training.students.phrases import frequent_phrases
from embedtopics.training.students.settings import StudentSettings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "FEWEST_TEXTS",
    "Axes",
    "Gathered",
    "axes_of",
    "bags_of",
    "encode_with",
    "gather",
    "start_table",
    "vocabulary_of",
]

FEWEST_TEXTS = 50
MOST_VALIDATION = 5_000
PRIOR_TOKENS = 1_000_000
"""Tokens of running text that Zipf's law counts for, beside those of the texts; as in `distill`."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Distinct texts, in an order that does not depend on that of the rows.

    Parameters
    ----------
    texts : list of str
        Those of the corpus first.
    n_corpus : int
        How many they are.
    training, validation : int64 ndarray
        Places in `texts`, ascending.
    sources : tuple of str
        Where the corpus came from, and the general mix where there is one.
    """

    texts: list[str]
    n_corpus: int
    training: Int64Array
    validation: Int64Array
    sources: tuple[str, ...]


def gather(texts: Any, general: Any, settings: StudentSettings) -> Gathered:
    """Join the texts of a corpus and a general mix, each once, and hold some of them out.

    Raises
    ------
    InputError
        If there are too few.
    """
    corpus = Corpus.of(texts)
    require_text(corpus)
    joined = dict.fromkeys(corpus.document_texts())
    n_corpus, sources = len(joined), [corpus.source]
    if general is not None:
        mix = Corpus.of(general)
        require_text(mix)
        joined |= dict.fromkeys(mix.document_texts())
        sources.append(mix.source)
    found = list(joined)
    if len(found) < FEWEST_TEXTS:
        raise InputError(
            f"expected at least {FEWEST_TEXTS} distinct texts to learn a student from, got "
            f"{len(found)}; give more texts, or use distill(), which needs none"
        )
    n_held = min(MOST_VALIDATION, max(10, round(settings.validation_share * len(found))))
    order = np.random.default_rng(settings.seed).permutation(len(found))
    training, validation = np.sort(order[n_held:]), np.sort(order[:n_held])
    return Gathered(found, n_corpus, training, validation, tuple(sources))


def vocabulary_of(
    tokenizer: str, texts: Sequence[str], settings: StudentSettings
) -> tuple[Vocabulary, list[str], list[str]]:
    """Return the teacher's vocabulary with the words and phrases of texts, and these."""
    plain = plain_vocabulary(tokenizer)
    words = frequent_split_words(
        plain, texts, max_words=settings.max_words, min_count=settings.min_count
    )
    phrases = frequent_phrases(
        plain, texts, max_phrases=settings.max_phrases, min_count=settings.min_phrase_count,
        min_npmi=settings.min_npmi,
    )  # fmt: skip
    return add_words(plain, [*words, *phrases]), words, phrases


def bags_of(vocabulary: Vocabulary, texts: Sequence[str], max_length: int | None) -> csr_matrix:
    """Return how often each text holds each token, float32 of shape (n_texts, n_tokens).

    Parameters
    ----------
    vocabulary : Vocabulary
    texts : sequence of str
    max_length : int or None
        Most tokens counted of a text.
    """
    from scipy.sparse import csr_matrix

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    unknown = unknown_token(parsed)
    ids, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for slab in slabs(texts):
        bags = bag_tokens(parsed, slab, unknown_id=unknown, max_length=max_length)
        ids.append(bags.ids)
        lengths.append(np.diff(bags.offsets))
    columns = np.concatenate(ids)
    counts = csr_matrix(
        (np.ones(len(columns), np.float32), columns, np.cumsum(np.concatenate(lengths))),
        shape=(len(texts), len(vocabulary.surfaces)),
    )
    counts.sum_duplicates()
    return counts


def encode_with(
    teacher: Any, texts: Sequence[str], what: str, show_progress: bool | None
) -> FloatArray:
    """Return a teacher's vectors.

    Raises
    ------
    InputError
        If they are no finite numbers, one row a text.
    """
    vectors = np.asarray(teacher.encode(texts, show_progress=show_progress))
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
        raise InputError(
            f"expected a vector for each of the {len(texts)} {what} from the teacher, got "
            f"{vectors.dtype} of shape {vectors.shape}; give an encoder of dense vectors"
        )
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise InputError(
            "expected finite vectors from the teacher, got another number for "
            f"{texts[int(np.argmin(finite))][:60]!r}; use a teacher of another precision"
        )
    return vectors.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Axes:
    """The turn and cut from the teacher's space to the student's.

    Parameters
    ----------
    project : callable
        From float32 of shape (n, n_teacher) to float32 of shape (n, n_dimensions).
    explained : float
        Share of the sums of squares that is kept.
    """

    project: Callable[[FloatArray], FloatArray]
    explained: float


def axes_of(vectors: FloatArray, dimensions: int) -> Axes:
    """Return the principal axes of vectors of length 1, not centred, so that cosines are kept."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        products = np.zeros((vectors.shape[1],) * 2)
        for begin in range(0, len(vectors), 65_536):
            part = vectors[begin : begin + 65_536].astype(np.float64)
            products += part.T @ part
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1][:, :dimensions]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    kept = np.ascontiguousarray(axes, dtype=np.float32)
    values = np.clip(values[::-1], 0, None)

    def project(rows: FloatArray) -> FloatArray:
        with threadpool_limits(limits=1, user_api="blas"):
            projected: FloatArray = rows @ kept
        return projected

    return Axes(project, float(values[:dimensions].sum() / max(values.sum(), 1e-30)))


def start_table(
    vectors: FloatArray, stands_for_text: Int64Array, counts: Int64Array, coefficient: float
) -> tuple[FloatArray, FloatArray]:
    """Return the table and the weights that learning starts from: a distilled static encoder.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n_kept, n_dimensions)
        Of each token that stands for a text, encoded alone.
    stands_for_text : int64 ndarray of shape (n_kept,)
        The places of these tokens in the vocabulary.
    counts : int64 ndarray of shape (n_tokens,)
        How often each token occurs.
    coefficient : float
        The a of the weights a / (a + p).

    Returns
    -------
    table : float32 ndarray of shape (n_tokens, n_dimensions)
        Of mean length 1; zeros for tokens that stand for no text.
    weights : float32 ndarray of shape (n_tokens,)
    """
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = float(np.sqrt((centred.astype(np.float64) ** 2).sum(axis=1)).mean())
    table = np.zeros((len(counts), vectors.shape[1]), dtype=np.float32)
    table[stands_for_text] = centred / np.float32(max(length, 1e-12))
    zipf = 1.0 / np.arange(2, len(stands_for_text) + 2)
    zipf /= zipf.sum()
    p = (counts[stands_for_text] + PRIOR_TOKENS * zipf) / (counts.sum() + PRIOR_TOKENS)
    weights = np.ones(len(counts), dtype=np.float32)
    weights[stands_for_text] = coefficient / (coefficient + p)
    return table, weights
