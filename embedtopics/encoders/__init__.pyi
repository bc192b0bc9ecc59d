from . import results as results
from ._cache import CachedEncoder as CachedEncoder
from ._wrapping import to_sentence_transformer as to_sentence_transformer
from .static._encoder import StaticEncoder as StaticEncoder
from .words._counts import RandomProjectionEncoder as RandomProjectionEncoder
from .words._counts import TfidfEncoder as TfidfEncoder
from .words._vectors import FastTextEncoder as FastTextEncoder
