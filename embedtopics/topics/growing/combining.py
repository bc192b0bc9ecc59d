"""Results of different corpora as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.neighbors import build_graph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array, TermWeighting
from embedtopics.reduction import first_components, fuzzy_graph, layout, principal_start, springs_of
from embedtopics.results import (
    NOISE,
    Clustering,
    Decision,
    NeighborGraph,
    Reason,
    Topic,
    TopicResult,
)
from embedtopics.terms import join_tokens
from embedtopics.topics.assign import find_documents
from embedtopics.topics.describe import count_corpus_terms
from embedtopics.topics.growing._merging import Merged, merge_documents, widened
from embedtopics.topics.growing.centroids import centroids, cosines
from embedtopics.topics.growing.lineage import comparable
from embedtopics.topics.pipeline import MAP_MIN_DIST
from embedtopics.topics.places import Places, find_places, spread_graph
from embedtopics.topics.recorded import (
    FITTED_ROWS,
    languages_of,
    refuse_without_texts,
    term_settings_of,
)
from embedtopics.topics.relabeling import regrouped, relabeled
from embedtopics.topics.vectors import ALIKE

__all__ = ["combine", "match_topics"]

GAP = 0.1
"""Between two maps side by side, as a share of the width of the first."""


def combine(
    results: Sequence[TopicResult],
    *,
    min_similarity: float = 0.7,
    positions: str = "beside",
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge results that one encoder made of different corpora.

    Two topics become one if, by the cosine of their mean vectors, each is the most like the other
    and they are alike enough; all others stay apart. Results are taken in one after the other, so
    that a topic of the third may match one of the first or of the second. Topics are numbered anew
    by size and described by the terms of all documents, with the settings of the first result;
    words that any of them leaves out stay out. Names that were given are kept, but keywords that
    `with_keywords` gave are chosen anew. `lineage` tells where each topic went. The history goes on
    from that of the first; those of the others stay with these.

    Parameters
    ----------
    results : sequence of TopicResult
        Two or more. A text that several hold keeps the topic of the first that has it in one.
    min_similarity : float
        Cosine of mean vectors from which topics may become one.
    positions : {"beside", "anew"}
        Where documents lie on the map: the maps as they are, the later ones to the right of the
        earlier ones, or one map of all, laid out anew (which takes as long as in a fit).
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
    results = _checked(results, min_similarity, positions)
    first = results[0]
    draft, decisions = _Draft(first, first.topics), list[Decision]()
    for number, result in enumerate(results[1:], 2):
        matches = match_topics(draft.result, result, min_similarity)
        decisions.append(_said(draft.origins, result, matches, number))
        draft = _joined(draft, result, matches)
    whole, origins = _without_empty(draft)
    whole = dataclasses.replace(whole, topics=())  # those of the first, which say less than all
    near, places = _neighbors(whole)
    languages = tuple(dict.fromkeys(code for one in results for code in languages_of(one)))
    settings = {
        FITTED_ROWS: len(first.corpus),
        **whole.settings,
        "languages": list(languages),
        "extra_stop_words": _extra_stop_words(results),
    }
    whole = dataclasses.replace(whole, settings=settings)
    counts = count_corpus_terms(
        whole.tokens, whole.clustering.labels, term_settings_of(whole), languages
    )
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
        graph=spread_graph(near, places),
        term_counts=counts,
        map=whole.map if positions == "beside" else _map(whole, near, places),
        decisions=(*_decisions_of(results), *decisions),
    )


def match_topics(one: TopicResult, other: TopicResult, min_similarity: float) -> Int32Array:
    """Return, for each topic of the other result, the one that it is to become one with.

    Parameters
    ----------
    one, other : TopicResult
        Of `one` the labels alone are read, so that it need not be described.
    min_similarity : float

    Returns
    -------
    int32 ndarray of shape (other.n_topics,)
        -1 for a topic that is nobody's nearest, or too far from its own nearest one.
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
    alike = cosines(*sums)
    matches = np.full(alike.shape[1], NOISE, dtype=np.int32)
    if alike.size:
        nearest, back = alike.argmax(axis=0), alike.argmax(axis=1)
        theirs = np.arange(alike.shape[1])
        # The cosine of a topic with itself may be less than one by a rounding.
        mutual = (back[nearest] == theirs) & (alike[nearest, theirs] >= min_similarity - 1e-9)
        matches[mutual] = nearest[mutual]
    return matches


@dataclass(frozen=True, eq=False)
class _Draft:
    """Results that were joined so far: labels as they came, no terms and no graph yet."""

    result: TopicResult
    origins: tuple[Topic, ...]


def _checked(
    results: Sequence[TopicResult], min_similarity: float, positions: str
) -> list[TopicResult]:
    if isinstance(results, TopicResult) or not all(isinstance(r, TopicResult) for r in results):
        raise InputError("expected a list of results (TopicResult); give [one, another]")
    results = list(results)
    if len(results) < 2:
        raise InputError(f"expected two results or more to combine; got {len(results)}")
    if not -1.0 <= float(min_similarity) <= 1.0:
        raise InputError(f"min_similarity must be from -1 to 1; got {min_similarity!r}")
    if positions not in ("beside", "anew"):
        raise InputError(f'positions must be "beside" or "anew"; got {positions!r}')
    for result in results:
        refuse_without_texts(result)
    for number, result in enumerate(results[1:], 2):
        if reason := comparable(results[0], result):
            raise InputError(
                f"results 1 and {number} cannot be combined: {reason}; fit both with one encoder"
            )
        _same_vectors(results[0], result, number)
    return results


