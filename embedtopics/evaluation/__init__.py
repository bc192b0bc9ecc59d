"""Measures of topics and labels, as pure functions."""

from __future__ import annotations

from embedtopics.evaluation.coherence import diversity, npmi
from embedtopics.evaluation.label_agreement import Agreement, agreement

__all__ = ["Agreement", "agreement", "diversity", "npmi"]
