"""What comes after the transformer: how its hidden states become one vector a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.pooling import POOLINGS
from embedtopics.errors import ModelLoadError
from embedtopics.protocols import FloatArray

__all__ = [
    "Dense", "Head", "Scale", "Step", "finish", "is_text_map", "normalized_layers", "read_head",
    "read_json", "required",
]  # fmt: skip

_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")
_PACKAGE = "sentence_transformers"
_AFTER_POOLING = ("Dense", "Normalize", "Dropout")
_KINDS = ("Transformer", "WeightedLayerPooling", "Pooling", *_AFTER_POOLING)


@dataclass(frozen=True, eq=False)
class Dense:
    """A layer that maps a pooled vector to another: ``activation(W x + b)``.

    Parameters
    ----------
    file : Path
        Where the weights come from.
    weight : float32 ndarray of shape (n_out, n_in)
    bias : float32 ndarray of shape (n_out,)
    activation : {"Identity", "Tanh", "ReLU", "GELU", "Sigmoid"}
    """

    file: Path
    weight: FloatArray
    bias: FloatArray
    activation: str


@dataclass(frozen=True)
class Scale:
    """Vectors are scaled to length 1."""


Step: TypeAlias = Dense | Scale


@dataclass(frozen=True, eq=False)
class Head:
    """From hidden states to one vector.

    Parameters
    ----------
    pooling : tuple of str
        How the tokens' states are pooled; with several, the vectors are joined.
    layers : int or tuple of float
        Mean of so many last layers, or a weight for each, that of the embeddings first.
    steps : tuple of Dense or Scale
        What is done to the pooled vector.
    pools_prompt : bool
        Whether the tokens of a prompt are pooled with those of the text.
    """

    pooling: tuple[str, ...] = ("mean",)
    layers: int | tuple[float, ...] = 1
    steps: tuple[Step, ...] = (Scale(),)
    pools_prompt: bool = True


def finish(vectors: FloatArray, steps: tuple[Step, ...]) -> FloatArray:
    """Do to pooled vectors what comes after the pooling.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n_texts, n_pooled)
    steps : tuple of Dense or Scale

    Returns
    -------
    float32 ndarray of shape (n_texts, n_dimensions)
        A row of zeros is not scaled.
    """
    for step in steps:
        if isinstance(step, Scale):
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        else:
            vectors = _activate(vectors @ step.weight.T + step.bias, step.activation)
    return vectors


def read_head(folder: Path) -> tuple[Head, Path]:
    """Read how a folder's hidden states become vectors, and where its transformer lies.

    A plain Hugging Face folder does not say; the mean of the tokens, scaled to length 1, is used.

    Returns
    -------
    head : Head
    inner : Path
        Folder of the transformer.

    Raises
    ------
    ModelLoadError
        If a file is missing or broken, or the folder asks for something that is not supported.
    """
    if not (folder / "modules.json").is_file():
        return Head(), folder
    modules = _read_modules(folder / "modules.json")
    kinds = [kind for kind, _ in modules]
    known = kinds[:1] == ["Transformer"] and kinds.count("Pooling") == 1
    before = kinds[1 : kinds.index("Pooling")] if known else kinds
    if not known or before not in ([], ["WeightedLayerPooling"]):
        raise ModelLoadError(
            "expected the modules Transformer, perhaps WeightedLayerPooling, Pooling and then any "
            f"of {', '.join(_AFTER_POOLING)}; got {', '.join(kinds)} ({folder / 'modules.json'}); "
            "choose another checkpoint"
        )
    paths = [folder / path for _, path in modules]
    place = kinds.index("Pooling")
    pooling, pools_prompt = _read_pooling(paths[place])
    after = list(zip(kinds, paths, strict=True))[place + 1 :]
    if any(kind not in _AFTER_POOLING for kind, _ in after):
        raise ModelLoadError(
            f"expected only {', '.join(_AFTER_POOLING)} after the pooling, got {', '.join(kinds)} "
            f"({folder / 'modules.json'}); choose another checkpoint"
        )
    made = [_read_step(kind, path) for kind, path in after]
    return Head(
        pooling=pooling,
        layers=_read_layers(paths[1]) if before else 1,
        steps=tuple(step for step in made if step is not None),
        pools_prompt=pools_prompt,
    ), paths[0]


def required(path: Path) -> Path:
    """Return the path of a file that must be there."""
    if not path.is_file():
        raise ModelLoadError(
            f"expected the checkpoint file {path.name} in {path.parent}, which has none; give the "
            "folder of a complete Hugging Face or sentence-transformers checkpoint"
        )
    return path


def read_json(path: Path, kind: type = dict) -> Any:
    """Return a file's content, or say that it is broken."""
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


