"""Coordinates -> labels: density clusters, numbered from the largest down."""

from embedtopics._utils.public import places_of

__getattr__ = places_of(__name__, {"DensityClusterer": "et.topics.DensityClusterer"})
