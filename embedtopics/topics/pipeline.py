"""The pipeline: corpus -> result, stage after stage, each timed and each saying what it decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._background import in_background
from embedtopics._memory import peak_memory
from embedtopics._versions import package_versions
from embedtopics.clustering import cluster
from embedtopics.corpus import Corpus, require_text
from embedtopics.encoders import language_warning
from embedtopics.errors import InputError
from embedtopics.neighbors import build_graph
from embedtopics.protocols import (
    Clusterer,
    Encoder,
    FloatArray,
    Int32Array,
    Reducer,
    TermWeighting,
)
from embedtopics.reduction import (
    Springs,
    first_components,
    fuzzy_graph,
    layout,
    principal_start,
    springs_of,
)
from embedtopics.results import (
    Clustering,
    DistinctDocuments,
    LanguageShares,
    NeighborGraph,
    SpanningTree,
    TermCounts,
    TopicResult,
)
from embedtopics.terms import tokenize, without_subject
from embedtopics.topics._log import (
    Log,
    choose_languages,
    note_corpus,
    note_encoding,
    note_graph,
    note_terms,
    note_topics,
    note_without_vector,
)
from embedtopics.topics.describe import TermSettings, count_corpus_terms, describe_topics
from embedtopics.topics.memberships import join
from embedtopics.topics.places import Places, find_places, spread_graph
from embedtopics.topics.resolutions import Cores, NotEnoughTopics, Resolution, choose_cores
from embedtopics.topics.vectors import GIVEN, describe_encoder, encode_documents, given_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Stages", "fit_topics"]

MAP_MIN_DIST = 0.1
"""Distance on the map under which documents need not be drawn closer, so that points of a
dense topic stay apart; for clustering it is 0."""


@dataclass(frozen=True)
class Stages:
    """Who does each stage, and with what parameters; "auto" is resolved in the fit.

    Without a `resolution` the clusterer's labels are taken as they are.
    """

    make_encoder: Callable[[Sequence[str]], Encoder]
    reducer: Reducer | None
    clusterer: Clusterer
    resolution: Resolution | None
    coverage: float | str
    weighting: TermWeighting
    terms: TermSettings
    n_neighbors: int
    n_components: int
    languages: Sequence[str] | str
    seed: int
    show_progress: bool | None


def fit_topics(
    corpus: Corpus, embeddings: npt.ArrayLike | None, stages: Stages, settings: Mapping[str, Any]
) -> TopicResult:
    """Find the topics of a corpus.

    Parameters
    ----------
    corpus : Corpus
    embeddings : array_like of shape (n_rows, n_dimensions) or None
        Vectors of the rows; None lets the encoder make them.
    stages : Stages
    settings : mapping
        Parameters to record in the result beside what is resolved here.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where no row holds text, or the embeddings do not fit the corpus.
    """
    log = Log()
    with log.stage("corpus"):
        require_text(corpus)
        documents = corpus.distinct()
        texts = corpus.document_texts()
        note_corpus(log, corpus, documents)
        languages = choose_languages(log, texts, stages.languages)
    with log.stage("encoder"):
        vectors, used = _embed(log, corpus, documents, texts, embeddings, stages, languages)
    with in_background(lambda _: tokenize(texts), runs_loops=False) as tokenized:
        with log.stage("neighbors"):
            places = find_places(vectors)
            near = build_graph(vectors, stages.n_neighbors, seed=stages.seed, rows=places.rows)
            graph = spread_graph(near, places)
            note_graph(log, graph, places, stages.n_neighbors)
        with log.stage("reduction"):
            drafts = _prepare(vectors, places, near, stages)
            coordinates = _coordinates(vectors, places, drafts, stages)
        with log.stage("terms"):
            tokens = tokenized()
    with in_background(drafts.draw_map, runs_loops=True) as drawn:
        with log.stage("clustering"):
            raw, tree = _cluster(stages.clusterer, coordinates, documents)
        with log.stage("terms"):
            counts = count_corpus_terms(tokens, raw.labels, stages.terms, languages)
            note_terms(log, counts.stop_words, counts.function_words, languages)
        with log.stage("clustering"):
            cores = _cores(log, raw, tree, stages, documents, counts)
            joined = join(
                graph, cores.clustering, cores.is_subject, documents.weights, stages.coverage
            )
            used.update(min_cluster_size=cores.min_cluster_size, least_ratio=joined.least_ratio)
            note_topics(log, cores, joined, documents)
        with log.stage("terms"):
            topics, topic_terms = describe_topics(
                counts, vectors, joined.clustering, documents, stages.weighting, stages.terms,
                languages,
            )  # fmt: skip
        with log.stage("reduction"):
            positions = places.spread(drawn())
    return TopicResult(
        corpus=corpus,
        documents=documents,
        embeddings=vectors,
        graph=graph,
        coordinates=coordinates,
        map=positions,
        clustering=joined.clustering,
        memberships=joined.memberships,
        tokens=tokens,
        term_counts=counts,
        topic_terms=topic_terms,
        topics=topics,
        decisions=tuple(log.decisions),
        settings={**settings, **used, "languages": list(languages), "seed": stages.seed},
        versions=package_versions(),
        timings=log.timings,
        tree=tree,
        peak_memory=peak_memory(),
    )


def _embed(
    log: Log,
    corpus: Corpus,
    documents: DistinctDocuments,
    texts: Sequence[str],
    embeddings: npt.ArrayLike | None,
    stages: Stages,
    languages: tuple[str, ...],
) -> tuple[FloatArray, dict[str, Any]]:
    """Return the documents' unit vectors, given or made, and the settings they came from."""
    if embeddings is not None:
        vectors, n_conflicts = given_vectors(embeddings, corpus)
        log.note("encoder", "given", True, "The embeddings were given, not made here.")
        if n_conflicts:
            message = (
                f"{n_conflicts:,} texts that repeat were given different embeddings; one of them "
                "was taken for all rows of the text."
            )
            log.note("encoder", "conflicting_embeddings", n_conflicts, message)
        return vectors, {"encoder": GIVEN}
    encoder = stages.make_encoder(texts)
    shares = log.languages or LanguageShares(
        {code: 1 / len(languages) for code in languages}, len(texts)
    )
    warning = language_warning(encoder, shares)
    if warning is not None:
        log.decisions.append(warning)
    vectors, encoding = encode_documents(encoder, texts, documents.first_rows, stages.show_progress)
    if encoding is not None:
        note_encoding(log, encoding, getattr(encoder, "max_length", None))
        # Of an encoder that had nothing to do, nothing was loaded, and need not be.
        note: Any = encoding.n_cached < len(texts) and getattr(encoder, "runtime_note", None)
        if note:
            log.note("encoder", "runtime", "torch", f"{note}.")
    note_without_vector(log, vectors, documents)
    return vectors, describe_encoder(encoder)


