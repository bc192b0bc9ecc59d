"""Results without their texts, to share them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT, content_ids, read_texts
from embedtopics.decisions import Decision
from embedtopics.terms.results import TokenStream
from embedtopics.topics._describe import LEFT_OUT, TEXTS
from embedtopics.topics._storage import recall_hashes
from embedtopics.topics.results import TopicResult


def without_texts(result: TopicResult) -> TopicResult:
    """Return a result without its texts, to share it.

    Removed are the texts, their words, the term counts of each document, the constraints of the
    fit, and the ids, row labels, columns and notes of the input. Topics, names, history, term
    weights, labels, memberships, map, embeddings and hashes of the texts stay.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    TopicResult
        The text of every row is "". Functions that describe topics again raise InputError.

    Notes
    -----
    This is not anonymization. A hash confirms that a known text was in the corpus. An embedding
    reveals much of its text (Morris et al. 2023, "Text embeddings reveal (almost) as much as
    text"). Terms, keywords, names, settings, edits and decisions come from the texts.
    """
    counts = result.term_counts.counts
    offsets = np.zeros(len(result.documents) + 1, dtype=np.int64)
    tokens = TokenStream(np.empty(0, dtype=np.int32), offsets, (), result.tokens.rules)
    message = "Shared without the texts, their words and the columns of the input."
    notes = {repr(note) for note in result.corpus.notes}
    decisions = [
        decision
        for decision in result.decisions
        if repr(decision) not in notes and decision.name != "boilerplate"  # which quotes texts
    ]
    return dataclasses.replace(
        result,
        corpus=_blank_corpus(recall_hashes(result.corpus, result.documents)),
        tokens=tokens,
        term_counts=dataclasses.replace(
            result.term_counts, counts=csr_matrix(counts.shape, dtype=counts.dtype)
        ),
        decisions=(*decisions, Decision("corpus", "texts_left_out", True, message)),
        settings={**result.settings, TEXTS: LEFT_OUT},
        constraints=None,
    )


def _blank_corpus(corpus: Corpus) -> Corpus:
    """Return a corpus of the same rows without texts, ids, labels, notes and columns."""
    is_text = corpus.status == TEXT
    nothing = read_texts([""], "texts").hashes
    hashes = np.where(is_text[:, None], corpus.hashes, nothing)
    hashes.flags.writeable = False
    return Corpus.of_fields(
        texts=("",) * len(corpus),
        ids=tuple(content_ids(hashes)),
        status=corpus.status,
        metadata=pd.DataFrame(index=range(len(corpus))),
        source="texts left out",
        hashes=hashes,
        _distinct=corpus.distinct(),
    )
