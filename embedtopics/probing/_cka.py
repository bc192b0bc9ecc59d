"""Similarity of two layers up to rotation and scale: centered kernel alignment."""

from __future__ import annotations

from itertools import product

import numpy as np

from embedtopics._utils.checks import checked_count, optional_count, resolve_seed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.probing._layers import (
    Layers,
    Space,
    blocks,
    layer_numbers,
    one_blas_thread,
    open_space,
)
from embedtopics.probing.results import HiddenStates, LayerSimilarity
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState

LEAST_VARIANCE = 1e-12
"""Of a layer, as a share of its mean square: less is rounding."""

Parts = list[tuple[int, Int64Array]]
"""Units that are read together, and the fold that they are in."""


def cka(
    states_a: HiddenStates,
    states_b: HiddenStates | None = None,
    *,
    layers_a: Layers = "all",
    layers_b: Layers = "all",
    max_units: int | None = 10_000,
    n_folds: int = 10,
    random_state: RandomState = 0,
) -> LayerSimilarity:
    """Compare layers of one or two encoders by linear centered kernel alignment.

    For centered vectors X and Y of the same units, CKA is the squared Frobenius norm of their
    cross-covariance over the product of the norms of their covariances (Kornblith et al. 2019,
    equation 4 and the feature form of section 3). It is 1 for spaces that differ only by a
    rotation, a translation and a scale. Few units in many dimensions bias it towards 1.

    Parameters
    ----------
    states_a : HiddenStates
    states_b : HiddenStates, optional
        The same units by another encoder or with other settings. By default the layers of
        `states_a` are compared with each other, and `layers_b` is ignored.
    layers_a, layers_b : int, sequence of int, "all" or "last N"
    max_units : int, optional
        Units that are compared; more are sampled, whole texts at a time. None compares all. The
        cost grows with the units, the square of the width, and the pairs of layers.
    n_folds : int
        Groups of texts of the jackknife, which estimates the standard errors.
    random_state : int, Generator or None
        Of the sample and the groups.

    Returns
    -------
    LayerSimilarity
        NaN for a layer of equal vectors.

    Raises
    ------
    InputError
        If the units of both differ, or there are fewer than four.
    """
    optional_count(max_units, "max_units", 4)
    checked_count(n_folds, "n_folds", 2)
    other = states_a if states_b is None else states_b
    _refuse_other_units(states_a, other)
    numbers_a = layer_numbers(layers_a, states_a.layers, "layers_a")
    numbers_b = numbers_a if states_b is None else layer_numbers(layers_b, other.layers, "layers_b")
    present = ~(states_a.missing | other.missing)
    seed = resolve_seed(random_state)
    folds, n_texts, decisions = _drawn(states_a, present, max_units, n_folds, seed)
    n_units = sum(map(len, folds))
    if n_units < 4:
        raise InputError("states_a", "at least 4 units with a vector", found=f"{n_units}")
    parts = [(f, rows[part]) for f, rows in enumerate(folds) for part in blocks(len(rows), 2048)]
    with one_blas_thread():
        a = [_Layer(open_space(states_a, n), parts) for n in numbers_a]
        b = a
        if states_b is not None:
            b = [_Layer(open_space(other, n), parts) for n in numbers_b]
        alignments = _alignments(a, b)
    without, n = alignments[1:], len(alignments) - 1
    errors = (
        np.sqrt((n - 1) * without.var(axis=0)) if n > 1 else np.full_like(alignments[0], np.nan)
    )
    return LayerSimilarity(
        encoder_a=states_a.encoder,
        encoder_b=other.encoder,
        layers_a=numbers_a,
        layers_b=numbers_b,
        values=alignments[0],
        errors=errors,
        n_units=n_units,
        n_texts=n_texts,
        decisions=(*states_a.decisions, *decisions),
    )


class _Layer:
    """The vectors of one layer around their mean, read in parts of folds."""

    def __init__(self, space: Space, parts: Parts) -> None:
        self.space, self.parts = space, parts
        self.sums = np.zeros((parts[-1][0] + 1, space.vectors.shape[1]))
        sizes, self.square = np.zeros(len(self.sums)), 0.0
        for fold, rows in parts:
            read = space.raw(rows)
            sizes[fold] += len(rows)
            self.sums[fold] += read.sum(axis=0)
            self.square += float(np.einsum("ij,ij->", read, read))
        self.mean = self.sums.sum(axis=0) / sizes.sum()
        self.rest = sizes.sum() - sizes
        # Of the vectors around the mean of all, where the mean of all but one fold lies.
        self.shifts = (sizes[:, None] * self.mean - self.sums) / np.maximum(self.rest, 1)[:, None]


