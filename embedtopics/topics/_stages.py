"""The stages of a `TopicModel` that are configured by objects: the clusterer and the weighting."""

from embedtopics.clustering._density import DensityClusterer
from embedtopics.terms._weighting import ClassTfidf

__all__ = ["ClassTfidf", "DensityClusterer"]
