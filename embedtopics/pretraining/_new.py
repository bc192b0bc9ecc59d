"""An encoder from nothing: a tokenizer of one's own, and random weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import silent_transformers
from embedtopics.errors import InputError
from embedtopics.training.objectives._trainable import KIND

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

HEAD_WIDTH = 64
"""Width of an attention head, as in BERT."""

_FORMAT = 1


def new_encoder(
    tokenizer: PreTrainedTokenizerFast,
    *,
    out: str | os.PathLike[str],
    layers: int = 4,
    width: int = 256,
    max_length: int = 128,
    random_state: Any = 0,
) -> SentenceEncoder:
    """Make a BERT with random weights for a tokenizer: for teaching, and for languages without one.

    It knows nothing before `pretrain`. A model of 4 layers and 256 dimensions learns from some
    millions of words what a checkpoint of the hub learned from billions; measure it beside one.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
        Such as `train_tokenizer` returns; with tokens for masking and padding.
    out : path
        Folder for the encoder, its head for masked words and the tokenizer.
    layers, width : int
        Layers, and length of a vector, a multiple of 64 or less than it; the inner layers are four
        times as wide, and each 64 dimensions have an attention head (Devlin et al. 2019).
    max_length : int
        Most tokens of a text.
    random_state : int, Generator or None

    Returns
    -------
    SentenceEncoder
        The mean of the token vectors, of length 1.

    Raises
    ------
    InputError
        If a parameter is bad.

    Examples
    --------
    >>> tokenizer = train_tokenizer(corpus, "wordpiece")  # doctest: +SKIP
    >>> pretrain(new_encoder(tokenizer, out="empty"), corpus, out="mine")  # doctest: +SKIP
    """
    import torch
    from transformers import BertConfig, BertForMaskedLM

    for name, value, least in (("layers", layers, 1), ("width", width, 2),
                               ("max_length", max_length, 3)):  # fmt: skip
        checked_count(value, name, least)
    if width > HEAD_WIDTH and width % HEAD_WIDTH:
        raise InputError("width", f"a multiple of {HEAD_WIDTH}, or less than it", width)
    needed = ("pad_token_id", "mask_token_id", "unk_token_id")
    lacking = [name for name in needed if getattr(tokenizer, name, None) is None]
    if lacking or not hasattr(tokenizer, "save_pretrained"):
        expected = "a tokenizer of transformers with tokens for padding, masks and the unknown"
        raise InputError("tokenizer", expected, type(tokenizer).__name__)
    folder = check_output_folder(Path(out), KIND)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=int(width),
        num_hidden_layers=int(layers),
        num_attention_heads=max(1, width // HEAD_WIDTH),
        intermediate_size=4 * int(width),
        max_position_embeddings=int(max_length),
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]), silent_transformers():
        torch.manual_seed(resolve_seed(random_state) % 2**63)
        model = BertForMaskedLM(config)
        with replacing_folder(folder, KIND) as fresh:
            model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
            write_manifest(fresh, KIND, _FORMAT)
    return SentenceEncoder(folder)
