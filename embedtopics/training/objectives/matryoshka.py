"""Vectors whose beginnings are vectors: losses taken at several lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.objectives.distilled import PROJECTED
from embedtopics.training.objectives.objective import Objective

__all__ = ["lengths_of", "with_matryoshka"]

_OF_ONE_LENGTH = ("nli: softmax", "texts: TSDAE", PROJECTED)
"""Objectives with a layer for vectors of one length alone."""


def with_matryoshka(objective: Objective, dims: Sequence[int]) -> Objective:
    """Let the beginnings of the vectors learn the same as the whole.

    The loss is the sum of the losses of vectors cut to each length, and scaled to length 1
    (Kusupati et al., 2022, "Matryoshka representation learning", equation 1).

    Parameters
    ----------
    objective : Objective
    dims : sequence of int
        Lengths; the whole length is always among them.

    Returns
    -------
    Objective
        Its `make_loss` raises InputError where a length is more than the model has.

    Raises
    ------
    InputError
        If there is no length, or the objective has a layer that reads one length alone.
    """
    lengths = sorted({checked_count(length, "matryoshka") for length in dims}, reverse=True)
    if not lengths:
        raise InputError("expected at least one length of shorter vectors, got none")
    if objective.name in _OF_ONE_LENGTH:
        raise InputError(
            f"expected an objective that compares vectors, got {objective.name!r}, which has "
            'a layer for vectors of one length; learn with another, such as "nli: ranking"'
        )

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

        inner = objective.make_loss(model, given)
        return MatryoshkaLoss(given, inner, list(lengths_of(lengths, _width(given))))

    note = Decision(
        "training",
        "matryoshka",
        [str(length) for length in lengths],
        f"Vectors cut to their first {', '.join(map(str, lengths))} numbers learned as well.",
    )
    examples = replace(objective.examples, decisions=(*objective.examples.decisions, note))
    return replace(
        objective,
        name=f"{objective.name}, matryoshka",
        examples=examples,
        make_loss=make_loss,
        metric=_inner_metric(objective),
    )


def lengths_of(dims: Sequence[int], width: int) -> tuple[int, ...]:
    """Return the lengths at which vectors learn, the whole first.

    Raises
    ------
    InputError
        If one is longer than the whole.
    """
    lengths = sorted({width, *dims}, reverse=True)
    if lengths[0] > width:
        raise InputError(
            f"expected lengths of at most {width}, that of the encoder's vectors, for matryoshka; "
            f"got {lengths[0]}"
        )
    return tuple(lengths)


def _inner_metric(objective: Objective) -> Any:
    """Return the metric of whole vectors, which looks at the loss that was wrapped."""
    metric = objective.metric
    if metric is None:
        return None
    return lambda embeddings, labels, loss, keys: metric(embeddings, labels, loss.loss, keys)


def _width(given: Any) -> int:
    return int(given.get_embedding_dimension())
