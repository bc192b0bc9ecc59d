"""The layers of a transformer, and students that keep some of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._checks import is_whole
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.objectives.trainee import Trainee, trainee_of

if TYPE_CHECKING:
    from torch import nn

__all__ = ["THINNED", "fewer_layers", "layers_of"]

THINNED = (
    "bert", "camembert", "deberta-v2", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta",
)  # fmt: skip
"""Families whose layers do not depend on their place, and have weights of their own."""


def fewer_layers(encoder: Any, keep: int | Sequence[int]) -> Trainee:
    """Return a smaller student: an encoder of which some layers are kept.

    Its vectors are poor until it has learned from the encoder itself, as its teacher (Reimers,
    sentence-transformers documentation, "model distillation"; Sun et al., 2019, "Patient
    knowledge distillation", who skip every second layer).

    Parameters
    ----------
    encoder : str, path, SentenceEncoder or CachedEncoder
    keep : int or sequence of int
        How many layers to keep, evenly from the first to the last; or their places, from 0.

    Returns
    -------
    Trainee

    Raises
    ------
    InputError
        If the family's layers cannot be told apart, or `keep` is none, all or other layers.
    """
    trainee = trainee_of(encoder)
    recipe = None if trainee.is_static else trainee.encoder.recipe  # type: ignore[union-attr]
    family = "static" if recipe is None else recipe.checkpoint.family
    if recipe is None or family not in THINNED or recipe.layers != 1:
        raise InputError(
            f"expected an encoder that reads the last layer of a family among {', '.join(THINNED)};"
            f" got {trainee.name!r} of the family {family!r}; choose another"
        )
    model: Any = trainee.model
    transformer = model[0].model
    layers = layers_of(transformer)
    n_layers = len(layers)
    kept = _chosen(keep, n_layers)
    for place in reversed(range(n_layers)):
        if place not in kept:
            del layers[place]
    setattr(transformer.config, _depth_key(transformer), len(kept))
    listed = ", ".join(map(str, kept))
    note = Decision(
        "training",
        "kept_layers",
        [str(place) for place in kept],
        f"Of the {n_layers} layers of {trainee.name}, those at {listed} were kept.",
    )
    marks = hashlib.sha256(f"{trainee.fingerprint} layers {listed}".encode()).hexdigest()
    return replace(
        trainee,
        name=f"{trainee.name}, layers {listed}",
        fingerprint=marks,
        decisions=(*trainee.decisions, note),
    )


def layers_of(transformer: nn.Module) -> nn.ModuleList:
    """Return the list of a transformer's layers.

    Raises
    ------
    InputError
        If it has none that is as long as its configuration says.
    """
    from torch import nn

    config: Any = transformer.config
    depth = config.num_hidden_layers
    shared = getattr(config, "num_hidden_groups", None)  # ALBERT runs one layer many times
    for part in transformer.modules():
        if isinstance(part, nn.ModuleList) and len(part) == (shared or depth):
            return part
    raise InputError(
        f"expected a transformer with a list of its {depth} layers, got a "
        f"{type(transformer).__name__}, which has none; choose another checkpoint"
    )


def _depth_key(transformer: nn.Module) -> str:
    """Return the name under which a family's configuration has the number of layers."""
    names: dict[str, str] = getattr(transformer.config, "attribute_map", {})
    return names.get("num_hidden_layers", "num_hidden_layers")


def _chosen(keep: int | Sequence[int], n_layers: int) -> list[int]:
    if isinstance(keep, (int, np.integer)):
        if not is_whole(keep) or not 1 <= keep < n_layers:
            raise InputError(
                f"expected keep to be from 1 to {n_layers - 1}, fewer than the {n_layers} layers "
                f"there are; got {keep!r}"
            )
        even = np.linspace(0, n_layers - 1, int(keep)).round()
        return [int(place) for place in even]
    places = sorted({int(place) for place in keep})
    if not places or places[0] < 0 or places[-1] >= n_layers or len(places) == n_layers:
        raise InputError(
            f"expected some, and not all, of the layers 0 to {n_layers - 1}; got {keep!r}"
        )
    return places
