"""What training did to an encoder: before and after, with intervals, and looks counted."""

from __future__ import annotations

from embedtopics.training.effects.comparing import compare_before_after

__all__ = ["compare_before_after"]
