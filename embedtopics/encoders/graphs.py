"""Linear layers in the graph of an ONNX model: found, and made faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

__all__ = ["biases_of", "fold_biases", "linear_layers"]


def linear_layers(model: ModelProto) -> list[NodeProto]:
    """Return the products of something with a matrix of weights."""
    weights = {tensor.name for tensor in model.graph.initializer if len(tensor.dims) == 2}
    return [
        node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in weights
    ]


def biases_of(whole: ModelProto, linear: set[str]) -> dict[str, tuple[str, str]]:
    """Return, for each product that a bias alone is added to, the bias and the name of the sum."""
    vectors = {tensor.name for tensor in whole.graph.initializer if len(tensor.dims) == 1}
    users: dict[str, list[NodeProto]] = {}
    for node in whole.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    found = {}
    for product in linear:
        only = users.get(product, [])
        if len(only) == 1 and only[0].op_type == "Add":
            others = [name for name in only[0].input if name != product]
            if len(others) == 1 and others[0] in vectors:
                found[product] = (others[0], only[0].output[0])
    return found


def fold_biases(model: bytes) -> bytes:
    """Return a model whose linear layers add their bias in the product, which is faster.

    The product that does so takes matrices: the tokens of all texts are put under one another.

    Parameters
    ----------
    model : bytes
        An ONNX model with ``input_ids`` of shape (n_texts, n_tokens).
    """
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
    known: set[str] = set()
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
        if source not in known:
            nodes.append(make_node("Reshape", [source, f"flat_{n_in}"], [f"{source}_flat"]))
        if f"{shape}_{n_out}" not in known:
            wide = [shape, f"wide_{n_out}"]
            nodes.append(make_node("Concat", wide, [f"{shape}_{n_out}"], axis=0))
        known |= {source, f"{shape}_{n_out}"}
        nodes.append(make_node("Gemm", [f"{source}_flat", weight, bias], [f"{target}_flat"]))
        nodes.append(make_node("Reshape", [f"{target}_flat", f"{shape}_{n_out}"], [target]))
    del whole.graph.node[:]
    whole.graph.node.extend(nodes)
    whole.graph.initializer.extend(from_array(array, name) for name, array in constants.items())
    folded: bytes = whole.SerializeToString()
    return folded
