"""How many bits the labels take, told one portion after the other by a probe that learns them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.estimates import estimate
from embedtopics.probing.probes.asking import Asked, Source
from embedtopics.probing.probes.features import Features
from embedtopics.probing.probes.fitting import fit, log_probabilities, run_side_by_side
from embedtopics.probing.probes.parts import DEV, TRAIN, Units
from embedtopics.probing.probes.scoring import mean_per_unit, score
from embedtopics.protocols import Int64Array
from embedtopics.results import ProbeScore

__all__ = ["described", "online_bits", "portions_of"]

PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of the train part after which the probe is trained anew (Voita and Titov 2020, section
2.2.2)."""


def described(
    sources: Sequence[Source], units: Units, target: Int64Array, asked: Asked
) -> list[ProbeScore]:
    """Return bits per label and compression of the train part's labels, by layer.

    Parameters
    ----------
    sources : sequence of Source
    units : Units
    target : int64 ndarray of shape (n_units, n_tasks)
        The labels, and those of the control.
    asked : Asked
    """
    found = run_side_by_side(
        lambda source: online_bits(source, units, target, asked),
        list(sources),
        description="describing labels",
        show_progress=asked.show_progress,
    )
    group = units.group[units.of(TRAIN)]
    plainly = np.log2(len(units.classes))
    scores = []
    for source, bits in zip(sources, found, strict=True):
        for what, own in zip((source.what, "control"), bits.T, strict=False):
            length = mean_per_unit(own, group, asked.seed)
            shorter = estimate(plainly / length.value, plainly / length.drawn, length.n)
            scores.append(score(what, source.layer, "bits per label", length))
            scores.append(score(what, source.layer, "compression", shorter))
    return scores


def online_bits(
    source: Source, units: Units, target: Int64Array, asked: Asked
) -> npt.NDArray[np.float64]:
    """Return the bits of each label of the train part, by the online code.

    The labels of the first portion are told plainly, by log2 of the number of classes each. From
    then on a probe that was trained on all portions so far tells those of the next, at minus log2
    of the probability that it gives them (Voita and Titov 2020, equation 3).

    Parameters
    ----------
    source : Source
    units : Units
    target : int64 ndarray of shape (n_units, n_tasks)
    asked : Asked

    Returns
    -------
    float64 ndarray of shape (n_train, n_tasks)
    """
    train, dev = units.of(TRAIN), units.of(DEV)
    bits = np.full((len(train), target.shape[1]), np.log2(len(units.classes)))
    features = Features(source.vectors, units.rows)
    ends = portions_of(units.group[train])
    for end, following in itertools.pairwise(ends):
        known, told = train[:end], train[end:following]
        seen = features.standardised(known)
        found = fit(
            seen,
            target,
            len(units.classes),
            known,
            dev,
            asked.architecture,
            asked.plan,
            seed=asked.seed,
        )
        for task, weights in enumerate(found.parameters):
            said = log_probabilities(seen, told, asked.architecture, weights).astype(np.float64)
            right = said[np.arange(len(told)), target[told, task]]
            bits[end:following, task] = -right / np.log(2)
    return bits


def portions_of(group: Int64Array) -> list[int]:
    """Return after how many units each portion ends, always behind a whole sentence.

    Parameters
    ----------
    group : int64 ndarray of shape (n_train,)
        Sentences, each in one run.

    Returns
    -------
    list of int
        Ascending; fewer than the portions where sentences are few.

    Examples
    --------
    >>> import numpy as np
    >>> portions_of(np.repeat(np.arange(1000), 5))[:6]
    [5, 10, 20, 40, 80, 160]
    """
    ends = np.append(np.flatnonzero(np.diff(group)) + 1, len(group))
    wanted = np.array(PORTIONS) * len(group)
    nearest = np.abs(ends[None, :] - wanted[:, None]).argmin(axis=1)
    return [int(end) for end in np.unique(ends[nearest])]
