"""Topic-term counts -> topic-term weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


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

    Attributes
    ----------
    idf_ : float64 ndarray of shape (n_terms,)
        Factor of each term.
    n_features_in_ : int
        Number of terms.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[3, 1, 0], [0, 1, 3]])
    >>> ClassTfidf().fit_transform(counts).toarray().round(3).tolist()
    [[0.635, 0.275, 0.0], [0.0, 0.275, 0.635]]
    """

    def __init__(self, *, bm25: bool = False) -> None:
        self.bm25 = bm25

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the factor of each term.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n_topics, n_terms)
            Counts, at least 0.
        y : None
            Ignored.

        Returns
        -------
        ClassTfidf
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
        counts.data = share * self.idf_[counts.indices]
        return counts

    def _validate(self, X: Any, *, reset: bool) -> csr_matrix:
        """Check the counts by scikit-learn, and return them as a new CSR matrix."""
        checked = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_non_negative=True
        )
        return csr_matrix(checked, copy=True)

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
