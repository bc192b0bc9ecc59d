"""Separation of the labelled senses of a word, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import resolve_seed
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import counted
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.evaluation._labels import silhouettes
from embedtopics.probing._layers import (
    Layers,
    blocks,
    layer_numbers,
    lengths_of,
    one_blas_thread,
    open_space,
)
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import by_text, numbered, rows_of_word, word_key
from embedtopics.probing.words.results import SenseScore, SenseSeparation
from embedtopics.protocols import Float64Array, Int64Array, RandomState

MEASURES = ("1-NN accuracy", "centroid accuracy", "silhouette")
MAJORITY = "majority"
QUERIES_AT_ONCE = 1024


def sense_separation(
    states: HiddenStates,
    word: str,
    labels: Sequence[str],
    *,
    layers: Layers = "all",
    random_state: RandomState = 0,
) -> SenseSeparation:
    """Measure how well each layer separates labelled senses of a word.

    "1-NN accuracy" assigns each use the sense of the nearest other use of the word, and "centroid
    accuracy" the sense with the nearest centroid; both exclude uses in the same text and in texts
    with the same wording. "silhouette" is the mean silhouette of the senses by cosine. "majority"
    is the share of the most frequent sense, a baseline for the accuracies.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens.
    word : str
    labels : sequence of str
        The sense of each use in order; uses with "", None or NaN are left out.
    layers : int, sequence of int, "all" or "last N"
    random_state : int, Generator or None
        Seed of the intervals, over texts; the neighbors stay the same.

    Returns
    -------
    SenseSeparation

    Raises
    ------
    InputError
        If labels and uses do not match, or there are not two senses in at least two texts.

    References
    ----------
    Loureiro et al. (2021), "Analysis and evaluation of language models for word sense
    disambiguation", sections 4 and 5. Rousseeuw (1987), "Silhouettes".
    """
    rows = rows_of_word(states, word)
    if len(labels) != len(rows):
        raise InputError("labels", f"a sense for each of the {len(rows)} uses", labels)
    senses = np.array(["" if is_missing(label) else str(label) for label in labels])
    labelled = np.flatnonzero(senses != "")
    message = f"of {len(rows)} uses without a sense were left out."
    decisions = counted("probing", "uses_left_out", len(rows) - len(labelled), message)
    order = labelled[by_text(states, rows[labelled])]
    uses, names = rows[order], np.unique(senses[order])
    classes = np.searchsorted(names, senses[order])
    texts = numbered([states.texts[text] for text in states.of_text[uses]])
    if len(names) < 2 or texts.max() < 1:
        raise InputError("labels", "of two senses or more, in at least two texts")
    numbers = layer_numbers(layers, states.layers)
    columns = [(classes == np.bincount(classes).argmax()).astype(np.float64)]
    with one_blas_thread():
        for number in numbers:
            vectors = open_space(states, number).unit(uses)
            columns.append((classes[_nearest_elsewhere(vectors, texts)] == classes).astype(float))
            columns.append((_nearest_centroid(vectors, classes, texts) == classes).astype(float))
            columns.append(silhouettes(vectors, classes))
    # The means, then those over resampled texts.
    n_texts = int(texts.max()) + 1
    by_text_sums = np.zeros((n_texts, len(columns) + 1))
    np.add.at(by_text_sums, texts, np.stack([*columns, np.ones(len(uses))], axis=1))
    resampled = resampled_sums(by_text_sums, seed=resolve_seed(random_state))
    sums = np.concatenate([by_text_sums.sum(axis=0)[None], resampled])
    drawn = sums[:, :-1] / sums[:, -1:]
    measures: list[tuple[int | None, str]] = [(None, MAJORITY)]
    measures += [(number, measure) for number in numbers for measure in MEASURES]
    least = np.array([-1.0 if measure == "silhouette" else 0.0 for _, measure in measures])
    low, high = bounded_interval(drawn[0], drawn[1:], n_texts, bounds=(least, 1.0))
    return SenseSeparation(
        encoder=states.encoder,
        word=word_key(word.strip()),
        n_senses=len(names),
        rows=tuple(
            SenseScore(*one, float(drawn[0, i]), float(low[i]), float(high[i]), len(uses))
            for i, one in enumerate(measures)
        ),
        decisions=(*states.decisions, *decisions),
    )


def _nearest_elsewhere(vectors: Float64Array, texts: npt.NDArray[Any]) -> Int64Array:
    """Return the place of the nearest use in another text; of equal ones the first."""
    nearest = np.empty(len(vectors), dtype=np.int64)
    for part in blocks(len(vectors), QUERIES_AT_ONCE):
        cosines = vectors[part] @ vectors.T
        cosines[texts[part][:, None] == texts] = -np.inf
        nearest[part] = cosines.argmax(axis=1)
    return nearest


def _nearest_centroid(
    vectors: Float64Array, classes: npt.NDArray[Any], texts: npt.NDArray[Any]
) -> Int64Array:
    """Return the class whose mean, without the uses in the same text, is nearest."""
    n_classes = int(classes.max()) + 1
    sums = np.array([vectors[classes == c].sum(axis=0) for c in range(n_classes)])
    sizes = np.bincount(classes, minlength=n_classes)
    order = np.argsort(texts, kind="stable")
    starts = np.searchsorted(texts[order], np.arange(int(texts.max()) + 2))
    predicted = np.empty(len(vectors), dtype=np.int64)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        in_text = order[begin:end]
        others, left = sums.copy(), sizes.copy()
        for use in in_text.tolist():
            others[classes[use]] -= vectors[use]
            left[classes[use]] -= 1
        cosines = np.einsum("ij,kj->ik", vectors[in_text], others) / lengths_of(others)
        predicted[in_text] = np.where(left > 0, cosines, -np.inf).argmax(axis=1)
    return predicted
