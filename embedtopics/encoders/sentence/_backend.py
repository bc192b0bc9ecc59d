"""Choose the runtime and precision of a checkpoint, and prepare its model."""

from __future__ import annotations

import csv
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics.encoders._base import load_error
from embedtopics.encoders.sentence._checkpoint import Checkpoint, Recipe
from embedtopics.encoders.sentence._graph import UnsupportedModelError, build_graph
from embedtopics.encoders.sentence._loading import PlainVocabulary, load_vocabulary
from embedtopics.encoders.sentence._prepared import (
    Prepared,
    key_of,
    read_prepared,
    read_refusal,
    write_prepared,
    write_refusal,
)
from embedtopics.encoders.sentence._rounding import layer_rounder, measure_extremes, weight_bits
from embedtopics.encoders.sentence._running import OnnxRuntime, Runtime, TokenArray
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array

LEAST_INT8_COSINE = 0.95
"""Minimum cosine of vectors in 8 bits and float32; below it, 8 bits are not used."""

LEAST_HALF_COSINE = 0.999
"""Minimum cosine for 16 bits. all-MiniLM-L6-v2 has 0.999999 at the lowest, on a CPU. T5 and related
models have values outside the range of float16."""

HELD_OUT = 8
"""Vectors are compared on one in this many sample texts."""

_SAMPLE_TOKENS = 4_000
_SAMPLE_LENGTH = 512

_logger = logging.getLogger("embedtopics")


