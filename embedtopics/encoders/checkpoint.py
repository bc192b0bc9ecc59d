"""What a checkpoint folder says: its weights, how it pools, and how much text it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedtopics.encoders.head import Head, is_text_map, read_head, read_json, required
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
_BESIDE_THE_TOKENIZER = ("merges.txt", "added_tokens.json", "special_tokens_map.json")
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
_LEAST_LENGTH = 3
_DEPTHS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_INCIDENTAL = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures")
"""Keys of a configuration that change no vector."""
_INCIDENTAL_TO_TOKENS = (
    "backend", "chat_template", "clean_up_tokenization_spaces", "is_local", "local_files_only",
    "max_length", "model_max_length", "name_or_path", "pad_to_multiple_of", "pad_token_type_id",
    "padding_side", "processor_class", "special_tokens_map_file", "stride", "tokenizer_file",
    "transformers_version", "truncation_side", "truncation_strategy",
)  # fmt: skip
"""Keys of a tokenizer's configuration that change no token."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder, read but not loaded.

    Parameters
    ----------
    folder : Path
        Where configuration, tokenizer and weights lie.
    weights : tuple of Path
        Safetensors files.
    tokenizer_files : tuple of Path
        What tokens are made by: the file that holds the vocabulary, and then others.
    head : Head
        How hidden states become vectors.
    width : int or None
        Length of a hidden state, where the configuration tells.
    n_layers : int or None
        Layers that give hidden states, that of the embeddings counted, where it tells.
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
    tokenizer_configuration : str
        What that of the tokenizer says, without what changes no token.
    """

    folder: Path
    weights: tuple[Path, ...]
    tokenizer_files: tuple[Path, ...]
    head: Head
    width: int | None = None
    n_layers: int | None = None
    max_length: int = _DEFAULT_MAX_LENGTH
    position_limit: int | None = None
    lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
    family: str = ""
    vocabulary: int | None = None
    configuration: str = ""
    tokenizer_configuration: str = ""


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
    file = inner / "tokenizer_config.json"
    of_tokenizer: dict[str, Any] = read_json(file) if file.is_file() else {}
    declared = lengths.get("max_seq_length")
    if declared is None:
        declared = of_tokenizer.get("model_max_length")
    prompts, default = _read_prompts(folder)
    width, depth = (
        next((config[key] for key in keys if isinstance(config.get(key), int)), None)
        for keys in (_WIDTHS, _DEPTHS)
    )
    weights = _find_weights(inner)
    for file in weights:
        _check_whole(file)
    return Checkpoint(
        folder=inner,
        weights=weights,
        tokenizer_files=_find_tokenizer(inner),
        head=head,
        width=width,
        n_layers=None if depth is None else depth + 1,
        max_length=_max_length(declared, limit, inner),
        position_limit=limit,
        lower_case=bool(lengths.get("do_lower_case", False)),
        prompts=prompts,
        prompt=default,
        family=str(config.get("model_type", "")),
        vocabulary=config.get("vocab_size"),
        configuration=_without(_INCIDENTAL, config),
        tokenizer_configuration=_without(_INCIDENTAL_TO_TOKENS, of_tokenizer),
    )


def _without(incidental: tuple[str, ...], config: dict[str, Any]) -> str:
    kept = {key: value for key, value in config.items() if key not in incidental}
    return json.dumps(kept, sort_keys=True)


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
        shards = read_json(index).get("weight_map")
        if not is_text_map(shards) or not shards:
            raise ModelLoadError(
                f"expected the file of each tensor as weight_map, got none ({index}); fetch the "
                "checkpoint again"
            )
        return tuple(required(folder / shard) for shard in sorted(set(shards.values())))
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise ModelLoadError(
            f"expected weights in model.safetensors, got only {pickled[0]} in {folder}; pickled "
            "weights can run code and are never loaded: save the checkpoint again with "
            "safetensors"
        )
    return (required(single),)


def _find_tokenizer(folder: Path) -> tuple[Path, ...]:
    first, *others = (folder / name for name in (*_TOKENIZER_FILES, *_BESIDE_THE_TOKENIZER))
    if first.is_file():  # holds the vocabulary that the others hold, too
        others = others[len(_TOKENIZER_FILES) :]
    found = tuple(path for path in (first, *others) if path.is_file())
    if not found or found[0].name in _BESIDE_THE_TOKENIZER:
        required(first)
    return found


def _position_limit(config: dict[str, Any]) -> int | None:
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < 1:
        return None
    family, padding = str(config.get("model_type")), config.get("pad_token_id", 1)
    if family == "mpnet":
        return positions - 2  # whatever the configuration says of padding
    if family in _POSITIONS_AFTER_PADDING:
        if not isinstance(padding, int):
            raise ModelLoadError(
                f"expected a pad_token_id, from which a {family} counts its positions, got "
                f"{padding!r} in config.json; fetch the checkpoint again"
            )
        return positions - padding - 1
    return positions


def _max_length(declared: Any, limit: int | None, folder: Path) -> int:
    """Return the declared length, within what the model can read."""
    if declared is not None and not (
        isinstance(declared, (int, float)) and declared >= _LEAST_LENGTH
    ):
        raise ModelLoadError(
            f"expected a checkpoint that reads at least {_LEAST_LENGTH} tokens, got the length "
            f"{declared!r} ({folder}); repair max_seq_length or model_max_length"
        )
    # Tokenizers without a limit declare an astronomical one.
    known = [length for length in (declared, limit) if length is not None and length < 10**9]
    return int(min(known, default=_DEFAULT_MAX_LENGTH))


def _read_prompts(folder: Path) -> tuple[dict[str, str], str]:
    """Return all prompts, and the one that is used where none is asked for."""
    path = folder / "config_sentence_transformers.json"
    config = read_json(path) if path.is_file() else {}
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not is_text_map(prompts) or not isinstance(name, str | None):
        raise ModelLoadError(f"expected prompts that are texts, got others ({path}); repair it")
    if name and name not in prompts:
        raise ModelLoadError(
            f"expected the default prompt {name!r} among the prompts {', '.join(prompts)} ({path});"
            " repair it"
        )
    return dict(prompts), prompts[name] if name else ""
