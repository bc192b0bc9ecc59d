"""Choose the backend and precision of a checkpoint, and prepare its model once."""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.folders import demo_path, flush_file
from embedtopics.encoders._base import MODELS, load_error, placing
from embedtopics.encoders._prepared import read_about
from embedtopics.encoders.sentence._checkpoint import Checkpoint, Recipe
from embedtopics.encoders.sentence._graph import (
    WORDS,
    Graph,
    RoundedLayer,
    RoundLayer,
    UnsupportedModelError,
    build_graph,
)
from embedtopics.encoders.sentence._loading import PlainVocabulary, load_vocabulary
from embedtopics.encoders.sentence._running import OnnxRuntime, Runtime, onnx_session
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array

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


Prepared: TypeAlias = tuple[Graph, PlainVocabulary]


def check_machine(device: str | None, backend: str | None, precision: str) -> None:
    """Make sure that device, backend and precision are compatible."""
    checked_choice(backend, "backend", (None, "onnx", "torch"))
    is_cpu = device in (None, "cpu")
    if device == "cpu" and precision in ("float16", "bfloat16"):
        raise InputError(f'precision="{precision}" is for a GPU; use "float32" or "int8" on a CPU')
    if (precision == "int8" or backend == "onnx") and not (is_cpu and backend != "torch"):
        raise InputError('precision="int8" and backend="onnx" need ONNX Runtime, on a CPU')
    if not is_cpu:
        from embedtopics.encoders.sentence._torch import require_device

        require_device(str(device))


def number_format(precision: str) -> str:
    """Return the number format for fingerprints; that of "int8" includes `weight_bits`."""
    return f"int8-{weight_bits()}" if precision == "int8" else precision


def known_precision(
    recipe: Recipe, device: str, backend: str | None, cache: Path
) -> Precision | None:
    """Return what a model computes with; None where fewer bits have to be tried first."""
    if recipe.precision != "auto":
        return Precision(recipe.precision)
    shorter = "int8" if device == "cpu" else "float16"
    if shorter == "float16" and not device.startswith("cuda"):
        return Precision("float32", f"fewer bits need a CPU or CUDA, and the device is {device}")
    if shorter == "int8" and (backend == "torch" or recipe.trusts_code):
        return Precision("float32", "8 bits need ONNX Runtime, and torch runs this model")
    refusal = _read_refusal(_prepared_folder(recipe, cache, shorter))
    if refusal is None:
        return None
    return Precision("float32", refusal) if refusal else Precision(shorter)


def open_model(recipe: Recipe, device: str, backend: str | None, cache: Path) -> LoadedModel:
    """Prepare a model, or read a prepared model from the cache folder."""
    choice = known_precision(recipe, device, backend, cache)
    if backend == "torch" or device != "cpu" or recipe.trusts_code:
        if choice is None:
            return _open_half(recipe, device, cache)
        return _open_torch(recipe, device, choice)
    reason = choice.reason if choice else ""
    for precision in ("int8", "float32") if choice is None else (choice.name,):
        try:
            graph, vocabulary = _prepare(replace(recipe, precision=precision), cache)
            numbers = Precision(precision, reason)
            return LoadedModel(OnnxRuntime(graph), vocabulary, numbers)
        except UnsupportedModelError as error:
            reason = " ".join(str(error).split())[:300]
    if backend == "onnx" or recipe.precision == "int8":
        checkpoint = recipe.checkpoint
        raise load_error(
            f'a checkpoint that ONNX Runtime can run with precision "{recipe.precision}"',
            f"{checkpoint.folder} of the family {checkpoint.family!r}: {reason}",
            'leave out `backend`, and let the precision be "float32"',
        )
    return _open_torch(
        recipe, device, Precision("float32", reason), f"ONNX Runtime is not used: {reason}"
    )


def _open_half(recipe: Recipe, device: str, cache: Path) -> LoadedModel:
    """Load a model in float16 if its vectors are nearly those of float32; store the decision."""
    half, exact = (_open_torch(recipe, device, Precision(n)) for n in ("float16", "float32"))
    texts = _sample_texts(exact.vocabulary, recipe.checkpoint)[::HELD_OUT]
    cosine, reason = least_cosine(half.run, exact.run, texts), ""
    if not cosine >= LEAST_HALF_COSINE:  # also if it is NaN, after an overflow
        reason = f"16 bits change its vectors too much (cosine {cosine:.4f})"
    if not (half.run.note or exact.run.note):  # both were computed on the GPU
        _write_refusal(_prepared_folder(recipe, cache, "float16"), recipe.name, reason)
    return replace(exact, precision=Precision("float32", reason)) if reason else half


def _open_torch(recipe: Recipe, device: str, precision: Precision, note: str = "") -> LoadedModel:
    from embedtopics.encoders.sentence._torch import TorchRuntime, load_model, pooled_model

    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    model = load_model(checkpoint, dtype=precision.name, trust_remote_code=trusted)
    vocabulary = load_vocabulary(checkpoint, trusted)
    module = pooled_model(model, recipe.pooling)
    return LoadedModel(TorchRuntime(module, device, note), vocabulary, precision)


