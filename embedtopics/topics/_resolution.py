"""Other resolutions of a result, and the recurrence of its topics in random halves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import progress_bar
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering._density import DensityClusterer
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import Contingency
from embedtopics.neighbors._approximate import NOBODY, keep_nearest, no_neighbors, quantize
from embedtopics.neighbors._graph import nearest
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array, RandomState
from embedtopics.reduction._components import leading, principal_start, smooth
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.terms.results import TermCounts
from embedtopics.topics._clusters import ClusterTree, NotEnoughTopics, Resolution, cluster_tree
from embedtopics.topics._describe import describe_again, refuse_without_texts
from embedtopics.topics._propagation import assign_outliers, checked_coverage
from embedtopics.topics._relabel import carry_names, edit_of, same_topics
from embedtopics.topics._repetition import is_repetitive
from embedtopics.topics._vectors import members, unique_vectors_of
from embedtopics.topics.constraints._apply import constrained_graph, named_topics
from embedtopics.topics.naming._name_scores import rescored
from embedtopics.topics.results import Stability, TopicConstraints, TopicResult

# A replicate: the topics of a random half of the documents, with the settings of the fit. A
# document's neighbors there are its first neighbors in the whole that are in the half.

Replicate = TypeVar("Replicate")

NOT_DRAWN = -2
"""Label of a document outside a replicate."""

SHARE = 0.5
"""Share of the documents in a replicate. Random halves vary around the whole as much as the whole
varies between collections (delete-half jackknife; Shao and Wu 1989). Larger shares would have more
of the accidents of this collection in common."""

SPARE_DEVIATIONS = 3.0
"""Standard deviations added to the mean number of neighbors that a half must list."""

ROWS_AT_ONCE = 2048
"""Documents per block of candidates."""


@dataclass(frozen=True, eq=False)
class ReplicateRecipe:
    """What all replicates of a result have in common, by unique vector except `of_document`."""

    of_document: Int64Array
    embeddings: FloatArray
    weights: Int64Array
    lists: NeighborGraph
    k: int
    n_components: int
    words: TermCounts
    resolution: Resolution
    coverage: float | str
    constraints: TopicConstraints | None


def recipe_of(result: TopicResult) -> ReplicateRecipe:
    """Return the recipe of a result's topics."""
    settings = result.settings
    foreign = [name for name in ("reducer", "clusterer") if settings.get(name) is not None]
    if result.tree is None or foreign:
        origin = f"another {' and '.join(foreign)}" if foreign else "no density hierarchy"
        expected, remedy = "one of the default reducer and clusterer", "fit with the default stages"
        raise InputError("result", expected, remedy=remedy, found=origin)
    refuse_without_texts(result)  # the words decide which clusters are topics
    unique = unique_vectors_of(result)
    embeddings, first = unique.of(result.embeddings), unique.first
    # Single words decide whether a cluster is informative.
    counts = result.term_counts
    single = np.flatnonzero(counts.lengths == 1)
    words = dataclasses.replace(
        counts,
        counts=members(unique.of_document) @ counts.counts[:, single],
        terms=tuple(counts.terms[i] for i in single.tolist()),
        lengths=counts.lengths[single],
    )
    graph, constraints = result.graph, result.constraints
    indices = unique.of_document[graph.indices[first]].astype(np.int32)
    near = dataclasses.replace(graph, indices=indices, similarities=graph.similarities[first])
    k = near.k
    enough = math.ceil((k + SPARE_DEVIATIONS * math.sqrt(k * (1 - SHARE))) / SHARE)
    return ReplicateRecipe(
        of_document=unique.of_document,
        embeddings=embeddings,
        weights=np.bincount(unique.of_document, result.distinct.weights).astype(np.int64),
        lists=_widened(near, embeddings, min(enough, len(embeddings) - 1)),
        k=min(k, _size_of_half(len(embeddings)) - 1),
        n_components=result.coordinates.shape[1],
        words=words,
        resolution=Resolution(max(1, result.n_topics)),
        coverage=settings.get("coverage", "auto"),
        constraints=None if constraints is None else constraints.of(first),
    )


