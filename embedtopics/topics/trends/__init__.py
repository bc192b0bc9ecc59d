"""Topics over time and over groups, and what their share depends on."""

from __future__ import annotations

from embedtopics.topics.trends.by_group import by_group
from embedtopics.topics.trends.changes import changes
from embedtopics.topics.trends.effects import effects
from embedtopics.topics.trends.over_time import over_time
from embedtopics.topics.trends.prevalence import prevalence

__all__ = ["by_group", "changes", "effects", "over_time", "prevalence"]
