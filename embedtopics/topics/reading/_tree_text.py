"""A hierarchy of topics drawn as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embedtopics.topics.results import TopicHierarchy


def draw_tree(tree: TopicHierarchy, levels: Sequence[int]) -> str:
    """Draw a hierarchy, one node a line, which branches at every merge or at the levels."""
    if not tree.n_topics:
        return "no topics"

    branches = _branches(tree, levels)
    lines = []
    # A stack, because a tree can be deeper than Python's recursion limit.
    waiting = [(len(tree.names) - 1, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        number = f"[{node}] " if node < tree.n_topics else ""
        # A name from the user may hold a line break.
        name = " ".join(tree.names[node].split())
        lines.append(f"{first}{number}{name} · {tree.sizes[node]:,}")

        below = branches.get(node, [])
        for place in reversed(range(len(below))):
            is_last = place == len(below) - 1
            fork, trunk = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            waiting.append((below[place], rest + fork, rest + trunk))
    return "\n".join(lines)


def _branches(tree: TopicHierarchy, levels: Sequence[int]) -> Mapping[int, list[int]]:
    """Return the children of each node, from left to right."""
    if not levels:
        return {tree.n_topics + i: pair for i, pair in enumerate(tree.merges.tolist())}

    below: dict[int, list[int]] = {}
    above = np.full(len(tree.names), len(tree.names) - 1)
    for level in sorted({*levels, tree.n_topics}):
        for node in sorted(tree.nodes_at(level), key=lambda node: int(tree._spans[node, 0])):
            if node != above[node]:
                below.setdefault(int(above[node]), []).append(node)
        above = tree._holders(level)
    return below
