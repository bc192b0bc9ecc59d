"""How well labels agree with given classes, with and without the documents left in no topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results import NOISE

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True)
class Agreement:
    """Agreement of predicted labels with true ones.

    Parameters
    ----------
    nmi, ami, ari : float
        Normalised and adjusted mutual information and adjusted Rand index on all documents,
        noise taken as one more class.
    nmi_covered, ami_covered, ari_covered : float
        The same on the documents that are in a topic; NaN where none is. High figures with
        little coverage are cheap: read them together.
    coverage : float
        Share of the documents that are in a topic.
    """

    nmi: float
    ami: float
    ari: float
    nmi_covered: float
    ami_covered: float
    ari_covered: float
    coverage: float


def agreement(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> Agreement:
    """Compare predicted labels with true classes.

    The figures are scikit-learn's ``normalized_mutual_info_score`` (arithmetic mean),
    ``adjusted_mutual_info_score`` and ``adjusted_rand_score``.

    Parameters
    ----------
    labels_true : array_like of shape (n_documents,)
        Classes, numbers or strings.
    labels_pred : array_like of int, shape (n_documents,)
        Topics; noise is -1.

    Returns
    -------
    Agreement

    Raises
    ------
    InputError
        If the lengths differ, there is no document, or the prediction is not of integers.

    Examples
    --------
    >>> found = agreement(["a", "a", "b", "b"], [0, 0, 1, -1])
    >>> found.ari_covered, found.coverage
    (1.0, 0.75)
    """
    true, predicted = np.asarray(labels_true), np.asarray(labels_pred)
    if true.ndim != 1 or true.shape != predicted.shape or len(true) == 0:
        raise InputError(
            "labels must be two sequences of one length, at least 1; "
            f"got shapes {true.shape} and {predicted.shape}"
        )
    if predicted.dtype.kind not in "iu":
        raise InputError(f"labels_pred must be integers with noise as -1; got {predicted.dtype}")
    classes = np.unique(true, return_inverse=True)[1]
    covered = predicted != NOISE
    nothing = (float("nan"),) * 3
    inside = _scores(classes[covered], predicted[covered]) if covered.any() else nothing
    return Agreement(*_scores(classes, predicted), *inside, float(covered.mean()))


def _scores(classes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> tuple[float, float, float]:
    """Return NMI, AMI and ARI."""
    from sklearn.metrics import (
        adjusted_mutual_info_score,
        adjusted_rand_score,
        normalized_mutual_info_score,
    )

    return (
        float(normalized_mutual_info_score(classes, labels)),
        float(adjusted_mutual_info_score(classes, labels)),
        float(adjusted_rand_score(classes, labels)),
    )
