"""Results for others: without their texts, with a page of introduction, on the Hugging Face hub."""

from __future__ import annotations

from embedtopics.topics.sharing.hub import from_pretrained, push_to_hub
from embedtopics.topics.sharing.privacy import without_texts

__all__ = ["from_pretrained", "push_to_hub", "without_texts"]
