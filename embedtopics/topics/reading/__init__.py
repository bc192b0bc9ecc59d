"""Finding topics, reading their documents, and seeing how words are used in them."""

from __future__ import annotations

from embedtopics.topics.reading.keyness import keyness

__all__ = ["keyness"]