class Precision(NamedTuple):
    """Precision that a model computes in, and why "auto" chose it over fewer bits."""

    name: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that is ready to run, with its tokenizer and precision."""

    run: Runtime
    vocabulary: PlainVocabulary
    precision: Precision


def check_machine(device: str | None, runtime: str | None, precision: str) -> None:
    """Make sure that device, runtime and precision are compatible."""
    checked_choice(runtime, "runtime", (None, "onnx", "torch"))
    if device == "cpu" and precision in ("float16", "bfloat16"):
        raise InputError(f'precision="{precision}" is for a GPU; use "float32" or "int8" on a CPU')
    if device not in (None, "cpu") and (runtime == "onnx" or precision == "int8"):
        expected = 'left out or "cpu" with runtime="onnx" or precision="int8"'
        raise InputError("device", expected, device)
    if runtime == "torch" and precision == "int8":
        raise InputError('precision="int8" needs ONNX Runtime; leave runtime="torch" out')
    if device not in (None, "cpu"):
        from embedtopics.encoders.sentence._torch import require_device

        require_device(str(device))


def number_format(precision: str) -> str:
    """Return the number format for fingerprints; that of "int8" includes `weight_bits`."""
    return f"int8-{weight_bits()}" if precision == "int8" else precision


def known_precision(
    recipe: Recipe, device: str, runtime: str | None, cache: Path
) -> Precision | None:
    """Return what a model computes with; None where fewer bits have to be tried first."""
    if recipe.precision != "auto":
        return Precision(recipe.precision)
    shorter = "int8" if device == "cpu" else "float16"
    if shorter == "float16" and not device.startswith("cuda"):
        return Precision("float32", f"fewer bits need a CPU or CUDA, and the device is {device}")
    if shorter == "int8" and (runtime == "torch" or recipe.trusts_code):
        return Precision("float32", "8 bits need ONNX Runtime, and torch runs this model")
    key = key_of(recipe.checkpoint, recipe.pooling, recipe.layers)
    refusal = read_refusal(cache, key, number_format(shorter))
    if refusal is None:
        return None
    return Precision("float32", refusal) if refusal else Precision(shorter)


def open_model(recipe: Recipe, device: str, runtime: str | None, cache: Path) -> LoadedModel:
    """Prepare a model, or read a prepared model from the cache folder."""
    choice = known_precision(recipe, device, runtime, cache)
    if runtime == "torch" or device != "cpu" or recipe.trusts_code:
        if choice is None:
            return _open_half(recipe, device, cache)
        return _open_torch(recipe, device, choice)
    reason = choice.reason if choice else ""
    for precision in ("int8", "float32") if choice is None else (choice.name,):
        try:
            prepared = _prepare(replace(recipe, precision=precision), cache)
            numbers = Precision(precision, reason)
            run = OnnxRuntime(prepared.model, prepared.table)
            return LoadedModel(run, prepared.vocabulary, numbers)
        except UnsupportedModelError as error:
            reason = " ".join(str(error).split())[:300]
    if runtime == "onnx" or recipe.precision == "int8":
        checkpoint = recipe.checkpoint
        raise load_error(
            f'a checkpoint that ONNX Runtime can run with precision "{recipe.precision}"',
            f"{checkpoint.folder} of the family {checkpoint.family!r}: {reason}",
            'leave out `runtime`, and let the precision be "float32"',
        )
    return _open_torch(
        recipe, device, Precision("float32", reason), f"ONNX Runtime is not used: {reason}"
    )


def _open_half(recipe: Recipe, device: str, cache: Path) -> LoadedModel:
    """Load a model in float16 if its vectors are nearly those of float32; store the decision."""
    half, exact = (_open_torch(recipe, device, Precision(n)) for n in ("float16", "float32"))
    texts = _sample_texts(exact.vocabulary, _sample_length(recipe.checkpoint))[::HELD_OUT]
    cosine, reason = least_cosine(half.run, exact.run, _alone(texts)), ""
    if not cosine >= LEAST_HALF_COSINE:  # also if it is NaN, after an overflow
        reason = f"16 bits change its vectors too much (cosine {cosine:.4f})"
    if not (half.run.note or exact.run.note):  # both were computed on the GPU
        key = key_of(recipe.checkpoint, recipe.pooling, recipe.layers)
        write_refusal(cache, key, "float16", recipe.name, reason)
    return replace(exact, precision=Precision("float32", reason)) if reason else half


def _open_torch(recipe: Recipe, device: str, precision: Precision, note: str = "") -> LoadedModel:
    from embedtopics.encoders.sentence._torch import TorchRuntime, load_model, pooled_model

    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    model = load_model(checkpoint, dtype=precision.name, trust_remote_code=trusted)
    vocabulary = load_vocabulary(checkpoint, trusted)
    module = pooled_model(model, recipe.pooling, recipe.layers)
    return LoadedModel(TorchRuntime(module, device, note), vocabulary, precision)


def _prepare(recipe: Recipe, cache: Path) -> Prepared:
    """Return the model that the cache folder has, or build it and store it."""
    key = key_of(recipe.checkpoint, recipe.pooling, recipe.layers)
    variant = number_format(recipe.precision)
    prepared = read_prepared(cache, key, variant)
    if prepared is None:
        _logger.info("Preparing %s for this machine, once; this takes seconds.", recipe.name)
        try:
            prepared = _build(recipe)
        except UnsupportedModelError as error:
            if recipe.precision == "int8":
                write_refusal(cache, key, variant, recipe.name, str(error))
            raise
        write_prepared(cache, key, variant, recipe.name, prepared)
    return prepared


def _build(recipe: Recipe) -> Prepared:
    """Build a model from its weights, and round it to 8 bits if the recipe says so."""
    checkpoint, how = recipe.checkpoint, (recipe.pooling, recipe.layers)
    exact, vocabulary = build_graph(checkpoint, *how), load_vocabulary(checkpoint)
    try:
        run_exact = OnnxRuntime(exact.model, exact.table)
        if recipe.precision == "float32":
            return Prepared(exact.model, exact.table, vocabulary)
        texts = _sample_texts(vocabulary, _sample_length(checkpoint))
        extremes = measure_extremes(exact, [t for n, t in enumerate(texts) if n % HELD_OUT])
        rounded = build_graph(checkpoint, *how, layer_rounder(extremes, weight_bits()))
        run_rounded = OnnxRuntime(rounded.model, rounded.table)
        cosine = least_cosine(run_rounded, run_exact, _alone(texts[::HELD_OUT]))
    except Exception as error:  # ONNX Runtime may raise anything
        raise UnsupportedModelError(f"ONNX Runtime cannot run it: {error}") from error
    if not cosine >= LEAST_INT8_COSINE:
        raise UnsupportedModelError(f"8 bits change its vectors too much (cosine {cosine:.3f})")
    return Prepared(rounded.model, rounded.table, vocabulary)


def least_cosine(first: Any, second: Any, batches: list[tuple[TokenArray, TokenArray]]) -> float:
    """Return the lowest cosine of the vectors of two runtimes, or NaN."""
    lowest: Any = 1.0
    for ids, mask in batches:
        a, b = (np.asarray(run(ids, mask, mask), dtype=np.float64) for run in (first, second))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        with np.errstate(invalid="ignore"):
            lowest = np.minimum(lowest, (np.einsum("ij,ij->i", a, b) / lengths).min())
    return float(lowest)


def _alone(texts: Sequence[Int32Array]) -> list[tuple[TokenArray, TokenArray]]:
    """Return token ids and masks of texts, one batch per text."""
    return [(ids.astype(np.int64)[None], np.ones((1, len(ids)), np.int64)) for ids in texts]


def _sample_length(checkpoint: Checkpoint) -> int:
    """Return the length of the longest sample text, from the configuration."""
    return min(checkpoint.position_limit or _SAMPLE_LENGTH, _SAMPLE_LENGTH)


def bundled_texts() -> list[str]:
    """Return the texts of the demo corpus, English and French."""
    from embedtopics._utils.folders import demo_path

    with demo_path().open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def _sample_texts(vocabulary: PlainVocabulary, max_length: int) -> list[Int32Array]:
    """Return token ids of the bundled texts, alone and concatenated to long texts."""
    texts = bundled_texts()
    texts += [" ".join(texts[start : start + 24]) for start in range(0, len(texts), 24)]
    samples, total = [], 0
    # The step visits short and long texts in turn.
    for place in range(len(texts)):
        ids = vocabulary.tokenizer.encode(texts[place * 61 % len(texts)]).ids[:max_length]
        if ids:
            samples.append(np.array(ids, dtype=np.int32))
            total += len(ids)
        if total >= _SAMPLE_TOKENS:
            break
    return samples
