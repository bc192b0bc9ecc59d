"""What a checkpoint folder says: its weights, how it pools, and how much text it reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedtopics.encoders.head import Head, read_head, read_json, required
from embedtopics.errors import ModelLoadError

__all__ = ["Checkpoint", "read_checkpoint"]

_TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
    "spm.model",
)
_LENGTH_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
# These number positions from pad_token_id + 1 on, so that part of their table is never used.
_POSITIONS_AFTER_PADDING = frozenset(
    {"camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta"}
    | {"roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"}
)
_DEFAULT_MAX_LENGTH = 512
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_INCIDENTAL = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures")
"""Keys of a configuration that change no vector."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder, read but not loaded.

    Parameters
    ----------
    folder : Path
        Where configuration, tokenizer and weights lie.
    weights : tuple of Path
        Safetensors files.
    tokenizer_file : Path
        The file that holds the vocabulary.
    head : Head
        How hidden states become vectors.
    width : int or None
        Length of a hidden state, where the configuration tells.
    max_length : int
        Most tokens that are read of a text, special tokens included.
    position_limit : int or None
        Most tokens that the model can read; None where it has no limit.
    lower_case : bool
        Whether the text is lower-cased before the tokenizer sees it.
    prompts : mapping of str to str
        Words that the checkpoint was trained to see before a text, by their purpose.
    prompt : str
        The one to be put before every text where none is asked for.
    family : str
        ``model_type`` of the configuration.
    vocabulary : int or None
        Tokens that the weights know.
    configuration : str
        What the configuration says, without what changes no vector.
    """

    folder: Path
    weights: tuple[Path, ...]
    tokenizer_file: Path
    head: Head
    width: int | None = None
    max_length: int = _DEFAULT_MAX_LENGTH
    position_limit: int | None = None
    lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
    family: str = ""
    vocabulary: int | None = None
    configuration: str = ""


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a sentence-transformers folder, or a plain Hugging Face one.

    A plain folder does not say how its token vectors become one vector; the mean of the
    tokens, scaled to length 1, is used.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelLoadError
        If a file is missing or broken, the weights are pickled, or the folder asks for
        something that is not supported.
    """
    head, inner = read_head(folder)
    lengths: dict[str, Any] = next(
        (read_json(inner / f) for f in _LENGTH_FILES if (inner / f).is_file()), {}
    )
    if (task := lengths.get("transformer_task", "feature-extraction")) != "feature-extraction":
        raise ModelLoadError(
            f"expected a checkpoint that gives token vectors, got transformer_task {task!r} "
            f"({inner}); choose an encoder checkpoint"
        )
    config = read_json(required(inner / "config.json"))
    if config.get("is_encoder_decoder"):
        raise ModelLoadError(
            f"expected an encoder, got an encoder-decoder of type {config.get('model_type')!r} "
            f"({inner / 'config.json'}); choose an encoder checkpoint"
        )
    limit = _position_limit(config)
    prompts, default = _read_prompts(folder)
    width = next((config[key] for key in _WIDTHS if isinstance(config.get(key), int)), None)
    weights = _find_weights(inner)
    for file in weights:
        _check_whole(file)
    return Checkpoint(
        folder=inner,
        weights=weights,
        tokenizer_file=_find_tokenizer(inner),
        head=head,
        width=width,
        max_length=_max_length(lengths.get("max_seq_length"), inner, limit),
        position_limit=limit,
        lower_case=bool(lengths.get("do_lower_case", False)),
        prompts=prompts,
        prompt=default,
        family=str(config.get("model_type", "")),
        vocabulary=config.get("vocab_size"),
        configuration=json.dumps(
            {key: value for key, value in config.items() if key not in _INCIDENTAL},
            sort_keys=True,
        ),
    )


def _check_whole(file: Path) -> None:
    """Make sure that a safetensors file holds as many bytes as its header says.

    A download that broke off is found in a millisecond, and before torch is loaded.
    """
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        try:
            header = json.loads(opened.read(length)) if 0 < length <= size - 8 else {}
            ends = [t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError):
            ends = []
    if not ends or size != 8 + length + max(ends):
        found = f"{8 + length + max(ends):,}" if ends else "a header"
        raise ModelLoadError(
            f"expected whole safetensors weights in {file}, got {size:,} bytes where {found} "
            "should be; fetch the checkpoint again"
        )


def _find_weights(folder: Path) -> tuple[Path, ...]:
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return (single,)
    if index.is_file():
        shards: Iterable[str] = read_json(index)["weight_map"].values()
        return tuple(required(folder / shard) for shard in sorted(set(shards)))
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise ModelLoadError(
            f"expected weights in model.safetensors, got only {pickled[0]} in {folder}; pickled "
            "weights can run code and are never loaded: save the checkpoint again with "
            "safetensors"
        )
    return (required(single),)


def _find_tokenizer(folder: Path) -> Path:
    found = (folder / name for name in _TOKENIZER_FILES if (folder / name).is_file())
    return next(found, None) or required(folder / _TOKENIZER_FILES[0])


def _position_limit(config: dict[str, Any]) -> int | None:
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < 1:
        return None
    if config.get("model_type") in _POSITIONS_AFTER_PADDING:
        positions -= int(config.get("pad_token_id", 1)) + 1
    return positions


def _max_length(declared: int | None, folder: Path, limit: int | None) -> int:
    """Return the declared length, else the tokenizer's, within what the model can read."""
    if declared is None and (folder / "tokenizer_config.json").is_file():
        declared = read_json(folder / "tokenizer_config.json").get("model_max_length")
    # Tokenizers without a limit declare an astronomical one.
    known = [length for length in (declared, limit) if length is not None and length < 10**9]
    return int(min(known, default=_DEFAULT_MAX_LENGTH))


def _read_prompts(folder: Path) -> tuple[dict[str, str], str]:
    """Return all prompts, and the one that is used where none is asked for."""
    path = folder / "config_sentence_transformers.json"
    config = read_json(path) if path.is_file() else {}
    prompts = config.get("prompts") or {}
    if not all(isinstance(text, str) for text in prompts.values()):
        raise ModelLoadError(f"expected prompts that are texts, got others ({path}); repair it")
    name = config.get("default_prompt_name")
    return dict(prompts), prompts.get(name, "") if name else ""
