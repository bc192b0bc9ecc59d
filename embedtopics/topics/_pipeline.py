"""A fit from top to bottom: corpus -> vectors -> graph -> coordinates -> clusters -> topics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics._utils.display import spell_count
from embedtopics._utils.machine import in_background, package_versions
from embedtopics.clustering._density import cluster
from embedtopics.clustering._resolution import FEWEST
from embedtopics.clustering.results import Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.corpus._table_files import storable
from embedtopics.corpus.results import DistinctDocuments, LanguageShares
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import GIVEN, describe_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Clusterer, FloatArray, Reducer, TermWeighting
from embedtopics.reduction._components import first_components, leading, principal_start, smooth
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.reduction._layout import EdgeSchedule, edge_schedule, layout
from embedtopics.terms._languages import languages_in_order, main_languages
from embedtopics.terms._rules import choose_rules
from embedtopics.terms._tokens import FEW_BYTES
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics._clusters import (
    ClusterCut,
    NotEnoughTopics,
    Resolution,
    check_constraints,
    cluster_tree,
    constrain_cut,
)
from embedtopics.topics._describe import (
    TermSettings,
    count_corpus_terms,
    count_social_tokens,
    describe_topics,
    leakage_decisions,
    named_by_texts,
    tokenize_documents,
    without_boilerplate,
    without_subject,
)
from embedtopics.topics._fit_log import (
    FitLog,
    note_encoding,
    note_graph,
    note_terms,
    note_topics,
    note_without_vector,
)
from embedtopics.topics._propagation import OutlierAssignment, assign_outliers
from embedtopics.topics._repetition import MOST_COMPONENTS, is_repetitive, texts_to_learn
from embedtopics.topics._support import uninformative_topics
from embedtopics.topics._vectors import (
    UniqueVectors,
    encode_documents,
    encode_uncached,
    given_documents,
    merge_near_duplicates,
    spread_graph,
)
from embedtopics.topics.constraints._apply import (
    Constraint,
    FitContext,
    constrained_graph,
    groups_of_vectors,
    named_topics,
    outcome,
)
from embedtopics.topics.results import Topic, TopicConstraints, TopicResult

MAP_MIN_DIST = 0.1
"""Smallest distance on the map, so that points of a dense topic stay apart; 0 for clustering."""


@dataclass(frozen=True)
class Stages:
    """The objects of a fit's stages and their parameters; without a resolution, clusters stay."""

    make_encoder: Callable[[Sequence[str]], BaseEncoder]
    reducer: Reducer | None
    clusterer: Clusterer
    resolution: Resolution | None
    coverage: float | str
    weighting: TermWeighting
    terms: TermSettings
    n_neighbors: int
    n_components: int
    languages: Sequence[str] | str
    words: Any
    seed: int
    show_progress: bool | None
    constraints: Constraint | None = None
    has_encoder: bool = True


def fit_topics(
    corpus: Corpus, embeddings: npt.ArrayLike | None, stages: Stages, settings: Mapping[str, Any]
) -> TopicResult:
    """Find the topics of a corpus."""
    log = FitLog()
    with log.stage("corpus"):
        documents, texts = read_corpus(log, corpus)
        languages = choose_languages(log, texts, stages.languages)
        rules, decisions = choose_rules(stages.words, languages)
        log.decisions += decisions
    with in_background(lambda _: _compile_loops(texts)), log.stage("encoder"):
        vectors, used, encode = _encode(log, corpus, texts, embeddings, stages, languages)
    with in_background(
        lambda _: tokenize_documents(texts, rules, documents.first_rows.tolist())
    ) as wait_for_tokens:
        with log.stage("neighbors"):
            unique, near = merge_near_duplicates(vectors, texts, stages.n_neighbors, stages.seed)
            graph = spread_graph(near, unique)
            note_graph(log, graph, unique, stages.n_neighbors)
        context = FitContext(corpus, documents, texts, vectors, graph, wait_for_tokens, encode)
        with log.stage("reduction"):
            constraints = _prepare_constraints(log, context, stages)
            space = _reduce(context, stages, unique, near, constraints)
        with in_background(
            lambda stop: _draw_map(space.schedule, space.start, stop)
        ) as wait_for_map:
            with log.stage("clustering"):
                clusters = _cluster(context, stages, space.coordinates, constraints)
            with log.stage("terms"):
                tokens, counts = _count_terms(log, used, context, clusters, stages.terms, languages)
            with log.stage("topics"):
                cut = _cut(log, context, stages, clusters, counts, constraints)
                assigned = _assign(log, context, stages, cut, constraints)
                topics, topic_terms = _describe(
                    log, context, stages, assigned.clustering, counts, languages, constraints
                )
            with log.stage("map"):
                positions = unique.spread(wait_for_map())
    used |= {"min_cluster_size": cut.min_cluster_size, "min_margin": assigned.min_margin}
    result = TopicResult(
        corpus=corpus,
        distinct=documents,
        embeddings=vectors,
        graph=graph,
        coordinates=space.coordinates,
        map=positions,
        clustering=assigned.clustering,
        memberships=assigned.memberships,
        tokens=tokens,
        term_counts=counts,
        topic_terms=topic_terms,
        topics=topics,
        decisions=tuple(log.decisions),
        settings={**settings, **used, "languages": list(languages), "seed": stages.seed},
        versions=package_versions(),
        timings=log.timings,
        tree=clusters.tree,
        constraints=constraints,
    )
    with log.stage("labels"):
        return _with_scored_labels(result, encode)