def replicate(recipe: ReplicateRecipe, rng: np.random.Generator) -> Int32Array:
    """Find topics in a random half of the unique vectors, shape (n_documents,)."""
    return next(replicate_at(recipe, rng, [recipe.resolution]))


def replicate_at(
    recipe: ReplicateRecipe, rng: np.random.Generator, resolutions: Sequence[Resolution]
) -> Iterator[Int32Array]:
    """Find topics in a random half at several resolutions, (n_documents,) each."""
    n_unique = len(recipe.embeddings)
    drawn = np.sort(rng.choice(n_unique, _size_of_half(n_unique), replace=False))
    embeddings = recipe.embeddings[drawn]
    weights = recipe.weights[drawn]

    graph = _induced(recipe.lists, drawn, embeddings, recipe.k)
    start = principal_start(embeddings, recipe.n_components)
    fuzzy = fuzzy_graph(graph)

    constraints = None if recipe.constraints is None else recipe.constraints.of(drawn)
    groups, pull = None, 0.0
    if constraints is not None:
        fuzzy = constrained_graph(fuzzy, embeddings, constraints, constraints.groups, graph.k)
        groups, pull = constraints.groups, constraints.attraction

    coordinates = start
    if not is_repetitive(weights):
        coordinates = smooth(fuzzy, start, groups=groups, pull=pull)

    n_samples = DensityClusterer().min_samples
    tree = spanning_tree(leading(coordinates), min_samples=n_samples)
    words = dataclasses.replace(recipe.words, counts=recipe.words.counts[drawn])
    clusters = cluster_tree(tree, coordinates, weights, words, graph, embeddings, constraints)

    for resolution in resolutions:
        try:
            cut = clusters.cut(resolution)
        except NotEnoughTopics as error:
            cut = error.best
        assigned = assign_outliers(graph, cut, weights, recipe.coverage, constraints)
        labels = np.full(n_unique, NOT_DRAWN, dtype=np.int32)
        labels[drawn] = assigned.clustering.labels
        yield labels[recipe.of_document]


def draw_replicates(
    result: TopicResult, n: int, seed: int, what: str, show_progress: bool | None
) -> list[Int32Array]:
    """Find topics in several random halves of the documents of a result."""
    recipe = recipe_of(result)

    def make(number: int) -> Int32Array:
        return replicate(recipe, np.random.default_rng([seed, number]))

    return side_by_side(make, n, what, show_progress)


def side_by_side(
    work: Callable[[int], Replicate], n: int, description: str, show_progress: bool | None
) -> list[Replicate]:
    """Make several replicates in parallel, each with one of Numba's threads."""
    import numba

    def work_alone(number: int) -> Replicate:
        numba.set_num_threads(1)  # for this thread
        return work(number)

    executor = ThreadPoolExecutor(numba.get_num_threads())
    replicates = []
    bar = progress_bar(total=n, unit="replicate", description=description, show=show_progress)
    try:
        with bar:
            for labels in executor.map(work_alone, range(n)):
                replicates.append(labels)
                bar.update()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    return replicates


def _size_of_half(n_documents: int) -> int:
    return max(2, round(SHARE * n_documents))


def _widened(graph: NeighborGraph, embeddings: FloatArray, k: int) -> NeighborGraph:
    """Return the graph with k neighbors per document, from neighbors of neighbors."""
    n_documents = len(graph)
    links = _links(graph)
    neighbors = no_neighbors(n_documents, k)
    codes = quantize(embeddings)
    rows = np.arange(n_documents)
    for begin in range(0, n_documents, ROWS_AT_ONCE):
        part = slice(begin, min(begin + ROWS_AT_ONCE, n_documents))
        near = links[part]
        reached = (near @ links + near).tocsr()
        n_reached = np.diff(reached.indptr)
        candidates = np.full((len(n_reached), int(n_reached.max())), NOBODY, dtype=np.int32)
        candidates[np.arange(candidates.shape[1]) < n_reached[:, None]] = reached.indices
        keep_nearest(
            (neighbors[0][part], neighbors[1][part]),
            embeddings[part],
            embeddings,
            candidates,
            exclude=rows[part],
            codes=(codes.take(part), codes),
        )
    return NeighborGraph(*neighbors, graph.method, graph.recall)


