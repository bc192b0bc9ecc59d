"""Topics of several results: followed from one to the other, or put together."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_matrix, csr_matrix, vstack

from embedtopics._utils.checks import is_number
from embedtopics._utils.display import Displayed
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.decisions import Decision
from embedtopics.encoders._space import MIN_SPACE_COSINE, SAME_VECTOR_COSINE, space_of
from embedtopics.errors import InputError
from embedtopics.protocols import (
    BoolArray,
    Float64Array,
    FloatArray,
    Int32Array,
    Int64Array,
)
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
from embedtopics.topics._vectors import centroids, cosines, find_places, spread_graph
from embedtopics.topics.growing._extend import Merged, merge_documents
from embedtopics.topics.growing._novelty import widened
from embedtopics.topics.results import Reason, Topic, TopicResult

HALF = 0.5
"""Share of a topic's documents from which it is linked with another."""

MIN_SIMILARITY = 0.7
"""Cosine of their mean vectors from which topics without common documents are linked."""


@dataclass(frozen=True)
class Link:
    """What became of one topic in another result, or where a topic there came from."""

    kind: str
    old: int
    new: int
    shared: int = 0
    share_of_old: float = np.nan
    share_of_new: float = np.nan
    similarity: float = np.nan


@dataclass(frozen=True, repr=False)
class Lineage(Displayed):
    """Which topics of one result became which of another."""

    links: tuple[Link, ...]
    by: str
    n_shared: int
    old_labels: tuple[str, ...]
    new_labels: tuple[str, ...]

    def _summary(self) -> str:
        kinds = Counter(link.kind for link in self.links)
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        return f"links by {self.by}: {counts or 'none'}"

    def to_frame(self) -> pd.DataFrame:
        """Return a frame of the links: kind, old, new, their labels, what they have in common."""
        names = [field.name for field in fields(Link)]
        frame = pd.DataFrame([asdict(link) for link in self.links], columns=names)
        for place, side, labels in ((3, "old", self.old_labels), (4, "new", self.new_labels)):
            shown = [labels[topic] if topic >= 0 else "" for topic in frame[side].tolist()]
            frame.insert(place, f"{side}_label", shown)
        return frame


def lineage(old: TopicResult, new: TopicResult) -> Lineage:
    """Return which topics of a result became which of another.

    Two topics are linked if at least half of the documents of one, of those that both results
    hold, are in the other. Where they have no document in common, a topic is linked with the one
    whose mean vector is most similar, from a cosine of 0.7. Of a topic that is linked with one
    alone, the kind is "continued"; with several "split"; several in one "merged", or else
    "regrouped"; with nothing "gone" or "new".

    Parameters
    ----------
    old, new : TopicResult
        Their order matters for the names alone: what was split one way was merged the other way.

    Returns
    -------
    Lineage

    Raises
    ------
    InputError
        Where the results have neither a document in common nor one encoder.

    References
    ----------
    Spiliopoulou et al. (2006), "MONIC: modeling and monitoring cluster transitions".
    """
    place = find_documents(new.documents.hashes, old.documents.hashes)
    n_shared = int((place >= 0).sum())
    labels = (tuple(topic.label for topic in result.topics) for result in (old, new))
    if n_shared:
        return Lineage(_links_by_documents(old, new, place), "documents", n_shared, *labels)
    if reason := incomparable(old, new):
        expected = "a result with some of the documents of the other, or of its encoder"
        raise InputError("new", expected, found=f"none in common, and {reason}")
    similarity = _centroid_cosines(old, new)
    linked = np.zeros(similarity.shape, dtype=np.bool_)
    if similarity.size:
        linked[np.arange(len(similarity)), similarity.argmax(axis=1)] = True
        linked[similarity.argmax(axis=0), np.arange(similarity.shape[1])] = True
    links = _links(linked & (similarity >= MIN_SIMILARITY), similarity=similarity)
    return Lineage(links, "centroids", n_shared, *labels)


def incomparable(one: TopicResult, other: TopicResult) -> str:
    """Return why the vectors of two results cannot be compared; "" where they can."""
    widths = one.embeddings.shape[1], other.embeddings.shape[1]
    if widths[0] != widths[1]:
        return f"their vectors have {widths[0]} and {widths[1]} dimensions"
    prints = [space_of(result.settings) for result in (one, other)]
    names = " and ".join(str(one.settings.get("encoder", "unknown")) for one in (one, other))
    if None not in prints and prints[0] != prints[1]:
        return f"their vectors come from different encoders ({names}, or their settings differ)"
    if (prints[0] is None) != (prints[1] is None):
        return f"of one the encoder is not known ({names})"
    return ""


