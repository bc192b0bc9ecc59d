"""Result: a tree of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import Displayed
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int32Array, Int64Array


@dataclass(frozen=True, eq=False, repr=False)
class TopicHierarchy(Displayed):
    """The merges of topics, nearest first, with the terms of each merge.

    Nodes are numbered: 0 to n_topics - 1 are the topics, ``n_topics + i`` is merge `i`.

    Parameters
    ----------
    merges : int32 ndarray of shape (n_merges, 2)
        The two nodes of each merge, in their order in `order`.
    distances : float64 ndarray of shape (n_merges,)
        Distances of the merges, ascending.
    order : int32 ndarray of shape (n_topics,)
        The topics, in an order without crossing merges.
    names : tuple of str
        Name of each node.
    sizes : int64 ndarray of shape (n_nodes,)
        Rows of each node.
    terms : tuple of tuple of str
        Keywords of each node, best first.
    space : {"coordinates", "terms", "embeddings"}
        Where the topics were compared.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> tree = et.topics.hierarchy(model)
    >>> tree
    TopicHierarchy(4 topics merged by coordinates)
    >>> tree.merges.shape, len(tree.nodes_at(2))
    ((3, 2), 2)
    """

    merges: Int32Array
    distances: Float64Array
    order: Int32Array
    names: tuple[str, ...]
    sizes: Int64Array
    terms: tuple[tuple[str, ...], ...]
    space: str

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.order)

    def _summary(self) -> str:
        return f"{self.n_topics} topics merged by {self.space}"

    @cached_property
    def parents(self) -> Int64Array:
        """The merge of each node, shape (n_nodes,); -1 for the root."""
        parents = np.full(len(self.names), -1, dtype=np.int64)
        for merge, children in enumerate(self.merges):
            parents[children] = self.n_topics + merge
        return parents

    @cached_property
    def _spans(self) -> Int64Array:
        """Start and stop of each node's topics in `order`, shape (n_nodes, 2)."""
        spans = np.zeros((len(self.names), 2), dtype=np.int64)
        spans[self.order, 0] = np.arange(self.n_topics)
        spans[self.order, 1] = np.arange(self.n_topics) + 1
        for merge, (left, right) in enumerate(self.merges):
            spans[self.n_topics + merge] = spans[left, 0], spans[right, 1]
        return spans

    @property
    def themes(self) -> tuple[int, ...]:
        """The nodes of the themes: 4 to 12 groups of topics, or the topics if there are few."""
        from embedtopics.topics._support import n_themes

        return self.nodes_at(n_themes(self.distances)) if self.n_topics else ()

    def topics_under(self, node: int) -> tuple[int, ...]:
        """Return the ids of the topics under a node, ascending.

        Raises
        ------
        InputError
            If the node does not exist.
        """
        if not 0 <= node < len(self.names):
            raise InputError("node", f"from 0 to {len(self.names) - 1}", node)
        begin, end = self._spans[node]
        return tuple(sorted(self.order[begin:end].tolist()))

    def nodes_at(self, n_topics: int) -> tuple[int, ...]:
        """Return the nodes of a cut of the tree.

        Parameters
        ----------
        n_topics : int
            Number of groups.

        Returns
        -------
        tuple of int
            Largest first; nodes of the same size by their lowest topic.

        Raises
        ------
        InputError
            If the level does not exist.
        """
        least = min(1, self.n_topics)
        if not is_whole(n_topics) or not least <= n_topics <= self.n_topics:
            expected = f"an integer from {least} to {self.n_topics}, the number of topics"
            raise InputError("n_topics", expected, n_topics)
        n_merged = self.n_topics - int(n_topics)
        is_left = np.ones(self.n_topics + n_merged, dtype=bool)
        is_left[self.merges[:n_merged].ravel()] = False
        left = np.flatnonzero(is_left).tolist()
        return tuple(sorted(left, key=lambda node: (-self.sizes[node], self.topics_under(node)[0])))

    def to_frame(self, levels: Sequence[int] = ()) -> pd.DataFrame:
        """Tabulate the nodes.

        Parameters
        ----------
        levels : sequence of int
            Numbers of groups; each adds a column.

        Returns
        -------
        DataFrame
            One node a row, topics first. Columns node, parent (-1 for the root), left and right
            (merged nodes; -1 for topics), distance (0 for topics), size (rows), n_topics, name and
            terms (a list). Each level has a column ``at_<level>`` with the group of the node, or -1
            for nodes above the level.
        """
        nothing = np.full((self.n_topics, 2), -1, dtype=np.int64)
        children = np.vstack([nothing, self.merges.reshape(-1, 2)])
        columns: dict[str, Any] = {
            "node": np.arange(len(self.names)),
            "parent": self.parents,
            "left": children[:, 0],
            "right": children[:, 1],
            "distance": np.concatenate([np.zeros(self.n_topics), self.distances]),
            "size": self.sizes,
            "n_topics": np.diff(self._spans, axis=1).ravel(),
            "name": list(self.names),
            "terms": [list(terms) for terms in self.terms],
        }
        for level in levels:
            columns[f"at_{level}"] = self._holders(level)
        return pd.DataFrame(columns)

    def to_text(self, levels: Sequence[int] = ()) -> str:
        """Draw the tree as text, with names and sizes.

        Parameters
        ----------
        levels : sequence of int
            Numbers of groups at which the tree branches: ``(5, 20)`` draws five branches, which
            divide into twenty, which hold the topics. By default every merge is drawn.

        Returns
        -------
        str
            One node a line, with its size in rows. Topics have their ids in brackets.

        Raises
        ------
        InputError
            If a level does not exist.
        """
        from embedtopics.topics.reading._tree_text import draw_tree

        return draw_tree(self, levels)

    def _holders(self, level: int) -> Int64Array:
        """Return the group of each node at a level, or -1."""
        group_of = np.full(len(self.names), -1, dtype=np.int64)
        for group in self.nodes_at(level):
            begin, end = self._spans[group]
            group_of[(self._spans[:, 0] >= begin) & (self._spans[:, 1] <= end)] = group
        return group_of
