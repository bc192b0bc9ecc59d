"""Export torch models to ONNX, and store prepared models."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.encoders._folders import MODELS, placing
from embedtopics.encoders.sentence._checkpoint import Checkpoint
from embedtopics.encoders.sentence._loading import PlainVocabulary
from embedtopics.encoders.sentence._running import OnnxRuntime, Table, TokenArray, TorchRuntime
from embedtopics.errors import EmbedTopicsError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def linear_layers(model: ModelProto) -> list[NodeProto]:
    """Return the products with weight matrices."""
    weights = {tensor.name for tensor in model.graph.initializer if len(tensor.dims) == 2}
    return [
        node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in weights
    ]


def biases_of(whole: ModelProto, linear: set[str]) -> dict[str, tuple[str, str]]:
    """Return the bias and the name of the sum for each product followed by a bias only."""
    vectors = {tensor.name for tensor in whole.graph.initializer if len(tensor.dims) == 1}
    users: dict[str, list[NodeProto]] = {}
    for node in whole.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    biases = {}
    for product in linear:
        only = users.get(product, [])
        if len(only) == 1 and only[0].op_type == "Add":
            others = [name for name in only[0].input if name != product]
            if len(others) == 1 and others[0] in vectors:
                biases[product] = (others[0], only[0].output[0])
    return biases


def fold_biases(model: bytes) -> bytes:
    """Return a model whose linear layers add biases within the product, which is faster."""
    import onnx
    from onnx.helper import make_node
    from onnx.numpy_helper import from_array

    whole = onnx.load_from_string(model)
    sizes = {tensor.name: tuple(tensor.dims) for tensor in whole.graph.initializer}
    layers = {layer.output[0]: layer for layer in linear_layers(whole)}
    biases = biases_of(whole, set(layers))
    sums = {target for _, target in biases.values()}
    shape = "shape_of_the_texts"
    nodes, constants = [make_node("Shape", ["input_ids"], [shape])], {}
    reshaped: set[str] = set()
    for node in whole.graph.node:
        if node.output[0] not in biases:
            if node.output[0] not in sums:
                nodes.append(node)
            continue
        source, weight = node.input
        bias, target = biases[node.output[0]]
        n_in, n_out = sizes[weight]
        constants[f"flat_{n_in}"] = np.array([-1, n_in])
        constants[f"wide_{n_out}"] = np.array([n_out])
        if source not in reshaped:
            nodes.append(make_node("Reshape", [source, f"flat_{n_in}"], [f"{source}_flat"]))
        if f"{shape}_{n_out}" not in reshaped:
            wide = [shape, f"wide_{n_out}"]
            nodes.append(make_node("Concat", wide, [f"{shape}_{n_out}"], axis=0))
        reshaped |= {source, f"{shape}_{n_out}"}
        nodes.append(make_node("Gemm", [f"{source}_flat", weight, bias], [f"{target}_flat"]))
        nodes.append(make_node("Reshape", [f"{target}_flat", f"{shape}_{n_out}"], [target]))
    del whole.graph.node[:]
    whole.graph.node.extend(nodes)
    whole.graph.initializer.extend(from_array(array, name) for name, array in constants.items())
    folded: bytes = whole.SerializeToString()
    return folded


LEAST_COSINE = 0.9999
"""Minimum cosine of the vectors of an export and of torch."""

MOST_BYTES = 1_900_000_000
"""Limit of a single ONNX file, which is 2 GB."""

_OPSET = 17

_logger = logging.getLogger("embedtopics")


class ExportError(EmbedTopicsError):
    """ONNX Runtime cannot run a model, or returns different vectors."""


def export_model(
    module: Any, vocabulary: int, max_length: int, *, fold: bool = True, words: Any = None
) -> tuple[bytes, Table | None, float]:
    """Export a pooled model, and check its vectors against those of torch.

    The weights of the layer `words`, if given, are separated from the model.
    """
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    if size > MOST_BYTES:
        raise ExportError(f"its weights take {size / 1e9:.1f} GB, and a file holds 2")
    plain, table = _traced(module, words)
    batches = sample_batches(vocabulary, max_length)
    if fold:
        try:
            folded = fold_biases(plain)
            return folded, table, _checked(folded, table, module, batches)
        except ExportError as error:
            _logger.debug("biases are added alone: %s", error)
    return plain, table, _checked(plain, table, module, batches)


def _checked(
    model: bytes, table: Table | None, module: Any, batches: list[tuple[TokenArray, TokenArray]]
) -> float:
    """Return the lowest cosine with the vectors of torch, or raise if it is too low."""
    try:
        cosine = least_cosine(OnnxRuntime(model, table), TorchRuntime(module, "cpu"), batches)
    except Exception as error:  # ONNX Runtime may raise anything
        raise ExportError(f"ONNX Runtime cannot run it: {error}") from error
    if not cosine >= LEAST_COSINE:
        raise ExportError(f"its vectors differ from those of torch (cosine {cosine:.5f})")
    return cosine


def sample_batches(vocabulary: int, max_length: int) -> list[tuple[TokenArray, TokenArray]]:
    """Return token ids and masks of several shapes that differ from that of the export."""
    random = np.random.default_rng(0)
    batches = []
    for lengths in ((1,), (5,), (24, 17, 3), (min(70, max_length), 9), (max_length,)):
        most = min(max(lengths), max_length)
        ids = random.integers(0, vocabulary, size=(len(lengths), most))
        mask = (np.arange(most) < np.minimum(lengths, most)[:, None]).astype(np.int64)
        batches.append((ids.astype(np.int64), mask))
    return batches


def least_cosine(first: Any, second: Any, batches: list[tuple[TokenArray, TokenArray]]) -> float:
    """Return the lowest cosine of the vectors of two runtimes, or NaN."""
    lowest: Any = 1.0
    for ids, mask in batches:
        a, b = (np.asarray(run(ids, mask, mask), dtype=np.float64) for run in (first, second))
        lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        with np.errstate(invalid="ignore"):
            lowest = np.minimum(lowest, (np.einsum("ij,ij->i", a, b) / lengths).min())
    return float(lowest)


def _traced(module: Any, words: Any) -> tuple[bytes, Table | None]:
    """Return the model, and the weights of the layer `words` if they could be separated."""
    import torch

    ids = torch.full((2, 7), 1, dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    axes = {0: "texts", 1: "tokens"}
    names = ["input_ids", "attention_mask", "pooled_mask"]
    file = io.BytesIO()
    whole: Any = getattr(words, "weight", None)
    every = module.named_parameters(remove_duplicate=False)
    names_of_table = {key for key, parameter in every if parameter is whole}
    try:
        with torch.no_grad(), _quiet():
            if names_of_table:  # the trace looks up the first rows only
                words.weight = torch.nn.Parameter(whole[:2].clone())
            torch.onnx.export(
                module, (ids, mask, mask), file,  # type: ignore[arg-type]
                input_names=names, output_names=["vectors"],
                dynamic_axes={**dict.fromkeys(names, axes), "vectors": {0: "texts"}},
                opset_version=_OPSET, dynamo=False,
            )  # fmt: skip
    except Exception as error:  # tracing runs the code of the model, which may raise anything
        raise ExportError(f"torch cannot export it: {error}") from error
    finally:
        if names_of_table:
            words.weight = whole
    if not names_of_table:
        return file.getvalue(), None
    separated = _without(file.getvalue(), names_of_table, whole.detach().numpy())
    # Another layer uses the same weights, as in the encoder of a T5.
    return separated or _traced(module, None)


def _without(model: bytes, names: set[str], values: FloatArray) -> tuple[bytes, Table] | None:
    """Return a model without a table of weights, which is passed when it is opened."""
    import onnx

    graph = onnx.load_from_string(model)
    initializers = [
        one for one in graph.graph.initializer if one.name in names and one.dims[0] == 2
    ]
    if len(initializers) != 1:
        return None
    tensor = initializers[0]
    tensor.ClearField("raw_data")
    tensor.dims[:] = values.shape
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=_TABLE)
    return graph.SerializeToString(), Table(tensor.name, values)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the tracer's warnings about constants; the check of vectors finds real problems."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# <cache folder>/models-1/<key>-<variant>/ holds model.onnx, tokenizer.json and about.json, and the
# vectors of its tokens in float32, mapped into memory: processes share them. It is written beside
# its place and moved there when it is whole. Its files have checksums; a damaged one is named,
# thrown away, and made again.

_TABLE = "tokens.f32"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model for ONNX Runtime, with its tokenizer."""

    model: bytes
    table: Table | None
    vocabulary: PlainVocabulary
    cosine: float


