"""The measures by which checkpoints compare vectors, with their names in sentence-transformers.

"euclidean" and "manhattan" are negative distances, so that larger values are more similar. Both
arguments are arrays, lists or tensors of torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.results import Decision

NAMES = {"dot": "dot product", "euclidean": "Euclidean distance", "manhattan": "Manhattan distance"}


def cosine_instead(name: str, measure: str) -> Decision:
    """Return the note that vectors made for another measure are compared by their cosine."""
    message = (
        f"The checkpoint {name} compares vectors by {NAMES.get(measure, measure)}. Topics and "
        "comparisons compare all vectors by cosine, which gives other neighbors; "
        "encoder.similarity uses the measure of the checkpoint."
    )
    return Decision("encoder", "similarity", "cosine", message)


def similarity(name: str, first: Any, second: Any) -> Any:
    """Compare each vector with each of others, (n_first, n_second)."""
    first = _rows(first, "first")
    second = _rows(second, "second")
    if name == "cosine":
        return _unit(first) @ _unit(second).T
    if name == "dot":
        return first @ second.T

    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        from scipy.spatial.distance import cdist

        metric: Any = "cityblock" if name == "manhattan" else "euclidean"
        distances: Any = cdist(first, second, metric)
        return (-distances).astype(np.result_type(first, second))

    import torch

    first = torch.as_tensor(first)
    second = torch.as_tensor(second)
    p = 1.0 if name == "manhattan" else 2.0
    return -torch.cdist(first, second, p=p)


def pairwise_similarity(name: str, first: Any, second: Any) -> Any:
    """Compare each vector with its partner, (n_vectors,)."""
    first = _rows(first, "first")
    second = _rows(second, "second")
    if name == "cosine":
        return (_unit(first) * _unit(second)).sum(-1)
    if name == "dot":
        return (first * second).sum(-1)

    differences = first - second
    if name == "manhattan":
        return -abs(differences).sum(-1)
    return -((differences * differences).sum(-1) ** 0.5)


def _rows(vectors: Any, parameter: str) -> Any:
    vectors = np.asarray(vectors) if isinstance(vectors, (list, tuple)) else vectors
    is_numeric = hasattr(vectors, "ndim")
    if isinstance(vectors, np.ndarray):
        is_numeric = vectors.dtype.kind in "biufc"
    if not is_numeric:
        remedy = "call encoder.encode(texts) first"
        raise InputError(parameter, "vectors, (n_vectors, n_dimensions)", vectors, remedy)
    return vectors[None] if vectors.ndim == 1 else vectors


def _unit(vectors: Any) -> Any:
    """Scale vectors to length one, arrays or tensors."""
    return vectors / ((vectors * vectors).sum(-1)[:, None] ** 0.5).clip(1e-12)
