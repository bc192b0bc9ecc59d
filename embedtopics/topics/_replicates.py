"""A replicate: topics found anew in a random half of the documents, from the stored graph.

Nothing of the fit is kept but the graph and the settings. The layout starts from the half's own
principal components and draws other negatives, as a fit of the half would; only the search for
neighbours is spared, for a document's neighbours in the half are the first of its neighbours in
the whole that the half holds.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.clustering import DensityClusterer, spanning_tree
from embedtopics.errors import InputError
from embedtopics.neighbors import nearest
from embedtopics.neighbors.comparing import NOBODY, keep_nearest, no_neighbors, shorten
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.reduction import default_epochs, fuzzy_graph, layout, principal_start
from embedtopics.results import Guide, NeighborGraph, TermCounts, TopicResult
from embedtopics.topics.cores import NotEnoughTopics, Resolution
from embedtopics.topics.guidance.drawing import draw_together
from embedtopics.topics.guidance.guided_cores import cut_cores
from embedtopics.topics.guidance.settling import settle
from embedtopics.topics.recorded import refuse_without_texts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["NOT_HELD", "Recipe", "recipe_of", "replicate"]

NOT_HELD = -2
"""Label of a document that a replicate does not hold."""

SHARE = 0.5
"""Share of the documents in a replicate. What is computed from random halves varies about what is
computed from the whole as much as that varies from one collection to the next (the jackknife
that deletes half; Shao and Wu 1989). Larger shares would share more documents, and with them
more of what is an accident of this collection."""

EPOCHS = 0.5
"""Epochs of a replicate's layout, as a share of what a fit takes; the figures of replicates that
take as many differ by less than 0.03."""

SPARE_DEVIATIONS = 3.0
"""How many standard deviations more neighbours are listed than a half holds on average."""

ROWS_AT_ONCE = 2048
"""Documents whose candidates are held at a time."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """What all replicates of a result have in common.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
    weights : int64 ndarray of shape (n_documents,)
        Rows that share each document.
    lists : NeighborGraph
        More neighbours of each document than `k`, so that a half of them are enough; -1 fills
        lists that are short.
    k : int
        Neighbours of each document in a replicate.
    n_components : int
    words : TermCounts
        The single words alone.
    resolution : Resolution
        With the smallest size of a core in a replicate.
    coverage : float or "auto"
    guide : Guide or None
        Of the fit, which replicates obey too.
    """

    embeddings: FloatArray
    weights: Int64Array
    lists: NeighborGraph
    k: int
    n_components: int
    words: TermCounts
    resolution: Resolution
    coverage: float | str
    guide: Guide | None

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.embeddings)


def recipe_of(result: TopicResult) -> Recipe:
    """Read from a result how its topics were found.

    Raises
    ------
    InputError
        Where they were found by stages of the user's own, which the result does not hold, or in
        several fits, or it was shared without its texts.
    """
    settings = result.settings
    foreign = [name for name in ("reducer", "clusterer") if settings.get(name) is not None]
    if result.tree is None or foreign:
        what = " and ".join(foreign) or "labels"
        raise InputError(
            "stability repeats the default layout and clusterer on parts of the documents; here "
            f"the {what} came from elsewhere, several results were combined, or there is one "
            "document only: fit all documents with the default stages"
        )
    refuse_without_texts(result)  # a core without words of its own is no topic
    n_topics = settings.get("n_topics", "auto")
    if isinstance(n_topics, str):
        size = max(2, round(SHARE * settings["min_cluster_size"]))
        resolution = Resolution("auto", size)
    else:
        resolution = Resolution(n_topics)
    k = result.graph.k
    enough = math.ceil((k + SPARE_DEVIATIONS * math.sqrt(k * (1 - SHARE))) / SHARE)
    return Recipe(
        embeddings=result.embeddings,
        weights=result.documents.weights,
        lists=_widened(result.graph, result.embeddings, min(enough, len(result.embeddings) - 1)),
        k=min(k, _size_of_half(len(result.embeddings)) - 1),
        n_components=result.coordinates.shape[1],
        words=_single_words(result.term_counts),
        resolution=resolution,
        coverage=settings.get("coverage", "auto"),
        guide=result.guide,
    )


def replicate(recipe: Recipe, rng: np.random.Generator) -> Int32Array:
    """Find topics in a random half of the documents.

    Parameters
    ----------
    recipe : Recipe
    rng : numpy.random.Generator
        Draws the half and the seed of the layout.

    Returns
    -------
    int32 ndarray of shape (n_documents,)
        Topics, numbered by size; -1 in none, -2 where the document is not in the half.
    """
    n_documents = len(recipe)
    held = np.sort(rng.choice(n_documents, _size_of_half(n_documents), replace=False))
    seed = int(rng.integers(2**31))
    embeddings, weights = recipe.embeddings[held], recipe.weights[held]
    graph = _induced(recipe.lists, held, embeddings, recipe.k)
    start = principal_start(embeddings, recipe.n_components)
    n_epochs = round(EPOCHS * default_epochs(n_documents, recipe.n_components))
    fuzzy = fuzzy_graph(graph)
    guide = None if recipe.guide is None else recipe.guide.of(held)
    if guide is not None:
        fuzzy = draw_together(fuzzy, embeddings, guide, guide.groups, graph.k)
    coordinates = layout(fuzzy, start, seed=seed, n_epochs=n_epochs)
    tree = spanning_tree(coordinates, min_samples=DensityClusterer().min_samples, weights=weights)
    words = dataclasses.replace(recipe.words, counts=recipe.words.counts[held])

    try:
        cores = cut_cores(tree, weights, recipe.resolution, words, graph, guide)
    except NotEnoughTopics as error:
        cores = error.best
    joined = settle(graph, cores, weights, recipe.coverage, embeddings, guide)
    labels = np.full(n_documents, NOT_HELD, dtype=np.int32)
    labels[held] = joined.clustering.labels
    return labels


def _size_of_half(n_documents: int) -> int:
    return max(2, round(SHARE * n_documents))


def _single_words(counts: TermCounts) -> TermCounts:
    single = np.flatnonzero(counts.lengths == 1)
    return dataclasses.replace(
        counts,
        counts=counts.counts[:, single],
        terms=tuple(counts.terms[i] for i in single.tolist()),
        lengths=counts.lengths[single],
    )


def _widened(graph: NeighborGraph, embeddings: FloatArray, k: int) -> NeighborGraph:
    """List more neighbours of each document, from those of its neighbours and followers.

    Followers of a document are those that have it in their list; as many of them as it has
    neighbours are asked, the most similar first, because a hub may have thousands.
    """
    n_documents = len(graph)
    links = _links(graph)
    found = no_neighbors(n_documents, k)
    short = shorten(embeddings)
    everyone = np.arange(n_documents)
    for begin in range(0, n_documents, ROWS_AT_ONCE):
        part = slice(begin, min(begin + ROWS_AT_ONCE, n_documents))
        near = links[part]
        reached = (near @ links + near).tocsr()
        n_reached = np.diff(reached.indptr)
        candidates = np.full((len(n_reached), int(n_reached.max())), NOBODY, dtype=np.int32)
        candidates[np.arange(candidates.shape[1]) < n_reached[:, None]] = reached.indices
        keep_nearest(
            (found[0][part], found[1][part]), embeddings[part], embeddings, candidates,
            itself=everyone[part], short=(short.take(part), short),
        )  # fmt: skip
    return NeighborGraph(*found, graph.method, graph.recall)


def _links(graph: NeighborGraph) -> csr_matrix:
    """Link documents to their neighbours and to the most similar of their followers."""
    from scipy.sparse import csr_matrix

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
    lists: NeighborGraph, held: Int64Array, embeddings: FloatArray, k: int
) -> NeighborGraph:
    """Return the graph of the documents held, from the first of those listed that are held."""
    number = np.full(len(lists) + 1, NOBODY, dtype=np.int32)  # the last is for short lists
    number[held] = np.arange(len(held), dtype=np.int32)
    near = number[lists.indices[held]]
    first = np.argsort(near == NOBODY, axis=1, kind="stable")[:, :k]
    indices = np.take_along_axis(near, first, axis=1)
    similarities = np.take_along_axis(lists.similarities[held], first, axis=1)
    short = np.flatnonzero(indices[:, -1] == NOBODY)
    if len(short):
        found, similar = nearest(embeddings[short], embeddings, k + 1)
        others = np.argsort(found == short[:, None], axis=1, kind="stable")[:, :k]
        indices[short] = np.take_along_axis(found, others, axis=1)
        similarities[short] = np.take_along_axis(similar, others, axis=1)
    return NeighborGraph(indices, np.clip(similarities, -1.0, 1.0), lists.method, lists.recall)