def key_of(
    checkpoint: Checkpoint, pooling: tuple[str, ...], layers: int | tuple[float, ...]
) -> str:
    """Return the key of a prepared model: a hash of weights, tokenizer and pooling."""
    parts = (checkpoint.contents, checkpoint.lower_case, pooling, layers)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def read_prepared(root: Path, key: str, variant: str) -> Prepared | None:
    """Return a prepared model, or None if there is no usable one."""
    from tokenizers import Tokenizer

    folder = root / MODELS / f"{key}-{variant}"
    if not folder.is_dir():
        return None
    refusal = read_refusal(root, key, variant)
    if refusal:
        raise ExportError(refusal)
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text("utf-8"))
        model, tokenizer = (folder / name for name in ("model.onnx", "tokenizer.json"))
        content, words = model.read_bytes(), tokenizer.read_bytes()
        files: dict[str, Any] = {model.name: content, tokenizer.name: words}
        table = None
        if "table" in about:
            shape = tuple(map(int, about["table"]["shape"]))
            files[_TABLE] = np.memmap(folder / _TABLE, np.float32, "r", shape=shape)
            table = Table(str(about["table"]["name"]), files[_TABLE])
        for name, data in files.items():
            if about["sha256"][name] != hashlib.sha256(data).hexdigest():
                raise ValueError(f"{name} is not what was written")
        vocabulary = PlainVocabulary(
            Tokenizer.from_buffer(words), int(about["pad_id"]), int(about["unknown_id"])
        )
        cosine = float(about["cosine"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        _logger.warning("The prepared model in %s is damaged (%s); made again.", folder, error)
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Prepared(content, table, vocabulary, cosine)


def read_refusal(root: Path, key: str, variant: str) -> str | None:
    """Return why a model could not be prepared; "" if it could, None if it was not tried."""
    try:
        about = (root / MODELS / f"{key}-{variant}" / "about.json").read_text("utf-8")
        return str(json.loads(about).get("refused", ""))
    except (OSError, ValueError, AttributeError):
        return None


def write_refusal(root: Path, key: str, variant: str, name: str, reason: str) -> None:
    """Store why a model could not be prepared, so that it is tried only once."""
    about = {"encoder": name, "variant": variant, "refused": " ".join(reason.split())[:300]}
    _keep(root / MODELS / f"{key}-{variant}", {"about.json": json.dumps(about).encode()})


def write_prepared(root: Path, key: str, variant: str, name: str, prepared: Prepared) -> None:
    """Store a prepared model."""
    words = prepared.vocabulary.tokenizer.to_str().encode()
    files: dict[str, Any] = {"model.onnx": prepared.model, "tokenizer.json": words}
    if prepared.table is not None:
        files[_TABLE] = prepared.table.values
    about: dict[str, Any] = {
        "encoder": name,
        "variant": variant,
        "pad_id": prepared.vocabulary.pad_id,
        "unknown_id": prepared.vocabulary.unknown_id,
        "cosine": prepared.cosine,
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }
    if prepared.table is not None:
        about["table"] = {"name": prepared.table.name, "shape": prepared.table.values.shape}
    files["about.json"] = json.dumps(about, indent=1).encode()
    _keep(root / MODELS / f"{key}-{variant}", files)


def _keep(folder: Path, files: Mapping[str, Any]) -> None:
    """Write a folder atomically; log a warning if that fails."""
    try:
        with placing(folder) as fresh:
            for file, data in files.items():
                with (fresh / file).open("wb") as opened:
                    opened.write(data)
                    opened.flush()
                    os.fsync(opened.fileno())
    except OSError as error:
        _logger.warning(
            "The prepared model cannot be stored in %s (%s); it is prepared again each time.",
            folder.parent, error,
        )  # fmt: skip