def _same_vectors(first: TopicResult, other: TopicResult, number: int) -> None:
    """Refuse results whose common texts have different vectors: they have different encoders."""
    place = find_documents(first.documents.hashes, other.documents.hashes)
    both = np.flatnonzero(place >= 0)
    ours, theirs = first.embeddings[place[both]], other.embeddings[both]
    cosine = np.einsum("ij,ij->i", ours, theirs, dtype=np.float64)
    differ = (cosine < ALIKE) & (ours.any(axis=1) | theirs.any(axis=1))
    if differ.any():
        text = other.corpus.texts[other.documents.first_rows[both[differ.argmax()]]]
        raise InputError(
            f"results 1 and {number} cannot be combined: {int(differ.sum()):,} of their "
            f"{len(both):,} common texts have different vectors, such as {text[:60]!r}; fit both "
            "with one encoder"
        )


def _joined(draft: _Draft, other: TopicResult, matches: Int32Array) -> _Draft:
    """Put a result's documents and topics beside those that are there."""
    from scipy.sparse import csr_matrix, vstack

    before, n_before = draft.result, len(draft.origins)
    alone = matches == NOISE
    number = matches.copy()
    number[alone] = n_before + np.arange(int(alone.sum()))
    origins = [*draft.origins, *(other.topics[topic] for topic in np.flatnonzero(alone))]
    for topic in np.flatnonzero(~alone).tolist():
        origins[matches[topic]] = _one_of_two(origins[matches[topic]], other.topics[topic])
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
        guide=None,
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
    return _Draft(result, tuple(origins))


def _without_empty(draft: _Draft) -> tuple[TopicResult, tuple[Topic, ...]]:
    """Leave out topics all of whose documents are in other topics of an earlier result."""
    result, n_topics = draft.result, len(draft.origins)
    labels = result.clustering.labels
    is_held = np.bincount(labels[labels != NOISE], minlength=n_topics) > 0
    if is_held.all():
        return result, draft.origins
    number = np.full(n_topics + 1, NOISE, dtype=np.int32)
    number[:-1][is_held] = np.arange(int(is_held.sum()), dtype=np.int32)
    clustering = dataclasses.replace(result.clustering, labels=number[labels])
    shares = regrouped(result.memberships, number[:-1], int(is_held.sum()))
    result = dataclasses.replace(result, clustering=clustering, memberships=shares)
    origins = [one for one, held in zip(draft.origins, is_held.tolist(), strict=True) if held]
    return result, tuple(origins)


def _one_of_two(topic: Topic, other: Topic) -> Topic:
    """Return what is said of a topic that two results have: a name that was given is kept."""
    if topic.is_named or topic.is_anchor or not (other.is_named or other.is_anchor):
        return dataclasses.replace(topic, persistence=float("nan"))
    return dataclasses.replace(other, persistence=float("nan"))


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
    labels, strengths = ours.labels.copy(), ours.strengths.copy()
    labels[gains] = theirs[place[gains]]
    strengths[gains] = other.clustering.strengths[place[gains]]
    reasons = None
    if ours.reasons is not None and other.clustering.reasons is not None:
        kept = np.where(labels == NOISE, ours.reasons, Reason.IN_TOPIC).astype(np.int8)
        reasons = merged.put(kept, other.clustering.reasons[merged.added])
    return Clustering(
        labels=merged.put(labels, theirs[merged.added]),
        strengths=merged.put(strengths, other.clustering.strengths[merged.added]),
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


def _neighbors(result: TopicResult) -> tuple[NeighborGraph, Places]:
    """Search the neighbours of all documents, as a fit does; those of one vector are one place."""
    wanted = result.settings.get("n_neighbors", result.graph.k)
    places = find_places(result.embeddings)
    seed = int(result.settings.get("seed", 0))
    return build_graph(result.embeddings, int(wanted), seed=seed, rows=places.rows), places


def _map(result: TopicResult, near: NeighborGraph, places: Places) -> FloatArray:
    """Lay the map out anew, as a fit does."""
    springs = springs_of(fuzzy_graph(near), seed=int(result.settings.get("seed", 0)))
    start = first_components(places.of(principal_start(result.embeddings, 2)), 2)
    return places.spread(layout(springs, start, min_dist=MAP_MIN_DIST))


def _extra_stop_words(results: Sequence[TopicResult]) -> list[str]:
    """Return the words that any result leaves out beside its list, each once."""
    every = (word for one in results for word in term_settings_of(one).extra_stop_words)
    return list(dict.fromkeys(every))


def _decisions_of(results: Sequence[TopicResult]) -> tuple[Decision, ...]:
    """Return what was decided for any of the results, each once."""
    every = [decision for result in results for decision in result.decisions]
    return tuple({repr(decision): decision for decision in every}.values())


def _said(
    origins: tuple[Topic, ...], other: TopicResult, matches: Int32Array, number: int
) -> Decision:
    pairs = [
        f"{origins[match].label} = {other.topics[topic].label}"
        for topic, match in enumerate(matches.tolist()) if match != NOISE
    ]  # fmt: skip
    n_alone = other.n_topics - len(pairs)
    message = f"Of the topics of result {number}, {len(pairs)} became one with another"
    message += f" ({'; '.join(pairs)})" if pairs else ""
    message += f", and {n_alone} were added."
    return Decision("clustering", "combined", pairs, message)
