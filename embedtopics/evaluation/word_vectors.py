"""How near the words of a topic lie in a space of word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.cooccurrence import refuse_strings
from embedtopics.protocols import Int64Array

__all__ = ["WordVectors", "word_embedding_coherence"]

Float64Array = npt.NDArray[np.float64]


class WordVectors(Protocol):
    """Vectors by word: a mapping, gensim's ``KeyedVectors``, or the like."""

    def __contains__(self, word: Any, /) -> bool:
        """Tell whether there is a vector of a word."""
        ...

    def __getitem__(self, word: Any, /) -> Any:
        """Return the vector of a word."""
        ...


def word_embedding_coherence(
    topics: Sequence[Sequence[str]], vectors: WordVectors, n: int = 10
) -> tuple[Float64Array, Int64Array]:
    """Measure the coherence of each topic by the mean cosine of its words' vectors.

    Word vectors know relations that a small collection is too small to show (Fang et al. 2016,
    "Using word embedding to evaluate the coherence of topics from Twitter data"; Ding et al. 2018).
    Vectors learnt from other texts are a reference from outside; those of the result itself
    measure how compact its topics are by its own lights.

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    vectors : WordVectors
        A mapping of words to vectors of one length, or gensim's ``KeyedVectors``.
    n : int
        Words of each topic that count.

    Returns
    -------
    coherence : float64 ndarray of shape (n_topics,)
        Mean over all pairs, from -1 to 1; NaN where fewer than two words have a vector.
    n_missing : int64 ndarray of shape (n_topics,)
        Words of each topic that have no vector, or one of zeros; they are left out.

    Raises
    ------
    InputError
        If `n` is below 1, a topic is a single string, or a vector is not finite or of another
        length than the first.

    Examples
    --------
    >>> vectors = {"tax": [1.0, 0.0], "cut": [1.0, 0.0], "goal": [0.0, 2.0]}
    >>> coherence, n_missing = word_embedding_coherence([["tax", "cut", "goal", "x"]], vectors)
    >>> coherence.round(3).tolist(), n_missing.tolist()
    ([0.333], [1])
    """
    if n < 1:
        raise InputError(f"n must be at least 1 word; got {n}")
    refuse_strings(topics)
    unit: dict[str, Float64Array] = {}
    width = None
    for word in dict.fromkeys(word for topic in topics for word in topic[:n]):
        if word not in vectors:
            continue
        vector = np.asarray(vectors[word], dtype=np.float64)
        width = vector.shape if width is None else width
        if vector.ndim != 1 or vector.shape != width or not np.isfinite(vector).all():
            raise InputError(
                f"vectors must be finite and all of shape {width}; that of {word!r} is not "
                f"(shape {vector.shape})"
            )
        length = np.sqrt(np.einsum("i,i->", vector, vector))
        if length > 0:
            unit[word] = vector / length
    coherence, n_missing = [], []
    for topic in topics:
        known = [unit[word] for word in topic[:n] if word in unit]
        coherence.append(_mean_cosine(known))
        n_missing.append(len(topic[:n]) - len(known))
    return np.array(coherence, dtype=np.float64), np.array(n_missing, dtype=np.int64)


def _mean_cosine(unit: list[Float64Array]) -> float:
    """Return the mean over all pairs."""
    m = len(unit)
    if m < 2:
        return float("nan")
    rows = np.array(unit)
    # Not `@`: BLAS may round differently with another number of threads.
    cosines = np.einsum("id,jd->ij", rows, rows)
    return float(cosines[np.triu_indices(m, k=1)].mean())
