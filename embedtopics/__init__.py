"""embedtopics: from a file of documents to a topic map, fast, reproducible and honest.

>>> import embedtopics as et
>>> corpus = et.Corpus.of(["A first text.", "And a second one."])
>>> len(corpus)
2

Names are imported when they are first used, so that importing the package takes no time.
"""

import embedtopics._utils.forks  # noqa: F401 -- before a process can be forked
from embedtopics._utils.public import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
