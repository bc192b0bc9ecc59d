from ._codebook import Label as Label
from ._codebook import StudyDesign as StudyDesign
from ._estimates import recall_test as recall_test
from ._project import AnnotationProject as AnnotationProject
from ._server import serve as serve
from ._strategies import CoreSet as CoreSet
from ._strategies import RandomSampling as RandomSampling
from ._strategies import Uncertainty as Uncertainty
