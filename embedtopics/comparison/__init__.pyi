from . import results as results
from ._compare import compare as compare
from ._tables import difference_table as difference_table
from ._tables import move_table as move_table
from ._tables import overlap_table as overlap_table
from .results import score_table as score_table
