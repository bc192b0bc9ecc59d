"""A hierarchy as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embedtopics.errors import InputError
from embedtopics.results import TopicHierarchy

__all__ = ["tree_text"]


def tree_text(
    hierarchy: TopicHierarchy, *, levels: Sequence[int] = (), n_terms: int | None = None
) -> str:
    """Draw a hierarchy with names and sizes, for a terminal or a log.

    Parameters
    ----------
    hierarchy : TopicHierarchy
    levels : sequence of int
        Numbers of groups at which to branch, as ``(5, 20)``: five branches, which part into
        twenty, which hold the topics. Without them every merge is drawn, two branches each, which
        is hard to read beyond some thirty topics.
    n_terms : int, optional
        Terms to show of each node in place of its name.

    Returns
    -------
    str
        A node a line, without a line break at the end; topics have their ids in brackets, and
        sizes are rows.

    Raises
    ------
    InputError
        If there is no such level.

    Examples
    --------
    >>> import numpy as np
    >>> from embedtopics.results import TopicNode
    >>> names = ["rates", "prices", "goals", "rates, prices", "rates, goals"]
    >>> nodes = [TopicNode(name, 10, 1, (), ()) for name in names]
    >>> tree = TopicHierarchy(
    ...     np.array([[0, 1], [3, 2]]), np.array([0.2, 0.9]), np.array([0, 1, 2]),
    ...     np.eye(3), tuple(nodes), "terms", "average",
    ... )
    >>> print(tree_text(tree))
    rates, goals · 10
    ├─ rates, prices · 10
    │  ├─ [0] rates · 10
    │  └─ [1] prices · 10
    └─ [2] goals · 10
    """
    if n_terms is not None and n_terms < 1:
        raise InputError(f"n_terms must be None or 1 or more; got {n_terms!r}")
    if not hierarchy.n_topics:
        return "no topics"
    branches = _branches(hierarchy, levels)
    lines = []
    # A stack, for a tree can be deeper than Python's calls may be.
    waiting = [(len(hierarchy.nodes) - 1, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        lines.append(first + _line(hierarchy, node, n_terms))
        below = branches.get(node, [])
        for place in reversed(range(len(below))):
            is_last = place == len(below) - 1
            fork, trunk = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            waiting.append((below[place], rest + fork, rest + trunk))
    return "\n".join(lines)


def _line(hierarchy: TopicHierarchy, node: int, n_terms: int | None) -> str:
    """Return what is said of a node."""
    about = hierarchy.nodes[node]
    name = about.label if n_terms is None else ", ".join(about.terms[:n_terms]) or about.label
    number = f"[{node}] " if node < hierarchy.n_topics else ""
    # A name that the user gave may hold a line break.
    return f"{number}{' '.join(name.split())} · {about.size:,}"


def _branches(hierarchy: TopicHierarchy, levels: Sequence[int]) -> Mapping[int, list[int]]:
    """Return the nodes below each node, from left to right."""
    n_topics = hierarchy.n_topics
    if not levels:
        return {n_topics + i: pair for i, pair in enumerate(hierarchy.merges.tolist())}
    above = {topic: len(hierarchy.nodes) - 1 for topic in range(n_topics)}
    below: dict[int, list[int]] = {}
    for level in sorted({*levels, n_topics}):
        held = {t: node for node in hierarchy.nodes_at(level) for t in hierarchy.topics_under(node)}
        for topic in hierarchy.order.tolist():
            parent, node = above[topic], held[topic]
            children = below.setdefault(parent, [])
            if node != parent and (not children or children[-1] != node):
                children.append(node)
        above = held
    return below
