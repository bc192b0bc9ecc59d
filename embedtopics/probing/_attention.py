"""Attention weights in one text, at every layer and head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.encoders._base import readable
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL, load_vocabulary
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.probing._layers import Layers, layer_numbers
from embedtopics.probing._open import chosen_device, load_layers, source_of
from embedtopics.probing._plan import read_texts
from embedtopics.probing.results import Attention

if TYPE_CHECKING:
    from tokenizers import Encoding


def attention(
    text: str | Sequence[str],
    encoder: Any = DEFAULT_MODEL,
    *,
    layers: Layers = "all",
    device: str | None = None,
) -> Attention:
    """Return the attention weights of one text.

    They show where information can flow, and do not explain predictions (Jain & Wallace 2019).

    Parameters
    ----------
    text : str or sequence of str
        One text, or the words of one.
    encoder : str, path or SentenceEncoder
    layers : "all", int or sequence of int
        From 1: the embedding layer has no attention; negative numbers count from the last.
    device : str, optional

    Returns
    -------
    Attention
        Special tokens included.

    Raises
    ------
    InputError
        If the text is empty or longer than what the encoder reads, or there is no such layer.
    ModelLoadError
        If the checkpoint cannot be loaded, or does not return its attention.
    """
    reading = read_texts([text])
    source = source_of(encoder)
    vocabulary = load_vocabulary(source.checkpoint, source.trusts_code)
    encoding = vocabulary.tokenizer.encode(readable(reading.texts[0]))
    if not sum(mask == 0 for mask in encoding.special_tokens_mask):
        raise InputError("text", "a text with at least one token", reading.texts[0])
    if len(encoding) > source.max_length:
        expected = f"of at most {source.max_length} tokens for {source.name}"
        raise InputError("text", expected, found=f"{len(encoding)} tokens")
    # Other implementations do not keep the weights.
    loaded = load_layers(source, chosen_device(device), attention="eager")
    chosen = tuple(sorted(set(layer_numbers(layers, range(1, loaded.n_layers)))))
    weights = _weights(loaded.model, encoding, loaded.device)
    if len(weights) != loaded.n_layers - 1:
        raise ModelLoadError(
            f"expected an encoder that returns the attention of {loaded.n_layers - 1} layers, got "
            f"{len(weights)} from {source.name}; choose another checkpoint"
        )
    return Attention(
        text=reading.texts[0],
        tokens=_surfaces(encoding, reading.texts[0]),
        layers=chosen,
        weights=np.stack([weights[layer - 1] for layer in chosen]),
        encoder=source.name,
    )


def _weights(model: Any, encoding: Encoding, device: str) -> list[np.ndarray]:
    import torch

    ids = torch.tensor([encoding.ids], device=device)
    with torch.inference_mode():
        output = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True)
    shown = getattr(output, "attentions", None) or ()
    return [layer[0].float().cpu().numpy() for layer in shown if layer is not None]


def _surfaces(encoding: Encoding, text: str) -> tuple[str, ...]:
    """Return tokens as they are written in the text, special ones by name."""
    named = zip(encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
    return tuple(
        token if special else text[begin:end].strip() or token
        for token, (begin, end), special in named
    )
