"""People label texts, a model learns beside them, and the share that comes out is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.annotation._codebook import Label as Label
    from embedtopics.annotation._codebook import StudyDesign as StudyDesign
    from embedtopics.annotation._estimates import recall_test as recall_test
    from embedtopics.annotation._project import AnnotationProject as AnnotationProject
    from embedtopics.annotation._server import serve as serve
    from embedtopics.annotation._strategies import CoreSet as CoreSet
    from embedtopics.annotation._strategies import Disagreement as Disagreement
    from embedtopics.annotation._strategies import RandomSampling as RandomSampling
    from embedtopics.annotation._strategies import RareNeighbors as RareNeighbors
    from embedtopics.annotation._strategies import Uncertainty as Uncertainty

__getattr__, __dir__, __all__ = attach(__name__, __file__)
