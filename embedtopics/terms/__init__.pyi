from . import results as results
from ._weighting import ClassTfidf as ClassTfidf
