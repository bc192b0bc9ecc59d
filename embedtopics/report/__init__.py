"""Write results as self-contained HTML pages that work offline."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
