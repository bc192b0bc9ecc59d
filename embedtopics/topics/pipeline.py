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
from embedtopics.encoders import describe_encoder, language_warning
from embedtopics.errors import InputError
from embedtopics.neighbors import build_graph
from embedtopics.protocols import (
    Clusterer,
    Encoder,
    FloatArray,
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
    Guide,
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
from embedtopics.topics.cores import Cores, NotEnoughTopics, Resolution
from embedtopics.topics.describe import TermSettings, count_corpus_terms, describe_topics
from embedtopics.topics.guidance import Guidance, Material
from embedtopics.topics.guidance.drawing import draw_together, groups_of_places
from embedtopics.topics.guidance.guided_cores import adopt_cores, check_room, cut_cores
from embedtopics.topics.guidance.settling import named_topics, outcome, settle
from embedtopics.topics.memberships import Joined
from embedtopics.topics.places import Places, find_places, spread_graph
from embedtopics.topics.recorded import GIVEN
from embedtopics.topics.vectors import encode_documents, encoder_of_given, given_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Stages", "fit_topics"]

MAP_MIN_DIST = 0.1
"""Distance on the map under which documents need not be drawn closer, so that points of a
dense topic stay apart; for clustering it is 0."""


@dataclass(frozen=True)
class Stages:
    """Who does each stage, and with what parameters; "auto" is resolved in the fit.

    Without a `resolution` the clusterer's labels are taken as they are. `has_encoder` tells
    whether the caller named who encodes, where embeddings are given.
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
    guidance: Guidance | None = None
    has_encoder: bool = True


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
        vectors, used, encode = _embed(log, corpus, documents, texts, embeddings, stages, languages)
    with in_background(lambda _: tokenize(texts), runs_loops=False) as split:
        with log.stage("neighbors"):
            places, near, graph = _find_neighbors(log, vectors, stages)
        with log.stage("clustering"):
            guide = _ask(log, stages, Material(corpus, documents, vectors, graph, split, encode))
        with log.stage("reduction"):
            drafts = _prepare(vectors, places, near, stages, guide)
            coordinates = _coordinates(vectors, places, drafts, stages, guide)
        with log.stage("terms"):
            tokens = split()
    with in_background(drafts.draw_map, runs_loops=True) as drawn:
        with log.stage("clustering"):
            raw, tree = _cluster(stages.clusterer, coordinates, documents, guide)
        with log.stage("terms"):
            counts = count_corpus_terms(tokens, raw.labels, stages.terms, languages)
            note_terms(log, counts.stop_words, counts.function_words, languages)
        with log.stage("clustering"):
            cores = _cores(log, raw, tree, stages, documents, counts, graph, guide)
            joined = _join(log, cores, graph, vectors, documents, stages, guide)
            used.update(min_cluster_size=cores.min_cluster_size, least_ratio=joined.least_ratio)
        with log.stage("terms"):
            topics, topic_terms = describe_topics(
                counts, vectors, joined.clustering, documents, stages.weighting, stages.terms,
                languages,
            )  # fmt: skip
            topics = named_topics(topics, joined.clustering.labels, documents.weights, guide)
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
        guide=guide,
    )


def _embed(
    log: Log,
    corpus: Corpus,
    documents: DistinctDocuments,
    texts: Sequence[str],
    embeddings: npt.ArrayLike | None,
    stages: Stages,
    languages: tuple[str, ...],
) -> tuple[FloatArray, dict[str, Any], Callable[[Sequence[str]], FloatArray]]:
    """Return the documents' unit vectors, the settings they came from, and who makes others."""
    if embeddings is not None:
        vectors, n_conflicts = given_vectors(embeddings, corpus)
        log.note("encoder", "given", True, "The embeddings were given, not made here.")
        if n_conflicts:
            message = (
                f"{n_conflicts:,} texts that repeat were given different embeddings; one of them "
                "was taken for all rows of the text."
            )
            log.note("encoder", "conflicting_embeddings", n_conflicts, message)
        return (
            vectors,
            {"encoder": GIVEN},
            _encode_like(
                lambda: encoder_of_given(stages.make_encoder, stages.has_encoder, vectors, texts)
            ),
        )
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
    return vectors, describe_encoder(encoder), _encode_like(lambda: encoder)


def _find_neighbors(
    log: Log, vectors: FloatArray, stages: Stages
) -> tuple[Places, NeighborGraph, NeighborGraph]:
    """Return the places of the documents, and the neighbours of places and of documents."""
    places = find_places(vectors)
    near = build_graph(vectors, stages.n_neighbors, seed=stages.seed, rows=places.rows)
    graph = spread_graph(near, places)
    note_graph(log, graph, places, stages.n_neighbors)
    return places, near, graph


def _encode_like(
    make_encoder: Callable[[], Encoder],
) -> Callable[[Sequence[str]], FloatArray]:
    """Return a function that turns texts into unit vectors, of an encoder made when needed."""

    def encode(wanted: Sequence[str]) -> FloatArray:
        encoder = make_encoder()
        plain = getattr(encoder, "uncached", encoder)
        return encode_documents(plain, wanted, np.arange(len(wanted)), False)[0]

    return encode


def _ask(log: Log, stages: Stages, material: Material) -> Guide | None:
    """Return what the caller wants the topics to be like."""
    if stages.guidance is None:
        return None
    guide, decisions = stages.guidance.prepare(material)
    if guide.groups.shape != (len(material),):
        raise InputError(
            f"a guidance must return one group a document, shape ({len(material)},); "
            f"{type(stages.guidance).__name__} returned shape {guide.groups.shape}"
        )
    log.decisions.extend(decisions)
    check_room(guide, stages.resolution, stages.coverage)
    return guide


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


def _prepare(
    vectors: FloatArray, places: Places, near: NeighborGraph, stages: Stages, guide: Guide | None
) -> _Drafts:
    fuzzy = fuzzy_graph(near)
    if guide is not None:
        groups = groups_of_places(guide.groups, places.of_document, len(places.first))
        fuzzy = draw_together(fuzzy, places.of(vectors), guide, groups, near.k)
    springs = springs_of(fuzzy, seed=stages.seed)
    start = principal_start(vectors, max(2, stages.n_components))
    return _Drafts(springs, places.of(start))


def _coordinates(
    vectors: FloatArray, places: Places, drafts: _Drafts, stages: Stages, guide: Guide | None
) -> FloatArray:
    """Return the coordinates for clustering; a reducer of the user's own is told the groups."""
    if stages.reducer is None:
        start = first_components(drafts.start, stages.n_components)
        return places.spread(layout(drafts.springs, start))
    known = () if guide is None or not guide.draws else (guide.groups.copy(),)
    made = np.asarray(stages.reducer.fit_transform(vectors.copy(), *known))
    if made.ndim != 2 or len(made) != len(vectors) or not np.isfinite(made).all():
        raise InputError(
            f"a reducer must return one finite row a document ({len(vectors)}); "
            f"{type(stages.reducer).__name__} returned shape {made.shape}"
        )
    return np.ascontiguousarray(made, dtype=np.float32)


def _cluster(
    clusterer: Clusterer,
    coordinates: FloatArray,
    documents: DistinctDocuments,
    guide: Guide | None,
) -> tuple[Clustering, SpanningTree | None]:
    """Return what a clusterer finds, and its hierarchy where it has one of ours.

    Where the topics are all given, there is nothing to find.
    """
    if guide is not None and guide.is_complete:
        n_topics = len(guide.names)
        return Clustering(guide.groups, guide.strengths, np.full(n_topics, np.nan)), None
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
    graph: NeighborGraph,
    guide: Guide | None,
) -> Cores:
    """Return the dense cores of the topics, at the resolution that is wanted."""
    if tree is None or stages.resolution is None:
        is_subject = ~without_subject(counts, raw.labels, len(raw.persistence))
        size = getattr(stages.clusterer, "min_cluster_size_", None)
        return adopt_cores(Cores(raw, is_subject, size), documents.weights, graph, guide)
    try:
        return cut_cores(tree, documents.weights, stages.resolution, counts, graph, guide)
    except NotEnoughTopics as error:
        # All the work is done; as many topics as there are serve better than none.
        most = error.best.n_subjects
        log.note("clustering", "n_topics", most, f"Fewer topics than wanted: {error}.")
        return error.best


def _join(
    log: Log,
    cores: Cores,
    graph: NeighborGraph,
    vectors: FloatArray,
    documents: DistinctDocuments,
    stages: Stages,
    guide: Guide | None,
) -> Joined:
    """Let documents join the cores, and say who did not and what became of the guidance."""
    joined = settle(graph, cores, documents.weights, stages.coverage, vectors, guide)
    note_topics(log, cores, joined, documents)
    log.decisions.extend(outcome(guide, joined, documents))
    return joined
