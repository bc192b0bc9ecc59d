from ._corpus import Corpus as Corpus
