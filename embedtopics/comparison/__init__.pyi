from . import results as results
from ._compare import compare_encoders as compare_encoders
