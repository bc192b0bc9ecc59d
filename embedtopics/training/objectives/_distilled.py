"""Distillation: the vectors that a teacher gives are what is learned, at one or several lengths."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.corpus.results import Decision
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._registry import fitted, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.training._examples import Examples
from embedtopics.training.objectives._objective import Objective, cosine_with_teacher
from embedtopics.training.objectives._trainable import Trainable


def teach(
    teacher: Any,
    texts: Sequence[str],
    translations: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
) -> Examples:
    """Return texts, and perhaps translations, with the vectors that a teacher gives the texts.

    A translation gets the vector of the text that it translates, so that a student learns other
    languages from a teacher of one (Reimers and Gurevych 2020, "Making monolingual sentence
    embeddings multilingual using knowledge distillation", section 3).
    """
    from scipy.sparse import issparse

    by_language = {} if translations is None else translations
    if not isinstance(by_language, Mapping):
        by_language = {"translations": by_language}
    columns = [tuple(check_texts(column)) for column in (texts, *by_language.values())]
    for name, column in zip(by_language, columns[1:], strict=True):
        if len(column) != len(columns[0]):
            wanted = f"one for each of {len(columns[0])} texts"
            raise InputError("translations", wanted, found=f"{len(column)} of {name!r}")
    encoder = fitted(resolve_encoder(teacher), columns[0])
    made = encoder.encode(list(columns[0]))
    name = str(getattr(encoder, "name", type(encoder).__name__))
    if issparse(made):
        raise InputError("teacher", 'one of dense vectors, such as "lsa"', name)
    vectors = np.asarray(made, dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1) if vectors.size else np.ones(len(vectors), bool)
    if vectors.ndim != 2 or len(vectors) != len(columns[0]) or not finite.all():
        found = f"an array of shape {vectors.shape}, or other numbers in it"
        raise InputError("teacher", "one that gives each text a finite vector", found=found)
    rows = np.arange(len(vectors), dtype=np.int64)
    return Examples("taught", tuple(columns), vectors, rows, source=f"vectors of {name}")


TAUGHT = "taught: mean squared error"
PROJECTED = f"{TAUGHT}, projected"


def taught(examples: Examples, trainable: Trainable) -> Objective:
    """Learn the vectors of a teacher, by mean squared error.

    Hinton et al. (2015), "Distilling the knowledge in a neural network", for vectors as in Reimers
    and Gurevych (2020), equation 1. Where the student's vectors are shorter, the teacher's are cut
    to their principal components; where they are longer, a linear layer that is thrown away maps
    them. The metric is the mean cosine with the teacher.
    """
    vectors = np.asarray(examples.labels, dtype=np.float32)
    width, wanted = vectors.shape[1], trainable.n_dimensions
    directions = None
    if wanted != width:
        how = "a linear layer that is thrown away"
        if wanted < width:
            directions, kept = _directions(vectors, wanted)
            how = f"principal components, which keep {kept:.1%} of their squared length"
        message = f"The teacher's vectors have {width} dimensions, the student's {wanted}: {how}."
        examples = examples.noting(Decision("training", "teacher_dimensions", wanted, message))

    def make_loss(model: Any, given: Any) -> Any:
        return _taught_loss(model, given, directions, width if wanted > width else None)

    return Objective(
        name=TAUGHT if wanted == width else PROJECTED,
        examples=examples,
        make_loss=make_loss,
        metric_name="cosine with the teacher",
        metric=cosine_with_teacher,
    )


def _directions(vectors: FloatArray, wanted: int) -> tuple[FloatArray, float]:
    """Return the directions with most of the vectors' length, (n_dimensions, n_kept), and how much.

    The signs are settled, so that they are the same everywhere.
    """
    wide = vectors.astype(np.float64)
    if len(wide) < wanted:
        raise InputError("texts", f"{wanted} or more, one for each dimension", found=f"{len(wide)}")
    sizes, found = np.linalg.eigh(wide.T @ wide)
    found = found[:, ::-1][:, :wanted]
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(wanted)])
    kept = sizes[::-1][:wanted].sum() / max(sizes.sum(), 1e-300)
    directions: FloatArray = (found * signs).astype(np.float32)
    return directions, float(kept)


def _taught_loss(
    model: Any, given: Any, directions: FloatArray | None, projected: int | None
) -> Any:
    import torch
    from sentence_transformers.sentence_transformer.losses import MSELoss
    from torch import nn

    inner = MSELoss(model, projection_dim=projected)
    inner.model = given

    class _Taught(nn.Module):
        """The loss, with the teacher's vectors in the student's dimensions."""

        def __init__(self) -> None:
            super().__init__()
            self.loss = inner
            kept = None if directions is None else torch.from_numpy(directions)
            self.register_buffer("directions", kept)

        def forward(self, features: Any, labels: Any) -> Any:
            return self.loss(features, self.targets(labels))

        def targets(self, labels: Any) -> Any:
            """Return the vectors to learn, of shape (n_texts, n_dimensions)."""
            if self.directions is None:
                return labels
            made = labels @ self.directions
            lengths = labels.norm(dim=1, keepdim=True)
            return nn.functional.normalize(made, dim=1) * lengths

        def compared(self, vectors: Any, labels: Any) -> tuple[Any, Any]:
            """Return vectors of the student and of the teacher that can be compared."""
            labels = labels.float()
            fixed: Any = next(itertools.chain(self.parameters(), self.buffers()), None)
            if fixed is not None:
                vectors, labels = vectors.to(fixed.device), labels.to(fixed.device)
            if self.loss.projection is not None:
                vectors = self.loss.projection(vectors)
            return vectors, self.targets(labels)

    return _Taught()


_OF_ONE_LENGTH = ("nli: softmax", "texts: TSDAE", PROJECTED)
"""Objectives with a layer for vectors of one length alone."""


def with_matryoshka(objective: Objective, lengths: Sequence[int]) -> Objective:
    """Train the vectors cut to each length as well (Kusupati et al. 2022, equation 1)."""
    if objective.name in _OF_ONE_LENGTH:
        wanted = 'one that compares vectors, such as "ranking", with matryoshka'
        raise InputError("objective", wanted, objective.name)

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

        return MatryoshkaLoss(given, objective.make_loss(model, given), list(lengths))

    def inner_metric(embeddings: Any, labels: Any, loss: Any, keys: Any) -> float:
        """Measure whole vectors; the metric looks at the loss that was wrapped."""
        assert objective.metric is not None
        return objective.metric(embeddings, labels, loss.loss, keys)

    shorter = [str(length) for length in lengths[1:]]
    message = f"Vectors cut to their first {', '.join(shorter)} dimensions were trained as well."
    return replace(
        objective,
        name=f"{objective.name}, matryoshka",
        examples=objective.examples.noting(Decision("training", "matryoshka", shorter, message)),
        make_loss=make_loss,
        metric=None if objective.metric is None else inner_metric,
    )


def lengths_of(dims: Sequence[int], width: int) -> tuple[int, ...]:
    """Return the lengths at which vectors are trained, the whole first."""
    lengths = sorted({width, *(checked_count(length, "matryoshka") for length in dims)})
    if lengths[-1] > width:
        raise InputError("matryoshka", f"dimensions of at most {width}", lengths[-1])
    return tuple(reversed(lengths))
