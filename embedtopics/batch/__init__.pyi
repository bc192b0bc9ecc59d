from . import results as results
from ._batches import assign as assign
from ._batches import classify as classify
from ._batches import count as count
from ._batches import embed as embed
from ._batches import index as index
from ._run import read_counts as read_counts
