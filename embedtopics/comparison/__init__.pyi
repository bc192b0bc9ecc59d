from . import results as results
from ._compare import compare_encoders as compare_encoders
from ._evaluate import evaluate_encoders as evaluate_encoders
