"""Measures of topics, labels, vectors and maps, as pure functions."""

from __future__ import annotations

from embedtopics.evaluation.bootstrap import interval, resampled_means, resampled_sums
from embedtopics.evaluation.coherence import diversity, npmi
from embedtopics.evaluation.label_agreement import Agreement, agreement
from embedtopics.evaluation.label_probes import (
    neighbor_votes,
    probe_classes,
    silhouettes,
    stratified_folds,
)
from embedtopics.evaluation.map_quality import trustworthiness_and_continuity
from embedtopics.evaluation.neighbor_overlap import (
    chance_overlap,
    jaccard_overlap,
    rank_biased_overlap,
)
from embedtopics.evaluation.pairs import npmi_of_pairs

__all__ = [
    "Agreement",
    "agreement",
    "chance_overlap",
    "diversity",
    "interval",
    "jaccard_overlap",
    "neighbor_votes",
    "npmi",
    "npmi_of_pairs",
    "probe_classes",
    "rank_biased_overlap",
    "resampled_means",
    "resampled_sums",
    "silhouettes",
    "stratified_folds",
    "trustworthiness_and_continuity",
]