def _compile_loops(texts: Sequence[str]) -> None:
    """Compile the loops of a fit, or read them from Numba's cache, while texts are encoded."""
    import embedtopics.clustering._kernels
    import embedtopics.neighbors._kernels
    import embedtopics.topics._kernels
    from embedtopics.reduction._kernels import move_chunks

    move_chunks(2, False)
    if sum(map(len, texts)) > FEW_BYTES:
        import embedtopics.terms._kernels  # noqa: F401


def _with_scored_labels(
    result: TopicResult, encode: Callable[[Sequence[str]], FloatArray]
) -> TopicResult:
    """Score how well labels separate texts; custom encoders may not encode labels."""
    if not isinstance(result.settings.get("encoder_settings"), dict):
        return result
    from embedtopics.topics.naming._name_scores import score_with

    return score_with(result, encode)


def _encode(
    log: FitLog,
    corpus: Corpus,
    texts: Sequence[str],
    embeddings: npt.ArrayLike | None,
    stages: Stages,
    languages: tuple[str, ...],
) -> tuple[FloatArray, dict[str, Any], Callable[[Sequence[str]], FloatArray]]:
    """Return the documents' unit vectors, the settings to record, and an encoder of other texts."""
    documents = corpus.distinct()

    if embeddings is not None:
        make_encoder = None
        if stages.has_encoder:
            make_encoder = partial(_make_encoder, stages, documents)
        vectors, encode, notes = given_documents(embeddings, corpus, texts, make_encoder)
        log.decisions += notes
        return vectors, {"encoder": GIVEN}, encode

    encoder = _make_encoder(stages, documents, texts)
    shares = log.languages or LanguageShares(
        {code: 1 / len(languages) for code in languages}, len(texts)
    )
    warning = language_warning(encoder, shares)
    if warning is not None:
        log.decisions.append(warning)
        warnings.warn(warning.message, stacklevel=2)

    vectors, encoding = encode_documents(encoder, texts, documents.first_rows, stages.show_progress)
    log.decisions += encoder.decisions
    note_encoding(log, encoding, encoder)
    note_without_vector(log, vectors, documents)
    return vectors, describe_encoder(encoder), lambda names: encode_uncached(encoder, names)


def _make_encoder(
    stages: Stages, documents: DistinctDocuments, texts: Sequence[str]
) -> BaseEncoder:
    """Make the encoder, which may learn from the texts."""
    return stages.make_encoder(texts_to_learn(texts, documents.weights))


def _prepare_constraints(
    log: FitLog, context: FitContext, stages: Stages
) -> TopicConstraints | None:
    """Return what the constraints require of the documents."""
    if stages.constraints is None:
        return None
    constraints, decisions = stages.constraints.prepare(context)
    log.decisions.extend(decisions)
    check_constraints(constraints, stages.resolution, stages.coverage)
    return constraints


class _Space(NamedTuple):
    """Coordinates to cluster, and the edges and start of the map's layout."""

    coordinates: FloatArray
    schedule: EdgeSchedule
    start: FloatArray


