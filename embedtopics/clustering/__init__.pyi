from . import results as results
from ._density import DensityClusterer as DensityClusterer
