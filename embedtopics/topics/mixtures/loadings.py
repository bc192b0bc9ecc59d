"""What windows are compared with: the weights of the topics, and the factors of the terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import NOISE, TopicResult
from embedtopics.terms import ClassTfidf
from embedtopics.topics.recorded import weighting_of

__all__ = ["Loadings", "load_topics"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Loadings:
    """The topics of a result as texts are compared with them.

    Parameters
    ----------
    factors : float64 ndarray of shape (n_terms,)
        By which the count of a term in a text is multiplied.
    is_root : bool
        Whether it is the root of the count.
    rows, topics, values
        Weight of each term in each topic, whose weights have the length 1: row pointers, columns
        and values of a sparse matrix of shape (n_terms, n_topics).
    """

    factors: Floats
    is_root: bool
    rows: Int64Array
    topics: Int32Array
    values: Floats


def load_topics(result: TopicResult, given: ClassTfidf | None) -> Loadings:
    """Return the factors of the terms, and the topics' weights scaled to length 1.

    Raises
    ------
    InputError
        Where the weighting, given or that of the result, has no factors.
    """
    from scipy.sparse import csr_matrix, diags_array

    weighting = weighting_of(result, given)
    if not isinstance(weighting, ClassTfidf):
        raise InputError(
            "windows are weighed with a factor for each term, as ClassTfidf has them; got "
            f"{weighting!r}; give weighting=ClassTfidf()"
        )
    in_topic = np.where(result.clustering.labels != NOISE, result.documents.weights, 0)
    frequencies = np.asarray(result.term_counts.counts.T @ in_topic.astype(np.float64))
    # All that is learnt are the sum of each term and of all, over the number of topics; topics
    # of which one holds everything have the same.
    as_one = csr_matrix(
        (frequencies, np.arange(len(frequencies)), [0, *[len(frequencies)] * result.n_topics]),
        shape=(result.n_topics, len(frequencies)),
    )
    factors = np.zeros(len(frequencies))
    is_root = bool(weighting.sqrt_tf)
    if frequencies.any():
        fresh = ClassTfidf(**weighting.get_params())
        factors = fresh.fit(as_one, terms=result.term_counts.terms).idf_
    weights = result.topic_terms
    squares = np.asarray(weights.multiply(weights).sum(axis=1), dtype=np.float64).ravel()
    scale = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
    by_term = csr_matrix((diags_array(scale) @ weights).T, dtype=np.float64)
    return Loadings(
        factors,
        is_root,
        by_term.indptr.astype(np.int64),
        by_term.indices.astype(np.int32),
        by_term.data,
    )