def _reduce(
    context: FitContext,
    stages: Stages,
    unique: UniqueVectors,
    unique_graph: NeighborGraph,
    constraints: TopicConstraints | None,
) -> _Space:
    """Compute coordinates: components smoothed over the graph, or those of a replaced reducer."""
    vectors = context.embeddings
    fuzzy = fuzzy_graph(unique_graph)
    groups = None
    pull = 0.0
    if constraints is not None:
        groups = groups_of_vectors(constraints.groups, unique.of_document, len(unique.first))
        of_unique = unique.of(vectors)
        pull = constraints.attraction
        fuzzy = constrained_graph(fuzzy, of_unique, constraints, groups, unique_graph.k)
    schedule = edge_schedule(fuzzy, seed=stages.seed)
    array, rows = unique.within(vectors)

    rows_with_vector = np.where(vectors.any(axis=1), context.documents.weights, 0)
    n_rows = np.bincount(unique.of_document, rows_with_vector).astype(np.int64)
    n_components = stages.n_components
    repeats = is_repetitive(n_rows)
    if repeats:
        n_components = min(len(n_rows), MOST_COMPONENTS)
    start = principal_start(array, max(2, n_components), rows)

    if stages.reducer is None:
        components = first_components(start, n_components)
        if not repeats:
            components = smooth(fuzzy, components, groups=groups, pull=pull)
        coordinates = unique.spread(components)
        return _Space(coordinates, schedule, start)

    # A replaced reducer gets the groups as `y`.
    y = []
    if constraints is not None and (constraints.attraction or constraints.separation):
        y = [constraints.groups.copy()]
    coordinates = np.asarray(stages.reducer.fit_transform(vectors.copy(), *y))
    is_rows = coordinates.ndim == 2 and len(coordinates) == len(vectors)
    if not is_rows or not np.isfinite(coordinates).all():
        expected = f"an object that returns one finite row per document ({len(vectors)})"
        shape = f"shape {coordinates.shape} from {type(stages.reducer).__name__}"
        raise InputError("reducer", expected, found=shape)

    return _Space(np.ascontiguousarray(coordinates, dtype=np.float32), schedule, start)


