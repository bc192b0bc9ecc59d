"""What a checkpoint folder says: its weights, how it pools, and how much text it reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedtopics.encoders.pooling import POOLINGS
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
_MODULES = ("Transformer", "Pooling", "Normalize")
_DEFAULT_MAX_LENGTH = 512


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
    pooling : {"mean", "cls", "max"}
    normalize : bool
        Whether vectors are scaled to length 1.
    max_length : int
        Most tokens that are read of a text, special tokens included.
    position_limit : int or None
        Most tokens that the model can read; None where it has no limit.
    lower_case : bool
        Whether the text is lower-cased before the tokenizer sees it.
    prompt : str
        Put before every text.
    """

    folder: Path
    weights: tuple[Path, ...]
    tokenizer_file: Path
    pooling: str = "mean"
    normalize: bool = True
    max_length: int = _DEFAULT_MAX_LENGTH
    position_limit: int | None = None
    lower_case: bool = False
    prompt: str = ""


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
    steps = _read_steps(folder)
    inner = folder / steps.get("Transformer", "")
    lengths: dict[str, Any] = next(
        (_read_json(inner / f) for f in _LENGTH_FILES if (inner / f).is_file()), {}
    )
    if (task := lengths.get("transformer_task", "feature-extraction")) != "feature-extraction":
        raise ModelLoadError(
            f"expected a checkpoint that gives token vectors, got transformer_task {task!r} "
            f"({inner}); choose an encoder checkpoint"
        )
    config = _read_json(_required(inner / "config.json"))
    if config.get("is_encoder_decoder"):
        raise ModelLoadError(
            f"expected an encoder, got an encoder-decoder of type {config.get('model_type')!r} "
            f"({inner / 'config.json'}); choose an encoder checkpoint"
        )
    pooling, takes_prompt = _read_pooling(folder, steps)
    limit = _position_limit(config)
    return Checkpoint(
        folder=inner,
        weights=_find_weights(inner),
        tokenizer_file=_find_tokenizer(inner),
        pooling=pooling,
        normalize="Normalize" in steps or "Pooling" not in steps,
        max_length=_max_length(lengths.get("max_seq_length"), inner, limit),
        position_limit=limit,
        lower_case=bool(lengths.get("do_lower_case", False)),
        prompt=_read_prompt(folder, takes_prompt),
    )


def _required(path: Path) -> Path:
    if not path.is_file():
        raise ModelLoadError(
            f"expected the checkpoint file {path.name} in {path.parent}, which has none; give the "
            "folder of a complete Hugging Face or sentence-transformers checkpoint"
        )
    return path


def _read_json(path: Path, kind: type = dict) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, kind):
            raise ValueError(f"holds a {type(content).__name__}, not a {kind.__name__}")
        return content
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ModelLoadError(
            f"expected JSON, got a broken file ({path}: {reason}); fetch the checkpoint again"
        ) from None


def _read_steps(folder: Path) -> dict[str, str]:
    """Return the sub-folder of each module of a sentence-transformers folder, by its kind."""
    if not (folder / "modules.json").is_file():
        return {}
    modules = _read_json(folder / "modules.json", list)
    steps: dict[str, str] = {}
    for module in modules:
        name, path = module.get("type", "no type"), module.get("path", "")
        package, _, kind = name.rpartition(".")
        if not package.startswith("sentence_transformers") or kind not in _MODULES:
            raise ModelLoadError(
                f"expected modules of the kinds {', '.join(_MODULES)}, got {name} "
                f"({folder / 'modules.json'}); choose a checkpoint without it"
            )
        steps[kind] = path
    if list(steps)[:2] != ["Transformer", "Pooling"] or len(steps) != len(modules):
        raise ModelLoadError(
            "expected the modules Transformer, Pooling and perhaps Normalize, in this order, got "
            f"{', '.join(module['type'].rpartition('.')[2] for module in modules)} "
            f"({folder / 'modules.json'}); choose another checkpoint"
        )
    return steps


def _read_pooling(folder: Path, steps: dict[str, str]) -> tuple[str, bool]:
    """Return how the folder pools, and whether a prompt takes part in it."""
    if "Pooling" not in steps:
        return "mean", True
    path = _required(folder / steps["Pooling"] / "config.json")
    config = _read_json(path)
    modes = config.get("pooling_mode") or _legacy_modes(config) or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise ModelLoadError(
            f"expected a pooling of {', '.join(POOLINGS)}, got {' + '.join(map(str, modes))} "
            f"({path}); choose another checkpoint"
        )
    return modes[0], bool(config.get("include_prompt", True))


def _legacy_modes(config: dict[str, Any]) -> list[str]:
    """Read the older form, one true or false for each mode."""
    names = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    prefix = "pooling_mode_"
    chosen = [key.removeprefix(prefix) for key in config if key.startswith(prefix) and config[key]]
    return [names.get(mode, mode) for mode in chosen]


def _find_weights(folder: Path) -> tuple[Path, ...]:
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return (single,)
    if index.is_file():
        shards: Iterable[str] = _read_json(index)["weight_map"].values()
        return tuple(_required(folder / shard) for shard in sorted(set(shards)))
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise ModelLoadError(
            f"expected weights in model.safetensors, got only {pickled[0]} in {folder}; pickled "
            "weights can run code and are never loaded: save the checkpoint again with "
            "safetensors"
        )
    return (_required(single),)


def _find_tokenizer(folder: Path) -> Path:
    found = (folder / name for name in _TOKENIZER_FILES if (folder / name).is_file())
    return next(found, None) or _required(folder / _TOKENIZER_FILES[0])


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
        declared = _read_json(folder / "tokenizer_config.json").get("model_max_length")
    # Tokenizers without a limit declare an astronomical one.
    known = [length for length in (declared, limit) if length is not None and length < 10**9]
    return int(min(known, default=_DEFAULT_MAX_LENGTH))


def _read_prompt(folder: Path, takes_part: bool) -> str:
    path = folder / "config_sentence_transformers.json"
    config = _read_json(path) if path.is_file() else {}
    name = config.get("default_prompt_name")
    prompt = (config.get("prompts") or {}).get(name) or "" if name else ""
    if prompt and not takes_part:
        raise ModelLoadError(
            f"expected a prompt that is pooled with the text, got include_prompt false with the "
            f"default prompt {name!r} ({path}); choose another checkpoint"
        )
    return prompt
