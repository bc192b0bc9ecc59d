"""Results of different corpora, combined into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.decisions import Decision
from embedtopics.encoders._space import MIN_SPACE_COSINE, SAME_VECTOR_COSINE, space_of
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.terms._tokens import join_tokens
from embedtopics.topics._assign import find_documents
from embedtopics.topics._describe import (
    FITTED_ROWS,
    count_corpus_terms,
    languages_of,
    refuse_without_texts,
    term_settings_of,
)
from embedtopics.topics._relabel import keep_labels, regrouped, relabeled
from embedtopics.topics._vectors import centroids, cosines, merge_near_duplicates, spread_graph
from embedtopics.topics.growing._extend import Merged, merge_documents
from embedtopics.topics.growing._novelty import widened
from embedtopics.topics.results import Reason, Topic, TopicResult

MIN_SIMILARITY = 0.7
"""Smallest cosine of the mean vectors of topics that become one."""

GAP = 0.1
"""Gap between two maps side by side, as a share of the width of the first."""


def combine(results: Sequence[TopicResult]) -> TopicResult:
    """Combine results of one encoder on different corpora.

    Two topics are merged if their mean vectors are nearest to each other, with a cosine of at least
    0.7. Results are added one after the other. Topics are numbered by size and
    described by the terms of all documents, with the settings of the first result; names given by
    users stay. On the map later results are to the right of earlier ones.

    Parameters
    ----------
    results : sequence of TopicResult
        Two or more. A text in several results keeps its topic in the first result that has one.

    Returns
    -------
    TopicResult
        With a new neighbor graph of all documents, and without a density hierarchy.

    Raises
    ------
    InputError
        If there are fewer than two results, their vectors cannot be compared, or one was shared
        without its texts.
    """
    results = _checked(results)
    first = whole = results[0]
    origins: list[Topic] = list(first.topics)
    decisions: list[Decision] = []
    for number, result in enumerate(results[1:], 2):
        matches = match_topics(whole, result)
        decisions.append(_decision(origins, result, matches, number))
        whole, origins = _added(whole, origins, result, matches)
    whole, origins = _without_empty(whole, origins)
    seed = int(first.settings.get("seed", 0))
    n_neighbors = int(first.settings.get("n_neighbors", first.graph.k))
    unique, unique_graph = merge_near_duplicates(whole.embeddings, n_neighbors, seed)
    languages = tuple(dict.fromkeys(code for one in results for code in languages_of(one)))
    stop_words = [word for one in results for word in term_settings_of(one).extra_stop_words]
    settings = {
        FITTED_ROWS: len(first.corpus),
        **whole.settings,
        "languages": list(languages),
        "extra_stop_words": list(dict.fromkeys(stop_words)),
    }
    # Without the topics of the first result, which do not describe all documents.
    whole = dataclasses.replace(whole, topics=(), settings=settings)
    counts = count_corpus_terms(
        whole.tokens, whole.clustering.labels, term_settings_of(whole), languages
    )
    earlier = {repr(one): one for result in results for one in result.decisions}
    sentences = " ".join(decision.message for decision in decisions)
    return relabeled(
        whole,
        whole.clustering.labels,
        whole.memberships,
        origins,
        name="note",  # replay would need the other results
        parameters={"n_results": len(results)},
        message=f"{len(results)} results were combined. {sentences}",
        follows=np.arange(first.n_topics),
        graph=spread_graph(unique_graph, unique),
        term_counts=counts,
        map=whole.map,
        decisions=(*earlier.values(), *decisions),
    )


def match_topics(one: TopicResult, other: TopicResult) -> Int32Array:
    """Return the matching topic of each topic of the other result, (n_topics,), or -1."""
    sums = []
    for result in (one, other):
        labels, n_topics = result.clustering.labels, len(result.clustering.persistence)
        sums.append(centroids(result.embeddings, labels, n_topics, result.documents.weights))
    similarity = cosines(*sums)
    matches = np.full(similarity.shape[1], NOISE, dtype=np.int32)
    if similarity.size:
        nearest, back = similarity.argmax(axis=0), similarity.argmax(axis=1)
        others = np.arange(similarity.shape[1])
        # Rounding may put the cosine of a topic with itself below one.
        mutual = (back[nearest] == others) & (similarity[nearest, others] >= MIN_SIMILARITY - 1e-9)
        matches[mutual] = nearest[mutual]
    return matches


def _checked(results: Sequence[TopicResult]) -> list[TopicResult]:
    """Return results with comparable vectors, or raise InputError."""
    results = list(results)
    if len(results) < 2:
        raise InputError("results", "a list of two results or more", found=str(len(results)))
    for result in results:
        refuse_without_texts(result)
    first = results[0]
    for number, other in enumerate(results[1:], 2):
        reason = _incomparable(first, other)
        if not reason:
            # Different vectors of common texts come from different encoders.
            position = find_documents(first.documents.hashes, other.documents.hashes)
            both = np.flatnonzero(position >= 0)
            ours, theirs = first.embeddings[position[both]], other.embeddings[both]
            cosine = np.einsum("ij,ij->i", ours, theirs, dtype=np.float64)
            fingerprints = {one.settings.get("encoder_fingerprint") for one in (first, other)}
            least = SAME_VECTOR_COSINE if len(fingerprints) == 1 else MIN_SPACE_COSINE
            differ = (cosine < least) & (ours.any(axis=1) | theirs.any(axis=1))
            if differ.any():
                text = other.corpus.texts[other.documents.first_rows[both[differ.argmax()]]]
                counts = f"{int(differ.sum()):,} of {len(both):,} common texts"
                reason = f"{counts} have different vectors, such as {text[:60]!r}"
        if reason:
            raise InputError(
                f"results 1 and {number} cannot be combined: {reason}; fit both with one encoder"
            )
    return results


def _incomparable(one: TopicResult, other: TopicResult) -> str:
    """Return why the vectors of two results cannot be compared, or ""."""
    widths = one.embeddings.shape[1], other.embeddings.shape[1]
    if widths[0] != widths[1]:
        return f"their vectors have {widths[0]} and {widths[1]} dimensions"
    spaces = [space_of(result.settings) for result in (one, other)]
    names = " and ".join(str(result.settings.get("encoder", "unknown")) for result in (one, other))
    if None not in spaces and spaces[0] != spaces[1]:
        return f"their vectors come from different encoders or settings ({names})"
    if (spaces[0] is None) != (spaces[1] is None):
        return f"the encoder of one is unknown ({names})"
    return ""


def _added(
    before: TopicResult, origins: list[Topic], other: TopicResult, matches: Int32Array
) -> tuple[TopicResult, list[Topic]]:
    """Add the documents and topics of a result to another, without terms and graph."""
    alone = matches == NOISE
    number = matches.copy()
    number[alone] = len(origins) + np.arange(int(alone.sum()))
    origins = [*origins, *(other.topics[topic] for topic in np.flatnonzero(alone))]
    for topic in np.flatnonzero(~alone).tolist():
        ours, theirs = origins[matches[topic]], other.topics[topic]
        # The topic that the user named passes its label on.
        is_ours = ours.is_named or ours.is_seeded or not (theirs.is_named or theirs.is_seeded)
        origin = ours if is_ours else theirs
        origins[matches[topic]] = dataclasses.replace(origin, persistence=float("nan"))
    merged = merge_documents(before, other.corpus)
    n_topics = len(origins)
    shares = widened(before.memberships, n_topics)
    their_shares = regrouped(other.memberships, number, n_topics)
    their_labels = np.append(number, NOISE)[other.clustering.labels].astype(np.int32)
    # Outliers of the first result may be in a topic of the second.
    position = find_documents(other.documents.hashes, before.documents.hashes)
    gains = (position >= 0) & (before.clustering.labels == NOISE)
    gains[gains] = their_labels[position[gains]] != NOISE
    order = merged.order
    order[merged.new] = len(merged.old) + merged.added
    rows = order.copy()
    rows[merged.old[gains]] = len(merged.old) + position[gains]
    added = [
        np.zeros(len(one.documents), dtype=np.bool_) if one.added is None else one.added
        for one in (before, other)
    ]
    is_added = merged.put(added[0], added[1][merged.added])
    result = dataclasses.replace(
        before,
        corpus=merged.corpus,
        documents=merged.documents,
        constraints=None,
        embeddings=merged.put(before.embeddings, other.embeddings[merged.added]),
        coordinates=_beside(merged, before.coordinates, other.coordinates),
        map=_beside(merged, before.map, other.map),
        clustering=_clustering(before, other, merged, their_labels, gains, position, n_topics),
        memberships=csr_matrix(vstack([shares, their_shares], format="csr")[rows]),
        tokens=join_tokens(before.tokens, other.tokens, order),
        tree=None,
        stability=None,
        added=is_added if is_added.any() else None,
    )
    return result, origins


def _without_empty(result: TopicResult, origins: list[Topic]) -> tuple[TopicResult, list[Topic]]:
    """Drop topics whose documents are all in other topics of an earlier result."""
    labels = result.clustering.labels
    has_documents = np.bincount(labels[labels != NOISE], minlength=len(origins)) > 0
    if has_documents.all():
        return result, origins
    clustering = dataclasses.replace(result.clustering, labels=keep_labels(labels, has_documents))
    number = keep_labels(np.arange(len(origins)), has_documents)
    shares = regrouped(result.memberships, number, int(has_documents.sum()))
    result = dataclasses.replace(result, clustering=clustering, memberships=shares)
    return result, [origins[topic] for topic in np.flatnonzero(has_documents).tolist()]


def _clustering(
    before: TopicResult,
    other: TopicResult,
    merged: Merged,
    theirs: Int32Array,
    gains: npt.NDArray[np.bool_],
    position: Int64Array,
    n_topics: int,
) -> Clustering:
    """Return the clustering of all documents."""
    ours = before.clustering
    labels, probabilities = ours.labels.copy(), ours.probabilities.copy()
    labels[gains] = theirs[position[gains]]
    probabilities[gains] = other.clustering.probabilities[position[gains]]
    reasons = None
    if ours.reasons is not None and other.clustering.reasons is not None:
        our_reasons = np.where(labels == NOISE, ours.reasons, Reason.IN_TOPIC).astype(np.int8)
        reasons = merged.put(our_reasons, other.clustering.reasons[merged.added])
    return Clustering(
        labels=merged.put(labels, theirs[merged.added]),
        probabilities=merged.put(probabilities, other.clustering.probabilities[merged.added]),
        persistence=np.full(n_topics, np.nan),
        reasons=reasons,
    )


def _beside(merged: Merged, ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Return the positions of all, the second map to the right of the first, centered."""
    width = max(ours.shape[1], theirs.shape[1])
    left, right = (
        np.pad(part, ((0, 0), (0, width - part.shape[1]))).astype(np.float64)
        for part in (ours, theirs)
    )
    low, high = left.min(axis=0), left.max(axis=0)
    below, above = right.min(axis=0), right.max(axis=0)
    move = (low + high - below - above) / 2
    move[0] = high[0] + GAP * max(high[0] - low[0], above[0] - below[0]) - below[0]
    right = (right + move).astype(np.float32)
    return np.asarray(merged.put(left.astype(np.float32), right[merged.added]))


def _decision(
    origins: Sequence[Topic], other: TopicResult, matches: Int32Array, number: int
) -> Decision:
    """Return a decision on the topics of a result that match earlier ones."""
    matched = np.flatnonzero(matches != NOISE).tolist()
    pairs = [f"{origins[matches[topic]].label} = {other.topics[topic].label}" for topic in matched]
    listed = f" ({'; '.join(pairs)})" if pairs else ""
    message = f"{len(pairs)} topics of result {number} match an earlier topic{listed}; "
    message += f"{other.n_topics - len(pairs)} were added."
    return Decision("clustering", "combined", pairs, message)
