"""The command line: one thin file a command over the Python API."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
