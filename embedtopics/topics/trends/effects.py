"""What the share of each topic depends on: dates, groups, numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._background import side_by_side
from embedtopics._checks import checked_count, checked_level
from embedtopics._progress import progress_bar
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import interval, resampled_sums
from embedtopics.protocols import Int32Array, Int64Array, RandomState
from embedtopics.results import NOISE, Decision, TopicEffects, TopicResult
from embedtopics.topics._replicates import NOT_HELD, recipe_of, replicate
from embedtopics.topics.stability import best_matches
from embedtopics.topics.trends.design import Design, covariates_in, make_design

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["effects"]

Float64Array = npt.NDArray[np.float64]


def effects(
    result: TopicResult,
    covariates: Any,
    *,
    reference: Mapping[str, Any] | None = None,
    outcome: str = "label",
    replicates: int | Sequence[Int32Array] = 0,
    n_resamples: int = 500,
    confidence: float = 0.95,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> TopicEffects:
    """Measure how the share of each topic changes with dates, groups and numbers.

    One linear model a topic, all solved at once: the share of the rows in it (or each row's
    membership) on all covariates together, so that each effect is one with the others held.

    Parameters
    ----------
    result : TopicResult
    covariates : str, sequence of str, mapping or DataFrame
        Columns of the corpus, as "~ date + source" or ["date", "source"], or values for each row
        by name. Dates count in years; numbers as they are; other values are levels. Rows that lack
        one are left out.
    reference : mapping of str to str, optional
        The level that the others of a covariate are compared with; by default the most frequent.
    outcome : {"label", "membership"}
        Whether a row counts wholly for its topic, or by its shares in all topics.
    replicates : int, or sequence of int32 ndarray of shape (n_documents,)
        So many replicates of the clustering (see `stability`; each takes about as long as half
        of a fit), or their labels: -1 for noise, -2 for documents that are not in the replicate.
        0 takes the topics as given. Needs the outcome "label".
    n_resamples : int
        Of the bootstrap, which draws distinct texts.
    confidence : float
        Of the intervals (percentiles of the resamples).
    random_state : int, numpy.random.Generator or None
    show_progress : bool or None
        None shows progress where a terminal or a notebook listens.

    Returns
    -------
    TopicEffects
        Its `carries` says what the intervals allow for.

    Raises
    ------
    InputError
        Where a covariate does not exist, does not vary or follows from others; where a parameter
        is bad.

    Notes
    -----
    Least squares on shares, as `estimateEffect` of stm does: effects are differences of shares,
    and add up to 0 over all topics and none. Fitted shares may leave 0 to 1 at the edges of the
    data.

    With replicates, each resample also draws one of them. It adds, with a random sign, what the
    coefficients on the replicate's documents change when its topics (the best match of each, by
    Jaccard overlap) take the place of the result's: a topic that comes back as it is adds nothing,
    and one that does not is as uncertain as its effect is large. The sign is random because a
    topic that comes back in part would otherwise pull the interval away from the estimate. The
    idea is that of the method of composition (Treier and Jackman 2008; Roberts et al. 2014,
    "Structural topic models for open-ended survey responses"), with clusterings in place of
    posterior draws.
    """
    if outcome not in ("label", "membership"):
        raise InputError(f"outcome must be 'label' or 'membership'; got {outcome!r}")
    checked_count(n_resamples, "n_resamples", 20)
    confidence = checked_level(confidence)
    seed = resolve_seed(random_state)
    if not isinstance(reference, Mapping | None):
        raise InputError(f"reference must be a mapping of covariates to levels; got {reference!r}")
    design = make_design(result, covariates_in(covariates), dict(reference or {}))
    again = _replicates(result, replicates, outcome, seed, show_progress)
    fit = _Fit.of(result, design)
    labels = result.clustering.labels[fit.documents]
    shares = _shares(result, fit.documents, labels, outcome)
    coefficients = fit.solve(fit.squares.sum(axis=0)[None], fit.products(shares).sum(axis=0)[None])
    draws = fit.solve(
        resampled_sums(fit.squares, n_resamples, seed),
        resampled_sums(fit.products(shares), n_resamples, seed),
    )
    decisions = design.decisions + _note_unsolved(draws)
    if again:
        shifts = _shifts(fit, result, again)
        rng = np.random.default_rng([seed, len(again)])
        drawn = shifts[rng.integers(0, len(shifts), n_resamples)]
        draws += drawn * rng.choice([-1.0, 1.0], n_resamples)[:, None, None]
    low, high = interval(draws, confidence)
    return TopicEffects(
        **design.about,
        means=design.matrix.mean(axis=0),
        labels=tuple(topic.label for topic in result.topics),
        coefficients=coefficients[0],
        low=low,
        high=high,
        draws=draws,
        outcome=outcome,
        n_rows=len(design.rows),
        n_documents=len(fit.documents),
        n_replicates=len(again),
        confidence=confidence,
        decisions=decisions,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Fit:
    """What each distinct text adds to the normal equations, whatever the topics are.

    Columns are scaled to length 1, so that years and millions solve alike well.
    """

    documents: Int64Array
    sums: Float64Array
    """Of the rows of each text, shape (n_documents, n_columns)."""
    squares: csr_matrix
    """Of their outer products, shape (n_documents, n_columns ** 2): of a hundred levels a row is in
    one or two, and a table of all pairs of them would not fit in memory."""
    scale: Float64Array

    @classmethod
    def of(cls, result: TopicResult, design: Design) -> _Fit:
        from scipy.sparse import csr_matrix

        documents, place = np.unique(result.documents.of_row[design.rows], return_inverse=True)
        scale = np.linalg.norm(design.matrix, axis=0)
        matrix = csr_matrix(design.matrix / scale)
        shape = (len(documents), len(place))
        member = csr_matrix((np.ones(len(place)), (place, np.arange(len(place)))), shape=shape)
        squares = csr_matrix(member @ _outer_products(matrix))
        return cls(documents, (member @ matrix).toarray(), squares, scale)

    def products(self, shares: csr_matrix, held: Int64Array | None = None) -> csr_matrix:
        """Return what each text adds to the right side, shape (n, n_topics * n_columns)."""
        from scipy.sparse import csr_matrix

        sums = self.sums if held is None else self.sums[held]
        n_columns = sums.shape[1]
        entries = np.repeat(np.arange(shares.shape[0]), np.diff(shares.indptr))
        data = shares.data[:, None] * sums[entries]
        places = shares.indices[:, None].astype(np.int64) * n_columns + np.arange(n_columns)
        shape = (shares.shape[0], shares.shape[1] * n_columns)
        return csr_matrix(
            (data.ravel(), places.ravel(), shares.indptr.astype(np.int64) * n_columns), shape=shape
        )

    def solve(self, squares: Any, products: Any) -> Float64Array:
        """Return coefficients, shape (n, n_topics, n_columns); NaN where they are not told."""
        n_columns = len(self.scale)
        left = np.asarray(squares, dtype=np.float64).reshape(-1, n_columns, n_columns)
        right = np.asarray(products, dtype=np.float64).reshape(len(left), -1, n_columns)
        found = np.full(right.shape, np.nan)
        eigenvalues = np.linalg.eigvalsh(left)
        told = eigenvalues[:, 0] > 1e-10 * eigenvalues[:, -1]
        solved = np.linalg.solve(left[told], right[told].transpose(0, 2, 1))
        found[told] = solved.transpose(0, 2, 1) / self.scale
        return found


def _outer_products(matrix: csr_matrix) -> csr_matrix:
    """Return the outer product of each row with itself, shape (n_rows, n_columns ** 2)."""
    from scipy.sparse import csr_matrix

    n_rows, n_columns = matrix.shape
    n_entries = np.diff(matrix.indptr).astype(np.int64)
    partners = np.repeat(n_entries, n_entries)  # of each entry, those of its row
    one = np.repeat(np.arange(matrix.nnz), partners)
    other = np.arange(len(one)) - np.repeat(np.cumsum(partners) - partners, partners)
    other += np.repeat(np.repeat(matrix.indptr[:-1], n_entries), partners)
    places = matrix.indices[one].astype(np.int64) * n_columns + matrix.indices[other]
    ends = np.concatenate([[0], np.cumsum(n_entries**2)])
    products = matrix.data[one] * matrix.data[other]
    return csr_matrix((products, places, ends), shape=(n_rows, n_columns**2))


def _shares(
    result: TopicResult, documents: Int64Array, labels: Int32Array, outcome: str
) -> csr_matrix:
    """Return the share of each topic, and of none, in some documents."""
    from scipy.sparse import csr_matrix, hstack

    if outcome == "membership":
        inside = result.memberships[documents].astype(np.float64)
        none = result.none_shares[documents].astype(np.float64)[:, None]
        return csr_matrix(hstack([inside, csr_matrix(none)]))
    return _of_labels(labels, result.n_topics)


def _of_labels(labels: Int32Array, n_topics: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    places = labels % (n_topics + 1)  # noise is -1 and thus the last
    return csr_matrix(
        (np.ones(len(labels)), places, np.arange(len(labels) + 1)),
        shape=(len(labels), n_topics + 1),
    )


def _replicates(
    result: TopicResult, given: Any, outcome: str, seed: int, show_progress: bool | None
) -> list[Int32Array]:
    """Return the labels of the replicates, made anew where only their number is given."""
    found: list[Int32Array] = []
    is_number = isinstance(given, (int, np.integer))
    if is_number and not checked_count(given, "replicates", 0):
        return found
    if not is_number:
        found = _given_replicates(given, len(result.documents))
    if outcome != "label":
        raise InputError("replicates know labels only; take outcome='label', or no replicates")
    if not is_number or not result.n_topics:
        return found
    recipe = recipe_of(result)
    with progress_bar(
        total=int(given), unit="replicate", description="effects", show=show_progress
    ) as bar:
        for labels in side_by_side(
            lambda number: replicate(recipe, np.random.default_rng([seed, number])), int(given)
        ):
            found.append(labels)
            bar.update()
    return found


def _given_replicates(given: Any, n_documents: int) -> list[Int32Array]:
    """Return labels after making sure that they are some."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"replicates must be a number of them, or their labels; got {given!r}")
    arrays = [np.asarray(labels) for labels in given]
    for labels in arrays:
        if labels.shape != (n_documents,):
            raise InputError(
                f"replicates must have a label for each of the {n_documents} distinct texts; got "
                f"shape {labels.shape}"
            )
        if labels.dtype.kind not in "iu" or labels.min(initial=0) < NOT_HELD:
            raise InputError(
                "labels of replicates must be integers from -2 up: -1 for noise, -2 for documents "
                f"that are not in it; got {labels.dtype}, the least {labels.min(initial=0)}"
            )
    return [labels.astype(np.int32) for labels in arrays]


