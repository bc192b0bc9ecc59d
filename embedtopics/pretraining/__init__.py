"""Further pre-training of encoders on your texts: vocabulary, masking, and the verdict."""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
