"""Results of different corpora as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_number
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array, TermWeighting
from embedtopics.terms._tokens import join_tokens
from embedtopics.topics._assign import find_documents
from embedtopics.topics._describe import (
    FITTED_ROWS,
    count_corpus_terms,
    languages_of,
    refuse_without_texts,
    term_settings_of,
)
from embedtopics.topics._relabel import regrouped, relabeled
from embedtopics.topics._vectors import SAME, centroids, cosines, find_unique_vectors, spread_graph
from embedtopics.topics.growing._extend import Merged, merge_documents
from embedtopics.topics.growing._lineage import incomparable
from embedtopics.topics.growing._novelty import widened
from embedtopics.topics.results import Reason, Topic, TopicResult

GAP = 0.1
"""Between two maps side by side, as a share of the width of the first."""


def combine(
    results: Sequence[TopicResult],
    *,
    min_similarity: float = 0.7,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge results that one encoder made of different corpora.

    Two topics become one if, by the cosine of their mean vectors, each is the most similar to the
    other, and similar enough; all others stay separate. Results are taken in one after the other.
    Topics are numbered anew by size and described by the terms of all documents, with the settings
    of the first result. Names that were given are kept; keywords are chosen anew. `lineage` shows
    where each topic went. On the map the later results lie to the right of the earlier ones.

    Parameters
    ----------
    results : sequence of TopicResult
        Two or more. A text that several hold keeps the topic of the first that has it in one.
    min_similarity : float
        Cosine of mean vectors from which topics may become one.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the first.

    Returns
    -------
    TopicResult
        With a neighbour graph of all documents, searched anew, and without a density hierarchy.

    Raises
    ------
    InputError
        Where there are less than two results, their vectors cannot be compared, one was shared
        without its texts, or a parameter is bad.
    """
    if not is_number(min_similarity) or not -1.0 <= float(min_similarity) <= 1.0:
        raise InputError("min_similarity", "a number from -1 to 1", min_similarity)
    results = _checked(results)
    first = whole = results[0]
    origins: list[Topic] = list(first.topics)
    decisions: list[Decision] = []
    for number, result in enumerate(results[1:], 2):
        matches = match_topics(whole, result, min_similarity)
        decisions.append(_decision(origins, result, matches, number))
        whole, origins = _joined(whole, origins, result, matches)
    whole, origins = _without_empty(whole, origins)
    seed = int(first.settings.get("seed", 0))
    unique = find_unique_vectors(whole.embeddings)
    n_neighbors = int(first.settings.get("n_neighbors", first.graph.k))
    near = build_graph(whole.embeddings, n_neighbors, seed=seed, rows=unique.rows)
    languages = tuple(dict.fromkeys(code for one in results for code in languages_of(one)))
    stop_words = [word for one in results for word in term_settings_of(one).extra_stop_words]
    settings = {
        FITTED_ROWS: len(first.corpus),
        **whole.settings,
        "languages": list(languages),
        "extra_stop_words": list(dict.fromkeys(stop_words)),
    }
    # Without the topics of the first, which describe less than all.
    whole = dataclasses.replace(whole, topics=(), settings=settings)
    counts = count_corpus_terms(
        whole.tokens, whole.clustering.labels, term_settings_of(whole), languages
    )
    of_results = {repr(one): one for result in results for one in result.decisions}
    sentences = " ".join(decision.message for decision in decisions)
    return relabeled(
        whole,
        whole.clustering.labels,
        whole.memberships,
        origins,
        name="note",  # the other results would be needed to do it again
        parameters={"n_results": len(results), "min_similarity": float(min_similarity)},
        message=f"{len(results)} results were combined. {sentences}",
        follows=np.arange(first.n_topics),
        weighting=weighting,
        graph=spread_graph(near, unique),
        term_counts=counts,
        map=whole.map,
        decisions=(*of_results.values(), *decisions),
    )


def match_topics(one: TopicResult, other: TopicResult, min_similarity: float) -> Int32Array:
    """Return, for each topic of the other result, the one that it is to become one with.

    Shape: (other.n_topics,).
    """
    sums = [
        centroids(
            result.embeddings,
            result.clustering.labels,
            len(result.clustering.persistence),
            result.documents.weights,
        )
        for result in (one, other)
    ]
    similarity = cosines(*sums)
    matches = np.full(similarity.shape[1], NOISE, dtype=np.int32)
    if similarity.size:
        nearest, back = similarity.argmax(axis=0), similarity.argmax(axis=1)
        theirs = np.arange(similarity.shape[1])
        # The cosine of a topic with itself may be less than one by a rounding.
        mutual = (back[nearest] == theirs) & (similarity[nearest, theirs] >= min_similarity - 1e-9)
        matches[mutual] = nearest[mutual]
    return matches


