"""Finding topics, reading their documents, seeing how words are used, and taking tables away."""

from __future__ import annotations

from embedtopics.topics.reading.collocates import collocates
from embedtopics.topics.reading.concordance import concordance
from embedtopics.topics.reading.documents import read
from embedtopics.topics.reading.exporting import export
from embedtopics.topics.reading.finding import find
from embedtopics.topics.reading.keyness import keyness
from embedtopics.topics.reading.labels import make_labels

__all__ = ["collocates", "concordance", "export", "find", "keyness", "make_labels", "read"]
