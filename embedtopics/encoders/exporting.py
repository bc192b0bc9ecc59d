"""From a torch model to an ONNX one that gives the same vectors."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from embedtopics.encoders.graphs import fold_biases
from embedtopics.encoders.runtime import OnnxRuntime, TokenArray, TorchRuntime
from embedtopics.errors import EmbedTopicsError

__all__ = ["ExportError", "export_model", "least_cosine", "sample_batches"]

LEAST_COSINE = 0.9999
"""An export that gives vectors farther than this from torch's is not used."""

MOST_BYTES = 1_900_000_000
"""An ONNX file of one piece holds 2 GB at most."""

_OPSET = 17

_logger = logging.getLogger("embedtopics")


class ExportError(EmbedTopicsError):
    """A model cannot be run by ONNX Runtime, or gives other vectors there."""


def export_model(
    module: Any, vocabulary: int, max_length: int, *, fold: bool = True
) -> tuple[bytes, float]:
    """Export a pooled model, and make sure that it gives the vectors that torch gives.

    Parameters
    ----------
    module : torch.nn.Module
        Of `pooling.pooled_model`, with eager attention.
    vocabulary : int
        Tokens to draw the texts of the check from.
    max_length : int
        Longest text of the check.
    fold : bool
        Whether linear layers add their bias in the product; those that are to be rounded do not.

    Returns
    -------
    model : bytes
    cosine : float
        The lowest cosine of a vector with that of torch.

    Raises
    ------
    ExportError
    """
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    if size > MOST_BYTES:
        raise ExportError(f"its weights take {size / 1e9:.1f} GB, and a file holds 2")
    plain = _traced(module)
    batches = sample_batches(vocabulary, max_length)
    if fold:
        try:
            folded = fold_biases(plain)
            return folded, _checked(folded, module, batches)
        except ExportError as error:
            _logger.debug("biases are added alone: %s", error)
    return plain, _checked(plain, module, batches)


def _checked(model: bytes, module: Any, batches: list[tuple[TokenArray, TokenArray]]) -> float:
    """Return the lowest cosine with the vectors of torch, or raise where it is too low."""
    try:
        cosine = least_cosine(OnnxRuntime(model), TorchRuntime(module, "cpu"), batches)
    except Exception as error:  # whatever ONNX Runtime makes of an operation
        raise ExportError(f"ONNX Runtime cannot run it: {error}") from error
    if not cosine >= LEAST_COSINE:
        raise ExportError(f"its vectors differ from those of torch (cosine {cosine:.5f})")
    return cosine


def sample_batches(vocabulary: int, max_length: int) -> list[tuple[TokenArray, TokenArray]]:
    """Return token ids and masks of several shapes, none of them that of the export."""
    random = np.random.default_rng(0)
    batches = []
    for lengths in ((1,), (5,), (24, 17, 3), (min(70, max_length), 9), (max_length,)):
        most = min(max(lengths), max_length)
        ids = random.integers(0, vocabulary, size=(len(lengths), most))
        mask = (np.arange(most) < np.minimum(lengths, most)[:, None]).astype(np.int64)
        batches.append((ids.astype(np.int64), mask))
    return batches


def least_cosine(first: Any, second: Any, batches: list[tuple[TokenArray, TokenArray]]) -> float:
    """Return the lowest cosine between the vectors that two runtimes give to the same texts."""
    lowest = 1.0
    for ids, mask in batches:
        a, b = (np.asarray(run(ids, mask, mask), dtype=np.float64) for run in (first, second))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        lowest = min(lowest, float((np.einsum("ij,ij->i", a, b) / lengths).min()))
    return lowest


def _traced(module: Any) -> bytes:
    import torch

    ids = torch.full((2, 7), 1, dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    axes = {0: "texts", 1: "tokens"}
    names = ["input_ids", "attention_mask", "pooled_mask"]
    file = io.BytesIO()
    try:
        with torch.no_grad(), _quiet():
            torch.onnx.export(
                module, (ids, mask, mask), file,  # type: ignore[arg-type]
                input_names=names, output_names=["vectors"],
                dynamic_axes={**dict.fromkeys(names, axes), "vectors": {0: "texts"}},
                opset_version=_OPSET, dynamo=False,
            )  # fmt: skip
    except Exception as error:  # tracing runs the model's own code, which may raise anything
        raise ExportError(f"torch cannot export it: {error}") from error
    return file.getvalue()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the tracer's notes about constants to itself: the check finds those that matter."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
