"""Choose the runtime and precision of a checkpoint, and prepare its model."""

from __future__ import annotations

import csv
import logging
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice
from embedtopics.encoders._base import load_error
from embedtopics.encoders.sentence._checkpoint import Checkpoint, Recipe, pooled_model
from embedtopics.encoders.sentence._loading import (
    PlainVocabulary,
    load_model,
    load_vocabulary,
    require_device,
)
from embedtopics.encoders.sentence._onnx import (
    ExportError,
    Prepared,
    biases_of,
    export_model,
    key_of,
    least_cosine,
    linear_layers,
    read_prepared,
    read_refusal,
    write_prepared,
    write_refusal,
)
from embedtopics.encoders.sentence._running import (
    OnnxRuntime,
    Runtime,
    Table,
    TokenArray,
    TorchRuntime,
    onnx_session,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from onnx import NodeProto


# The weights of each linear layer become 8-bit integers with a scale for each column; what is
# multiplied with them is rounded to 8 bits within a range that was fixed once, on sample texts.
# Ranges that are taken from the batch, as dynamic quantisation does, would make a text's vector
# depend on the other texts. Everything else stays in float32.
#
# A few channels of a transformer are ten times larger than the others, and a range that holds them
# leaves too few steps for the rest. So each channel is divided by a factor before it is rounded,
# and its weights are multiplied by it: Xiao et al. (2023), "SmoothQuant", equation 4.

Extremes: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
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


def measure_extremes(
    model: bytes, texts: Sequence[npt.NDArray[np.int32]], table: Table | None = None
) -> dict[str, Extremes]:
    """Run a model on sample texts, and return the extremes of the inputs of linear layers."""
    import onnx

    graph = onnx.load_from_string(model)
    names = list(dict.fromkeys(node.input[0] for node in linear_layers(graph)))
    if not names:
        raise ExportError("it has no linear layers that could be rounded to 8 bits")
    graph.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    session = onnx_session(graph.SerializeToString(), table)
    inputs = [value.name for value in session.get_inputs()]
    extremes: dict[str, Extremes] = {}
    for text in texts:
        ids = text.astype(np.int64)[None]
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        arrays["pooled_mask"] = arrays["attention_mask"]
        outputs = session.run(names, {key: arrays[key] for key in inputs})
        for name, values in zip(names, outputs, strict=True):
            rows = values.reshape(-1, values.shape[-1])
            low, high = rows.min(axis=0), rows.max(axis=0)
            if name in extremes:
                low = np.minimum(low, extremes[name][0])
                high = np.maximum(high, extremes[name][1])
            extremes[name] = low, high
    return extremes


def quantize_model(model: bytes, extremes: Mapping[str, Extremes], bits: int) -> bytes:
    """Return a model whose linear layers multiply 8-bit integers."""
    import onnx
    from onnx.helper import make_opsetid
    from onnx.numpy_helper import from_array, to_array

    whole = onnx.load_from_string(model)
    graph = whole.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    met: dict[str, list[NodeProto]] = {}
    for layer in linear_layers(whole):
        met.setdefault(layer.input[0], []).append(layer)
    linear = {layer.output[0] for layers in met.values() for layer in layers}
    biases = biases_of(whole, linear)
    added = {target: source for source, (_, target) in biases.items()}
    factors: dict[str, npt.NDArray[np.float32]] = {}
    nodes, arrays = [], {}
    for node in list(graph.node):
        if node.output[0] in added:  # the product adds the bias, which is faster
            continue
        if node.output[0] not in linear:
            nodes.append(node)
            continue
        source, weight = node.input
        if source not in factors:
            met_weights = [to_array(weights[layer.input[1]]) for layer in met[source]]
            factors[source] = _factors(extremes[source], met_weights)
            rounding, constants = _rounding(source, extremes[source], factors[source])
            nodes += rounding
            arrays.update(constants)
        scaled = to_array(weights[weight]) * factors[source][:, None]
        product, constants = _product(node.output[0], source, scaled, biases, bits)
        nodes.append(product)
        arrays.update(constants)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    initializers = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(
        [*initializers, *(from_array(value, name) for name, value in arrays.items())]
    )
    if not any(imported.domain == "com.microsoft" for imported in whole.opset_import):
        whole.opset_import.append(make_opsetid("com.microsoft", 1))
    quantized: bytes = whole.SerializeToString()
    return quantized


def _factors(
    extremes: Extremes, weights: Sequence[npt.NDArray[np.float32]]
) -> npt.NDArray[np.float32]:
    """Return the factors that divide the channels and multiply the rows of the weights."""
    sizes = np.maximum(np.maximum(np.abs(extremes[0]), np.abs(extremes[1])), 1e-5)
    of_weights = np.maximum(np.max([np.abs(w).max(axis=1) for w in weights], axis=0), 1e-5)
    log = SMOOTHING * np.log(sizes) - (1 - SMOOTHING) * np.log(of_weights)
    factors: npt.NDArray[np.float32] = np.exp(log - log.mean()).astype(np.float32)
    return factors


def _rounding(
    source: str, extremes: Extremes, factors: npt.NDArray[np.float32]
) -> tuple[list[NodeProto], dict[str, npt.NDArray[Any]]]:
    """Return the nodes that divide a tensor's channels and round it, and their constants."""
    from onnx.helper import make_node

    low = min(float((extremes[0] / factors).min()), 0.0)
    high = max(float((extremes[1] / factors).max()), 1e-6)
    scale = (high - low) / 255
    constants: dict[str, npt.NDArray[Any]] = {
        f"{source}_factors": 1 / factors,
        f"{source}_scale": np.array(scale, dtype=np.float32),
        f"{source}_zero": np.array(round(-low / scale), dtype=np.uint8),
    }
    names = [f"{source}_divided", f"{source}_scale", f"{source}_zero"]
    return [
        make_node("Mul", [source, f"{source}_factors"], names[:1]),
        make_node("QuantizeLinear", names, [f"{source}_rounded"]),
    ], constants


def _product(
    name: str,
    source: str,
    weight: npt.NDArray[np.float32],
    biases: Mapping[str, tuple[str, str]],
    bits: int,
) -> tuple[NodeProto, dict[str, npt.NDArray[Any]]]:
    """Return the node that multiplies rounded inputs and weights and adds a bias."""
    from onnx.helper import make_node

    top = 2 ** (bits - 1) - 1
    scales = (np.maximum(np.abs(weight).max(axis=0), 1e-12) / top).astype(np.float32)
    integers = np.clip(np.rint(weight / scales), -top, top).astype(np.int8)
    constants = {f"{name}_weight": integers, f"{name}_scales": scales}
    inputs = [f"{source}_rounded", f"{name}_weight", f"{source}_scale", f"{name}_scales"]
    inputs.append(f"{source}_zero")
    target = name
    if name in biases:
        bias, target = biases[name]
        inputs += ["", bias]  # the weights have no zero point
    node = make_node("MatMulIntegerToFloat", inputs, [target], domain="com.microsoft")
    return node, constants


LEAST_INT8_COSINE = 0.95
"""Minimum cosine of vectors in 8 bits and float32; below it, 8 bits are not used."""

LEAST_HALF_COSINE = 0.999
"""Minimum cosine for 16 bits. all-MiniLM-L6-v2 has 0.999999 at the lowest, on a CPU. T5 and related
models have values outside the range of float16."""

HELD_OUT = 8
"""Vectors are compared on one in this many sample texts."""

_SAMPLE_TOKENS = 20_000
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
        except ExportError as error:
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
    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    model = load_model(checkpoint, dtype=precision.name, trust_remote_code=trusted)
    vocabulary = load_vocabulary(checkpoint, trusted)
    module = pooled_model(model, recipe.pooling, recipe.layers)
    return LoadedModel(TorchRuntime(module, device, note), vocabulary, precision)


def _prepare(recipe: Recipe, cache: Path) -> Prepared:
    key = key_of(recipe.checkpoint, recipe.pooling, recipe.layers)
    variant = number_format(recipe.precision)
    prepared = read_prepared(cache, key, variant)
    if prepared is None:
        _logger.info("Preparing %s for this machine, once; this takes about a minute.", recipe.name)
        try:
            prepared = _export(recipe)
            if recipe.precision == "int8":
                prepared = _round(prepared, recipe.checkpoint)
        except ExportError as error:
            if recipe.precision == "int8":
                write_refusal(cache, key, variant, recipe.name, str(error))
            raise
        write_prepared(cache, key, variant, recipe.name, prepared)
    return prepared


def _export(recipe: Recipe) -> Prepared:
    vocabulary = load_vocabulary(recipe.checkpoint)
    # ONNX has no operations for other implementations of attention.
    model, words = load_model(recipe.checkpoint, attention="eager"), None
    module = pooled_model(model, recipe.pooling, recipe.layers)
    n_tokens = vocabulary.tokenizer.get_vocab_size()
    with suppress(NotImplementedError):  # in some families
        words = model.get_input_embeddings()
    fold = recipe.precision == "float32"
    content, table, cosine = export_model(
        module, n_tokens, _sample_length(recipe.checkpoint), fold=fold, words=words
    )
    return Prepared(content, table, vocabulary, cosine)


def _round(exact: Prepared, checkpoint: Checkpoint) -> Prepared:
    """Return the model with 8-bit weights, for the ranges of values on sample texts."""
    texts = _sample_texts(exact.vocabulary, _sample_length(checkpoint))
    samples = [text for place, text in enumerate(texts) if place % HELD_OUT]
    table = exact.table
    extremes = measure_extremes(exact.model, samples, table)
    model = quantize_model(exact.model, extremes, weight_bits())
    try:
        exactly = OnnxRuntime(exact.model, table)
        cosine = least_cosine(OnnxRuntime(model, table), exactly, _alone(texts[::HELD_OUT]))
    except Exception as error:  # ONNX Runtime may raise anything
        raise ExportError(f"ONNX Runtime cannot run it with 8 bits: {error}") from error
    if not cosine >= LEAST_INT8_COSINE:
        raise ExportError(f"8 bits change its vectors too much (cosine {cosine:.3f})")
    return Prepared(model, table, exact.vocabulary, cosine)


def _alone(texts: Sequence[npt.NDArray[np.int32]]) -> list[tuple[TokenArray, TokenArray]]:
    """Return token ids and masks of texts, one batch per text."""
    return [(ids.astype(np.int64)[None], np.ones((1, len(ids)), np.int64)) for ids in texts]


def _sample_length(checkpoint: Checkpoint) -> int:
    """Return the length of the longest sample text, from the configuration."""
    return min(checkpoint.position_limit or _SAMPLE_LENGTH, _SAMPLE_LENGTH)


def bundled_texts() -> list[str]:
    """Return the texts of the demo corpus, English and French."""
    from embedtopics.corpus._readers import demo_path  # which imports pandas

    with demo_path().open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def _sample_texts(vocabulary: PlainVocabulary, max_length: int) -> list[npt.NDArray[np.int32]]:
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
