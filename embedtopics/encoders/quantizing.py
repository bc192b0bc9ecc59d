"""Eight-bit arithmetic for an exported model, the same for a text in whatever batch it comes.

The weights of each linear layer become 8-bit integers with a scale for each column; what is
multiplied with them is rounded to 8 bits within a range that was fixed once, on sample texts.
Ranges that are taken from the batch, as dynamic quantisation does, would make a text's vector
depend on the texts beside it. Everything else stays in float32.

A few channels of a transformer are ten times larger than the others, and a range that holds them
leaves too few steps for the rest. So each channel is divided by a factor before it is rounded, and
the weights that it meets are multiplied by it: Xiao et al. (2023), "SmoothQuant", equation 4.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.exporting import ExportError
from embedtopics.encoders.graphs import biases_of, linear_layers

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["Extremes", "measure_extremes", "quantize_model", "weight_bits"]

Extremes: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Lowest and highest value of each channel."""

SMOOTHING = 0.8
"""How much of a channel's size is moved to the weights: 0 is none, 1 is all of it."""


def weight_bits() -> int:
    """Return the bits of a weight that this CPU multiplies exactly.

    Without VNNI, x86 adds two products of 8 bits in 16, which overflow; weights of 7 bits do not.
    """
    if platform.machine().lower() not in ("x86_64", "amd64", "i386", "i686", "x86"):
        return 8
    if sys.platform != "linux":  # which has no list of what the CPU can do that is as easy to read
        return 7
    return 8 if "vnni" in Path("/proc/cpuinfo").read_text("utf-8", "replace") else 7


def measure_extremes(model: bytes, texts: Sequence[npt.NDArray[np.int32]]) -> dict[str, Extremes]:
    """Run a model on sample texts, and return the extremes of what meets its weights.

    Parameters
    ----------
    model : bytes
        An ONNX model.
    texts : sequence of int32 ndarray
        Token ids of each text.

    Returns
    -------
    dict of str to (float32 ndarray, float32 ndarray)
        By the name of a tensor, the lowest and the highest value of each of its channels.

    Raises
    ------
    ExportError
        If nothing in the model can be rounded.
    """
    import onnx
    import onnxruntime

    graph = onnx.load_from_string(model)
    names = list(dict.fromkeys(node.input[0] for node in linear_layers(graph)))
    if not names:
        raise ExportError("it has no linear layers that could be rounded to 8 bits")
    graph.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    inputs = [value.name for value in session.get_inputs()]
    found: dict[str, Extremes] = {}
    for text in texts:
        ids = text.astype(np.int64)[None]
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        arrays["pooled_mask"] = arrays["attention_mask"]
        made = session.run(names, {key: arrays[key] for key in inputs})
        for name, values in zip(names, made, strict=True):
            rows = values.reshape(-1, values.shape[-1])
            low, high = rows.min(axis=0), rows.max(axis=0)
            if name in found:
                low = np.minimum(low, found[name][0])
                high = np.maximum(high, found[name][1])
            found[name] = low, high
    return found


def quantize_model(model: bytes, extremes: Mapping[str, Extremes], bits: int) -> bytes:
    """Return a model whose linear layers multiply 8-bit integers.

    Parameters
    ----------
    model : bytes
        An ONNX model.
    extremes : mapping of str to (float32 ndarray, float32 ndarray)
        From `measure_extremes`.
    bits : {7, 8}
        Of a weight.

    Returns
    -------
    bytes
    """
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
    nodes, made = [], {}
    for node in list(graph.node):
        if node.output[0] in added:  # its product adds the bias itself, which is faster
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
            made.update(constants)
        scaled = to_array(weights[weight]) * factors[source][:, None]
        product, constants = _product(node.output[0], source, scaled, biases, bits)
        nodes.append(product)
        made.update(constants)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend([*kept, *(from_array(value, name) for name, value in made.items())])
    if not any(imported.domain == "com.microsoft" for imported in whole.opset_import):
        whole.opset_import.append(make_opsetid("com.microsoft", 1))
    quantized: bytes = whole.SerializeToString()
    return quantized


def _factors(
    extremes: Extremes, weights: Sequence[npt.NDArray[np.float32]]
) -> npt.NDArray[np.float32]:
    """Return what each channel is divided by, and its row of the weights multiplied by."""
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
    """Return the node that multiplies a rounded tensor with rounded weights, and adds a bias."""
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
