from . import results as results
from ._adjusted_shares import adjusted_shares as adjusted_shares
from ._corpora import classify as classify
from ._entities import entities as entities
from ._entities import evaluate_tokens as evaluate_tokens
from ._report import evaluate as evaluate
from ._report import suspicious_labels as suspicious_labels
from ._targets import label_conflicts as label_conflicts