@dataclass(frozen=True, eq=False)
class _Drafts:
    """What both layouts are drawn from."""

    springs: Springs
    start: FloatArray

    def draw_map(self, unwanted: Callable[[], bool]) -> FloatArray:
        """Lay the map out, on half of the threads, for other work goes on beside."""
        import numba

        return layout(
            self.springs, first_components(self.start, 2), min_dist=MAP_MIN_DIST,
            n_threads=max(1, numba.get_num_threads() // 2), stop=unwanted,
        )  # fmt: skip


def _prepare(vectors: FloatArray, places: Places, near: NeighborGraph, stages: Stages) -> _Drafts:
    springs = springs_of(fuzzy_graph(near), seed=stages.seed)
    start = principal_start(vectors, max(2, stages.n_components))
    return _Drafts(springs, places.of(start))


def _coordinates(
    vectors: FloatArray, places: Places, drafts: _Drafts, stages: Stages
) -> FloatArray:
    """Return the coordinates for clustering."""
    if stages.reducer is None:
        start = first_components(drafts.start, stages.n_components)
        return places.spread(layout(drafts.springs, start))
    made = np.asarray(stages.reducer.fit_transform(vectors.copy()))
    if made.ndim != 2 or len(made) != len(vectors) or not np.isfinite(made).all():
        raise InputError(
            f"a reducer must return one finite row a document ({len(vectors)}); "
            f"{type(stages.reducer).__name__} returned shape {made.shape}"
        )
    return np.ascontiguousarray(made, dtype=np.float32)


def _cluster(
    clusterer: Clusterer, coordinates: FloatArray, documents: DistinctDocuments
) -> tuple[Clustering, SpanningTree | None]:
    """Return what a clusterer finds, and its hierarchy where it has one of ours."""
    found = cluster(clusterer, coordinates, documents.weights)
    tree = getattr(clusterer, "tree_", None)
    return found, tree if isinstance(tree, SpanningTree) else None


def _cores(
    log: Log,
    raw: Clustering,
    tree: SpanningTree | None,
    stages: Stages,
    documents: DistinctDocuments,
    counts: TermCounts,
) -> Cores:
    """Return the dense cores of the topics, at the resolution that is wanted."""
    if tree is None or stages.resolution is None:
        is_subject = ~without_subject(counts, raw.labels, len(raw.persistence))
        return Cores(raw, is_subject, getattr(stages.clusterer, "min_cluster_size_", None))

    def without(labels: Int32Array, n_topics: int) -> npt.NDArray[np.bool_]:
        return without_subject(counts, labels, n_topics)

    try:
        return choose_cores(tree, documents.weights, stages.resolution, without)
    except NotEnoughTopics as error:
        # All the work is done; as many topics as there are serve better than none.
        most = error.best.n_subjects
        log.note("clustering", "n_topics", most, f"Fewer topics than wanted: {error}.")
        return error.best
