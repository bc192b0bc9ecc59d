"""Measures of topics, labels, vectors and maps, as pure functions."""

from __future__ import annotations

from embedtopics.evaluation.answers import read_sheet
from embedtopics.evaluation.bootstrap import (
    interval,
    resampled_counts,
    resampled_means,
    resampled_sums,
)
from embedtopics.evaluation.coding import coding_sample
from embedtopics.evaluation.coherence import c_uci, c_v, npmi, u_mass
from embedtopics.evaluation.correlations import (
    pearson_correlation,
    similarity_correlations,
    spearman_correlation,
)
from embedtopics.evaluation.distinctness import (
    Significance,
    diversity,
    inverted_rbo,
    pairwise_jaccard,
    topic_significance,
    topic_uniqueness,
)
from embedtopics.evaluation.encoder_tasks import (
    evaluate_encoder,
    read_pairs,
    read_tasks,
    score_differences,
)
from embedtopics.evaluation.estimates import (
    difference_of,
    estimate,
    mean_of_estimates,
    mean_of_values,
)
from embedtopics.evaluation.human_scores import (
    CodingScore,
    IntrusionScore,
    score_coding,
    score_intrusion,
)
from embedtopics.evaluation.inference import inference_accuracy, inference_features
from embedtopics.evaluation.intrusion import document_intrusion, topic_intrusion, word_intrusion
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
from embedtopics.evaluation.pair_classes import (
    PairClasses,
    area_under_curve,
    average_precision,
    score_pair_classes,
)
from embedtopics.evaluation.pairs import npmi_of_pairs
from embedtopics.evaluation.ranking import rank_documents
from embedtopics.evaluation.reliability import Reliability, krippendorff_alpha
from embedtopics.evaluation.retrieval_files import read_qrels, read_queries, read_run
from embedtopics.evaluation.retrieval_scores import compare_retrieval, retrieval
from embedtopics.evaluation.search_scores import score_rankings, scores_by_query
from embedtopics.evaluation.shares import (
    sample_size,
    sample_size_for_alpha,
    sample_size_for_difference,
    share_interval,
)
from embedtopics.evaluation.sheets import Sheet
from embedtopics.evaluation.triplets import triplet_accuracy
from embedtopics.evaluation.vector_pairs import pair_similarities
from embedtopics.evaluation.word_vectors import WordVectors, word_embedding_coherence

__all__ = [
    "Agreement",
    "CodingScore",
    "IntrusionScore",
    "PairClasses",
    "Reliability",
    "Sheet",
    "Significance",
    "WordVectors",
    "agreement",
    "area_under_curve",
    "average_precision",
    "c_uci",
    "c_v",
    "chance_overlap",
    "coding_sample",
    "compare_retrieval",
    "difference_of",
    "diversity",
    "document_intrusion",
    "estimate",
    "evaluate_encoder",
    "inference_accuracy",
    "inference_features",
    "interval",
    "inverted_rbo",
    "jaccard_overlap",
    "krippendorff_alpha",
    "mean_of_estimates",
    "mean_of_values",
    "neighbor_votes",
    "npmi",
    "npmi_of_pairs",
    "pair_similarities",
    "pairwise_jaccard",
    "pearson_correlation",
    "probe_classes",
    "rank_biased_overlap",
    "rank_documents",
    "read_pairs",
    "read_qrels",
    "read_queries",
    "read_run",
    "read_sheet",
    "read_tasks",
    "resampled_counts",
    "resampled_means",
    "resampled_sums",
    "retrieval",
    "sample_size",
    "sample_size_for_alpha",
    "sample_size_for_difference",
    "score_coding",
    "score_differences",
    "score_intrusion",
    "score_pair_classes",
    "score_rankings",
    "scores_by_query",
    "share_interval",
    "silhouettes",
    "similarity_correlations",
    "spearman_correlation",
    "stratified_folds",
    "topic_intrusion",
    "topic_significance",
    "topic_uniqueness",
    "triplet_accuracy",
    "trustworthiness_and_continuity",
    "u_mass",
    "word_embedding_coherence",
    "word_intrusion",
]
