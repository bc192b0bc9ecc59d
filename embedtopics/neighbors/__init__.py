"""Embeddings -> the one neighbour graph that serves every later stage."""

from __future__ import annotations

from embedtopics.neighbors.graph import EXACT_LIMIT, build_graph, nearest, unit_rows
from embedtopics.neighbors.sparse import build_sparse_graph

__all__ = ["EXACT_LIMIT", "build_graph", "build_sparse_graph", "nearest", "unit_rows"]
