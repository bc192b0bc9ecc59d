from . import results as results
from ._corpus import Corpus as Corpus