def _draw_map(schedule: EdgeSchedule, start: FloatArray, stop: Callable[[], bool]) -> FloatArray:
    """Lay out the map on half of the threads: other stages run at the same time."""
    import numba

    return layout(
        schedule,
        first_components(start, 2),
        min_dist=MAP_MIN_DIST,
        n_threads=max(1, numba.get_num_threads() // 2),
        stop=stop,
    )


class _Clusters(NamedTuple):
    """Clusters, the density hierarchy of the default clusterer, and the coordinates."""

    clustering: Clustering
    tree: SpanningTree | None
    coordinates: FloatArray


def _cluster(
    context: FitContext,
    stages: Stages,
    coordinates: FloatArray,
    constraints: TopicConstraints | None,
) -> _Clusters:
    """Cluster the documents; with ManualLabels the labels are the clusters."""
    if constraints is not None and constraints.is_complete:
        persistence = np.full(len(constraints.names), np.nan)
        labelled = Clustering(constraints.groups, constraints.probabilities, persistence)
        return _Clusters(labelled, None, coordinates)
    is_default = stages.reducer is None and stages.resolution is not None
    points = leading(coordinates) if is_default else coordinates
    clustering = cluster(stages.clusterer, points, context.documents.weights)
    tree = getattr(stages.clusterer, "tree_", None)
    return _Clusters(clustering, tree if isinstance(tree, SpanningTree) else None, coordinates)


def _cut(
    log: FitLog,
    context: FitContext,
    stages: Stages,
    clusters: _Clusters,
    counts: TermCounts,
    constraints: TopicConstraints | None,
) -> ClusterCut:
    """Return the clusters at the requested resolution; those of a replaced clusterer stay."""
    weights, graph = context.documents.weights, context.graph
    clustering, tree, coordinates = clusters

    if tree is None or stages.resolution is None:
        n_clusters = len(clustering.persistence)
        is_informative = ~uninformative_topics(counts, clustering.labels, n_clusters)
        size = getattr(stages.clusterer, "min_cluster_size_", None)
        cut = ClusterCut(clustering, is_informative, size)
        return constrain_cut(cut, weights, graph, constraints)

    try:
        vectors = context.embeddings
        of_tree = cluster_tree(tree, coordinates, weights, counts, graph, vectors, constraints)
        if of_tree.is_repetitive:
            message = "Repeated texts are nearly all there is: each text, or group of similar "
            message += f"texts, of at least {FEWEST} rows is a topic. n_topics sets another number."
            log.note("clustering", "repeated_texts", True, message)
        return of_tree.cut(stages.resolution)
    except NotEnoughTopics as error:
        # The work is done: fewer topics serve better than none.
        message = f"Fewer topics than requested: {error}."
        log.note("clustering", "n_topics", error.best.n_informative, message)
        return error.best


def _assign(
    log: FitLog,
    context: FitContext,
    stages: Stages,
    cut: ClusterCut,
    constraints: TopicConstraints | None,
) -> OutlierAssignment:
    """Assign outliers, and record who stays outside and how far the constraints were met."""
    documents = context.documents
    assigned = assign_outliers(context.graph, cut, documents.weights, stages.coverage, constraints)
    note_topics(log, cut, assigned, documents)
    if constraints is not None:
        log.decisions += outcome(constraints, assigned.clustering, documents)
    return assigned


def _describe(
    log: FitLog,
    context: FitContext,
    stages: Stages,
    clustering: Clustering,
    counts: TermCounts,
    languages: tuple[str, ...],
    constraints: TopicConstraints | None,
) -> tuple[tuple[Topic, ...], csr_matrix]:
    """Return the topics, with the names of fixed ones, and the weights of their terms."""
    documents = context.documents
    topics, topic_terms = describe_topics(
        counts, context.embeddings, clustering, documents, stages.weighting, stages.terms, languages
    )
    topics = named_by_texts(topics, context.corpus.texts)
    if n := sum(not topic.keywords for topic in topics):
        log.note("terms", "no_terms", n, "Topics without terms are named by a central text.")
    if stages.languages == "auto" and len(languages) > 1:
        log.decisions += leakage_decisions(context.texts, clustering.labels, languages)
    if constraints is not None:
        topics = named_topics(topics, clustering.labels, documents.weights, constraints)
    return topics, topic_terms


def read_corpus(log: FitLog, corpus: Corpus) -> tuple[DistinctDocuments, Sequence[str]]:
    """Return the distinct documents and their texts; record empty and repeated rows."""
    require_text(corpus)
    documents = corpus.distinct()
    log.decisions.extend(corpus.decisions)
    n_empty = int((documents.of_row < 0).sum())
    if n_empty:
        message = f"Rows without text: {n_empty:,} of {len(corpus):,}. They are in no topic."
        log.note("corpus", "empty", n_empty, message)
    _, as_text = storable(corpus.metadata)
    if as_text:
        message = f"Files cannot hold these columns and save them as text: {as_text}."
        log.note("corpus", "columns_as_text", as_text, message)
    n_repeats = int(documents.weights.sum()) - len(documents)
    if n_repeats:
        message = spell_count(n_repeats, "row repeats", "rows repeat")
        message += " the text of another row. Each text counts once, weighted by its rows, and its "
        message += "rows share one topic."
        log.note("corpus", "duplicates", n_repeats, message)
    return documents, corpus.document_texts()


def choose_languages(
    log: FitLog, texts: Sequence[str], languages: Sequence[str] | str
) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply."""
    if languages != "auto":
        return (languages,) if isinstance(languages, str) else tuple(languages)
    detected = log.languages = languages_in_order(texts)  # which are in the order of their hash
    codes = main_languages(detected)
    if not codes:
        log.note("corpus", "languages", [], "No language was recognized; no stop words apply.")
        return ()
    shares = ", ".join(f"{code} {detected.shares[code]:.0%}" for code in codes)
    message = f"Languages of {detected.n_sampled:,} sampled texts: {shares}."
    log.note("corpus", "languages", list(codes), message)
    return codes


def _count_terms(
    log: FitLog,
    used: dict[str, Any],
    context: FitContext,
    clusters: _Clusters,
    settings: TermSettings,
    languages: tuple[str, ...],
) -> tuple[TokenStream, TermCounts]:
    """Count terms without stop words, repeated lines, @names and words that close many texts."""
    tokens = context.tokens()
    texts = context.texts
    if settings.min_df is None and is_repetitive(context.documents.weights):
        used["min_df"] = 1  # an answer of many people is one text
        settings = replace(settings, min_df=1)

    if settings.stop_words == "auto":
        tokens, decisions = without_boilerplate(tokens, texts)
        log.decisions += decisions
    is_auto = settings.stop_words == "auto" and not tokens.rules.social
    without, decisions = without_subject(tokens, texts) if is_auto else ([], [])
    log.decisions += decisions
    if without:
        used["extra_stop_words"] = [*settings.extra_stop_words, *without]
        settings = replace(settings, extra_stop_words=used["extra_stop_words"])

    counts = count_corpus_terms(tokens, clusters.clustering.labels, settings, languages)
    listed = sorted({*counts.stop_words} - {*without})
    note_terms(log, listed, counts, languages)

    if tokens.rules.social:
        numbers = count_social_tokens(texts)
        tags, names, emoji, addresses = (f"{n:,} {kind}" for kind, n in numbers.items())
        message = {
            "kept": f"Kept as words: {tags}, {names}, {emoji} and {addresses}.",
            "dropped": f"Left out of the words: {tags}, {names}, {emoji} and {addresses}.",
            "split": f"Split into words at their capitals: {tags} and {names}; "
            f"left out: {emoji} and {addresses}.",
        }[tokens.rules.social]
        log.note("terms", "social", numbers, message)

    return tokens, counts