def _prepare(recipe: Recipe, cache: Path) -> Prepared:
    """Return the model that the cache folder has, or build it and store it."""
    folder = _prepared_folder(recipe, cache, recipe.precision)
    prepared = _read_prepared(folder)
    if prepared is None:
        _logger.info("Preparing %s for this machine, once; this takes seconds.", recipe.name)
        try:
            prepared = _build(recipe)
        except UnsupportedModelError as error:
            if recipe.precision == "int8":
                _write_refusal(folder, recipe.name, str(error))
            raise
        _write_prepared(folder, recipe.name, prepared)
    return prepared


def _build(recipe: Recipe) -> Prepared:
    """Build a model from its weights, and round it to 8 bits if the recipe says so."""
    checkpoint, pooling = recipe.checkpoint, recipe.pooling
    exact, vocabulary = build_graph(checkpoint, pooling), load_vocabulary(checkpoint)
    try:
        run_exact = OnnxRuntime(exact)
        if recipe.precision == "float32":
            return exact, vocabulary
        texts = _sample_texts(vocabulary, checkpoint)
        extremes = measure_extremes(exact, [t for n, t in enumerate(texts) if n % HELD_OUT])
        rounded = build_graph(checkpoint, pooling, layer_rounder(extremes, weight_bits()))
        run_rounded = OnnxRuntime(rounded)
        cosine = least_cosine(run_rounded, run_exact, texts[::HELD_OUT])
    except Exception as error:  # ONNX Runtime may raise anything
        raise UnsupportedModelError(f"ONNX Runtime cannot run it: {error}") from error
    if not cosine >= LEAST_INT8_COSINE:
        raise UnsupportedModelError(f"8 bits change its vectors too much (cosine {cosine:.3f})")
    return rounded, vocabulary


def least_cosine(first: Any, second: Any, texts: Sequence[Int32Array]) -> float:
    """Return the lowest cosine of two runtimes' vectors of tokenized texts, or NaN."""
    lowest: Any = 1.0
    for text in texts:
        ids = text.astype(np.int64)[None]
        mask = np.ones_like(ids)
        a, b = (np.asarray(run(ids, mask, mask), dtype=np.float64) for run in (first, second))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        with np.errstate(invalid="ignore"):
            lowest = np.minimum(lowest, (np.einsum("ij,ij->i", a, b) / lengths).min())
    return float(lowest)


def bundled_texts() -> list[str]:
    """Return the texts of the demo corpus, English and French."""
    with demo_path().open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def _sample_texts(vocabulary: PlainVocabulary, checkpoint: Checkpoint) -> list[Int32Array]:
    """Return token ids of the bundled texts, alone and concatenated to long texts."""
    max_length = min(checkpoint.position_limit or _SAMPLE_LENGTH, _SAMPLE_LENGTH)
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


# <cache folder>/models-1/<key>-<number format>/ holds model.onnx, tokenizer.json, about.json, and
# the vectors of its tokens in float32, mapped into memory: processes share them. It is written
# beside its place and moved there when it is whole. Its files have checksums; a damaged one is
# named, thrown away, and made again.

_TABLE = f"{WORDS}.f32"
_GRAPHS = 1
"""Version of the graphs; another one prepares all models again."""


def _prepared_folder(recipe: Recipe, cache: Path, precision: str) -> Path:
    """Return the folder of a prepared model, by a hash of weights, tokenizer and pooling."""
    checkpoint = recipe.checkpoint
    parts = (_GRAPHS, checkpoint.contents, checkpoint.lower_case, recipe.pooling, 1)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    return cache / MODELS / f"{key}-{number_format(precision)}"


