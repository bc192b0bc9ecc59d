"""All that a sentence encoder's vector depends on, checked and fingerprinted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.encoders.sentence._backend import number_format
from embedtopics.encoders.sentence._checkpoint import (
    POOLINGS,
    Checkpoint,
    Dense,
    Scale,
    Step,
    normalized_layers,
)
from embedtopics.encoders.sentence._loading import contents_of, hash_file, resolve_model
from embedtopics.errors import InputError

PRECISIONS = ("float32", "int8", "float16", "bfloat16")
LONG_TEXTS = ("truncate", "chunk")


@dataclass(frozen=True, eq=False)
class Recipe:
    """How texts become vectors."""

    name: str
    revision: str | None
    source: str
    checkpoint: Checkpoint
    pooling: tuple[str, ...]
    layers: int | tuple[float, ...]
    steps: tuple[Step, ...]
    normalize: bool
    dimensions: int | None
    max_length: int
    prompt: str
    precision: str
    long_texts: str
    trusts_code: bool = False

    @property
    def width(self) -> int | None:
        """Length of a vector before it is cut; None where the configuration does not tell."""
        dense = [step for step in self.steps if isinstance(step, Dense)]
        if dense:
            return len(dense[-1].bias)
        width = self.checkpoint.width
        return None if width is None else width * len(self.pooling)


def make_recipe(
    name: str | os.PathLike[str],
    *,
    revision: str | None,
    pooling: str | Sequence[str] | None,
    layers: int | Sequence[float] | None,
    normalize: bool | None,
    dimensions: int | None,
    max_length: int | None,
    prompt: str | None,
    precision: str,
    long_texts: str,
    trust_remote_code: bool,
    local_files_only: bool,
) -> Recipe:
    """Find a checkpoint, and resolve how it is used; parameters are those of `SentenceEncoder`."""
    _check_choice("precision", precision, PRECISIONS)
    _check_choice("long_texts", long_texts, LONG_TEXTS)
    modes = None if pooling is None else (pooling,) if isinstance(pooling, str) else tuple(pooling)
    for mode in modes or ():
        _check_choice("pooling", mode, POOLINGS)
    files = resolve_model(
        name, revision=revision, local_files_only=local_files_only, with_code=trust_remote_code
    )
    checkpoint, head = files.checkpoint, files.checkpoint.head
    ends_scaled = bool(head.steps) and isinstance(head.steps[-1], Scale)
    recipe = Recipe(
        name=os.fspath(name),
        revision=revision,
        source=files.source,
        checkpoint=checkpoint,
        pooling=modes or head.pooling,
        layers=head.layers if layers is None else _checked_layers(layers),
        steps=head.steps[:-1] if ends_scaled else head.steps,
        normalize=ends_scaled if normalize is None else bool(normalize),
        dimensions=dimensions,
        max_length=_choose_length(max_length, checkpoint),
        prompt=checkpoint.prompt if prompt is None else checkpoint.prompts.get(prompt, prompt),
        precision=precision,
        long_texts=long_texts,
        trusts_code=trust_remote_code,
    )
    _check_widths(recipe)
    return recipe


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Return the arguments that make the encoder again."""
    return {
        # A folder is found again from wherever the process is.
        "name": os.path.abspath(recipe.name) if recipe.source == "path" else recipe.name,
        "revision": recipe.revision,
        "pooling": recipe.pooling[0] if len(recipe.pooling) == 1 else list(recipe.pooling),
        "layers": recipe.layers if isinstance(recipe.layers, int) else list(recipe.layers),
        "normalize": recipe.normalize,
        "dimensions": recipe.dimensions,
        "max_length": recipe.max_length,
        "prompt": recipe.prompt,
        "precision": recipe.precision,
        "long_texts": recipe.long_texts,
    }


def fingerprint_of(recipe: Recipe) -> str:
    """Return the SHA-256 over all that a vector depends on."""
    checkpoint = recipe.checkpoint
    steps = [
        (hash_file(step.file), step.activation) if isinstance(step, Dense) else "scale"
        for step in recipe.steps
    ]
    how = (
        recipe.pooling, recipe.layers, recipe.normalize, recipe.dimensions, recipe.max_length,
        recipe.prompt, checkpoint.head.pools_prompt, checkpoint.lower_case, recipe.long_texts,
        number_format(recipe.precision),
    )  # fmt: skip
    parts = (contents_of(checkpoint), steps, how)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"expected {name} to be one of {', '.join(choices)}; got {value!r}")


def _checked_layers(layers: int | Sequence[float]) -> int | tuple[float, ...]:
    if isinstance(layers, (int, np.integer)):
        checked_count(layers, "layers")
        return int(layers)
    weights = np.asarray(layers, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or not weights.sum():
        raise InputError(
            "expected layers to be a number of last layers, or one finite weight for each layer "
            f"with a sum other than 0; got {layers!r}"
        )
    return normalized_layers(weights)


def _choose_length(wanted: int | None, checkpoint: Checkpoint) -> int:
    if wanted is None:
        return checkpoint.max_length
    checked_count(wanted, "max_length", 3)
    if checkpoint.position_limit is not None and wanted > checkpoint.position_limit:
        raise InputError(
            f"expected max_length to be at most {checkpoint.position_limit}, all that this model "
            f"can read, got {wanted}; give a smaller one or choose a model for longer texts"
        )
    return int(wanted)


def _check_widths(recipe: Recipe) -> None:
    """Make sure that what is pooled fits what comes after, and leaves as much as is wanted."""
    width, n_layers = recipe.checkpoint.width, recipe.checkpoint.n_layers
    if n_layers is not None:
        wanted = recipe.layers if isinstance(recipe.layers, int) else len(recipe.layers)
        if wanted > n_layers or (wanted < n_layers and not isinstance(recipe.layers, int)):
            raise InputError(
                f"expected at most {n_layers} last layers, or one weight for each of the "
                f"{n_layers}, that of the embeddings first; got {wanted}"
            )
    for step in recipe.steps:
        if not isinstance(step, Dense):
            continue
        if width is not None and width * len(recipe.pooling) != step.weight.shape[1]:
            raise InputError(
                f"expected a pooling that gives the {step.weight.shape[1]} numbers which the dense "
                f"layer of this checkpoint takes, got {' + '.join(recipe.pooling)}; leave pooling "
                "out to do as the checkpoint says"
            )
        break
    if recipe.dimensions is not None:
        checked_count(recipe.dimensions, "dimensions")
        if recipe.width is not None and recipe.dimensions > recipe.width:
            raise InputError(
                f"expected dimensions to be at most {recipe.width}, the length of this encoder's "
                f"vectors, got {recipe.dimensions}"
            )
