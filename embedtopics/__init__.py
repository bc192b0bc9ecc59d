"""embedtopics: from a file of documents to a topic map, fast, reproducible and honest.

>>> import embedtopics as et
>>> corpus = et.Corpus(["A first text.", "And a second one."])
>>> len(corpus)
2

Names are imported when they are first used, so that importing the package takes no time.
"""

import embedtopics._utils.forks  # noqa: F401 -- before a process can be forked
from embedtopics._utils.public import attach

__version__ = "0.1.0"

MOVED = {
    "CachedEncoder": "et.encoders.CachedEncoder",
    "ClassTfidf": "et.topics.ClassTfidf",
    "CorruptFileError": "et.errors.CorruptFileError",
    "DensityClusterer": "et.topics.DensityClusterer",
    "EmbedTopicsError": "et.errors.EmbedTopicsError",
    "FastTextEncoder": "et.encoders.FastTextEncoder",
    "InputError": "et.errors.InputError",
    "ManualLabels": "et.topics.ManualLabels",
    "MissingExtraError": "et.errors.MissingExtraError",
    "ModelLoadError": "et.errors.ModelLoadError",
    "PartialLabels": "et.topics.PartialLabels",
    "RandomProjectionEncoder": "et.encoders.RandomProjectionEncoder",
    "SeedWords": "et.topics.SeedWords",
    "StaticEncoder": "et.encoders.StaticEncoder",
    "TfidfEncoder": "et.encoders.TfidfEncoder",
    "ZeroShot": "et.topics.ZeroShot",
    "decisions": "et.results",
    "distill": "et.training.distill",
    "distributed": "et.batch",
    "verify": "et.topics.verify",
}
"""Former public names, and where they are now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
