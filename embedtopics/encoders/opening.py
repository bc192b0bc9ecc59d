"""Choosing what runs a checkpoint, and making it ready."""

from __future__ import annotations

import csv
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embedtopics._demo import demo_path
from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.exporting import (
    ExportError,
    export_model,
    least_cosine,
)
from embedtopics.encoders.loading import Vocabulary, load_model, load_vocabulary, require_device
from embedtopics.encoders.pooling import pooled_model
from embedtopics.encoders.prepared import Prepared, key_of, read_prepared, write_prepared
from embedtopics.encoders.quantizing import measure_extremes, quantize_model, weight_bits
from embedtopics.encoders.runtime import OnnxRuntime, Runtime, TorchRuntime
from embedtopics.errors import InputError, ModelLoadError

__all__ = ["Opened", "Wish", "check_machine", "number_format", "open_model"]

LEAST_INT8_COSINE = 0.95
"""A checkpoint whose vectors turn farther than this when it is rounded does not bear 8 bits."""

_SAMPLE_TOKENS = 20_000
_SAMPLE_LENGTH = 512

_logger = logging.getLogger("embedtopics")


@dataclass(frozen=True)
class Wish:
    """What is to be opened.

    Parameters
    ----------
    checkpoint : Checkpoint
    name : str
        For people.
    pooling : tuple of str
    layers : int or tuple of float
    precision : {"float32", "int8", "float16", "bfloat16"}
    device : str
    runtime : {"onnx", "torch"} or None
        None takes ONNX Runtime on a CPU where it gives torch's vectors, else torch.
    trust_remote_code : bool
    """

    checkpoint: Checkpoint
    name: str
    pooling: tuple[str, ...]
    layers: int | tuple[float, ...]
    precision: str
    device: str
    runtime: str | None
    trust_remote_code: bool


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that is ready to run.

    Parameters
    ----------
    run : Runtime
    vocabulary : Vocabulary
    note : str
        Why it is not ONNX Runtime that runs it on a CPU; empty where it is.
    """

    run: Runtime
    vocabulary: Vocabulary
    note: str = ""


def check_machine(device: str | None, runtime: str | None, precision: str) -> None:
    """Make sure that device, runtime and precision go together.

    Raises
    ------
    InputError
    """
    if runtime not in (None, "onnx", "torch"):
        raise InputError(f"expected runtime to be onnx or torch, got {runtime!r}")
    if device == "cpu" and precision in ("float16", "bfloat16"):
        raise InputError(f'precision="{precision}" is for a GPU; use "float32" or "int8" on a CPU')
    if device not in (None, "cpu") and (runtime == "onnx" or precision == "int8"):
        raise InputError(
            f'runtime="onnx" and precision="int8" are for the CPU, got device={device!r}; leave '
            "one of them out"
        )
    if runtime == "torch" and precision == "int8":
        raise InputError('precision="int8" needs ONNX Runtime; leave runtime="torch" out')
    if device not in (None, "cpu"):
        require_device(str(device))


def number_format(precision: str) -> str:
    """Return what numbers are computed with, as it goes into a fingerprint.

    The weights of "int8" have 8 or 7 bits, by what the CPU multiplies exactly.
    """
    return f"int8-{weight_bits()}" if precision == "int8" else precision


def open_model(wish: Wish, cache: Path) -> Opened:
    """Make a model ready, or find it ready in the cache folder.

    Parameters
    ----------
    wish : Wish
    cache : Path

    Returns
    -------
    Opened

    Raises
    ------
    ModelLoadError
        If the checkpoint cannot be loaded, or not run as is wished.
    """
    on_cpu = wish.device == "cpu" and not wish.trust_remote_code
    if wish.runtime == "torch" or not on_cpu:
        return _open_torch(wish, "")
    try:
        prepared = _prepare(wish, cache)
        return Opened(OnnxRuntime(prepared.model), prepared.vocabulary)
    except ExportError as error:
        reason = " ".join(str(error).split())[:300]
        if wish.runtime == "onnx" or wish.precision == "int8":
            raise ModelLoadError(
                f"expected a checkpoint that ONNX Runtime can run with precision "
                f'"{wish.precision}", got {wish.checkpoint.folder} of the family '
                f"{wish.checkpoint.family!r}: {reason}; leave out `runtime`, and let the precision "
                'be "float32"'
            ) from None
        return _open_torch(wish, f"ONNX Runtime is not used: {reason}")


def _open_torch(wish: Wish, note: str) -> Opened:
    model = load_model(
        wish.checkpoint, dtype=wish.precision, trust_remote_code=wish.trust_remote_code
    )
    vocabulary = load_vocabulary(wish.checkpoint, wish.trust_remote_code)
    module = pooled_model(model, wish.pooling, wish.layers)
    return Opened(TorchRuntime(module, wish.device), vocabulary, note)


def _prepare(wish: Wish, cache: Path) -> Prepared:
    """Return the model in the precision that is wished, from the cache where it is there."""
    key = key_of(wish.checkpoint, wish.pooling, wish.layers)
    variant = number_format(wish.precision)
    found = read_prepared(cache, key, variant)
    if found is not None:
        return found
    _logger.info("Making %s ready for this machine, once.", wish.name)
    exact = _export(wish)
    if wish.precision != "int8":
        write_prepared(cache, key, variant, wish.name, exact)
        return exact
    rounded = _round(exact, wish)
    write_prepared(cache, key, variant, wish.name, rounded)
    return rounded


def _export(wish: Wish) -> Prepared:
    vocabulary = load_vocabulary(wish.checkpoint)
    # Other implementations of attention are no operations that ONNX knows.
    model = load_model(wish.checkpoint, attention="eager")
    module = pooled_model(model, wish.pooling, wish.layers)
    n_tokens = vocabulary.tokenizer.get_vocab_size()
    content, cosine = export_model(
        module, n_tokens, _sample_length(wish.checkpoint), fold=wish.precision == "float32"
    )
    return Prepared(content, vocabulary, cosine)


def _round(exact: Prepared, wish: Wish) -> Prepared:
    """Return the model with 8-bit weights, made for the range of values that texts give it."""
    texts = _sample_texts(exact.vocabulary, _sample_length(wish.checkpoint))
    held_out, samples = texts[::8], [text for place, text in enumerate(texts) if place % 8]
    model = quantize_model(exact.model, measure_extremes(exact.model, samples), weight_bits())
    batches = [(ids.astype(np.int64)[None], np.ones((1, len(ids)), np.int64)) for ids in held_out]
    try:
        cosine = least_cosine(OnnxRuntime(model), OnnxRuntime(exact.model), batches)
    except Exception as error:  # whatever ONNX Runtime makes of an operation
        raise ExportError(f"ONNX Runtime cannot run it with 8 bits: {error}") from error
    if not cosine >= LEAST_INT8_COSINE:
        raise ExportError(f"rounded to 8 bits, its vectors turn too far (cosine {cosine:.3f})")
    return Prepared(model, exact.vocabulary, cosine)


def _sample_length(checkpoint: Checkpoint) -> int:
    """Return the length of the longest sample text.

    It follows from the configuration alone: a prepared model serves encoders of every length, and
    must not depend on which of them came first.
    """
    return min(checkpoint.position_limit or _SAMPLE_LENGTH, _SAMPLE_LENGTH)


def _sample_texts(vocabulary: Vocabulary, max_length: int) -> list[npt.NDArray[np.int32]]:
    """Return token ids of the bundled texts: each alone, and many in a row for long ones."""
    with demo_path().open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    texts += [" ".join(texts[start : start + 24]) for start in range(0, len(texts), 24)]
    made, total = [], 0
    # From a text of its own to the next by a step that meets short and long ones in turn.
    for place in range(len(texts)):
        ids = vocabulary.tokenizer.encode(texts[place * 61 % len(texts)]).ids[:max_length]
        if ids:
            made.append(np.array(ids, dtype=np.int32))
            total += len(ids)
        if total >= _SAMPLE_TOKENS:
            break
    return made
