"""Lengths of vectors, and the dimensions that dominate them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.probing._layers import ROWS_AT_ONCE, Layers, Space, chosen_layers, open_space
from embedtopics.probing.results import HiddenStates, LayerNorms
from embedtopics.protocols import Int64Array

OUTLYING = 3.0
"""Standard deviations from the mean of all dimensions."""


def norms(states: HiddenStates, *, layers: Layers = "all") -> LayerNorms:
    """Measure the lengths of vectors, and what each dimension adds to the mean cosine.

    Where a few dimensions (Kovaleva et al. 2021, "BERT busters: outlier dimensions that disrupt
    transformers") add most of the mean cosine of units of different sentences, compare adjusted
    vectors (Timkey and van Schijndel 2021, "All bark and no bite", equation 3 and section 5).

    Parameters
    ----------
    states : HiddenStates
    layers : int, sequence of int, "all" or "last N"

    Returns
    -------
    LayerNorms

    Raises
    ------
    InputError
        If fewer than two sentences have units with a vector.
    """
    numbers = chosen_layers(states, layers)
    rows = np.flatnonzero(~states.missing)
    sentences = states.sentences[rows]
    if len(np.unique(sentences)) < 2:
        raise InputError("states", "with units of two sentences or more", found="one sentence")
    found = [_measure(open_space(states, number), rows, sentences) for number in numbers]
    columns = {name: np.array([one[name] for one in found]) for name in found[0]}
    means = columns["dimension_means"]
    spread = means.std(axis=1, keepdims=True)
    is_outlier = np.abs(means - means.mean(axis=1, keepdims=True)) > OUTLYING * spread
    return LayerNorms(
        states.encoder,
        numbers,
        len(rows),
        is_outlier=is_outlier,
        decisions=states.decisions,
        **columns,
    )


def _measure(space: Space, rows: Int64Array, sentences: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Return the measures of one layer by the names of `LayerNorms`."""
    n, width = len(rows), space.vectors.shape[1]
    lengths = np.empty(n)
    total, squared, sums = np.zeros(width), np.zeros(width), np.zeros(width)
    for part in _whole_sentences(sentences):
        read = space.raw(rows[part])
        sums += read.sum(axis=0)
        lengths[part] = np.sqrt(np.einsum("ij,ij->i", read, read))
        read /= np.where(lengths[part] > 0, lengths[part], 1.0)[:, None]
        starts = np.unique(sentences[part], return_index=True)[1]
        of_sentence = np.add.reduceat(read, starts, axis=0)
        total += of_sentence.sum(axis=0)
        squared += np.einsum("ij,ij->j", of_sentence, of_sentence)
    mean = sums / n
    variance = np.zeros(width)
    for part in _whole_sentences(sentences):
        away = space.raw(rows[part]) - mean
        variance += np.einsum("ij,ij->j", away, away) / n
    sizes = np.unique(sentences, return_counts=True)[1].astype(np.float64)
    contributions = (total**2 - squared) / (float(n) ** 2 - float(sizes @ sizes))
    low, median, high = np.quantile(lengths, [0.025, 0.5, 0.975])
    return {
        "mean": lengths.mean(),
        "sd": lengths.std(),
        "low": low,
        "median": median,
        "high": high,
        "mean_cosine": contributions.sum(),
        "contributions": contributions,
        "dimension_means": mean,
        "dimension_sds": np.sqrt(variance),
    }


def _whole_sentences(sentences: npt.NDArray[np.int32]) -> Iterator[slice]:
    """Cut rows between sentences into blocks that fit into memory."""
    ends = np.append(np.flatnonzero(np.diff(sentences)) + 1, len(sentences))
    begin = 0
    while begin < len(sentences):
        # The last end within reach; a longer sentence is taken whole.
        fits = int(np.searchsorted(ends, begin + ROWS_AT_ONCE, side="right")) - 1
        end = int(ends[fits]) if fits >= 0 and ends[fits] > begin else 0
        if not end:
            end = int(ends[np.searchsorted(ends, begin, side="right")])
        yield slice(begin, end)
        begin = end
