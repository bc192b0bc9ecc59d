"""Topics of several results: matched between results, or combined."""

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
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array
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

HALF = 0.5
"""Smallest shared part of a topic for a link."""

MIN_SIMILARITY = 0.7
"""Smallest cosine of mean vectors for a link without common documents."""


@dataclass(frozen=True)
class Link:
    """A pair of matching topics of two results, or a topic without a match.

    `kind` is "continued", "split", "merged", "regrouped", "gone" or "new". `shared` counts common
    documents, `share_of_old` and `share_of_new` their shares, and `similarity` is the Jaccard index
    of the documents, or the cosine of the mean vectors.
    """

    kind: str
    old: int
    new: int
    shared: int = 0
    share_of_old: float = np.nan
    share_of_new: float = np.nan
    similarity: float = np.nan


@dataclass(frozen=True, repr=False)
class Lineage(Displayed):
    """Links between the topics of two results."""

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
        """Tabulate the links: kind, both topics and labels, and what they have in common."""
        names = [field.name for field in fields(Link)]
        frame = pd.DataFrame([asdict(link) for link in self.links], columns=names)
        for place, side, labels in ((3, "old", self.old_labels), (4, "new", self.new_labels)):
            column = [labels[topic] if topic >= 0 else "" for topic in frame[side].tolist()]
            frame.insert(place, f"{side}_label", column)
        return frame


def lineage(old: TopicResult, new: TopicResult) -> Lineage:
    """Link the topics of a result to those of another.

    Two topics are linked if at least half of the common documents of one are in the other. Results
    without common documents link a topic to the topic with the most similar mean vector, from a
    cosine of 0.7. One topic linked to one is "continued", one to several "split", several to one
    "merged", several to several "regrouped"; a topic without a link is "gone" or "new".

    Parameters
    ----------
    old, new : TopicResult
        The order determines the kinds: a split in one direction is a merge in the other.

    Returns
    -------
    Lineage

    Raises
    ------
    InputError
        If the results have neither common documents nor the same encoder.

    References
    ----------
    Spiliopoulou et al. (2006), "MONIC: modeling and monitoring cluster transitions".
    """
    position = find_documents(new.documents.hashes, old.documents.hashes)
    n_shared = int((position >= 0).sum())
    labels = (tuple(topic.label for topic in result.topics) for result in (old, new))
    if n_shared:
        return Lineage(_links_by_documents(old, new, position), "documents", n_shared, *labels)
    if reason := incomparable(old, new):
        expected = "a result with common documents or with the same encoder"
        raise InputError("new", expected, found=f"no common documents, and {reason}")
    similarity = _centroid_cosines(old, new)
    linked = np.zeros(similarity.shape, dtype=np.bool_)
    if similarity.size:
        linked[np.arange(len(similarity)), similarity.argmax(axis=1)] = True
        linked[similarity.argmax(axis=0), np.arange(similarity.shape[1])] = True
    links = _links(linked & (similarity >= MIN_SIMILARITY), similarity=similarity)
    return Lineage(links, "centroids", n_shared, *labels)


def incomparable(one: TopicResult, other: TopicResult) -> str:
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


def _links_by_documents(
    old: TopicResult, new: TopicResult, position: Int64Array
) -> tuple[Link, ...]:
    """Link topics by common documents; `position` (n_old,) is that of old documents in new."""
    both = np.flatnonzero(position >= 0)
    # The label of noise, -1, is the last row and column.
    counts = np.zeros((old.n_topics + 1, new.n_topics + 1), dtype=np.int64)
    np.add.at(counts, (old.clustering.labels[both], new.clustering.labels[position[both]]), 1)
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
    """Return the cosines of the topics' mean vectors, (n_topics_old, n_topics_new)."""
    sums = []
    for one in (old, new):
        labels, n_topics = one.clustering.labels, len(one.clustering.persistence)
        sums.append(centroids(one.embeddings, labels, n_topics, one.documents.weights))
    return cosines(*sums)


def _links(linked: BoolArray, **figures: npt.NDArray[Any]) -> tuple[Link, ...]:
    """Return the links of pairs with their figures; connected components give the kinds."""
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
        successors = np.flatnonzero(linked[i]).tolist()
        links += [
            Link(kind, i, j, **{name: values[i, j].item() for name, values in figures.items()})
            for j in successors
        ] or [Link("gone", i, NOISE)]
    links += [Link("new", NOISE, j) for j in np.flatnonzero(~linked.any(axis=0)).tolist()]
    return tuple(links)


GAP = 0.1
"""Gap between two maps side by side, as a share of the width of the first."""


def combine(results: Sequence[TopicResult], *, min_similarity: float = 0.7) -> TopicResult:
    """Combine results of one encoder on different corpora.

    Two topics are merged if their mean vectors are nearest to each other, with a cosine of at least
    `min_similarity`. Results are added one after the other. Topics are numbered by size and
    described by the terms of all documents, with the settings of the first result; names given by
    users stay. On the map later results are to the right of earlier ones.

    Parameters
    ----------
    results : sequence of TopicResult
        Two or more. A text in several results keeps its topic in the first result that has one.
    min_similarity : float
        Smallest cosine of the mean vectors of topics that become one.

    Returns
    -------
    TopicResult
        With a new neighbor graph of all documents, and without a density hierarchy.

    Raises
    ------
    InputError
        If there are fewer than two results, their vectors cannot be compared, one was shared
        without its texts, or a parameter is invalid.
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
        parameters={"n_results": len(results), "min_similarity": float(min_similarity)},
        message=f"{len(results)} results were combined. {sentences}",
        follows=np.arange(first.n_topics),
        graph=spread_graph(unique_graph, unique),
        term_counts=counts,
        map=whole.map,
        decisions=(*earlier.values(), *decisions),
    )


def match_topics(one: TopicResult, other: TopicResult, min_similarity: float) -> Int32Array:
    """Return the matching topic of each topic of the other result, (n_topics,), or -1."""
    similarity = _centroid_cosines(one, other)
    matches = np.full(similarity.shape[1], NOISE, dtype=np.int32)
    if similarity.size:
        nearest, back = similarity.argmax(axis=0), similarity.argmax(axis=1)
        others = np.arange(similarity.shape[1])
        # Rounding may put the cosine of a topic with itself below one.
        mutual = (back[nearest] == others) & (similarity[nearest, others] >= min_similarity - 1e-9)
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
        reason = incomparable(first, other)
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
