"""Who looks at whom in one text, at every layer and head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._checks import is_whole
from embedtopics.encoders.loading import load_vocabulary
from embedtopics.encoders.resolve import DEFAULT_MODEL
from embedtopics.encoders.tokenizing import readable
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.probing.opening import chosen_device, open_layered, source_of
from embedtopics.probing.reading import read_texts
from embedtopics.results import Attention

if TYPE_CHECKING:
    from tokenizers import Encoding

__all__ = ["attention"]


def attention(
    text: str | Sequence[str],
    encoder: Any = DEFAULT_MODEL,
    *,
    layers: int | str | Sequence[int] = "all",
    device: str | None = None,
) -> Attention:
    """Return the attention weights of one text.

    They show where information comes from, and are no explanation of what a model does with it
    (Jain & Wallace 2019).

    Parameters
    ----------
    text : str or sequence of str
        One text, or the words of one.
    encoder : str, path or SentenceEncoder
    layers : "all", int or sequence of int
        From 1, for the embedding layer has no attention; negative numbers count from the last.
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
        If the checkpoint cannot be loaded, or does not show its attention.
    """
    reading = read_texts([text])
    source = source_of(encoder)
    vocabulary = load_vocabulary(source.checkpoint, source.trusts_code)
    encoding = vocabulary.tokenizer.encode(readable(reading.texts[0]))
    if not sum(mask == 0 for mask in encoding.special_tokens_mask):
        raise InputError(f"expected a text with at least one token, got {reading.texts[0]!r}")
    if len(encoding) > source.max_length:
        raise InputError(
            f"expected a text of at most {source.max_length} tokens, all that {source.name} reads; "
            f"got {len(encoding)}; give a part of it"
        )
    # Other implementations do not keep the weights.
    layered = open_layered(source, chosen_device(device), attention="eager")
    chosen = _layer_numbers(layers, layered.n_layers - 1)
    weights = _weights(layered.model, encoding, layered.device)
    if len(weights) != layered.n_layers - 1:
        raise ModelLoadError(
            f"expected an encoder that shows the attention of {layered.n_layers - 1} layers, got "
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


def _layer_numbers(layers: int | str | Sequence[int], n_layers: int) -> tuple[int, ...]:
    if isinstance(layers, str) and layers == "all":
        return tuple(range(1, n_layers + 1))
    wanted: list[Any] = [layers] if is_whole(layers) else list(layers)  # type: ignore[arg-type]
    for layer in wanted:
        if not is_whole(layer) or not (1 <= layer <= n_layers or -n_layers <= layer <= -1):
            raise InputError(
                f'expected "all" or layers from 1 to {n_layers}, the last, or from -1; got '
                f"{layers!r}; the embedding layer has no attention"
            )
    if not wanted:
        raise InputError("expected at least one layer, got none")
    return tuple(sorted({int(k) if k > 0 else int(k) + n_layers + 1 for k in wanted}))


def _surfaces(encoding: Encoding, text: str) -> tuple[str, ...]:
    """Return tokens as they stand in the text; those that do not, by their names."""
    named = zip(encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
    return tuple(
        token if special else text[begin:end].strip() or token
        for token, (begin, end), special in named
    )
