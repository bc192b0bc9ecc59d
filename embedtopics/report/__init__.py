"""Write results as self-contained HTML pages that work offline."""

from embedtopics._utils.public import attach

MOVED = {"serve_index": "et.retrieval.serve"}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
