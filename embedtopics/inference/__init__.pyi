from . import results as results
from ._measurement import Measurement as Measurement
from ._power import power as power
from ._regress import regress as regress
from ._shares import shares as shares
