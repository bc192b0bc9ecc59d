"""Texts and labels -> terms of topics: counts, weights, keywords, representative documents.

Documents are tokenized once. Everything else is counted from the word ids.
"""

from embedtopics._utils.public import places_of

__getattr__ = places_of(__name__, {"ClassTfidf": "et.topics.ClassTfidf"})
