"""embedtopics: from a file of documents to a topic map, fast, reproducible and honest.

>>> import embedtopics as et
>>> corpus = et.Corpus.of(["A first text.", "And a second one."])
>>> len(corpus)
2

Names are imported when they are first used, so that importing the package takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics import annotation as annotation
    from embedtopics import classification as classification
    from embedtopics import comparison as comparison
    from embedtopics import corpus as corpus
    from embedtopics import distributed as distributed
    from embedtopics import encoders as encoders
    from embedtopics import evaluation as evaluation
    from embedtopics import plots as plots
    from embedtopics import pretraining as pretraining
    from embedtopics import probing as probing
    from embedtopics import report as report
    from embedtopics import retrieval as retrieval
    from embedtopics import topics as topics
    from embedtopics import training as training
    from embedtopics.annotation import AnnotationProject as AnnotationProject
    from embedtopics.classification import TextClassifier as TextClassifier
    from embedtopics.clustering import DensityClusterer as DensityClusterer
    from embedtopics.corpus import Corpus as Corpus
    from embedtopics.encoders import CachedEncoder as CachedEncoder
    from embedtopics.encoders import FastTextEncoder as FastTextEncoder
    from embedtopics.encoders import RandomProjectionEncoder as RandomProjectionEncoder
    from embedtopics.encoders import SentenceEncoder as SentenceEncoder
    from embedtopics.encoders import StaticEncoder as StaticEncoder
    from embedtopics.encoders import TfidfEncoder as TfidfEncoder
    from embedtopics.encoders import WordVectorEncoder as WordVectorEncoder
    from embedtopics.encoders import distill as distill
    from embedtopics.errors import CorruptFileError as CorruptFileError
    from embedtopics.errors import EmbedTopicsError as EmbedTopicsError
    from embedtopics.errors import InputError as InputError
    from embedtopics.errors import MissingExtraError as MissingExtraError
    from embedtopics.errors import ModelLoadError as ModelLoadError
    from embedtopics.retrieval import SearchIndex as SearchIndex
    from embedtopics.terms import ClassTfidf as ClassTfidf
    from embedtopics.topics import CannotLink as CannotLink
    from embedtopics.topics import ManualLabels as ManualLabels
    from embedtopics.topics import PartialLabels as PartialLabels
    from embedtopics.topics import SeedWords as SeedWords
    from embedtopics.topics import TopicModel as TopicModel
    from embedtopics.topics import ZeroShot as ZeroShot
    from embedtopics.topics.results import TopicResult as TopicResult

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
