from . import results as results
from ._codebook import Label as Label
from ._coder import LanguageModelCoder as LanguageModelCoder
from ._server import serve as serve
from ._sheets import score_sheet as score_sheet
from ._sheets import validation_sheets as validation_sheets
from ._topics import ask as ask
from ._topics import code_topic as code_topic