def _links(graph: NeighborGraph) -> csr_matrix:
    """Return links of documents to their neighbors and to their most similar followers."""
    n_documents, k = graph.indices.shape
    source = np.repeat(np.arange(n_documents, dtype=np.int64), k)
    target = graph.indices.ravel().astype(np.int64)
    order = np.lexsort((source, -graph.similarities.ravel(), target))
    n_followers = np.bincount(target, minlength=n_documents)
    place = np.arange(len(order)) - np.repeat(np.cumsum(n_followers) - n_followers, n_followers)
    asked = order[place < k]
    ends = (np.concatenate([source, target[asked]]), np.concatenate([target, source[asked]]))
    shape = (n_documents, n_documents)
    return csr_matrix((np.ones(len(ends[0]), dtype=np.float32), ends), shape=shape)


def _induced(
    lists: NeighborGraph, drawn: Int64Array, embeddings: FloatArray, k: int
) -> NeighborGraph:
    """Return the graph of the drawn documents, from their first drawn neighbors in the lists."""
    number = np.full(len(lists) + 1, NOBODY, dtype=np.int32)  # the last is for short lists
    number[drawn] = np.arange(len(drawn), dtype=np.int32)
    near = number[lists.indices[drawn]]
    first = np.argsort(near == NOBODY, axis=1, kind="stable")[:, :k]
    indices = np.take_along_axis(near, first, axis=1)
    similarities = np.take_along_axis(lists.similarities[drawn], first, axis=1)
    short = np.flatnonzero(indices[:, -1] == NOBODY)
    if len(short):
        nearest_rows, similar = nearest(embeddings[short], embeddings, k + 1)
        others = np.argsort(nearest_rows == short[:, None], axis=1, kind="stable")[:, :k]
        indices[short] = np.take_along_axis(nearest_rows, others, axis=1)
        similarities[short] = np.take_along_axis(similar, others, axis=1)
    return NeighborGraph(indices, np.clip(similarities, -1.0, 1.0), lists.method, lists.recall)


INTERVAL = (0.05, 0.95)


