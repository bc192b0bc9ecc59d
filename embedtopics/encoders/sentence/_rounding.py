"""Round the linear layers of a model to 8 bits."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from embedtopics.encoders.sentence._graph import Graph, RoundedLayer, RoundLayer
from embedtopics.encoders.sentence._running import onnx_session
from embedtopics.protocols import FloatArray, Int32Array

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
    session = onnx_session(whole.SerializeToString(), graph.table, n_threads=1)
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
