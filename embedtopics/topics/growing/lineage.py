"""Which topics of one result became which of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results import NOISE, Lineage, Link, TopicResult
from embedtopics.topics.assign import find_documents
from embedtopics.topics.growing.centroids import centroids, cosines

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["comparable", "lineage"]

HALF = 0.5
"""Share of a topic's documents from which it hangs together with another: more than one topic
cannot have more than half of them."""

ALIKE = {"centroids": 0.7, "terms": 0.3}
"""Similarity from which topics without common documents hang together."""

WAYS = ("auto", "documents", "centroids", "terms")

Float64Array = npt.NDArray[np.float64]


def lineage(
    old: TopicResult, new: TopicResult, *, by: str = "auto", min_similarity: float | None = None
) -> Lineage:
    """Tell which topics of a result became which of another.

    Two topics hang together if at least half of the documents of one are in the other, of those
    documents that both results hold. An old topic that hangs together with one new topic, and that
    with no other, is continued; with several it was split; several old ones in one were merged;
    what hangs together with nothing is gone, or new.

    Parameters
    ----------
    old, new : TopicResult
        In which order does not matter but for the names: what was split one way was merged the
        other way.
    by : {"auto", "documents", "centroids", "terms"}
        "auto" compares documents where the results have some in common, by their content; else the
        mean vectors of topics, where both come from one encoder; else their term weights. Of the
        latter two, a topic hangs together with the one most like it.
    min_similarity : float, optional
        Cosine from which topics hang together, by mean vectors (0.7) or terms (0.3).

    Returns
    -------
    Lineage

    Raises
    ------
    InputError
        Where the results cannot be compared in the way that is wanted.

    References
    ----------
    Spiliopoulou, Ntoutsi, Theodoridis and Schult (2006), "MONIC: modeling and monitoring cluster
    transitions": topics are matched by the share of their common documents, one half at least.
    """
    if by not in WAYS:
        raise InputError(f"by must be one of {', '.join(WAYS)}; got {by!r}")
    if min_similarity is not None and not 0.0 <= float(min_similarity) <= 1.0:
        raise InputError(f"min_similarity must be from 0 to 1; got {min_similarity!r}")
    place = find_documents(new.documents.hashes, old.documents.hashes)
    n_shared = int((place >= 0).sum())
    reason = comparable(old, new)
    if by == "auto":
        by = "documents" if n_shared else "terms" if reason else "centroids"
    if by == "documents":
        if not n_shared:
            raise InputError(
                'the results have no document in common; compare them by="centroids" or by="terms"'
            )
        shared = _shared(old, new, place)
        forth, back = _shares(shared)
        linked = (forth >= HALF) | (back >= HALF)
        sizes = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0, keepdims=True) - shared
        inside = shared[:-1, :-1]
        alike = np.divide(
            inside, sizes[:-1, :-1], out=np.zeros(inside.shape), where=sizes[:-1, :-1] > 0
        )
        return _lineage(old, new, by, n_shared, linked, alike, (inside, forth, back))
    if by == "centroids" and reason:
        raise InputError(f'topics cannot be compared by="centroids": {reason}; take by="terms"')
    alike = _alike_by_centroids(old, new) if by == "centroids" else _alike_by_terms(old, new)
    linked = _best(alike, ALIKE[by] if min_similarity is None else float(min_similarity))
    unknown = np.full(alike.shape, np.nan)
    nothing = np.zeros(alike.shape, dtype=np.int64)
    return _lineage(old, new, by, n_shared, linked, alike, (nothing, unknown, unknown))


def comparable(one: TopicResult, other: TopicResult) -> str:
    """Return why the vectors of two results cannot be compared; "" where they can.

    Vectors that were given, whose encoder is not known, are taken for comparable if they are of one
    width.
    """
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


def _shared(old: TopicResult, new: TopicResult, place: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count the documents in each pair of topics; the last row and column are none."""
    both = np.flatnonzero(place >= 0)
    # The label of noise, -1, is the last row.
    rows, columns = old.clustering.labels[both], new.clustering.labels[place[both]]
    counts = np.zeros((old.n_topics + 1, new.n_topics + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    return counts


def _shares(shared: npt.NDArray[np.int64]) -> tuple[Float64Array, Float64Array]:
    """Return the shares of each old topic, and of each new one, that each pair holds."""
    inside = shared[:-1, :-1]
    held = [shared[:-1].sum(axis=1)[:, None], shared[:, :-1].sum(axis=0)[None, :]]
    forth, back = (
        np.divide(inside, total, out=np.full(inside.shape, np.nan), where=total > 0)
        for total in held
    )
    return forth, back


def _alike_by_centroids(old: TopicResult, new: TopicResult) -> Float64Array:
    sums = [
        centroids(one.embeddings, one.clustering.labels, one.n_topics, one.documents.weights)
        for one in (old, new)
    ]
    return cosines(*sums)


def _alike_by_terms(old: TopicResult, new: TopicResult) -> Float64Array:
    """Return the cosines of the topics' term weights, terms known by their words."""
    from scipy.sparse import csr_matrix

    number = {term: place for place, term in enumerate(old.term_counts.terms)}
    columns = np.array([number.get(term, -1) for term in new.term_counts.terms], dtype=np.int64)
    known = np.flatnonzero(columns >= 0)
    move = csr_matrix(
        (np.ones(len(known)), (known, columns[known])), shape=(len(columns), len(number))
    )
    products = np.asarray((old.topic_terms @ (new.topic_terms @ move).T).todense())
    lengths = _length(old.topic_terms)[:, None] * _length(new.topic_terms)
    alike = np.zeros(products.shape)
    np.divide(products, lengths, out=alike, where=lengths > 0)
    return alike


def _length(rows: csr_matrix) -> Float64Array:
    squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64)
    return np.asarray(np.sqrt(squares.ravel()))


def _best(alike: Float64Array, least: float) -> npt.NDArray[np.bool_]:
    """Link each topic with the one most like it, if it is enough."""
    linked = np.zeros(alike.shape, dtype=np.bool_)
    if alike.size:
        linked[np.arange(len(alike)), alike.argmax(axis=1)] = True
        linked[alike.argmax(axis=0), np.arange(alike.shape[1])] = True
    return linked & (alike >= least)


def _lineage(
    old: TopicResult,
    new: TopicResult,
    by: str,
    n_shared: int,
    linked: npt.NDArray[np.bool_],
    alike: Float64Array,
    figures: tuple[npt.NDArray[np.int64], Float64Array, Float64Array],
) -> Lineage:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_old, n_new = linked.shape
    rows, columns = np.nonzero(linked)
    size = n_old + n_new
    graph = coo_matrix((np.ones(len(rows)), (rows, n_old + columns)), shape=(size, size))
    part = connected_components(graph, directed=False)[1] if size else np.empty(0, dtype=int)
    n_olds = np.bincount(part[:n_old], minlength=size)
    n_news = np.bincount(part[n_old:], minlength=size)
    shared, forth, back = figures
    links = []
    for i in range(n_old):
        heirs = np.flatnonzero(linked[i]).tolist()
        kind = _kind(int(n_olds[part[i]]), int(n_news[part[i]]))
        links += [
            Link(kind, i, j, int(shared[i, j]), float(forth[i, j]), float(back[i, j]),
                 float(alike[i, j]))
            for j in heirs
        ] or [Link("gone", i, NOISE, 0, np.nan, np.nan, np.nan)]  # fmt: skip
    for j in np.flatnonzero(~linked.any(axis=0)).tolist():
        links.append(Link("new", NOISE, j, 0, np.nan, np.nan, np.nan))
    labels = (tuple(topic.label for topic in result.topics) for result in (old, new))
    return Lineage(tuple(links), by, n_shared, *labels)


def _kind(n_old: int, n_new: int) -> str:
    if n_old == 1:
        return "continued" if n_new == 1 else "split"
    return "merged" if n_new == 1 else "regrouped"
