"""Which words tell two groups of texts apart, with the rare ones held back by a prior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError

__all__ = ["log_odds", "z_scores"]


def log_odds(
    first: npt.ArrayLike, second: npt.ArrayLike, prior: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return how much each word belongs to the first group rather than to the second.

    With y the counts of a group, n their sum, a the prior and a0 its sum,

        d = log((y1 + a) / (n1 + a0 - y1 - a)) - log((y2 + a) / (n2 + a0 - y2 - a))
        z = d / sqrt(1 / (y1 + a) + 1 / (y2 + a))

    the difference of the log-odds of a word under a Dirichlet prior, in standard errors (Monroe,
    Colaresi and Quinn, 2008, "Fightin' Words: Lexical Feature Selection and Evaluation for
    Identifying the Content of Political Conflict", equations 15 to 22). A prior in proportion to
    the words of a whole corpus is their informative one: it holds back words that are frequent
    everywhere, and words that occur too seldom to tell.

    Parameters
    ----------
    first, second : array_like of shape (n_words,)
        Counts of each word in both groups, none negative.
    prior : array_like of shape (n_words,)
        Pseudo-counts, such as the shares of the words in a corpus times the words that the prior
        shall weigh; none negative. A word without any count and without prior gets 0.

    Returns
    -------
    float64 ndarray of shape (n_words,)
        Above 0 for words of the first group.

    Raises
    ------
    InputError
        Where the shapes differ, or a number is negative or not finite.

    Examples
    --------
    >>> log_odds([8, 1, 1], [1, 8, 1], [1, 1, 1]).round(3).tolist()
    [3.218, -3.218, 0.0]
    """
    counts = [np.asarray(values, dtype=np.float64) for values in (first, second, prior)]
    if any(values.ndim != 1 or values.shape != counts[0].shape for values in counts):
        raise InputError(
            "log_odds needs three vectors of one length, the counts of two groups and a prior; got "
            f"shapes {', '.join(str(values.shape) for values in counts)}"
        )
    if any(not np.isfinite(values).all() or (values < 0).any() for values in counts):
        raise InputError("log_odds needs finite counts and priors from 0 up; one is not")
    return z_scores(*counts)


def z_scores(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return what `log_odds` does, of vectors that need no checking: it is called for each cell."""
    y_first, y_second = first + prior, second + prior
    known = (y_first > 0) & (y_second > 0)
    rest_first, rest_second = y_first.sum() - y_first, y_second.sum() - y_second
    # The only word of a group has infinite odds; it is no more of one group than of the other.
    known &= (rest_first > 0) & (rest_second > 0)
    z = np.zeros(len(known))
    y_first, y_second = y_first[known], y_second[known]
    delta = np.log(y_first / rest_first[known]) - np.log(y_second / rest_second[known])
    z[known] = delta / np.sqrt(1.0 / y_first + 1.0 / y_second)
    return z
