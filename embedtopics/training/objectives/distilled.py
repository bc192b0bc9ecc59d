"""Objectives for students: the vectors that a teacher gives are what is learned."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedtopics._checks import checked_count
from embedtopics.encoders.choosing import fitted, resolve_encoder
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.training.examples import Examples
from embedtopics.training.objectives.measures import cosine_with_teacher
from embedtopics.training.objectives.objective import Objective
from embedtopics.training.objectives.supervised import checked_kind

__all__ = ["PROJECTED", "TAUGHT", "taught", "teach"]

TAUGHT = "taught: mean squared error"
PROJECTED = "taught: mean squared error, projected"


def teach(
    teacher: Any,
    texts: Sequence[str],
    translations: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
) -> Examples:
    """Let a teacher give the vectors that a student shall learn.

    A translation gets the vector of the text that it translates, so that a student learns other
    languages from a teacher of one (Reimers and Gurevych, 2020, "Making monolingual sentence
    embeddings multilingual using knowledge distillation", section 3).

    Parameters
    ----------
    teacher : str, path or Encoder
        Whatever `resolve_encoder` takes; it needs no gradients. A baseline that learns from texts
        learns from these.
    texts : sequence of str
    translations : sequence of str, or mapping of str to such, optional
        Of each text, into one language, or several by their names.

    Returns
    -------
    made : Examples
        Of kind "taught", with a column for the texts and one for each language.

    Raises
    ------
    InputError
        If columns differ in length, a row is no string, or the teacher's vectors are not dense or
        not finite.
    """
    from scipy.sparse import issparse

    by_language = {} if translations is None else translations
    if not isinstance(by_language, Mapping):
        by_language = {"translations": by_language}
    columns = [tuple(check_texts(column)) for column in (texts, *by_language.values())]
    for name, column in zip(by_language, columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise InputError(
                f"expected one translation a text, {len(columns[0])}; got {len(column)} of "
                f"{name!r}; leave out texts without one"
            )
    encoder = fitted(resolve_encoder(teacher), columns[0])
    made = encoder.encode(list(columns[0]))
    name = str(getattr(encoder, "name", type(encoder).__name__))
    if issparse(made):
        raise InputError(
            f"expected dense vectors from the teacher, got {type(made).__name__} from {name}; "
            'use "lsa" or another encoder'
        )
    vectors = np.asarray(made, dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1) if vectors.size else np.ones(len(vectors), bool)
    if vectors.ndim != 2 or len(vectors) != len(columns[0]) or not finite.all():
        raise InputError(
            "expected a finite vector a text from the teacher, got an array of shape "
            f"{vectors.shape}, or other numbers in row {int(np.argmin(finite))}; choose another"
        )
    return Examples(
        kind="taught",
        columns=tuple(columns),
        labels=vectors,
        rows=np.arange(len(vectors), dtype=np.int64),
        source=f"vectors of {name}",
    )


def taught(examples: Examples, *, n_dimensions: int | None = None) -> Objective:
    """Learn the vectors of a teacher, by mean squared error.

    Hinton et al. (2015), "Distilling the knowledge in a neural network", for vectors as in
    Reimers and Gurevych (2020), equation 1. The metric is the mean cosine with the teacher.

    Parameters
    ----------
    examples : Examples
        Of kind "taught", as of `teach`.
    n_dimensions : int, optional
        Length of the student's vectors; by default that of the teacher's. A shorter student
        learns the teacher's vectors in the directions that keep most of their inner products
        (principal components without centring), each scaled back to its length. A longer one
        learns through a linear layer that is thrown away.

    Returns
    -------
    Objective
        Its `make_loss` raises InputError for a student of another length.

    Raises
    ------
    InputError
        If the examples are of another kind, or too few for the directions that are asked for.
    """
    checked_kind(examples, "taught", ("taught",))
    vectors = np.asarray(examples.labels, dtype=np.float32)
    width = vectors.shape[1]
    wanted = width if n_dimensions is None else checked_count(n_dimensions, "n_dimensions")
    directions, notes = None, examples.decisions
    if wanted < width:
        directions, kept = _directions(vectors, wanted)
        notes = (*notes, _note("principal components", width, wanted, f", which keep {kept:.1%}"))
    elif wanted > width:
        notes = (*notes, _note("a linear layer that is thrown away", width, wanted, ""))

    def make_loss(model: Any, given: Any) -> Any:
        found = int(given.get_embedding_dimension())
        if found != wanted:
            raise InputError(
                f"expected a student with vectors of {wanted} numbers, got one with {found}; give "
                f"taught(..., n_dimensions={found})"
            )
        return _loss(model, given, directions, width if wanted > width else None)

    return Objective(
        name=TAUGHT if wanted == width else PROJECTED,
        examples=replace(examples, decisions=notes),
        make_loss=make_loss,
        metric_name="cosine with the teacher",
        metric=cosine_with_teacher,
    )


def _note(how: str, width: int, wanted: int, kept: str) -> Decision:
    return Decision(
        "training",
        "teacher_dimensions",
        wanted,
        f"The teacher's vectors have {width} numbers and the student's {wanted}; they were "
        f"compared by {how}{kept}{' of their squared length' if kept else ''}.",
    )


def _directions(vectors: FloatArray, wanted: int) -> tuple[FloatArray, float]:
    """Return the directions with most of the vectors' length, (n_dimensions, n_kept), and how much.

    The signs are settled, so that they are the same everywhere.
    """
    wide = vectors.astype(np.float64)
    if len(wide) < wanted:
        raise InputError(
            f"expected at least {wanted} examples to find {wanted} directions, got {len(wide)}; "
            "give more texts"
        )
    sizes, found = np.linalg.eigh(wide.T @ wide)
    found = found[:, ::-1][:, :wanted]
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(wanted)])
    kept = sizes[::-1][:wanted].sum() / max(sizes.sum(), 1e-300)
    directions: FloatArray = (found * signs).astype(np.float32)
    return directions, float(kept)


def _loss(model: Any, given: Any, directions: FloatArray | None, projected: int | None) -> Any:
    import torch
    from sentence_transformers.sentence_transformer.losses import MSELoss
    from torch import nn

    inner = MSELoss(model, projection_dim=projected)
    inner.model = given

    class _Taught(nn.Module):
        """The loss, with the teacher's vectors in as many numbers as the student's."""

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
