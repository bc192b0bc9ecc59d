"""Measures of topics, labels, encoders and searches, as pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.evaluation._agreement import agreement as agreement
    from embedtopics.evaluation._coherence import c_uci as c_uci
    from embedtopics.evaluation._coherence import c_v as c_v
    from embedtopics.evaluation._coherence import npmi as npmi
    from embedtopics.evaluation._coherence import u_mass as u_mass
    from embedtopics.evaluation._distinctness import diversity as diversity
    from embedtopics.evaluation._distinctness import inverted_rbo as inverted_rbo
    from embedtopics.evaluation._distinctness import (
        word_embedding_coherence as word_embedding_coherence,
    )
    from embedtopics.evaluation._encoder_tasks import evaluate_encoder as evaluate_encoder
    from embedtopics.evaluation._encoder_tasks import read_pairs as read_pairs
    from embedtopics.evaluation._encoder_tasks import read_retrieval_set as read_retrieval_set
    from embedtopics.evaluation._encoder_tasks import score_differences as score_differences
    from embedtopics.evaluation._human_scores import read_sheet as read_sheet
    from embedtopics.evaluation._human_scores import score_coding as score_coding
    from embedtopics.evaluation._human_scores import score_intrusion as score_intrusion
    from embedtopics.evaluation._intrusion import coding_sample as coding_sample
    from embedtopics.evaluation._intrusion import document_intrusion as document_intrusion
    from embedtopics.evaluation._intrusion import topic_intrusion as topic_intrusion
    from embedtopics.evaluation._intrusion import word_intrusion as word_intrusion
    from embedtopics.evaluation._retrieval import compare_retrieval as compare_retrieval
    from embedtopics.evaluation._retrieval import retrieval as retrieval

__getattr__, __dir__, __all__ = attach(__name__, __file__)
