"""Which topics of one result became which of another."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_share
from embedtopics._utils.display import html_table
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.topics._assign import find_documents
from embedtopics.topics._vectors import centroids, cosines
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd


HALF = 0.5
"""Share of a topic's documents from which it is linked with another: more than one topic cannot
have more than half of them."""

MIN_SIMILARITY = {"centroids": 0.7, "terms": 0.3}
"""Similarity from which topics without common documents are linked."""

METHODS = ("auto", "documents", *MIN_SIMILARITY)


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
class Lineage:
    """Which topics of one result became which of another."""

    links: tuple[Link, ...]
    by: str
    n_shared: int
    old_labels: tuple[str, ...]
    new_labels: tuple[str, ...]

    def __repr__(self) -> str:
        kinds = Counter(link.kind for link in self.links)
        counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        return f"Lineage(links by {self.by}: {counts or 'none'})"

    def _repr_html_(self) -> str:
        return html_table(self.to_frame(), repr(self))

    def to_frame(self) -> pd.DataFrame:
        """Return a frame of the links: kind, old, new, their labels, what they have in common."""
        import pandas as pd

        names = [field.name for field in fields(Link)]
        frame = pd.DataFrame([asdict(link) for link in self.links], columns=names)
        for place, (side, labels) in enumerate(
            (("old", self.old_labels), ("new", self.new_labels))
        ):
            shown = [labels[topic] if topic >= 0 else "" for topic in frame[side].tolist()]
            frame.insert(3 + place, f"{side}_label", shown)
        return frame


def lineage(
    old: TopicResult, new: TopicResult, *, by: str = "auto", min_similarity: float | None = None
) -> Lineage:
    """Return which topics of a result became which of another.

    Two topics are linked if at least half of the documents of one are in the other, of those
    documents that both results hold. An old topic that is linked with one new topic, and that with
    no other, is continued; with several it was split; several old ones in one were merged; what is
    linked with nothing is gone, or new.

    Parameters
    ----------
    old, new : TopicResult
        Their order matters for the names alone: what was split one way was merged the other way.
    by : {"auto", "documents", "centroids", "terms"}
        "auto" compares documents where the results have some in common, by their content; else the
        mean vectors of topics, where both come from one encoder; else their term weights. By the
        latter two, a topic is linked with the one most similar to it.
    min_similarity : float, optional
        Cosine from which topics are linked, by mean vectors (0.7) or terms (0.3).

    Returns
    -------
    Lineage

    Raises
    ------
    InputError
        Where the results cannot be compared in the way that is asked for.

    References
    ----------
    Spiliopoulou, Ntoutsi, Theodoridis and Schult (2006), "MONIC: modeling and monitoring cluster
    transitions": topics are matched by the share of their common documents, one half at least.
    """
    if by not in METHODS:
        raise InputError("by", f"one of {', '.join(METHODS)}", by)
    if min_similarity is not None:
        checked_share(min_similarity, "min_similarity")
    place = find_documents(new.documents.hashes, old.documents.hashes)
    n_shared = int((place >= 0).sum())
    reason = incomparable(old, new)
    if by == "auto":
        by = "documents" if n_shared else "terms" if reason else "centroids"
    labels = (tuple(topic.label for topic in result.topics) for result in (old, new))
    if by == "documents":
        if not n_shared:
            remedy = "the results have no document in common"
            raise InputError("by", '"centroids" or "terms"', by, remedy)
        return Lineage(_links_by_documents(old, new, place), by, n_shared, *labels)
    if by == "centroids" and reason:
        raise InputError("by", '"terms"', by, reason)
    similarity = _centroid_cosines(old, new) if by == "centroids" else _term_cosines(old, new)
    least = MIN_SIMILARITY[by] if min_similarity is None else float(min_similarity)
    linked = np.zeros(similarity.shape, dtype=np.bool_)
    if similarity.size:
        linked[np.arange(len(similarity)), similarity.argmax(axis=1)] = True
        linked[similarity.argmax(axis=0), np.arange(similarity.shape[1])] = True
    links = _links(linked & (similarity >= least), similarity=similarity)
    return Lineage(links, by, n_shared, *labels)


def incomparable(one: TopicResult, other: TopicResult) -> str:
    """Return why the vectors of two results cannot be compared; "" where they can."""
    widths = one.embeddings.shape[1], other.embeddings.shape[1]
    if widths[0] != widths[1]:
        return f"their vectors have {widths[0]} and {widths[1]} dimensions"
    prints = [result.settings.get("encoder_fingerprint") for result in (one, other)]
    names = [result.settings.get("encoder", "unknown") for result in (one, other)]
    if None not in prints and prints[0] != prints[1]:
        return (
            f"their vectors come from different encoders ({names[0]} and {names[1]}, whose weights "
            "or settings differ)"
        )
    if (prints[0] is None) != (prints[1] is None):
        return f"of one the encoder is not known ({names[0]} and {names[1]})"
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
    sums = [
        centroids(one.embeddings, one.clustering.labels, one.n_topics, one.documents.weights)
        for one in (old, new)
    ]
    return cosines(*sums)


def _term_cosines(old: TopicResult, new: TopicResult) -> Float64Array:
    """Return the cosines of the topics' term weights, terms known by their words."""
    from scipy.sparse import csr_matrix

    number = {term: place for place, term in enumerate(old.term_counts.terms)}
    columns = np.array([number.get(term, -1) for term in new.term_counts.terms], dtype=np.int64)
    known = np.flatnonzero(columns >= 0)
    move = csr_matrix(
        (np.ones(len(known)), (known, columns[known])), shape=(len(columns), len(number))
    )
    products = np.asarray((old.topic_terms @ (new.topic_terms @ move).T).todense())
    of_old, of_new = (
        np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel())
        for rows in (old.topic_terms, new.topic_terms)
    )
    lengths = of_old[:, None] * of_new
    cosines: Float64Array = np.zeros(products.shape)
    np.divide(products, lengths, out=cosines, where=lengths > 0)
    return cosines


def _links(linked: BoolArray, **figures: npt.NDArray[Any]) -> tuple[Link, ...]:
    """Return the links of pairs, with figures of each; kinds follow from connected components."""
    from scipy.sparse import coo_matrix
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
