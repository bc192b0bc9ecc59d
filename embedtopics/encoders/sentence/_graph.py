"""The ONNX graph of a BERT-family checkpoint, built from its configuration and weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from embedtopics.encoders._base import load_error
from embedtopics.encoders.sentence._checkpoint import (
    POSITIONS_AFTER_PADDING,
    Checkpoint,
    check_finite,
)
from embedtopics.errors import EmbedTopicsError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    from onnx import NodeProto

# Hidden states are (n_texts * n_tokens, width): a linear layer is one matrix product, in float32 or
# in 8 bits. Only attention and pooling see texts. Names of operators are those of the ONNX
# standard; Gelu, FastGelu, RotaryEmbedding and MatMulIntegerToFloat are ONNX Runtime's.

WORDS = "tokens"
"""Name of the table of token vectors."""

_OPSET, _IR_VERSION = 17, 8
_RUNTIME = "com.microsoft"
_FLOAT, _INT64 = 1, 7  # of TensorProto
_MASKED = float(np.finfo(np.float32).min)
_ACTIVATIONS = {
    "gelu": ("Gelu", _RUNTIME),
    "gelu_new": ("FastGelu", _RUNTIME),
    "gelu_fast": ("FastGelu", _RUNTIME),
    "gelu_pytorch_tanh": ("FastGelu", _RUNTIME),
    "relu": ("Relu", ""),
    "tanh": ("Tanh", ""),
}


MOST_BYTES = 1_900_000_000
"""Limit of a single ONNX file, which is 2 GB; the table of token vectors is not part of it."""


class UnsupportedModelError(EmbedTopicsError):
    """ONNX Runtime cannot run a model."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A model for ONNX Runtime."""

    model: bytes  # without its token vectors, which take most of the memory
    words: FloatArray  # the token vectors, (n_tokens, n_dimensions)
    linear_inputs: tuple[str, ...] = ()  # names of the inputs of its linear layers


