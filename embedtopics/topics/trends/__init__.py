"""Topics over time and over groups, and what their share depends on."""

from __future__ import annotations

from embedtopics.topics.trends.by_group import by_group
from embedtopics.topics.trends.over_time import over_time

__all__ = ["by_group", "over_time"]
