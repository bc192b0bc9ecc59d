"""What vectors of premise and hypothesis know of whether the one follows from the other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.estimates import mean_of_values
from embedtopics.evaluation.label_probes import INVERSE_PENALTY, MOST_STEPS, scaled_together
from embedtopics.evaluation.vector_pairs import checked_vectors
from embedtopics.results import Estimate

__all__ = ["inference_accuracy", "inference_features"]


def inference_features(premises: Any, hypotheses: Any) -> Any:
    """Join the vectors u and v of each pair to (u, v, |u - v|).

    Parameters
    ----------
    premises, hypotheses : array_like or csr_matrix of shape (n_pairs, n_dimensions)

    Returns
    -------
    float32 ndarray or csr_matrix of shape (n_pairs, 3 n_dimensions)

    Raises
    ------
    InputError
        Where the shapes differ, or a vector is not finite.

    References
    ----------
    Reimers and Gurevych (2019), "Sentence-BERT", section 3.
    """
    from scipy.sparse import csr_matrix, hstack, issparse

    one = checked_vectors(premises, "premise").astype(np.float32)
    other = checked_vectors(hypotheses, "hypothesis").astype(np.float32)
    is_sparse = bool(issparse(one))
    if one.shape != other.shape or is_sparse != issparse(other):
        raise InputError(
            "expected a vector for the premise and one for the hypothesis of each pair; got "
            f"shapes {one.shape} and {other.shape}"
        )
    if is_sparse:
        return csr_matrix(hstack([one, other, abs(one - other)]))
    return np.concatenate([one, other, np.abs(one - other)], axis=1)


def inference_accuracy(
    train: tuple[Any, Any],
    train_labels: npt.ArrayLike,
    test: tuple[Any, Any],
    test_labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[Estimate, bool]:
    """Return how often a linear model on (u, v, |u - v|) tells the relation of unseen pairs.

    Multinomial logistic regression, for encoders that have no classifier of their own: it tells
    what the vectors hold, and what a little training of a head makes of it. As for
    `probe_classes`, the features are divided by one number so that the penalty means the same for
    all encoders.

    Parameters
    ----------
    train, test : tuple of two array_like of shape (n_pairs, n_dimensions)
        Vectors of premises and of hypotheses.
    train_labels, test_labels : array_like of int, shape (n_pairs,)
    n_resamples, seed, confidence
        Of the interval, over test pairs; what the model learnt stays as it is.

    Returns
    -------
    accuracy : Estimate
    converged : bool
        Whether the fit ended by itself.

    Raises
    ------
    InputError
        Where shapes do not fit, there are no test pairs, or fewer than two classes to learn.

    References
    ----------
    Reimers and Gurevych (2019), "Sentence-BERT", section 3, without training of the encoder.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    learnt, asked = inference_features(*train), inference_features(*test)
    known, truth = np.asarray(train_labels), np.asarray(test_labels)
    if known.shape != (learnt.shape[0],) or truth.shape != (asked.shape[0],) or not len(truth):
        raise InputError(
            f"expected a label for each of {learnt.shape[0]} training and {asked.shape[0]} test "
            "pairs; "
            f"got shapes {known.shape} and {truth.shape}"
        )
    if len(np.unique(known)) < 2:
        raise InputError("expected training pairs of at least two classes")
    # In an order of the features themselves, so that the sums do not depend on that of the rows.
    sums = np.asarray(learnt.sum(axis=1, dtype=np.float64)).ravel()
    order = np.lexsort((known, sums))
    learnt, asked = scaled_together(learnt[order], asked)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # told by what is returned
        model = LogisticRegression(C=INVERSE_PENALTY, solver="newton-cg", max_iter=MOST_STEPS)
        model.fit(learnt, known[order])
        told = model.predict(asked)
    converged = int(np.max(model.n_iter_)) < MOST_STEPS
    right = (told == truth).astype(np.float64)
    return mean_of_values(
        right, n_resamples=n_resamples, seed=seed, confidence=confidence
    ), converged
