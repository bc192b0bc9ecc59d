from . import annotation as annotation
from . import batch as batch
from . import classification as classification
from . import comparison as comparison
from . import encoders as encoders
from . import errors as errors
from . import evaluation as evaluation
from . import inference as inference
from . import plots as plots
from . import pretraining as pretraining
from . import probing as probing
from . import report as report
from . import retrieval as retrieval
from . import topics as topics
from . import training as training
from .annotation._project import AnnotationProject as AnnotationProject
from .classification._classifier import TextClassifier as TextClassifier
from .classification._words import TokenClassifier as TokenClassifier
from .corpus._corpus import Corpus as Corpus
from .encoders.sentence._encoder import SentenceEncoder as SentenceEncoder
from .retrieval._index import SearchIndex as SearchIndex
from .topics._model import TopicModel as TopicModel
from .topics.results import TopicResult as TopicResult

__version__: str
