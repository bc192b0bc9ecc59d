"""Terms of topics by other roads than class-TF-IDF, and names from a language model."""

from __future__ import annotations

from embedtopics.topics.naming.by_embedding import keywords_by_embedding, keywords_diverse
from embedtopics.topics.naming.by_npmi import keywords_by_npmi
from embedtopics.topics.naming.by_part_of_speech import keywords_by_part_of_speech
from embedtopics.topics.naming.giving import aspects, with_keywords
from embedtopics.topics.naming.name_topics import name_topics
from embedtopics.topics.naming.prompts import Question, naming_questions

__all__ = [
    "Question",
    "aspects",
    "keywords_by_embedding",
    "keywords_by_npmi",
    "keywords_by_part_of_speech",
    "keywords_diverse",
    "name_topics",
    "naming_questions",
    "with_keywords",
]