def _checked(results: Sequence[TopicResult]) -> list[TopicResult]:
    """Return results of which all vectors can be compared."""
    expected = "a list of two results or more"
    if isinstance(results, TopicResult) or not all(isinstance(r, TopicResult) for r in results):
        raise InputError("results", expected, found=type(results).__name__)
    results = list(results)
    if len(results) < 2:
        raise InputError("results", expected, found=str(len(results)))
    for result in results:
        refuse_without_texts(result)
    first = results[0]
    for number, other in enumerate(results[1:], 2):
        reason = incomparable(first, other)
        if not reason:
            # Common texts with different vectors come from different encoders.
            place = find_documents(first.documents.hashes, other.documents.hashes)
            both = np.flatnonzero(place >= 0)
            ours, theirs = first.embeddings[place[both]], other.embeddings[both]
            cosine = np.einsum("ij,ij->i", ours, theirs, dtype=np.float64)
            differ = (cosine < SAME) & (ours.any(axis=1) | theirs.any(axis=1))
            if differ.any():
                text = other.corpus.texts[other.documents.first_rows[both[differ.argmax()]]]
                reason = (
                    f"{int(differ.sum()):,} of their {len(both):,} common texts have different "
                    f"vectors, such as {text[:60]!r}"
                )
        if reason:
            raise InputError(
                f"results 1 and {number} cannot be combined: {reason}; fit both with one encoder"
            )
    return results


def _joined(
    before: TopicResult, origins: list[Topic], other: TopicResult, matches: Int32Array
) -> tuple[TopicResult, list[Topic]]:
    """Put a result's documents and topics beside those that are there, without terms and graph."""
    from scipy.sparse import csr_matrix, vstack

    alone = matches == NOISE
    number = matches.copy()
    number[alone] = len(origins) + np.arange(int(alone.sum()))
    origins = [*origins, *(other.topics[topic] for topic in np.flatnonzero(alone))]
    for topic in np.flatnonzero(~alone).tolist():
        ours, theirs = origins[matches[topic]], other.topics[topic]
        # Of two topics that become one, a name that was given is kept.
        is_ours = ours.is_named or ours.is_seeded or not (theirs.is_named or theirs.is_seeded)
        kept = dataclasses.replace(ours if is_ours else theirs, persistence=float("nan"))
        origins[matches[topic]] = kept
    merged = merge_documents(before, other.corpus)
    n_topics = len(origins)
    shares = widened(before.memberships, n_topics)
    their_shares = regrouped(other.memberships, number, n_topics)
    their_labels = np.append(number, NOISE)[other.clustering.labels].astype(np.int32)
    # What was in no topic of the first may be in one of the second.
    place = find_documents(other.documents.hashes, before.documents.hashes)
    gains = (place >= 0) & (before.clustering.labels == NOISE)
    gains[gains] = their_labels[place[gains]] != NOISE
    order = merged.order
    order[merged.new] = len(merged.old) + merged.added
    rows = order.copy()
    rows[merged.old[gains]] = len(merged.old) + place[gains]
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
        clustering=_clustering(before, other, merged, their_labels, gains, place, n_topics),
        memberships=csr_matrix(vstack([shares, their_shares], format="csr")[rows]),
        tokens=join_tokens(before.tokens, other.tokens, order),
        tree=None,
        stability=None,
        added=is_added if is_added.any() else None,
    )
    return result, origins


def _without_empty(result: TopicResult, origins: list[Topic]) -> tuple[TopicResult, list[Topic]]:
    """Leave out topics all of whose documents are in other topics of an earlier result."""
    labels = result.clustering.labels
    is_held = np.bincount(labels[labels != NOISE], minlength=len(origins)) > 0
    if is_held.all():
        return result, origins
    n_held = int(is_held.sum())
    number = np.full(len(origins) + 1, NOISE, dtype=np.int32)
    number[:-1][is_held] = np.arange(n_held, dtype=np.int32)
    clustering = dataclasses.replace(result.clustering, labels=number[labels])
    shares = regrouped(result.memberships, number[:-1], n_held)
    result = dataclasses.replace(result, clustering=clustering, memberships=shares)
    return result, [one for one, held in zip(origins, is_held.tolist(), strict=True) if held]


def _clustering(
    before: TopicResult,
    other: TopicResult,
    merged: Merged,
    theirs: Int32Array,
    gains: npt.NDArray[np.bool_],
    place: Int64Array,
    n_topics: int,
) -> Clustering:
    """Return the labels of all, with what else is known of the documents."""
    ours = before.clustering
    labels, probabilities = ours.labels.copy(), ours.probabilities.copy()
    labels[gains] = theirs[place[gains]]
    probabilities[gains] = other.clustering.probabilities[place[gains]]
    reasons = None
    if ours.reasons is not None and other.clustering.reasons is not None:
        kept = np.where(labels == NOISE, ours.reasons, Reason.IN_TOPIC).astype(np.int8)
        reasons = merged.put(kept, other.clustering.reasons[merged.added])
    return Clustering(
        labels=merged.put(labels, theirs[merged.added]),
        probabilities=merged.put(probabilities, other.clustering.probabilities[merged.added]),
        persistence=np.full(n_topics, np.nan),
        reasons=reasons,
    )


def _beside(merged: Merged, ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Return positions of all, the second map to the right of the first, on its middle line."""
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
    """Return which topics of a result became one with another."""
    pairs = [
        f"{origins[match].label} = {other.topics[topic].label}"
        for topic, match in enumerate(matches.tolist()) if match != NOISE
    ]  # fmt: skip
    named = f" ({'; '.join(pairs)})" if pairs else ""
    message = (
        f"Of the topics of result {number}, {len(pairs)} became one with another{named}, and "
        f"{other.n_topics - len(pairs)} were added."
    )
    return Decision("clustering", "combined", pairs, message)
