from . import results as results
from ._serve import serve as serve
