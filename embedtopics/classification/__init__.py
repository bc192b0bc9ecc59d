"""Classify texts and words, evaluate classifiers, and estimate the share of each class."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
