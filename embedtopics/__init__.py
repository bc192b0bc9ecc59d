"""embedtopics: from a file of documents to a topic map, fast, reproducible and honest.

>>> import embedtopics as et
>>> corpus = et.Corpus.of(["A first text.", "And a second one."])
>>> len(corpus)
2

Names are imported when they are first used, so that importing the package takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics import (
        clustering,
        comparison,
        corpus,
        encoders,
        evaluation,
        neighbors,
        plots,
        probing,
        reduction,
        report,
        retrieval,
        terms,
        topics,
        training,
    )
    from embedtopics.clustering import DensityClusterer
    from embedtopics.corpus import Corpus
    from embedtopics.encoders import (
        CachedEncoder,
        FastTextEncoder,
        RandomProjectionEncoder,
        SentenceEncoder,
        StaticEncoder,
        TfidfEncoder,
        WordVectorEncoder,
        distill,
    )
    from embedtopics.errors import (
        CorruptFileError,
        EmbedTopicsError,
        InputError,
        MissingExtraError,
        ModelLoadError,
    )
    from embedtopics.results import TopicResult
    from embedtopics.retrieval import SearchIndex
    from embedtopics.terms import ClassTfidf
    from embedtopics.topics import (
        Labels,
        ManualLabels,
        MustNotLink,
        SeedWords,
        TopicModel,
        ZeroShot,
    )

__version__ = "0.1.0"

_HOME = {
    "CachedEncoder": "embedtopics.encoders",
    "ClassTfidf": "embedtopics.terms",
    "Corpus": "embedtopics.corpus",
    "CorruptFileError": "embedtopics.errors",
    "DensityClusterer": "embedtopics.clustering",
    "EmbedTopicsError": "embedtopics.errors",
    "FastTextEncoder": "embedtopics.encoders",
    "InputError": "embedtopics.errors",
    "MissingExtraError": "embedtopics.errors",
    "ModelLoadError": "embedtopics.errors",
    "RandomProjectionEncoder": "embedtopics.encoders",
    "SentenceEncoder": "embedtopics.encoders",
    "StaticEncoder": "embedtopics.encoders",
    "TfidfEncoder": "embedtopics.encoders",
    "TopicModel": "embedtopics.topics",
    "TopicResult": "embedtopics.results",
    "Labels": "embedtopics.topics",
    "ManualLabels": "embedtopics.topics",
    "MustNotLink": "embedtopics.topics",
    "SearchIndex": "embedtopics.retrieval",
    "SeedWords": "embedtopics.topics",
    "ZeroShot": "embedtopics.topics",
    "WordVectorEncoder": "embedtopics.encoders",
    "distill": "embedtopics.encoders",
}
_ROOMS = (
    "clustering",
    "comparison",
    "corpus",
    "encoders",
    "evaluation",
    "neighbors",
    "plots",
    "probing",
    "reduction",
    "report",
    "retrieval",
    "terms",
    "topics",
    "training",
)

__all__ = [
    "CachedEncoder",
    "ClassTfidf",
    "Corpus",
    "CorruptFileError",
    "DensityClusterer",
    "EmbedTopicsError",
    "FastTextEncoder",
    "InputError",
    "Labels",
    "ManualLabels",
    "MissingExtraError",
    "ModelLoadError",
    "MustNotLink",
    "RandomProjectionEncoder",
    "SearchIndex",
    "SeedWords",
    "SentenceEncoder",
    "StaticEncoder",
    "TfidfEncoder",
    "TopicModel",
    "TopicResult",
    "WordVectorEncoder",
    "ZeroShot",
    "__version__",
    "clustering",
    "comparison",
    "corpus",
    "distill",
    "encoders",
    "evaluation",
    "neighbors",
    "plots",
    "probing",
    "reduction",
    "report",
    "retrieval",
    "terms",
    "topics",
    "training",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"embedtopics.{name}")
    else:
        raise AttributeError(f"module 'embedtopics' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