def _links_by_documents(old: TopicResult, new: TopicResult, place: Int64Array) -> tuple[Link, ...]:
    """Link topics by the documents that they share; `place` finds an old document in the new."""
    both = np.flatnonzero(place >= 0)
    # The label of noise, -1, is the last row and column.
    counts = np.zeros((old.n_topics + 1, new.n_topics + 1), dtype=np.int64)
    np.add.at(counts, (old.clustering.labels[both], new.clustering.labels[place[both]]), 1)
    shared = counts[:-1, :-1]
    of_old, of_new = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    union = (of_old + of_new - counts)[:-1, :-1]

    def share(total: Int64Array, empty: float) -> Float64Array:
        shares: Float64Array = np.full(shared.shape, empty)
        return np.divide(shared, total, out=shares, where=total > 0)

    forth, back = share(of_old[:-1], np.nan), share(of_new[:, :-1], np.nan)
    linked = (forth >= HALF) | (back >= HALF)
    return _links(
        linked, shared=shared, share_of_old=forth, share_of_new=back, similarity=share(union, 0.0)
    )


def _centroid_cosines(old: TopicResult, new: TopicResult) -> Float64Array:
    """Return the cosines of the topics' mean vectors, also of drafts without described topics."""
    sums = []
    for one in (old, new):
        labels, n_topics = one.clustering.labels, len(one.clustering.persistence)
        sums.append(centroids(one.embeddings, labels, n_topics, one.documents.weights))
    return cosines(*sums)


def _links(linked: BoolArray, **figures: npt.NDArray[Any]) -> tuple[Link, ...]:
    """Return the links of pairs, with figures of each; kinds follow from connected components."""
    from scipy.sparse.csgraph import connected_components

    n_old, n_new = linked.shape
    rows, columns = np.nonzero(linked)
    size = n_old + n_new
    graph = coo_matrix((np.ones(len(rows)), (rows, n_old + columns)), shape=(size, size))
    part = connected_components(graph, directed=False)[1] if size else np.empty(0, dtype=int)
    n_olds = np.bincount(part[:n_old], minlength=size)
    n_news = np.bincount(part[n_old:], minlength=size)
    links = []
    for i in range(n_old):
        is_one_new = n_news[part[i]] == 1
        if n_olds[part[i]] == 1:
            kind = "continued" if is_one_new else "split"
        else:
            kind = "merged" if is_one_new else "regrouped"
        heirs = np.flatnonzero(linked[i]).tolist()
        links += [
            Link(kind, i, j, **{name: values[i, j].item() for name, values in figures.items()})
            for j in heirs
        ] or [Link("gone", i, NOISE)]
    links += [Link("new", NOISE, j) for j in np.flatnonzero(~linked.any(axis=0)).tolist()]
    return tuple(links)


GAP = 0.1
"""Between two maps side by side, as a share of the width of the first."""


def combine(
    results: Sequence[TopicResult],
    *,
    min_similarity: float = 0.7,
) -> TopicResult:
    """Merge results that one encoder made of different corpora.

    Two topics become one if, by the cosine of their mean vectors, each is the most similar to the
    other, and similar enough. Results are taken in one after the other. Topics are numbered anew
    by size and described by the terms of all documents, with the settings of the first result;
    given names are kept. On the map the later results lie to the right of the earlier ones.

    Parameters
    ----------
    results : sequence of TopicResult
        Two or more. A text that several hold keeps the topic of the first that has it in one.
    min_similarity : float
        Cosine of mean vectors from which topics may become one.

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
    n_neighbors = int(first.settings.get("n_neighbors", first.graph.k))
    places, near = find_places(whole.embeddings, n_neighbors, seed)
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
        graph=spread_graph(near, places),
        term_counts=counts,
        map=whole.map,
        decisions=(*of_results.values(), *decisions),
    )


def match_topics(one: TopicResult, other: TopicResult, min_similarity: float) -> Int32Array:
    """Return the topic that each of the other result is to become one with, (n_topics,), or -1."""
    similarity = _centroid_cosines(one, other)
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
            prints = {one.settings.get("encoder_fingerprint") for one in (first, other)}
            least = SAME_VECTOR_COSINE if len(prints) == 1 else MIN_SPACE_COSINE
            differ = (cosine < least) & (ours.any(axis=1) | theirs.any(axis=1))
            if differ.any():
                text = other.corpus.texts[other.documents.first_rows[both[differ.argmax()]]]
                share = f"{int(differ.sum()):,} of their {len(both):,} common texts"
                reason = f"{share} have different vectors, such as {text[:60]!r}"
        if reason:
            raise InputError(
                f"results 1 and {number} cannot be combined: {reason}; fit both with one encoder"
            )
    return results


def _joined(
    before: TopicResult, origins: list[Topic], other: TopicResult, matches: Int32Array
) -> tuple[TopicResult, list[Topic]]:
    """Put a result's documents and topics beside those that are there, without terms and graph."""
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
    clustering = dataclasses.replace(result.clustering, labels=keep_labels(labels, is_held))
    number = keep_labels(np.arange(len(origins)), is_held)
    shares = regrouped(result.memberships, number, int(is_held.sum()))
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
    matched = np.flatnonzero(matches != NOISE).tolist()
    pairs = [f"{origins[matches[topic]].label} = {other.topics[topic].label}" for topic in matched]
    named = f" ({'; '.join(pairs)})" if pairs else ""
    message = f"Of the topics of result {number}, {len(pairs)} became one with another{named}, and "
    message += f"{other.n_topics - len(pairs)} were added."
    return Decision("clustering", "combined", pairs, message)
