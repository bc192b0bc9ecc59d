"""Encoders side by side: their neighbours, their maps, their scores, and what makes the difference.

>>> from embedtopics import comparison
>>> result = comparison.compare(corpus, ["tfidf", "all-MiniLM-L6-v2"])  # doctest: +SKIP
>>> comparison.difference_table(result)  # doctest: +SKIP
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