def is_text_map(value: Any) -> bool:
    """Tell whether a value that was read is a mapping from words to words."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _read_modules(file: Path) -> list[tuple[str, str]]:
    """Return the kind and the sub-folder of each module, in their order."""
    found = []
    for module in read_json(file, list):
        if not isinstance(module, dict):
            raise ModelLoadError(
                f"expected a type and a path for each module, got {module!r} ({file}); fetch the "
                "checkpoint again"
            )
        name, path = str(module.get("type", "no type")), str(module.get("path", ""))
        package, _, kind = name.rpartition(".")
        if not package.startswith(_PACKAGE) or kind not in _KINDS:
            raise ModelLoadError(
                f"expected modules of the kinds {', '.join(_KINDS)}, got {name} ({file}); choose a "
                "checkpoint without it"
            )
        if not (file.parent / path).resolve().is_relative_to(file.parent.resolve()):
            raise ModelLoadError(
                f"expected modules inside the checkpoint, got the path {path!r} ({file}); fetch "
                "the checkpoint again"
            )
        found.append((kind, path))
    return found


def _read_pooling(folder: Path) -> tuple[tuple[str, ...], bool]:
    """Return how the folder pools, and whether a prompt takes part in it."""
    path = required(folder / "config.json")
    config = read_json(path)
    modes = config.get("pooling_mode") or _legacy_modes(config) or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    unknown = [str(mode) for mode in modes if mode not in POOLINGS]
    if unknown:
        raise ModelLoadError(
            f"expected poolings of {', '.join(POOLINGS)}; got {', '.join(unknown)} ({path}); "
            "choose another checkpoint"
        )
    return tuple(modes), bool(config.get("include_prompt", True))


def _legacy_modes(config: dict[str, Any]) -> list[str]:
    """Read the older form, one true or false for each mode, in the order of their vectors."""
    prefix = "pooling_mode_"
    names = {"cls_token": "cls", "max_tokens": "max", "mean_tokens": "mean",
             "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean_tokens": "weightedmean",
             "lasttoken": "lasttoken"}  # fmt: skip
    chosen = [key.removeprefix(prefix) for key in config if key.startswith(prefix) and config[key]]
    known = [mode for flag, mode in names.items() if flag in chosen]
    return known + [flag for flag in chosen if flag not in names]


def _read_layers(folder: Path) -> tuple[float, ...]:
    config = read_json(required(folder / "config.json"))
    file = required(folder / "model.safetensors")
    weights = _read_tensors(file).get("layer_weights")
    start = int(config.get("layer_start", 0))
    if weights is None or weights.ndim != 1 or not weights.sum():
        raise ModelLoadError(
            f"expected one weight a layer as layer_weights in {file}, got none; fetch the "
            "checkpoint again"
        )
    return normalized_layers([0.0] * start + weights.tolist())


def normalized_layers(weights: npt.ArrayLike) -> tuple[float, ...]:
    """Return weights of layers with a sum of 1; those that have it stay as they are, to the bit."""
    values = np.asarray(weights, dtype=np.float64)
    total = values.sum()
    return tuple((values if abs(total - 1) < 1e-12 else values / total).tolist())


def _read_step(kind: str, folder: Path) -> Step | None:
    if kind == "Normalize":
        return Scale()
    if kind == "Dropout":  # does nothing outside of training
        return None
    path = required(folder / "config.json")
    config = read_json(path)
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = name.rpartition(".")[2]
    if not name.startswith("torch.nn.") or activation not in _ACTIVATIONS:
        raise ModelLoadError(
            f"expected an activation of {', '.join(_ACTIVATIONS)} from torch.nn, got {name} "
            f"({path}); choose another checkpoint"
        )
    inside = {config.get(f"module_{end}_name") for end in ("input", "output")}
    if config.get("use_residual") or not inside <= {None, "sentence_embedding"}:
        raise ModelLoadError(
            "expected a dense layer on the pooled vector without a residual connection, got "
            f"another ({path}); choose another checkpoint"
        )
    tensors = _read_tensors(required(folder / "model.safetensors"))
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    shape = (int(config.get("out_features", 0)), int(config.get("in_features", 0)))
    if weight is None or weight.shape != shape:
        raise ModelLoadError(
            f"expected a linear.weight of shape {shape} in {folder / 'model.safetensors'}, got "
            f"{'none' if weight is None else weight.shape}; fetch the checkpoint again"
        )
    if bias is None:
        bias = np.zeros(shape[0], dtype=np.float32)
    return Dense(folder / "model.safetensors", weight, bias, activation)


def _read_tensors(file: Path) -> dict[str, FloatArray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return {name: tensor.astype(np.float32) for name, tensor in load_file(file).items()}
    except (SafetensorError, OSError) as error:
        raise ModelLoadError(
            f"expected safetensors weights, got a broken file ({file}: {error}); fetch the "
            "checkpoint again"
        ) from None


def _activate(values: FloatArray, activation: str) -> FloatArray:
    if activation == "Tanh":
        return np.tanh(values)
    if activation == "ReLU":
        return np.maximum(values, np.float32(0))
    if activation in ("GELU", "Sigmoid"):
        from scipy.special import expit, ndtr

        return values * ndtr(values) if activation == "GELU" else expit(values)
    return values
