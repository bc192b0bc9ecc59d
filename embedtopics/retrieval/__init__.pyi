from . import results as results
from .storage._checks import check as check