def _shifts(fit: _Fit, result: TopicResult, replicates: list[Int32Array]) -> Float64Array:
    """Return how replicates change the coefficients on the documents that they hold."""
    from scipy.sparse import csr_matrix

    n_topics = result.n_topics
    shifts = []
    for labels in replicates:
        both = np.flatnonzero(labels != NOT_HELD)
        _, match = best_matches(
            result.clustering.labels[both], labels[both], result.documents.weights[both], n_topics
        )
        held = np.flatnonzero(labels[fit.documents] != NOT_HELD)
        found = labels[fit.documents[held]]
        n_found = int(found.max(initial=NOISE)) + 1
        matched = np.flatnonzero((match >= 0) & (match < n_found))
        ones = np.ones(len(matched) + 1)
        rows, columns = np.append(match[matched], n_found), np.append(matched, n_topics)
        taken = csr_matrix((ones, (rows, columns)), shape=(n_found + 1, n_topics + 1))
        theirs = csr_matrix(_of_labels(found, n_found) @ taken)
        ours = _of_labels(result.clustering.labels[fit.documents[held]], n_topics)
        squares = fit.squares[held].sum(axis=0)[None]
        change = fit.products(theirs, held).sum(axis=0) - fit.products(ours, held).sum(axis=0)
        shifts.append(fit.solve(squares, change)[0])
    told = [shift for shift in shifts if not np.isnan(shift).any()]
    if not told:
        raise InputError(
            "no replicate holds enough documents to tell the covariates apart; leave out the "
            "rarest levels, or give replicates=0"
        )
    return np.array(told)


def _note_unsolved(draws: Float64Array) -> tuple[Decision, ...]:
    n_unsolved = int(np.isnan(draws).any(axis=(1, 2)).sum())
    if not n_unsolved:
        return ()
    message = (
        f"{n_unsolved} of {len(draws)} resamples hold too few rows of some level and are left out."
    )
    return (Decision("trends", "resamples_left_out", n_unsolved, message),)
