"""Documents added to a result, without moving what is there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus import Corpus, require_text
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, FloatArray, Int32Array, TermWeighting
from embedtopics.results import (
    NOISE,
    Clustering,
    Decision,
    Edit,
    Extension,
    Reason,
    TermCounts,
    TokenStream,
    Topic,
    TopicResult,
)
from embedtopics.terms import count_terms, join_tokens, stop_words_for, tokenize
from embedtopics.topics.assign import Judgement, judge, standing, vectors_of
from embedtopics.topics.describe import describe_topics
from embedtopics.topics.growing._merging import Merged, grown_graph, merge_documents
from embedtopics.topics.growing.novelty import chance_of, expected_outside, find_candidates
from embedtopics.topics.growing.placing import grown_tree, place
from embedtopics.topics.memberships import FAR, LEAST_RATIO, NONE_WEIGHT, clearness
from embedtopics.topics.recorded import (
    FITTED_ROWS,
    languages_of,
    term_settings_of,
    weighting_of,
)
from embedtopics.topics.relabeling import carry_names

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["extend"]


def extend(
    result: TopicResult,
    corpus: Any,
    *,
    embeddings: npt.ArrayLike | None = None,
    encoder: Encoder | str | None = None,
    update_terms: bool = True,
    min_candidate_size: int | str = "auto",
    weighting: TermWeighting | None = None,
) -> Extension:
    """Add documents to a result; nothing that is there moves.

    Documents that were there keep their topics, shares, places and neighbours, bit for bit, and
    topics keep their numbers, whatever their sizes become. A new document gets the topic that
    `assign` gives it, and a place among its neighbours. It has no say in where further ones belong:
    what a document gets is the same whether it comes alone, with others or after others. A text
    that was there already gets the topic that it has, and weighs more.

    Batches can be added in a loop, where others have a ``partial_fit``; what the topics do not hold
    is reported after each, and `adopt` makes topics of it.

    Parameters
    ----------
    result : TopicResult
    corpus : Corpus or anything that `Corpus.of` takes
        The rows to add. Columns are aligned by name (see `embedtopics.corpus.join_corpora`).
    embeddings : array_like of shape (n_rows, n_dimensions), optional
        Vectors of these rows.
    encoder : Encoder or str, optional
        Who makes the vectors; by default the encoder of the fit, made again.
    update_terms : bool
        Whether terms are counted anew in all documents, by the rules of the result, and topics
        described by them: keywords, even those that `with_keywords` gave, are chosen anew, and so
        are names, but for those that were given. Otherwise the terms, keywords and names stay as
        they are, the terms that there are get counted in new documents, and a result of many
        documents is extended in less than half of the time.
    min_candidate_size : "auto" or int
        Fewest rows outside the topics that may be a new one. "auto" takes the finest topics that
        a fit of as many rows would have.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the fit.

    Returns
    -------
    Extension
        With the new result, and what is new about the documents.

    Raises
    ------
    InputError
        Where no row has text, vectors are needed and neither given nor to be made, or of another
        encoder, or columns cannot be joined.

    Notes
    -----
    New documents are sought among all; old ones keep their neighbours, so that the recall of the
    graph, measured anew, falls with the share of new documents. In the density hierarchy new
    documents are leaves. When a quarter of the documents is new, a new fit is due.
    """
    added = Corpus.of(corpus)
    require_text(added)
    if min_candidate_size != "auto" and not _is_count(min_candidate_size):
        raise InputError(
            f'min_candidate_size must be "auto" or an integer from 2 up; got {min_candidate_size!r}'
        )
    merged = merge_documents(result, added)
    if not len(merged.new):
        return _only_known(result, merged, len(added), update_terms, weighting)
    vectors = vectors_of(result, added, merged.added, embeddings, encoder)
    found = judge(result, vectors)
    grown = _grown(result, merged, vectors, found)
    texts = added.document_texts()
    tokens = tokenize([texts[number] for number in merged.added.tolist()])
    grown = _with_terms(result, grown, merged, tokens, update_terms, weighting)
    n_known = _n_rows(added) - int(merged.documents.weights[merged.new].sum())
    n_outside = int((found.labels == NOISE).sum())
    expected, n_fitted = expected_outside(result)
    said = Extension(
        result=grown,
        documents=merged.new,
        n_known=n_known,
        novelty=found.novelty,
        outside=n_outside / len(merged.new),
        expected=expected,
        p_value=chance_of(n_outside, len(merged.new), expected, n_fitted),
        candidates=find_candidates(grown, min_candidate_size),
    )
    return dataclasses.replace(said, result=_recorded(grown, said, len(added)))


def _only_known(
    result: TopicResult,
    merged: Merged,
    n_rows: int,
    update: bool,
    weighting: TermWeighting | None,
) -> Extension:
    """Return what comes of rows whose texts are all there already: they weigh more."""
    grown = dataclasses.replace(result, corpus=merged.corpus, documents=merged.documents)
    if update:
        grown = _described(grown, result, result.term_counts, weighting)
    else:
        weights = merged.documents.weights
        topics = _resized(result.topics, result.clustering.labels, weights)
        grown = dataclasses.replace(grown, topics=topics)
    expected, _ = expected_outside(result)
    n_known = int(merged.documents.weights.sum() - result.documents.weights.sum())
    nothing = np.empty(0, dtype=np.float32)
    said = Extension(grown, merged.new, n_known, nothing, float("nan"), expected, 1.0)
    return dataclasses.replace(said, result=_recorded(grown, said, n_rows))


def _grown(
    result: TopicResult, merged: Merged, vectors: FloatArray, found: Judgement
) -> TopicResult:
    """Return the result with all that new documents have, but for terms."""
    embeddings = merged.put(result.embeddings, vectors)
    before = np.zeros(len(merged.old), dtype=np.bool_) if result.added is None else result.added
    added = merged.put(before, True)
    labels = result.clustering.labels
    hashes = merged.documents.hashes[merged.new]
    near = (found.indices, found.similarities, labels, found.labels)
    coordinates = merged.put(result.coordinates, place(result.coordinates, *near))
    old = result.clustering
    return dataclasses.replace(
        result,
        corpus=merged.corpus,
        documents=merged.documents,
        embeddings=embeddings,
        graph=grown_graph(
            result, merged, embeddings, added, (found.indices, found.similarities)
        ),
        coordinates=coordinates,
        map=merged.put(result.map, place(result.map, *near, hashes)),
        clustering=Clustering(
            labels=merged.put(old.labels, found.labels),
            strengths=merged.put(old.strengths, 0.0),
            persistence=old.persistence,
            reasons=None if old.reasons is None else merged.put(old.reasons, _reasons(found)),
        ),
        memberships=merged.put_rows(result.memberships, found.shares),
        tree=grown_tree(
            result.tree, coordinates, merged.old, merged.new, merged.old[found.indices]
        ),
        stability=None if result.stability is None else dataclasses.replace(
            result.stability, agreement=merged.put(result.stability.agreement, np.nan)
        ),
        added=added,
        guide=result.guide and result.guide.among(merged.old, len(merged.documents)),
    )  # fmt: skip


def _reasons(found: Judgement) -> npt.NDArray[np.int8]:
    """Return why each new document is in no topic, as a fit tells it."""
    _, best, second, none = standing(found.shares)
    is_far = found.novelty > FAR
    reasons = np.where(is_far | (NONE_WEIGHT * none >= second), Reason.ISOLATED, Reason.BETWEEN)
    reasons[(clearness(best, second, none) >= LEAST_RATIO) & ~is_far] = Reason.NOT_ASKED_FOR
    reasons[found.labels != NOISE] = Reason.IN_TOPIC
    return reasons.astype(np.int8)


def _with_terms(
    result: TopicResult,
    grown: TopicResult,
    merged: Merged,
    new_tokens: TokenStream,
    update: bool,
    weighting: TermWeighting | None,
) -> TopicResult:
    """Return the grown result with the words of new documents, and its topics described."""
    tokens = join_tokens(result.tokens, new_tokens, merged.order)
    weights = grown.documents.weights
    if not update:
        rows = _counts_of_terms(result, new_tokens)
        counts = merged.put_rows(result.term_counts.counts, rows)
        return dataclasses.replace(
            grown,
            tokens=tokens,
            term_counts=dataclasses.replace(result.term_counts, counts=counts),
            topics=_resized(result.topics, grown.clustering.labels, weights),
        )
    rules = term_settings_of(result)
    counted = _count(result, tokens, rules.min_df, rules.max_df)
    return _described(dataclasses.replace(grown, tokens=tokens), result, counted, weighting)


def _described(
    grown: TopicResult,
    result: TopicResult,
    counts: TermCounts,
    weighting: TermWeighting | None,
) -> TopicResult:
    """Return the grown result with its topics described by these counts, named as they were."""
    topics, topic_terms = describe_topics(
        counts, grown.embeddings, grown.clustering, grown.documents,
        weighting_of(result, weighting), term_settings_of(result), languages_of(result),
    )  # fmt: skip
    return dataclasses.replace(
        grown,
        term_counts=counts,
        topic_terms=topic_terms,
        topics=carry_names(topics, result.topics),
    )


def _count(
    result: TopicResult,
    tokens: TokenStream,
    min_df: int | float | None,
    max_df: int | float,
) -> TermCounts:
    """Count terms as a result counts them, leaving out the words that it leaves out."""
    settings = term_settings_of(result)
    listed = settings.stop_words
    listed = stop_words_for(languages_of(result)) if listed == "auto" else listed
    return count_terms(
        tokens,
        ngram_range=settings.ngram_range,
        min_df=min_df,
        max_df=max_df,
        stop_words=[*listed, *settings.extra_stop_words],
        function_words=result.term_counts.function_words,
    )


def _counts_of_terms(result: TopicResult, tokens: TokenStream) -> csr_matrix:
    """Count the terms that a result has in other documents."""
    from scipy.sparse import csr_matrix

    terms = result.term_counts.terms
    counted = _count(result, tokens, 1, 1.0)
    number = {term: place for place, term in enumerate(terms)}
    column = np.array([number.get(term, -1) for term in counted.terms], dtype=np.int64)
    entries = counted.counts.tocoo()
    kept = column[entries.col] >= 0
    return csr_matrix(
        (entries.data[kept], (entries.row[kept], column[entries.col[kept]])),
        shape=(len(tokens), len(terms)),
        dtype=np.int32,
    )


def _resized(
    topics: tuple[Topic, ...], labels: Int32Array, weights: npt.NDArray[np.int64]
) -> tuple[Topic, ...]:
    inside = labels != NOISE
    sizes = np.bincount(labels[inside], weights[inside], minlength=len(topics)).astype(int)
    total = int(weights.sum())
    return tuple(
        dataclasses.replace(topic, size=size, share=size / total)
        for topic, size in zip(topics, sizes.tolist(), strict=True)
    )


def _recorded(grown: TopicResult, said: Extension, n_rows: int) -> TopicResult:
    """Return the result with the extension in its history and among its decisions."""
    message = f"{n_rows:,} rows were added: {said}"
    figures = {"n_rows": n_rows, "n_new": len(said.documents), "n_known": said.n_known}
    # A remark: other documents would be needed to do it again.
    edit = Edit("note", figures, message, (), tuple(range(grown.n_topics)))
    decision = Decision("corpus", "extended", len(said.documents), message)
    return dataclasses.replace(
        grown,
        decisions=(*grown.decisions, decision),
        history=(*grown.history, edit),
        # An encoder that learnt from the texts of the fit is made again from these alone.
        settings={FITTED_ROWS: len(grown.corpus) - n_rows, **grown.settings},
    )


def _n_rows(corpus: Corpus) -> int:
    """Return the number of rows with text."""
    return int(corpus.distinct().weights.sum())


def _is_count(value: Any) -> bool:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and bool(value >= 2)
