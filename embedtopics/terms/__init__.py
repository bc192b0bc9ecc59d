"""Texts and labels -> what each topic is about: terms, weights, keywords, typical documents.

Documents are tokenised once (`tokenize`); everything else is counted from the word ids.
"""

from __future__ import annotations

from embedtopics.terms.corpus_words import function_words
from embedtopics.terms.counts import count_by_topic, count_terms, sum_rows
from embedtopics.terms.joining import join_tokens
from embedtopics.terms.log_odds import log_odds
from embedtopics.terms.naming import make_label, make_labels
from embedtopics.terms.narrowing import TermRules, recount_terms
from embedtopics.terms.stopwords import stop_words_for
from embedtopics.terms.subject import without_subject, word_gains
from embedtopics.terms.tokens import tokenize
from embedtopics.terms.topic_keywords import keywords, select_keywords, term_embeddings
from embedtopics.terms.typical import representatives
from embedtopics.terms.weighting import ClassTfidf

__all__ = [
    "ClassTfidf",
    "TermRules",
    "count_by_topic",
    "count_terms",
    "function_words",
    "join_tokens",
    "keywords",
    "log_odds",
    "make_label",
    "make_labels",
    "recount_terms",
    "representatives",
    "select_keywords",
    "stop_words_for",
    "sum_rows",
    "term_embeddings",
    "tokenize",
    "without_subject",
    "word_gains",
]
