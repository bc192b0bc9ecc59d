"""Maps of the uses of a word: the first two principal components of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.probing._layers import Layers, layer_numbers, one_blas_thread, open_space
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import by_text, checked_words, find_rows, use_at
from embedtopics.probing.words.results import WordMap
from embedtopics.protocols import Float64Array

SAME = 1e-12
"""Variance of unit vectors below which all uses are one point; half precision rounds at 1e-7."""


def word_map(
    states: HiddenStates, word: str | Sequence[str], layers: Layers = "all", *, max_uses: int = 1000
) -> WordMap:
    """Project all uses of a word onto a plane at each layer.

    The normalized vectors of a layer are projected onto their first two principal components. Each
    map is then rotated or reflected, without scaling, to fit the map of the next layer (orthogonal
    Procrustes). A second, joint plane shows the paths of the uses through the layers: the first
    two principal components of the vectors of all layers, each layer centred. The axes have no
    meaning.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    word : str or sequence of str
        Case is ignored. Inflected forms are different words; pass them in a list:
        ``["play", "plays", "played"]``.
    layers : int, sequence of int, "all" or "last N"
        Negative numbers count from the last.
    max_uses : int
        Maximum number of uses; a hash of the texts selects them.

    Returns
    -------
    WordMap

    Raises
    ------
    InputError
        If the word does not occur or has no vector, or a layer does not exist.
    """
    words = checked_words(word)
    checked_count(max_uses, "max_uses")
    numbers = layer_numbers(layers, states.layers)
    if len(set(numbers)) < len(numbers):
        raise InputError("layers", "distinct layers", layers)
    every = find_rows(states, words)
    rows = every[~states.missing[every]]
    if not len(rows):
        raise InputError("word", "a word with a token", words[0])
    message = "uses have no token, and so no vector, and are left out."
    decisions = counted("probing", "missing", len(every) - len(rows), message)
    if len(rows) > max_uses:
        message = f"{max_uses:,} of {len(rows):,} uses are shown, selected by a hash of the texts."
        decisions.append(Decision("probing", "sampled", max_uses, message))
        digests = []
        for text, begin in zip(states.of_text[rows], states.spans[rows, 0], strict=True):
            content = f"{begin} {states.texts[text]}".encode("utf-8", "surrogatepass")
            digests.append(blake2b(content, digest_size=16).digest())
        rows = rows[np.sort(sorted(range(len(rows)), key=digests.__getitem__)[:max_uses])]
    # Sums of floating-point numbers depend on the order; that of the texts must not show.
    order = np.array(by_text(states, rows))
    vectors = [open_space(states, layer).unit(rows[order]) for layer in numbers]
    coordinates, joint, explained, jointly = _planes(vectors)
    back = np.argsort(order)
    return WordMap(
        word=", ".join(words),
        uses=tuple(use_at(states, row) for row in rows.tolist()),
        n_units=len(states),
        n_texts=len(states.texts),
        layers=numbers,
        coordinates=coordinates[:, back],
        joint=joint[:, back],
        explained_variance=explained,
        joint_explained_variance=jointly,
        similarity=np.array([_similarity(one) for one in vectors]),
        encoder=states.encoder,
        decisions=tuple(decisions),
    )


def _similarity(vectors: Float64Array) -> float:
    """Return the mean cosine of two different uses, from the length of the sum of their vectors."""
    n = len(vectors)
    if n < 2:
        return float("nan")
    alone = np.square(vectors).sum()
    return float((np.square(vectors.sum(axis=0)).sum() - alone) / (n * (n - 1)))


def _planes(
    vectors: Sequence[Float64Array],
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return the coordinates on each layer's plane and on the joint one, and their variances."""
    with one_blas_thread():
        centred = [one - one.mean(axis=0) for one in vectors]
        totals = np.array([np.square(one).sum() for one in centred])
        is_flat = totals <= SAME * len(vectors[0])
        for layer in np.flatnonzero(is_flat):
            centred[layer] = np.zeros_like(centred[layer])
        coordinates = np.array([one @ _principal_axes(one) for one in centred])
        plane = _principal_axes(np.concatenate(centred))
        joint = np.array([one @ plane for one in centred])
    # The last layer is the anchor: the first ones often show no more than the position.
    for place in range(len(coordinates) - 2, -1, -1):
        coordinates[place] = coordinates[place] @ _procrustes(
            coordinates[place], coordinates[place + 1]
        )
    joint = joint @ _procrustes(joint[-1], coordinates[-1])
    totals = np.where(is_flat, np.nan, totals)
    explained, jointly = (
        np.square(places).sum(axis=(1, 2)) / totals for places in (coordinates, joint)
    )
    return coordinates, joint, explained, jointly


def _principal_axes(centred: Float64Array) -> Float64Array:
    """Return the first two right singular vectors, (width, 2); the largest weights are positive."""
    n, width = centred.shape
    axes = np.zeros((width, 2))
    by_rows = n < width
    product = centred @ centred.T if by_rows else centred.T @ centred
    values, vectors = np.linalg.eigh(product)
    for place, which in enumerate(range(len(values) - 1, max(len(values) - 3, -1), -1)):
        if values[which] <= 1e-10 * values[-1] or values[which] <= 0:
            break  # the uses lie on a line, or are one point
        axis = centred.T @ vectors[:, which] if by_rows else vectors[:, which]
        axis = axis / np.sqrt(np.square(axis).sum())
        largest = int(np.argmax(np.round(np.abs(axis), 9)))
        axes[:, place] = axis * np.sign(axis[largest])
    return axes


def _procrustes(moving: Float64Array, target: Float64Array) -> Float64Array:
    """Return the rotation or reflection that brings points nearest (Schönemann 1966), (2, 2)."""
    (a, b), (c, d) = (
        [float((moving[:, i] * target[:, j]).sum()) for j in range(2)] for i in range(2)
    )
    turned, mirrored = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    if turned >= mirrored * (1 - 1e-9):
        angle = np.arctan2(b - c, a + d)
        return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    angle = np.arctan2(b + c, a - d)
    return np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])
