"""A result that tells its topics, but not the texts that they were found in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.corpus import blank_corpus, recall_hashes
from embedtopics.results import Decision, TokenStream, TopicResult
from embedtopics.topics.recorded import LEFT_OUT, TEXTS

__all__ = ["without_texts"]


def without_texts(result: TopicResult, *, columns: Sequence[Any] = ()) -> TopicResult:
    """Return a result without texts, to be shared where these cannot be.

    Left out are the texts, their words in order, the counts of terms in each document, which
    document was given which label before the fit, and of the input its ids, row labels, columns and
    notes. Topics, keywords, names and what was done to them stay, and so do the list of all terms
    with their weights in each topic, labels, shares, the map and the embeddings: new texts can be
    assigned, if the encoder has not learnt from the texts, and texts of the fit are known again by
    their hashes.

    Parameters
    ----------
    result : TopicResult
    columns : sequence
        Columns of the input that are kept, such as the dates.

    Returns
    -------
    TopicResult
        In which the text of every row is "". Whatever would describe topics anew is refused.

    Raises
    ------
    InputError
        Where there is no such column.

    Notes
    -----
    This is no anonymisation. Whoever has a text can tell by its hash whether it was among these;
    from an embedding much of a text can be guessed (Morris et al. 2023, "Text embeddings reveal
    (almost) as much as text"); terms, keywords and names come from the texts, and a term of many
    words is a piece of one; the settings and decisions tell how the fit was asked for, labels and
    their names included.
    """
    from scipy.sparse import csr_matrix

    counts = result.term_counts.counts
    tokens = TokenStream(
        np.empty(0, dtype=np.int32), np.zeros(len(result.documents) + 1, dtype=np.int64), ()
    )
    message = (
        "The result is shared without its texts, their words and the columns of the input, but for "
        f"{list(columns)}."
    )
    noted = {repr(note) for note in result.corpus.notes}
    decisions = [one for one in result.decisions if repr(one) not in noted]
    return dataclasses.replace(
        result,
        corpus=blank_corpus(recall_hashes(result.corpus, result.documents), columns),
        tokens=tokens,
        term_counts=dataclasses.replace(
            result.term_counts, counts=csr_matrix(counts.shape, dtype=counts.dtype)
        ),
        decisions=(*decisions, Decision("corpus", "texts_left_out", True, message)),
        settings={**result.settings, TEXTS: LEFT_OUT},
        guide=None,
    )
