"""Nearest vectors of a segment: exact, or by a FAISS index whose recall was measured."""

from __future__ import annotations

from embedtopics.retrieval.dense.building import build_dense
from embedtopics.retrieval.dense.merging import merge_nearest
from embedtopics.retrieval.dense.segment import DenseSegment, open_dense
from embedtopics.retrieval.dense.settings import DenseSettings

__all__ = ["DenseSegment", "DenseSettings", "build_dense", "merge_nearest", "open_dense"]
