"""Further pre-training of encoders on your texts: vocabulary, masking, and the verdict."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
