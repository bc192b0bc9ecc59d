"""Groups of documents that are known before a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class TopicConstraints:
    """Groups of documents known before the fit, and their effect on the topics.

    The fit, every other cut of the hierarchy and the replicates that measure stability obey the
    same constraints.

    Parameters
    ----------
    groups : int32 ndarray of shape (n_documents,)
        Group of each document; -1 if unknown.
    names : tuple of str
        Name of each group; "" for an unnamed one.
    probabilities : float32 ndarray of shape (n_documents,)
        Probability of each document's group, up to 1; 0 without a group.
    attraction : float
        Weight, 0 to 1, of the edges that tie each document to the nearest others of its group in
        the fuzzy graph.
    separation : float
        How far, 0 to 1, edges between documents of different groups are weakened in that graph.
    is_fixed : bool
        Whether each group is a topic.
    is_complete : bool
        Whether there are no other topics, and no other documents in these topics.
    """

    groups: Int32Array
    names: tuple[str, ...]
    probabilities: FloatArray
    attraction: float = 0.0
    separation: float = 0.0
    is_fixed: bool = False
    is_complete: bool = False

    def of(self, documents: Int64Array) -> TopicConstraints:
        """Return the constraints of some of the documents."""
        groups, probabilities = self.groups[documents], self.probabilities[documents]
        return replace(self, groups=groups, probabilities=probabilities)

    def among(self, positions: Int64Array, n_documents: int) -> TopicConstraints:
        """Return the constraints of more documents, with the present ones at `positions`."""
        groups = np.full(n_documents, -1, dtype=np.int32)
        groups[positions] = self.groups
        probabilities = np.zeros(n_documents, dtype=np.float32)
        probabilities[positions] = self.probabilities
        return replace(self, groups=groups, probabilities=probabilities)