def _read_prepared(folder: Path) -> Prepared | None:
    """Return a prepared model, or None if there is no usable one."""
    from tokenizers import Tokenizer

    if not folder.is_dir():
        return None
    refusal = _read_refusal(folder)
    if refusal:
        raise UnsupportedModelError(refusal)
    try:
        about = read_about(folder)
        if about.shape is None or about.pad_id is None or about.unknown_id is None:
            raise ValueError("about.json describes no model")
        model = folder / "model.onnx"
        words = folder / "tokenizer.json"
        table = np.memmap(folder / _TABLE, np.float32, "r", shape=tuple(about.shape))
        files: dict[str, Any] = {path.name: path.read_bytes() for path in (model, words)}
        for name, data in {**files, _TABLE: table}.items():
            if about.sha256[name] != hashlib.sha256(data).hexdigest():
                raise ValueError(f"{name} is not what was written")
        tokenizer = Tokenizer.from_buffer(files[words.name])
        vocabulary = PlainVocabulary(tokenizer, about.pad_id, about.unknown_id)
    except (OSError, ValueError, KeyError, TypeError) as error:
        _logger.warning("The prepared model in %s is damaged (%s); made again.", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Graph(files[model.name], table), vocabulary


def _read_refusal(folder: Path) -> str | None:
    """Return why a model could not be prepared; "" if it could, None if it was not tried."""
    try:
        return read_about(folder).refused
    except (OSError, ValueError):
        return None


def _write_refusal(folder: Path, name: str, reason: str) -> None:
    """Store why a model could not be prepared, so that it is tried only once."""
    _write_folder(folder, name, {}, {"refused": " ".join(reason.split())[:300]})


def _write_prepared(folder: Path, name: str, prepared: Prepared) -> None:
    graph, vocabulary = prepared
    files: dict[str, Any] = {
        "model.onnx": graph.model,
        "tokenizer.json": vocabulary.tokenizer.to_str().encode(),
        _TABLE: graph.words,
    }
    about = {
        "pad_id": vocabulary.pad_id,
        "unknown_id": vocabulary.unknown_id,
        "shape": graph.words.shape,
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }
    _write_folder(folder, name, files, about)


def _write_folder(
    folder: Path, name: str, files: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """Write a folder atomically; log a warning if that fails."""
    about = {"encoder": name, "variant": folder.name.partition("-")[2], **about}
    try:
        with placing(folder) as fresh:
            for file, data in {**files, "about.json": json.dumps(about, indent=1).encode()}.items():
                (fresh / file).write_bytes(data)
                flush_file(fresh / file)
    except OSError as error:
        _logger.warning(
            "The prepared model cannot be stored in %s (%s); it is prepared again each time.",
            folder.parent, error,
        )  # fmt: skip


# The weights of each linear layer become 8-bit integers with a scale for each column; what is
# multiplied with them is rounded to 8 bits within a range that was fixed once, on sample texts.
# Ranges that are taken from the batch, as dynamic quantisation does, would make a text's vector
# depend on the other texts. Everything else stays in float32.
#
# A few channels of a transformer are ten times larger than the others, and a range that holds them
# leaves too few steps for the rest. So each channel is divided by a factor before it is rounded,
# and its weights are multiplied by it: Xiao et al. (2023), "SmoothQuant", equation 4.

Extremes: TypeAlias = tuple[FloatArray, FloatArray]
"""Lowest and highest value of each channel."""

SMOOTHING = 0.8
"""Share of a channel's range that is moved to the weights, from 0 to 1."""


def weight_bits() -> int:
    """Return the bits of weights that this CPU multiplies exactly: 8, or 7 on x86 without VNNI."""
    if platform.machine().lower() not in ("x86_64", "amd64", "i386", "i686", "x86"):
        return 8
    if sys.platform != "linux":  # no simple list of the features of the CPU
        return 7
    return 8 if "vnni" in Path("/proc/cpuinfo").read_text("utf-8", "replace") else 7


def measure_extremes(graph: Graph, texts: Sequence[Int32Array]) -> list[Extremes]:
    """Run a model on sample texts, and return the extremes of the inputs of its linear layers."""
    import onnx
    from onnx.helper import make_tensor_value_info

    whole, names = onnx.load_from_string(graph.model), list(graph.linear_inputs)
    whole.graph.output.extend(
        make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    session = onnx_session(replace(graph, model=whole.SerializeToString()))
    inputs = [value.name for value in session.get_inputs()]
    lows, highs = [], []
    for text in texts:
        ids = text.astype(np.int64)[None]
        arrays = dict.fromkeys(inputs, np.ones_like(ids)) | {"input_ids": ids}
        values = session.run(names, arrays)
        lows.append([value.min(axis=0) for value in values])
        highs.append([value.max(axis=0) for value in values])
    return [
        (np.min(low, axis=0), np.max(high, axis=0))
        for low, high in zip(zip(*lows, strict=True), zip(*highs, strict=True), strict=True)
    ]


def layer_rounder(extremes: Sequence[Extremes], bits: int) -> RoundLayer:
    """Return the function that rounds the linear layers of a model."""

    def round_layer(place: int, weight: FloatArray) -> RoundedLayer:
        low, high = extremes[place]
        factors = _factors(low, high, weight)
        least, most = min(float((low / factors).min()), 0.0), float((high / factors).max())
        scale = (max(most, 1e-6) - least) / 255
        weight = weight * factors[:, None]
        top = 2 ** (bits - 1) - 1
        scales = (np.maximum(np.abs(weight).max(axis=0), 1e-12) / top).astype(np.float32)
        return RoundedLayer(
            multipliers=np.reciprocal(factors),
            scale=np.float32(scale),
            zero=np.uint8(round(-least / scale)),
            weight=np.clip(np.rint(weight / scales), -top, top).astype(np.int8),
            weight_scales=scales,
        )

    return round_layer


def _factors(low: FloatArray, high: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the factors that divide the channels and multiply the rows of the weights."""
    sizes = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-5)
    of_weights = np.maximum(np.abs(weight).max(axis=1), 1e-5)
    log = SMOOTHING * np.log(sizes) - (1 - SMOOTHING) * np.log(of_weights)
    factors: FloatArray = np.exp(log - log.mean()).astype(np.float32)
    return factors
