"""Topic-term counts -> topic-term weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from embedtopics.errors import InputError


class ClassTfidf(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Class-based TF-IDF: weights of terms that are frequent in one topic and rare in others.

    The documents of a topic count as one document. With tf[t, c] the share of term t among the
    terms of topic c, f[t] the count of t in all topics, and A the mean number of terms in a topic,

        W[t, c] = tf[t, c] * log(1 + A / f[t])

    (Grootendorst 2022, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure",
    equation 2; as in BERTopic, the counts of each topic are scaled to sum 1, so that topics of
    different size are comparable).

    Parameters
    ----------
    bm25 : bool
        Whether the factor is log(1 + (A - f[t] + 0.5) / (f[t] + 0.5)), which down-weights frequent
        terms more. Terms with f[t] > A + 0.5 get negative weights.
    sqrt_tf : bool
        Whether to take the square root of tf[t, c], which down-weights very frequent terms.
    seed_terms : sequence of str or None
        Terms whose weight is multiplied by `seed_boost`; `fit` then needs `terms`.
    seed_boost : float
        Factor above 0.

    Attributes
    ----------
    idf_ : float64 ndarray of shape (n_terms,)
        Factor of each term, with boosts.
    n_features_in_ : int
        Number of terms.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[3, 1, 0], [0, 1, 3]])
    >>> ClassTfidf().fit_transform(counts).toarray().round(3).tolist()
    [[0.635, 0.275, 0.0], [0.0, 0.275, 0.635]]
    """

    def __init__(
        self,
        *,
        bm25: bool = False,
        sqrt_tf: bool = False,
        seed_terms: Sequence[str] | None = None,
        seed_boost: float = 2.0,
    ) -> None:
        self.bm25 = bm25
        self.sqrt_tf = sqrt_tf
        self.seed_terms = seed_terms
        self.seed_boost = seed_boost

    def fit(self, X: Any, y: Any = None, *, terms: Sequence[str] | None = None) -> Self:
        """Learn the factor of each term.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_topics, n_terms)
            Counts, at least 0.
        y : None
            Ignored.
        terms : sequence of str of length n_terms or None
            Names of the columns; required with `seed_terms`.

        Returns
        -------
        ClassTfidf

        Raises
        ------
        InputError
            If seed terms lack `terms`, or if the boost is not above 0.
        """
        counts = self._validate(X, reset=True)
        frequency = np.asarray(counts.sum(axis=0)).ravel()
        mean_length = float(counts.sum()) / counts.shape[0]
        if self.bm25:
            # 1 + (A - f + 0.5) / (f + 0.5), as one fraction.
            self.idf_ = np.log((mean_length + 1.0) / (frequency + 0.5))
        else:
            # The 1 keeps the factor of a term without counts finite.
            self.idf_ = np.log1p(mean_length / np.where(frequency > 0, frequency, 1.0))
        if self.seed_terms is not None:
            self.idf_ = self.idf_ * self._boosts(terms, counts.shape[1])
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Weight counts.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_topics, n_terms)

        Returns
        -------
        csr_matrix of float64, shape (n_topics, n_terms)
        """
        check_is_fitted(self)
        counts = self._validate(X, reset=False)
        totals = np.asarray(counts.sum(axis=1)).ravel()
        share = counts.data / np.repeat(np.where(totals > 0, totals, 1.0), np.diff(counts.indptr))
        counts.data = (np.sqrt(share) if self.sqrt_tf else share) * self.idf_[counts.indices]
        return counts

    def _validate(self, X: Any, *, reset: bool) -> csr_matrix:
        """Check the counts by scikit-learn, and return them as a new CSR matrix."""
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_non_negative=True
        )
        return csr_matrix(checked, copy=True)

    def _boosts(self, terms: Sequence[str] | None, n_terms: int) -> np.ndarray:
        """Return the boost of each term, 1 for terms that are not seeds."""
        if not self.seed_boost > 0:
            raise InputError(f"seed_boost must be above 0; got {self.seed_boost!r}")
        if terms is None or len(terms) != n_terms:
            raise InputError(
                f"seed_terms need fit(..., terms=...), the names of all {n_terms} columns; "
                f"got {'none' if terms is None else len(terms)}"
            )
        seeds = set(self.seed_terms or ())
        return np.where([term in seeds for term in terms], self.seed_boost, 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def log_odds(
    first: npt.ArrayLike, second: npt.ArrayLike, prior: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return z scores of the difference between two groups in the log-odds of each word.

    The log-odds have an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, "Fightin'
    Words", equations 16 to 22). Arguments are counts of words, (n_words,).
    """
    y_first = np.asarray(first, dtype=np.float64) + np.asarray(prior, dtype=np.float64)
    y_second = np.asarray(second, dtype=np.float64) + np.asarray(prior, dtype=np.float64)
    is_defined = (y_first > 0) & (y_second > 0)
    rest_first, rest_second = y_first.sum() - y_first, y_second.sum() - y_second
    # The only word of a group has infinite odds, and gets z = 0.
    is_defined &= (rest_first > 0) & (rest_second > 0)
    z = np.zeros(len(is_defined))
    y_first, y_second = y_first[is_defined], y_second[is_defined]
    delta = np.log(y_first / rest_first[is_defined]) - np.log(y_second / rest_second[is_defined])
    z[is_defined] = delta / np.sqrt(1.0 / y_first + 1.0 / y_second)
    return z
