from ._index import SearchIndex as SearchIndex
from ._rerank import load_cross_encoder as load_cross_encoder
from .storage._checks import check as check