class _Builder:
    """Nodes and constants of a graph; `round_layer` replaces linear layers by those in 8 bits."""

    def __init__(self, round_layer: RoundLayer | None) -> None:
        self.nodes: list[NodeProto] = []
        self._constants: dict[str, np.ndarray] = {}
        self.linear_inputs: list[str] = []
        self._round_layer = round_layer
        shape = self.add("Shape", "input_ids")
        self.n_texts, self.n_tokens = (
            self.add("Gather", shape, self.constant([place])) for place in (0, 1)
        )

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        return self.add_many(operator, *inputs, n_outputs=1, domain=domain, **attributes)[0]

    def add_many(
        self, operator: str, *inputs: str, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node; return the names of its outputs."""
        from onnx.helper import make_node

        outputs = [f"{operator}_{len(self.nodes)}_{place}" for place in range(n_outputs)]
        self.nodes.append(make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs

    def constant(self, values: Any) -> str:
        """Add an array; return its name."""
        name = f"constant_{len(self._constants)}"
        self._constants[name] = np.asarray(values)
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def reshape(self, source: str, *sizes: int | str) -> str:
        """Return a tensor in another shape; a size is a number or the name of one."""
        parts = [self.constant([size]) if isinstance(size, int) else size for size in sizes]
        return self.add("Reshape", source, self.add("Concat", *parts, axis=0))

    def by_text(self, states: str, *sizes: int) -> str:
        """Return hidden states (n_texts * n_tokens, ...) as (n_texts, n_tokens, ...)."""
        return self.reshape(states, self.n_texts, self.n_tokens, *sizes)

    def positions(self) -> str:
        """Return the numbers of the tokens, (n_tokens,)."""
        count = self.add("Squeeze", self.n_tokens)
        return self.add("Range", self.constant(0), count, self.constant(1))

    def distances(self) -> str:
        """Return the place of each key minus that of each query, (n_tokens, n_tokens)."""
        positions = self.positions()
        queries = self.add("Unsqueeze", positions, self.constant([1]))
        return self.add("Sub", positions, queries)

    def masked(self, is_read: str) -> str:
        """Return 0 where a mask of integers has 1, the lowest float where it has 0."""
        closed = self.add("Sub", self.number(1), self.add("Cast", is_read, to=_FLOAT))
        return self.add("Mul", closed, self.number(_MASKED))

    def linear(self, source: str, weight: FloatArray, bias: FloatArray) -> str:
        """Return ``x W + b``: `weight` (n_in, n_out)."""
        place = len(self.linear_inputs)
        self.linear_inputs.append(source)
        if self._round_layer is None:
            return self.add("Gemm", source, self.constant(weight), self.constant(bias))
        layer = self._round_layer(place, weight)
        scale, zero = self.constant(layer.scale), self.constant(layer.zero)
        divided = self.add("Mul", source, self.constant(layer.multipliers))
        rounded = self.add("QuantizeLinear", divided, scale, zero)
        inputs = [rounded, self.constant(layer.weight), scale, self.constant(layer.weight_scales)]
        # The weights have no zero point.
        inputs += [zero, "", self.constant(bias)]
        return self.add("MatMulIntegerToFloat", *inputs, domain=_RUNTIME)

    def layer_norm(self, source: str, weight: FloatArray, bias: FloatArray, epsilon: float) -> str:
        inputs = (source, self.constant(weight), self.constant(bias))
        return self.add("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)

    def add_norm(
        self, first: str, second: str, norm: tuple[FloatArray, FloatArray], epsilon: float
    ) -> str:
        """Return the normalized sum of two tensors."""
        return self.layer_norm(self.add("Add", first, second), *norm, epsilon)

    def activate(self, source: str, activation: str) -> str:
        if activation not in _ACTIVATIONS:
            raise UnsupportedModelError(f"its activation is {activation!r}")
        operator, domain = _ACTIVATIONS[activation]
        return self.add(operator, source, domain=domain)

    def finish(self, output: str, words: FloatArray) -> Graph:
        """Return the graph from token ids to `output`."""
        from onnx import TensorProto
        from onnx.helper import make_graph, make_model, make_opsetid, make_tensor_value_info
        from onnx.numpy_helper import from_array

        size = sum(values.nbytes for values in self._constants.values())
        if size > MOST_BYTES:
            raise UnsupportedModelError(f"its weights take {size / 1e9:.1f} GB; a file holds 2")
        weights = [from_array(values, name) for name, values in self._constants.items()]
        external = TensorProto(name=WORDS, data_type=TensorProto.FLOAT, dims=words.shape)
        external.data_location = TensorProto.EXTERNAL
        external.external_data.add(key="location", value=f"{WORDS}.f32")
        inputs = [
            make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in ("input_ids", "attention_mask", "pooled_mask")
        ]
        vectors = make_tensor_value_info(output, TensorProto.FLOAT, ["texts", None])
        graph = make_graph(self.nodes, "encoder", inputs, [vectors], [*weights, external])
        versions = [make_opsetid("", _OPSET), make_opsetid(_RUNTIME, 1)]
        model = make_model(graph, opset_imports=versions, ir_version=_IR_VERSION)
        content: bytes = model.SerializeToString()
        return Graph(content, words, tuple(self.linear_inputs))


class RoundedLayer(NamedTuple):
    """A linear layer in 8 bits: inputs are multiplied per channel, then divided by `scale`."""

    multipliers: FloatArray  # (n_in,)
    scale: np.float32
    zero: np.uint8
    weight: np.ndarray  # int8 (n_in, n_out)
    weight_scales: FloatArray  # (n_out,)


RoundLayer: TypeAlias = Callable[[int, FloatArray], RoundedLayer]
"""From the place of a linear layer and its weight to the layer in 8 bits."""


class _Weights:
    """Tensors of a checkpoint, by their names in BERT without the prefix of the base model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        # The first checkpoints of BERT name the parts of a normalization as TensorFlow does.
        renamed = {**_AS_IN_BERT.get(checkpoint.family, {}), ".gamma": ".weight", ".beta": ".bias"}
        prefix, self._tensors = _PREFIXES[checkpoint.family], {}
        for name, tensor in checkpoint.tensors().items():
            name = name.removeprefix(prefix)
            for part, as_in_bert in renamed.items():
                name = name.replace(part, as_in_bert)
            self._tensors[name] = tensor

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self._tensors:
            checkpoint = self._checkpoint
            expected = f"all weights of the family {checkpoint.family!r} in {checkpoint.weights[0]}"
            raise load_error(expected, f"none for {name}")
        tensor = self._tensors[name]
        check_finite(name, tensor, self._checkpoint.weights[0])
        return tensor

    def table(self, name: str, n_rows: int | None) -> FloatArray:
        """Return a table of as many rows as the configuration states."""
        tensor = self[name]
        if n_rows is not None and tensor.shape[:1] != (n_rows,):
            expected = f"{n_rows:,} rows in {name}, as config.json states"
            actual = f"the shape {tensor.shape} ({self._checkpoint.weights[0]})"
            raise load_error(expected, actual)
        return tensor

    def linear(self, *names: str, bias: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return layers with the same input as one: weight (n_in, n_out) and bias (n_out,)."""
        weight = np.ascontiguousarray(np.concatenate([self[f"{name}.weight"] for name in names]).T)
        if not bias:
            return weight, np.zeros(weight.shape[1], np.float32)
        return weight, np.concatenate([self[f"{name}.bias"] for name in names])

    def norm(self, name: str, bias: bool = True) -> tuple[FloatArray, FloatArray]:
        weight = self[f"{name}.weight"]
        return weight, self[f"{name}.bias"] if bias else np.zeros_like(weight)


_PREFIXES = {
    "bert": "bert.", "camembert": "roberta.", "distilbert": "distilbert.", "modernbert": "model.",
    "mpnet": "mpnet.", "roberta": "roberta.", "xlm-roberta": "roberta.",
}  # fmt: skip
"""Families whose graph is known, and the prefix of their tensors in checkpoints with a head."""

_AS_IN_BERT = {
    "distilbert": {
        "transformer.layer": "encoder.layer", "attention.q_lin": "attention.self.query",
        "attention.k_lin": "attention.self.key", "attention.v_lin": "attention.self.value",
        "attention.out_lin": "attention.output.dense", "ffn.lin1": "intermediate.dense",
        "ffn.lin2": "output.dense", "sa_layer_norm": "attention.output.LayerNorm",
        "output_layer_norm": "output.LayerNorm",
    },
    "mpnet": {
        "attention.attn.q": "attention.self.query", "attention.attn.k": "attention.self.key",
        "attention.attn.v": "attention.self.value", "attention.attn.o": "attention.output.dense",
        "attention.LayerNorm": "attention.output.LayerNorm",
    },
}  # fmt: skip
"""Parts of the names of tensors, and what BERT calls them."""


def build_graph(
    checkpoint: Checkpoint, pooling: Sequence[str], round_layer: RoundLayer | None = None
) -> Graph:
    """Build the graph from token ids to pooled vectors, those of several poolings concatenated.

    Raises `UnsupportedModelError` if the graph of the family or of one of its options is not known.
    """
    config = json.loads(checkpoint.configuration)
    builder = _Builder(round_layer)
    build = _modernbert if checkpoint.family == "modernbert" else _bert
    try:
        words, states = build(builder, _Weights(checkpoint), config)
    # A family or an entry that is not known, or numbers that make no graph.
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnsupportedModelError(f"its graph is not known ({error})") from None
    states = builder.by_text(states, -1)
    vectors = [_pool(builder, states, mode) for mode in pooling]
    return builder.finish(builder.add("Concat", *vectors, axis=-1), words)


def _bert(builder: _Builder, weights: _Weights, config: dict[str, Any]) -> tuple[FloatArray, str]:
    """Return the token vectors, and the hidden states of the last layer."""
    family = config["model_type"]
    is_known = config.get("position_embedding_type", "absolute") == "absolute"
    if not is_known or config.get("is_decoder"):
        raise UnsupportedModelError("its configuration has options whose graph is not known")
    if family == "distilbert":
        keys, epsilon = ("n_layers", "n_heads", "activation"), 1e-12
    else:
        keys = ("num_hidden_layers", "num_attention_heads", "hidden_act")
        epsilon = config["layer_norm_eps"]
    n_layers, n_heads, activation = (config[key] for key in keys)
    words, state = _embed_tokens(builder, weights, config, epsilon)
    bias = builder.add("Unsqueeze", builder.masked("attention_mask"), builder.constant([1, 2]))
    if family == "mpnet":
        bias = builder.add("Add", bias, _relative_bias(builder, weights, config))
    for place in range(n_layers):
        layer = f"encoder.layer.{place}."
        inputs = [f"{layer}attention.self.{name}" for name in ("query", "key", "value")]
        layers = weights.linear(*inputs)
        heads = _heads(builder, builder.linear(state, *layers), n_heads)
        mixed = _attend(builder, heads, n_heads, len(layers[1]) // 3, bias)
        mixed = builder.linear(mixed, *weights.linear(f"{layer}attention.output.dense"))
        norm = weights.norm(f"{layer}attention.output.LayerNorm")
        state = builder.add_norm(mixed, state, norm, epsilon)
        inner = builder.linear(state, *weights.linear(f"{layer}intermediate.dense"))
        inner = builder.activate(inner, activation)
        outer = builder.linear(inner, *weights.linear(f"{layer}output.dense"))
        state = builder.add_norm(outer, state, weights.norm(f"{layer}output.LayerNorm"), epsilon)
    return words, state


def _embed_tokens(
    builder: _Builder, weights: _Weights, config: dict[str, Any], epsilon: float
) -> tuple[FloatArray, str]:
    """Return the token vectors, and the hidden state that enters the first layer."""
    family = config["model_type"]
    words = weights.table("embeddings.word_embeddings.weight", config.get("vocab_size"))
    n_positions = config.get("max_position_embeddings")
    table = builder.constant(weights.table("embeddings.position_embeddings.weight", n_positions))

    tokens = builder.add("Gather", WORDS, "input_ids")
    if family not in ("distilbert", "mpnet"):
        first_type = weights["embeddings.token_type_embeddings.weight"][0]
        tokens = builder.add("Add", tokens, builder.constant(first_type))

    if family in POSITIONS_AFTER_PADDING:
        padding = builder.constant(1 if family == "mpnet" else config["pad_token_id"])
        is_text = builder.add("Not", builder.add("Equal", "input_ids", padding))
        is_text = builder.add("Cast", is_text, to=_INT64)
        counted = builder.add("CumSum", is_text, builder.constant(1))
        places = builder.add("Add", builder.add("Mul", counted, is_text), padding)
    else:
        places = builder.positions()

    positions = builder.add("Gather", table, places)
    state = builder.add_norm(tokens, positions, weights.norm("embeddings.LayerNorm"), epsilon)
    return words, builder.reshape(state, -1, words.shape[1])


def _heads(builder: _Builder, states: str, n_heads: int) -> list[str]:
    """Split queries, keys and values, each (n_texts, n_heads, n_tokens, n_dimensions)."""
    parts = builder.by_text(states, 3 * n_heads, -1)
    parts = builder.add("Transpose", parts, perm=[0, 2, 1, 3])
    sizes = builder.constant([n_heads] * 3)
    return builder.add_many("Split", parts, sizes, n_outputs=3, axis=1)


def _attend(builder: _Builder, heads: Sequence[str], n_heads: int, width: int, bias: str) -> str:
    """Return the values that attention mixes, (n_texts * n_tokens, width)."""
    queries, keys, values = heads
    scores = builder.add("MatMul", queries, builder.add("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = builder.add("Mul", scores, builder.number((width / n_heads) ** -0.5))
    shares = builder.add("Softmax", builder.add("Add", scores, bias), axis=-1)
    mixed = builder.add("Transpose", builder.add("MatMul", shares, values), perm=[0, 2, 1, 3])
    return builder.reshape(mixed, -1, width)


def _relative_bias(builder: _Builder, weights: _Weights, config: dict[str, Any]) -> str:
    """Return what MPNet adds to attention for the distance of two tokens."""
    values = weights["encoder.relative_attention_bias.weight"]
    most = config["max_position_embeddings"]
    buckets = _buckets(np.arange(1 - most, most), len(values) // 2)
    rows = builder.add("Add", builder.distances(), builder.constant(most - 1))
    bias = builder.add("Gather", builder.constant(values[buckets]), rows)
    return builder.add("Transpose", bias, perm=[2, 0, 1])


def _buckets(distances: np.ndarray, n_buckets: int) -> np.ndarray:
    """Return the bucket of each distance: near ones alone, others by logarithm up to 128."""
    sizes, n_alone = np.abs(distances), n_buckets // 2
    logarithms = np.log(np.maximum(sizes, 1).astype(np.float32) / n_alone)
    steps = logarithms / math.log(128 / n_alone) * (n_buckets - n_alone)
    far = np.minimum(n_alone + steps.astype(np.int64), n_buckets - 1)
    buckets: np.ndarray = np.where(sizes < n_alone, sizes, far)
    buckets += n_buckets * (distances > 0)
    return buckets


def _modernbert(
    builder: _Builder, weights: _Weights, config: dict[str, Any]
) -> tuple[FloatArray, str]:
    """Return the token vectors, and the hidden states of the last layer."""
    n_heads = config["num_attention_heads"]
    width = config["hidden_size"]
    epsilon = config["norm_eps"]

    def norm(state: str, name: str) -> str:
        return builder.layer_norm(state, *weights.norm(name, config["norm_bias"]), epsilon)

    def linear(state: str, name: str, has_bias: bool) -> str:
        return builder.linear(state, *weights.linear(name, bias=has_bias))

    words = weights.table("embeddings.tok_embeddings.weight", config.get("vocab_size"))
    state = builder.reshape(builder.add("Gather", WORDS, "input_ids"), -1, width)
    state = norm(state, "embeddings.norm")
    kinds = _layer_kinds(config)
    rotations = {kind: _rotation(builder, config, kind) for kind in kinds}
    biases = _attention_biases(builder, config)

    for place, kind in enumerate(kinds):
        layer = f"layers.{place}."
        entering = norm(state, f"{layer}attn_norm") if place else state
        queries, keys, values = _heads(
            builder, linear(entering, f"{layer}attn.Wqkv", config["attention_bias"]), n_heads
        )
        turned = [
            builder.add("RotaryEmbedding", part, *rotations[kind], domain=_RUNTIME)
            for part in (queries, keys)
        ]

        mixed = _attend(builder, [*turned, values], n_heads, width, biases[kind])
        mixed = linear(mixed, f"{layer}attn.Wo", config["attention_bias"])
        state = builder.add("Add", state, mixed)

        inner = linear(norm(state, f"{layer}mlp_norm"), f"{layer}mlp.Wi", config["mlp_bias"])
        halves = builder.constant([config["intermediate_size"]] * 2)
        inner, gate = builder.add_many("Split", inner, halves, n_outputs=2, axis=-1)
        inner = builder.add("Mul", builder.activate(inner, config["hidden_activation"]), gate)
        outer = linear(inner, f"{layer}mlp.Wo", config["mlp_bias"])
        state = builder.add("Add", state, outer)

    return words, norm(state, "final_norm")


def _layer_kinds(config: dict[str, Any]) -> list[str]:
    """Return for each layer whether it reads the whole text or the tokens near by."""
    if "layer_types" in config:
        kinds = list(config["layer_types"])
        if len(kinds) != config["num_hidden_layers"]:
            expected = f"a kind for each of {config['num_hidden_layers']} layers"
            raise load_error(expected, f"{len(kinds)} in layer_types of config.json")
        return kinds
    every = config["global_attn_every_n_layers"]
    layers = range(config["num_hidden_layers"])
    return ["sliding_attention" if place % every else "full_attention" for place in layers]


def _rotation(builder: _Builder, config: dict[str, Any], kind: str) -> list[str]:
    """Return the first position, and cosines and sines of the angles of all positions."""
    if "rope_parameters" in config:
        parameters = config["rope_parameters"][kind]
        if parameters["rope_type"] != "default":
            raise UnsupportedModelError(f"its positions turn by {parameters['rope_type']!r}")
        theta = parameters["rope_theta"]
    else:
        theta = config["local_rope_theta" if kind == "sliding_attention" else "global_rope_theta"]
    width = config["hidden_size"] // config["num_attention_heads"]
    speeds = 1 / theta ** (np.arange(0, width, 2, dtype=np.float32) / width)
    positions = np.arange(config["max_position_embeddings"], dtype=np.float32)
    angles = np.outer(positions, speeds.astype(np.float32))
    return [
        builder.constant([0]),
        builder.constant(np.cos(angles)),
        builder.constant(np.sin(angles)),
    ]


def _attention_biases(builder: _Builder, config: dict[str, Any]) -> dict[str, str]:
    """Return what hides padding, and in layers that read near tokens all others."""
    padding = builder.add("Unsqueeze", builder.masked("attention_mask"), builder.constant([1, 2]))
    distance = builder.add("Abs", builder.distances())
    is_near = builder.add("LessOrEqual", distance, builder.constant(config["local_attention"] // 2))
    far = builder.masked(builder.add("Cast", is_near, to=_INT64))
    return {
        "full_attention": padding,
        "sliding_attention": builder.add("Min", padding, far),
    }


def _pool(builder: _Builder, states: str, pooling: str) -> str:
    """Pool hidden states (n_texts, n_tokens, width) under the mask of pooled tokens."""
    one = builder.constant([1])
    mask = builder.add("Cast", "pooled_mask", to=_FLOAT)
    if pooling == "max":
        masked = builder.add("Unsqueeze", builder.masked("pooled_mask"), builder.constant([2]))
        largest = builder.add("ReduceMax", builder.add("Add", states, masked), axes=[1], keepdims=0)
        # A text without pooled tokens has zeros.
        return builder.add("Mul", largest, builder.add("ReduceMax", mask, axes=[1], keepdims=1))
    places = builder.add("CumSum", mask, builder.constant(1))
    weights = mask
    if pooling in ("cls", "lasttoken"):
        total = builder.add("ReduceSum", mask, one, keepdims=1)
        place = builder.number(1) if pooling == "cls" else total
        weights = builder.add("Cast", builder.add("Equal", places, place), to=_FLOAT)
        weights = builder.add("Mul", weights, mask)
    elif pooling == "weightedmean":
        positions = builder.add("Add", builder.positions(), builder.constant(1))
        weights = builder.add("Mul", mask, builder.add("Cast", positions, to=_FLOAT))
    total = builder.add(
        "Max", builder.add("ReduceSum", weights, one, keepdims=1), builder.number(1e-9)
    )
    if pooling == "mean_sqrt_len_tokens":
        total = builder.add("Sqrt", total)
    summed = builder.add("MatMul", builder.add("Unsqueeze", weights, one), states)
    return builder.add("Div", builder.add("Squeeze", summed, one), total)