def _alignments(a: list[_Layer], b: list[_Layer]) -> Float64Array:
    """Return those of all pairs, then without each fold, of shape (1 + n_folds, n_a, n_b)."""
    values = np.full((1 + len(a[0].sums), len(a), len(b)), np.nan)
    own_a = [_dependence(one, one) for one in a]
    own_b = own_a if b is a else [_dependence(one, one) for one in b]
    for i, j in product(range(len(a)), range(len(b))):
        if b is a and j < i:
            values[:, i, j] = values[:, j, i]
            continue
        shared = own_a[i] if a[i] is b[j] else _dependence(a[i], b[j])
        is_defined = (own_a[i] > 0) & (own_b[j] > 0)
        values[is_defined, i, j] = shared[is_defined] / np.sqrt(
            own_a[i][is_defined] * own_b[j][is_defined]
        )
    return values


def _dependence(a: _Layer, b: _Layer) -> Float64Array:
    """Return the squared norm of what two layers share, then without each fold."""
    # The sum of outer products over each fold: to leave one out, it is subtracted.
    crosses = np.zeros((len(a.sums), len(a.mean), len(b.mean)))
    for fold, rows in a.parts:
        left = a.space.raw(rows) - a.mean
        crosses[fold] += left.T @ (left if a is b else b.space.raw(rows) - b.mean)
    whole = crosses.sum(axis=0)
    norms = [_norm(whole)]
    for fold, cross in enumerate(crosses):
        moved = a.rest[fold] * np.multiply.outer(a.shifts[fold], b.shifts[fold])
        norms.append(_norm(whole - cross - moved))
    is_constant = a is b and np.trace(whole) <= LEAST_VARIANCE * a.square
    return np.full(len(norms), np.nan) if is_constant else np.array(norms)


def _norm(cross: Float64Array) -> float:
    return float(np.einsum("ij,ij->", cross, cross))


def _refuse_other_units(a: HiddenStates, b: HiddenStates) -> None:
    if a.texts != b.texts:
        pairs = enumerate(zip(a.texts, b.texts, strict=False))
        row = next((i for i, (x, y) in pairs if x != y), None)
        problem = f"{len(b.texts)} other texts"
        raise InputError("states_b", "of the same texts as states_a", found=problem, row=row)
    same = a.unit == b.unit and len(a) == len(b)
    if not same or not np.array_equal(a.spans, b.spans):
        expected, remedy = f"of the same {len(a):,} {a.unit}s", "extract both with words=True"
        raise InputError("states_b", expected, remedy=remedy, found=f"{len(b):,} {b.unit}s")


def _drawn(
    states: HiddenStates, present: BoolArray, max_units: int | None, n_folds: int, seed: int
) -> tuple[list[Int64Array], int, list[Decision]]:
    """Return the units of each fold, in the order of the contents of their texts; n texts."""
    counts = np.bincount(states.of_text[present], minlength=len(states.texts))
    nonempty = [int(t) for t in np.flatnonzero(counts)]
    ordered = np.array(sorted(nonempty, key=lambda t: states.texts[t]), dtype=np.int64)
    texts = ordered[np.random.default_rng(seed).permutation(len(ordered))]
    decisions = []
    total = int(present.sum())
    if max_units is not None and total > max_units:
        needed = int(np.searchsorted(np.cumsum(counts[texts]), max_units)) + 1
        texts = texts[:needed]
        n = int(counts[texts].sum())
        message = f"{n:,} of {total:,} units, those of {needed:,} random texts, were compared."
        decisions = [Decision("probing", "units_drawn", n, message)]
    n_folds = n_folds if len(texts) >= n_folds else 1
    folds = []
    for fold in range(n_folds if len(texts) else 0):
        slices = map(states.rows_of, texts[fold::n_folds].tolist())
        folds.append(
            np.concatenate([rows.start + np.flatnonzero(present[rows]) for rows in slices])
        )
    return folds, len(texts), decisions
