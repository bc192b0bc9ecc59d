"""What was asked of the topics before a fit, document by document."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

__all__ = ["Guide"]


def _no_pairs() -> Int64Array:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Guide:
    """What is known of documents beforehand, and what the topics are to make of it.

    Every property holds by itself, at every resolution: the fit, another cut of the hierarchy
    and the replicates that measure stability all obey the same guide.

    Parameters
    ----------
    groups : int32 ndarray of shape (n_documents,)
        Group of each document; -1 where nothing is known of it.
    names : tuple of str
        Name of each group; "" for one that has none to show.
    strengths : float32 ndarray of shape (n_documents,)
        How surely each document is of its group, up to 1; 0 where it has none.
    apart : int64 ndarray of shape (n_pairs, 2)
        Documents that may not be in one topic, the lower first.
    tie : float
        Weight, 0 to 1, of the ties to the nearest others of its group that a document gets in the
        layout.
    part : float
        How far, 0 to 1, the layout is to part documents of different groups.
    is_fixed : bool
        Whether each group is a topic.
    is_complete : bool
        Whether there are no other topics, and no other documents in these.
    is_pure : bool
        Whether a document of a group is always in a topic of this group.
    """

    groups: Int32Array
    names: tuple[str, ...]
    strengths: FloatArray
    apart: Int64Array = field(default_factory=_no_pairs)
    tie: float = 0.0
    part: float = 0.0
    is_fixed: bool = False
    is_complete: bool = False
    is_pure: bool = False

    @property
    def draws(self) -> bool:
        """Whether it changes the layout."""
        return self.tie > 0 or self.part > 0

    def of(self, held: Int64Array) -> Guide:
        """Return the guide of some of the documents, ascending, numbered as they stand there."""
        number = np.full(len(self.groups), -1, dtype=np.int64)
        number[held] = np.arange(len(held))
        pairs = number[self.apart]
        return replace(
            self,
            groups=self.groups[held],
            strengths=self.strengths[held],
            apart=pairs[(pairs >= 0).all(axis=1)],
        )

    def among(self, places: Int64Array, n_documents: int) -> Guide:
        """Return the guide of more documents, of the others of which nothing is known.

        Parameters
        ----------
        places : int64 ndarray of shape (len(groups),)
            Where each document of this guide stands among them, ascending.
        n_documents : int
        """
        groups = np.full(n_documents, -1, dtype=np.int32)
        groups[places] = self.groups
        strengths = np.zeros(n_documents, dtype=np.float32)
        strengths[places] = self.strengths
        return replace(self, groups=groups, strengths=strengths, apart=places[self.apart])
