from ._cache import CachedEncoder as CachedEncoder
from .sentence._encoder import SentenceEncoder as SentenceEncoder
from .static._encoder import StaticEncoder as StaticEncoder
from .words._tfidf import RandomProjectionEncoder as RandomProjectionEncoder
from .words._tfidf import TfidfEncoder as TfidfEncoder
from .words._vectors import FastTextEncoder as FastTextEncoder
from .words._vectors import WordVectorEncoder as WordVectorEncoder
