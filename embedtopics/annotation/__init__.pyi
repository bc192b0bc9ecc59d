from . import results as results
from ._codebook import Label as Label
from ._coder import LanguageModelCoder as LanguageModelCoder
from ._server import serve as serve
from ._topics import ask as ask
from ._topics import code_topic as code_topic
