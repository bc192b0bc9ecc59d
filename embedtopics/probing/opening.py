"""From what a user names to a transformer that shows its layers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from embedtopics._checks import checked_count
from embedtopics.encoders import CachedEncoder, SentenceEncoder, resolve_encoder
from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.hub import one_line
from embedtopics.encoders.loading import load_model, require_device
from embedtopics.encoders.resolve import contents_of
from embedtopics.encoders.runtime import has_gpu
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.results import Decision

__all__ = ["Layered", "Source", "chosen_device", "open_layered", "source_of"]


@dataclass(frozen=True, eq=False)
class Source:
    """A checkpoint, and how it is read.

    Parameters
    ----------
    name : str
    checkpoint : Checkpoint
    max_length : int
        Tokens of a window, special tokens included.
    trusts_code : bool
    decisions : tuple of Decision
    """

    name: str
    checkpoint: Checkpoint
    max_length: int
    trusts_code: bool
    decisions: tuple[Decision, ...]

    def digest(self) -> str:
        """Return the SHA-256 over weights, vocabulary and configuration."""
        contents = (contents_of(self.checkpoint), self.checkpoint.lower_case)
        return hashlib.sha256(repr(contents).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Layered:
    """A loaded transformer.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    device : str
    n_layers : int
        That of the embeddings counted.
    width : int
    """

    model: Any
    device: str
    n_layers: int
    width: int


def source_of(encoder: Any, max_length: int | None = None) -> Source:
    """Find the checkpoint that is meant.

    Parameters
    ----------
    encoder : str, path, SentenceEncoder or CachedEncoder
    max_length : int, optional

    Raises
    ------
    InputError
        If it is an encoder without layers, or cannot read so many tokens.
    ModelLoadError
        If the checkpoint cannot be found, read or verified.
    """
    found: Any = resolve_encoder(encoder)
    if isinstance(found, CachedEncoder):
        found = found.uncached
    if not isinstance(found, SentenceEncoder):
        raise InputError(
            f"expected a transformer, whose layers can be looked at; got {type(found).__name__}; "
            "name a checkpoint, or give its folder or a SentenceEncoder"
        )
    recipe = found.recipe
    checkpoint, limit = recipe.checkpoint, recipe.checkpoint.position_limit
    if max_length is not None:
        checked_count(max_length, "max_length", 3)
        if limit is not None and max_length > limit:
            raise InputError(
                f"expected max_length to be at most {limit}, all that this model can read; got "
                f"{max_length}; longer texts are read in overlapping windows"
            )
    decisions: tuple[Decision, ...] = ()
    if recipe.prompt:
        message = f"The prompt {recipe.prompt!r} is not put before the texts."
        decisions = (Decision("probing", "prompt", recipe.prompt, message),)
    return Source(
        name=found.name,
        checkpoint=checkpoint,
        max_length=recipe.max_length if max_length is None else int(max_length),
        trusts_code=recipe.trusts_code,
        decisions=decisions,
    )


def chosen_device(device: str | None) -> str:
    """Return the device that is meant: by default a GPU where there is one.

    Raises
    ------
    InputError
        If torch does not know it, or it is not there.
    """
    if device is None:
        return "cuda" if has_gpu() else "cpu"
    require_device(device)
    return device


def open_layered(source: Source, device: str, attention: str | None = None) -> Layered:
    """Load a transformer, and make sure that it is an encoder that shows all layers.

    Parameters
    ----------
    source : Source
    device : str
    attention : str, optional
        Implementation of attention.

    Raises
    ------
    ModelLoadError
        If it cannot be loaded, reads forwards only, or has layers of several shapes.
    """
    model = load_model(
        source.checkpoint, attention=attention, trust_remote_code=source.trusts_code
    ).to(device)
    n_layers, width = _look_at(model, source.checkpoint, device)
    return Layered(model, device, n_layers, width)


def _look_at(model: Any, checkpoint: Checkpoint, device: str) -> tuple[int, int]:
    """Run two sequences that differ in their last token, and see what the layers make of them."""
    import torch

    padding = getattr(model.config, "pad_token_id", None)
    one, two, three = [token for token in range(4) if token != padding][:3]
    ids = torch.tensor([[one, two], [one, three]], device=device)
    folder = checkpoint.folder
    try:
        with torch.inference_mode():
            output = model(
                input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True
            )
        states = output.hidden_states
        shapes = {tuple(layer.shape) for layer in states}
    except Exception as error:  # whatever a model without layers, or of another kind, makes of it
        raise ModelLoadError(
            f"expected an encoder that shows its layers, got {folder} of the family "
            f"{checkpoint.family!r}: {one_line(error)}; choose another checkpoint"
        ) from None
    if len(shapes) != 1 or states[0].shape[:2] != ids.shape:
        raise ModelLoadError(
            f"expected layers with one vector a token, all of one length; got the shapes "
            f"{sorted(shapes)} ({folder}); choose another checkpoint"
        )
    if torch.equal(states[-1][0, 0], states[-1][1, 0]):
        raise ModelLoadError(
            f"expected an encoder, whose tokens see what stands on both sides of them; got {folder}"
            f" of the family {checkpoint.family!r}, which reads forwards only; choose an encoder "
            "checkpoint such as a BERT"
        )
    return len(states), int(states[0].shape[2])
