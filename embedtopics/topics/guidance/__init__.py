"""Guidance: what topics are to be like, said before the fit; each kind is an object of its own."""

from __future__ import annotations

from embedtopics.topics.guidance.labels import Labels, ManualLabels
from embedtopics.topics.guidance.must_not_link import MustNotLink
from embedtopics.topics.guidance.protocol import Guidance, Material
from embedtopics.topics.guidance.seed_words import SeedWords
from embedtopics.topics.guidance.zero_shot import ZeroShot

__all__ = [
    "Guidance",
    "Labels",
    "ManualLabels",
    "Material",
    "MustNotLink",
    "SeedWords",
    "ZeroShot",
]