def with_stability(
    result: FittedTopics,
    n_replicates: int = 20,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> TopicResult:
    """Measure the recurrence of the topics in replicates.

    A replicate clusters a random half of the documents from the start, into as many topics. It uses
    only the graph of the fit: a topic that depends on a few documents does not recur.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
        A result of the default reducer and clusterer.
    n_replicates : int
        At least 1; an interval needs some twenty.
    random_state : int, numpy.random.Generator or None
        The same integer gives the same figures, bit for bit.
    show_progress : bool or None
        None shows progress in a terminal or a notebook.

    Returns
    -------
    TopicResult
        With `stability`, which tables, plots and the report show.

    Raises
    ------
    InputError
        If the result comes from another reducer or clusterer, or a parameter is invalid.

    Notes
    -----
    In two or three dimensions, topics recur to some degree even in evenly spread points, because
    any two divisions of a plane into regions overlap.

    References
    ----------
    Hennig (2007), "Cluster-wise assessment of cluster stability" (best Jaccard overlap in random
    subsets); Shao and Wu (1989), "A general theory for jackknife variance estimation" (why half);
    Hubert and Arabie (1985), "Comparing partitions" (the adjusted Rand index).

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> measured = et.topics.with_stability(model, n_replicates=5)
    >>> measured.stability
    Stability(4 topics, 5 replicates)
    >>> "recurrence" in et.topics.table(measured)
    True
    """
    result = result_of(result)
    checked_count(n_replicates, "n_replicates")
    seed = resolve_seed(random_state)
    replicates = draw_replicates(result, n_replicates, seed, "stability", show_progress)
    stability = compare(result.clustering.labels, replicates, result.distinct.weights, seed)
    return dataclasses.replace(result, stability=stability)


def compare(
    labels: Int32Array, replicates: Sequence[Int32Array], weights: Int64Array, seed: int = 0
) -> Stability:
    """Compare topics with those of replicates."""
    n_topics = int(labels.max(initial=NOISE)) + 1
    overlaps = np.empty((len(replicates), n_topics))
    by_chance = np.empty((len(replicates), n_topics))
    n_drawn = np.zeros(len(labels), dtype=np.int64)
    n_agreeing = np.zeros(len(labels), dtype=np.int64)
    for number, replicate_labels in enumerate(replicates):
        drawn = np.flatnonzero(replicate_labels != NOT_DRAWN)
        of_whole, of_part, weight = labels[drawn], replicate_labels[drawn], weights[drawn]
        overlaps[number], match = best_matches(of_whole, of_part, weight, n_topics)
        rng = np.random.default_rng([seed, number, len(drawn)])
        by_chance[number], _ = best_matches(of_whole, rng.permutation(of_part), weight, n_topics)
        n_drawn[drawn] += 1
        n_agreeing[drawn] += of_part == np.append(match, NOISE)[of_whole]
    agreement = np.full(len(labels), np.nan, dtype=np.float32)
    np.divide(n_agreeing, n_drawn, out=agreement, where=n_drawn > 0, casting="unsafe")
    low, high = _interval(overlaps)
    pairs = [adjusted_rand(one, other) for one, other in combinations(replicates, 2)]
    return Stability(
        recurrence=_mean(overlaps),
        low=low,
        high=high,
        agreement=agreement,
        adjusted_rand=np.array(pairs, dtype=np.float64),
        n_replicates=len(replicates),
        chance=_mean(by_chance),
    )


def best_matches(
    labels: Int32Array, others: Int32Array, weights: Int64Array, n_topics: int
) -> tuple[Float64Array, Int64Array]:
    """Return each topic's best Jaccard overlap with another one, or NaN, and that one, or -2."""
    n_others = int(others.max(initial=NOISE)) + 1
    # Noise is -1 and thus the last row and the last column.
    table = np.zeros((n_topics + 1, n_others + 1))
    np.add.at(table, (labels, others), weights)
    size, other_size = table[:n_topics].sum(axis=1), table[:, :n_others].sum(axis=0)
    shared = table[:n_topics, :n_others]
    union = size[:, None] + other_size - shared
    jaccard = np.zeros((n_topics, n_others + 1))  # one more column: there is always a maximum
    np.divide(shared, union, out=jaccard[:, :n_others], where=shared > 0)
    best = jaccard.max(axis=1)
    match = np.where(best > 0, jaccard.argmax(axis=1), NOT_DRAWN)
    return np.where(size > 0, best, np.nan), match.astype(np.int64)


def adjusted_rand(one: Int32Array, other: Int32Array) -> float:
    """Return the adjusted Rand index where either has a topic, with noise as a class, or 0."""
    compared = (one != NOT_DRAWN) & (other != NOT_DRAWN) & ((one != NOISE) | (other != NOISE))
    if not compared.any():
        return 0.0
    table = Contingency.of(one[compared], other[compared])
    return float(table.adjusted_rand(table.counts[None])[0])


def _mean(overlaps: Float64Array) -> Float64Array:
    """Return the mean of each column without NaN; NaN for a column of NaN."""
    mean: Float64Array = np.ma.masked_invalid(overlaps).mean(axis=0).filled(np.nan)
    return mean


def _interval(overlaps: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the interval that holds the next value nine times in ten (Weibull), by column."""
    bounds = np.full((2, overlaps.shape[1]), np.nan)
    for topic, column in enumerate(overlaps.T):
        values = column[~np.isnan(column)]
        if len(values):
            bounds[:, topic] = np.quantile(values, INTERVAL, method="weibull")
    return bounds[0], bounds[1]


def recluster(
    result: FittedTopics,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    coverage: float | str | None = None,
) -> TopicResult:
    """Cluster the same documents again, into another number of topics.

    The topics are another cut of the hierarchy of the fit: embeddings, graph and coordinates stay.

    Edits after the fit do not carry over to the new topics; `replay` repeats them. If all topics
    are the same as before, they keep their names. The message of the edit lists dropped names.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    n_topics : {"auto", "fine", "coarse"} or int
        An integer is met exactly; it includes topics named before the fit, which stay.
    min_cluster_size : "auto" or int
        Smallest number of texts in the dense group of a topic, instead of `n_topics`.
    coverage : "auto", float or None
        As in `TopicModel`; None keeps the coverage of the result.

    Returns
    -------
    TopicResult
        With new topics, memberships and term weights. It shares everything else with `result`.

    Raises
    ------
    InputError
        If the result has no hierarchy or not enough topics.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> twelve = et.topics.recluster(model, 12)
    >>> twelve.n_topics
    12
    >>> whole = et.topics.recluster(twelve, 12, coverage=1.0)
    >>> whole.n_topics, whole.coverage
    (12, 1.0)
    """
    result = result_of(result)
    clusters = clusters_of(result)
    return rescored(recut(result, clusters, n_topics, min_cluster_size, coverage), result)


def recut(
    result: TopicResult,
    clusters: ClusterTree,
    n_topics: int | str,
    min_cluster_size: int | str = "auto",
    coverage: Any = None,
) -> TopicResult:
    """Cut the clusters of a result at another resolution, without scores of the labels."""
    if coverage is None:
        coverage = result.settings.get("coverage", "auto")
    coverage = checked_coverage(coverage)
    resolution = Resolution(n_topics, min_cluster_size)
    weights, graph, constraints = result.distinct.weights, result.graph, result.constraints

    cut = clusters.cut(resolution)
    assigned = assign_outliers(graph, cut, weights, coverage, constraints)
    labels = assigned.clustering.labels

    topics, topic_terms = describe_again(result, assigned.clustering)
    same_topic = same_topics(result.clustering.labels, labels, len(topics))
    if len(topics) == result.n_topics and (same_topic != NOISE).all():
        origins = [result.topics[old] for old in same_topic.tolist()]
        topics = carry_names(topics, origins, same_topic != NOISE)
    topics = named_topics(topics, labels, weights, constraints)

    parameters: dict[str, Any] = {"n_topics": n_topics, "min_cluster_size": min_cluster_size}
    parameters["coverage"] = coverage
    settings = {**result.settings, **parameters, "min_cluster_size": cut.min_cluster_size}
    settings["min_margin"] = assigned.min_margin
    name = "n_topics" if min_cluster_size == "auto" else "min_cluster_size"
    message = f"cut at {name}={parameters[name]}, coverage={coverage}: {len(topics)} topics"

    names = {topic.name for topic in topics}
    lost = [topic.name for topic in result.topics if topic.is_named and topic.name not in names]
    if lost:
        message += f"; dropped names: {', '.join(lost)}"

    return replace(
        result,
        clustering=assigned.clustering,
        memberships=assigned.memberships,
        topics=topics,
        topic_terms=topic_terms,
        settings=settings,
        history=(*result.history, edit_of(result, "recluster", parameters, message)),
        stability=None,
    )


def clusters_of(result: TopicResult) -> ClusterTree:
    """Return the clusters of a result at every resolution."""
    if result.tree is None:
        expected = "one with a density hierarchy, of the default clusterer"
        remedy = "fit all documents with it, or merge topics with et.topics.merge"
        origin = "given labels, another clusterer, or one document"
        raise InputError("result", expected, remedy=remedy, found=origin)
    places, vectors, weights = result.coordinates, result.embeddings, result.distinct.weights
    counts, graph, constraints = result.term_counts, result.graph, result.constraints
    return cluster_tree(result.tree, places, weights, counts, graph, vectors, constraints)
