from ._density import DensityClusterer as DensityClusterer
