from . import results as results
from ._index import SearchIndex as SearchIndex
from .storage._checks import check as check
