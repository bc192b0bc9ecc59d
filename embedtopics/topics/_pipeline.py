"""The pipeline: corpus -> result, stage after stage."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics._utils.display import spell_count
from embedtopics._utils.machine import in_background, package_versions, peak_memory
from embedtopics.clustering._density import cluster
from embedtopics.clustering.results import Clustering, SpanningTree
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.corpus._languages import languages_in_order, main_languages
from embedtopics.corpus._table_files import storable
from embedtopics.corpus.results import DistinctDocuments, Encoding, LanguageShares
from embedtopics.decisions import Decision
from embedtopics.encoders._base import language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._space import GIVEN, check_space, describe_encoder
from embedtopics.encoders.sentence._encoder import UNREAD
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import (
    Clusterer,
    FloatArray,
    Int32Array,
    Reducer,
    TermWeighting,
)
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.reduction._layout import EdgeSchedule, edge_schedule, layout
from embedtopics.reduction._smoothing import leading, smooth
from embedtopics.reduction._start import first_components, principal_start
from embedtopics.terms._rules import choose_rules
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms._subject import uninformative_topics
from embedtopics.terms._tokens import counted_social, tokenize
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics._clusters import (
    ClusterCut,
    NotEnoughTopics,
    Resolution,
    check_constraints,
    constrain_cut,
    cuts_of,
)
from embedtopics.topics._describe import TermSettings, count_corpus_terms, describe_topics
from embedtopics.topics._languages import leakage_decision
from embedtopics.topics._propagation import OutlierAssignment
from embedtopics.topics._vectors import (
    Places,
    encode_documents,
    encode_uncached,
    find_places,
    given_vectors,
    spread_graph,
)
from embedtopics.topics.constraints._apply import (
    assign_constrained,
    constrained_graph,
    groups_of_vectors,
    named_topics,
    outcome,
)
from embedtopics.topics.constraints._protocol import Constraint, FitContext
from embedtopics.topics.results import Reason, Topic, TopicConstraints, TopicResult

MAP_MIN_DIST = 0.1
"""Distance on the map within which documents are not drawn closer, so that points of a dense topic
stay apart; for clustering it is 0."""


@dataclass(frozen=True)
class Stages:
    """The object of each stage and its parameters; no resolution takes clusters as they are."""

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
    log = Log()
    with log.stage("corpus"):
        require_text(corpus)
        documents = corpus.distinct()
        languages, read = read_corpus(log, corpus, documents, stages)
    with log.stage("encoder"):
        vectors, used, encode = _encode(log, corpus, embeddings, stages, languages)
    with in_background(read, runs_loops=False) as split:
        with log.stage("neighbors"):
            places, near = find_places(vectors, stages.n_neighbors, stages.seed)
            graph = spread_graph(near, places)
            note_graph(log, graph, places, stages.n_neighbors)
        fit = _Fit(log, stages, FitContext(corpus, documents, vectors, graph, split, encode))
        with log.stage("clustering"):
            fit.prepare_constraints()
        with log.stage("reduction"):
            fuzzy, groups = fit.fuzzy_graph(places, near)
            schedule = edge_schedule(fuzzy, seed=stages.seed)
            held, rows = places.within(vectors)
            start = principal_start(held, max(2, stages.n_components), rows)
            coordinates = fit.coordinates(places, fuzzy, start, groups)
        with log.stage("terms"):
            tokens = split()
    with in_background(lambda stop: _draw_map(schedule, start, stop), runs_loops=True) as drawn:
        with log.stage("clustering"):
            raw, tree = fit.cluster(coordinates)
        with log.stage("terms"):
            counts = count_corpus_terms(tokens, raw.labels, stages.terms, languages)
            note_words(log, tokens, counts, languages, corpus.document_texts())
        with log.stage("clustering"):
            cut = fit.cut(raw, tree, coordinates, counts)
            assigned = fit.assign(cut)
            found = assigned.clustering
        with log.stage("terms"):
            topics, topic_terms = fit.describe(found, counts, languages)
        with log.stage("reduction"):
            positions = places.spread(drawn())
    used |= {"min_cluster_size": cut.min_cluster_size, "min_margin": assigned.min_margin}
    result = TopicResult(
        corpus=corpus,
        documents=documents,
        embeddings=vectors,
        graph=graph,
        coordinates=coordinates,
        map=positions,
        clustering=found,
        memberships=assigned.memberships,
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
        constraints=fit.constraints,
    )
    return _with_labels(log, result, encode)


def _with_labels(
    log: Log, result: TopicResult, encode: Callable[[Sequence[str]], FloatArray]
) -> TopicResult:
    """Choose the labels of topics by an encoder of ours; another may know these texts only."""
    if not isinstance(result.settings.get("encoder_settings"), dict):
        return result
    from embedtopics.topics.naming._score_labels import scored_labels

    with log.stage("terms"):
        return scored_labels(result, encode, choose=True)


def _encode(
    log: Log,
    corpus: Corpus,
    embeddings: npt.ArrayLike | None,
    stages: Stages,
    languages: tuple[str, ...],
) -> tuple[FloatArray, dict[str, Any], Callable[[Sequence[str]], FloatArray]]:
    """Return the documents' unit vectors, the settings to record, and an encoder of other texts."""
    documents, texts = corpus.distinct(), corpus.document_texts()
    if embeddings is not None:
        vectors, n_conflicts = given_vectors(embeddings, corpus)
        log.note("encoder", "given", True, "The embeddings were given, not made here.")
        if n_conflicts:
            message = (
                spell_count(n_conflicts, "text that repeats was", "texts that repeat were")
                + " given different embeddings; one of them was taken for all rows of the text."
            )
            log.note("encoder", "conflicting_embeddings", n_conflicts, message)

        def encode(wanted: Sequence[str]) -> FloatArray:
            remedy = "name the one that made them, TopicModel(encoder)"
            if not stages.has_encoder:
                remedy += ", or give ZeroShot(embeddings=)"
                raise InputError(
                    "encoder", "given to encode names beside embeddings", remedy=remedy
                )
            encoder = stages.make_encoder(texts)
            check_space(encoder, texts, vectors, f"{remedy}, or leave embeddings out")
            return encode_uncached(encoder, wanted)

        return vectors, {"encoder": GIVEN}, encode
    encoder = stages.make_encoder(texts)
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
    return vectors, describe_encoder(encoder), lambda wanted: encode_uncached(encoder, wanted)


def _draw_map(schedule: EdgeSchedule, start: FloatArray, stop: Callable[[], bool]) -> FloatArray:
    """Lay the map out on half of the threads, because other work goes on beside it."""
    import numba

    return layout(
        schedule, first_components(start, 2), min_dist=MAP_MIN_DIST,
        n_threads=max(1, numba.get_num_threads() // 2), stop=stop,
    )  # fmt: skip


@dataclass
class _Fit:
    """The stages after the neighbour graph, with the constraints once they are prepared."""

    log: Log
    stages: Stages
    context: FitContext
    constraints: TopicConstraints | None = None

    def prepare_constraints(self) -> None:
        given, n_documents = self.stages.constraints, len(self.context)
        if given is None:
            return
        self.constraints, decisions = given.prepare(self.context)
        if self.constraints.groups.shape != (n_documents,):
            found = f"shape {self.constraints.groups.shape} from {type(given).__name__}"
            expected = f"one a document, shape ({n_documents},)"
            raise InputError("groups", expected, found=found)
        self.log.decisions.extend(decisions)
        check_constraints(self.constraints, self.stages.resolution, self.stages.coverage)

    def fuzzy_graph(
        self, places: Places, near: NeighborGraph
    ) -> tuple[csr_matrix, Int32Array | None]:
        """Return the fuzzy graph with the constraints applied, and the group of each vector."""
        fuzzy, constraints = fuzzy_graph(near), self.constraints
        if constraints is None:
            return fuzzy, None
        groups = groups_of_vectors(constraints.groups, places.of_document, len(places.first))
        vectors = places.of(self.context.embeddings)
        return constrained_graph(fuzzy, vectors, constraints, groups, near.k), groups

    def coordinates(
        self,
        places: Places,
        fuzzy: csr_matrix,
        start: FloatArray,
        groups: Int32Array | None,
    ) -> FloatArray:
        """Return the coordinates to cluster; a replaced reducer gets the groups as `y`."""
        vectors, constraints = self.context.embeddings, self.constraints
        reducer, n_components = self.stages.reducer, self.stages.n_components
        if reducer is None:
            pull = 0.0 if constraints is None else constraints.attraction
            components = first_components(start, n_components)
            return places.spread(smooth(fuzzy, components, groups=groups, pull=pull))
        known = (
            ()
            if constraints is None or not constraints.changes_layout
            else (constraints.groups.copy(),)
        )
        made = np.asarray(reducer.fit_transform(vectors.copy(), *known))
        if made.ndim != 2 or len(made) != len(vectors) or not np.isfinite(made).all():
            expected = f"an object that returns one finite row a document ({len(vectors)})"
            found = f"shape {made.shape} from {type(reducer).__name__}"
            raise InputError("reducer", expected, found=found)
        return np.ascontiguousarray(made, dtype=np.float32)

    def cluster(self, coordinates: FloatArray) -> tuple[Clustering, SpanningTree | None]:
        """Return the clusters, and the hierarchy of our own clusterer."""
        clusterer, constraints = self.stages.clusterer, self.constraints
        if constraints is not None and constraints.is_complete:
            persistence = np.full(len(constraints.names), np.nan)
            return Clustering(constraints.groups, constraints.probabilities, persistence), None
        if self.stages.reducer is None and self.stages.resolution is not None:
            coordinates = leading(coordinates)
        found = cluster(clusterer, coordinates, self.context.documents.weights)
        tree = getattr(clusterer, "tree_", None)
        return found, tree if isinstance(tree, SpanningTree) else None

    def cut(
        self,
        raw: Clustering,
        tree: SpanningTree | None,
        coordinates: FloatArray,
        counts: TermCounts,
    ) -> ClusterCut:
        """Return the clusters at the wanted resolution."""
        weights, graph, stages = self.context.documents.weights, self.context.graph, self.stages
        if tree is None or stages.resolution is None:
            is_informative = ~uninformative_topics(counts, raw.labels, len(raw.persistence))
            size = getattr(stages.clusterer, "min_cluster_size_", None)
            cut = ClusterCut(raw, is_informative, size)
            return constrain_cut(cut, weights, graph, self.constraints)
        try:
            cuts = cuts_of(tree, coordinates, weights, counts, graph, self.constraints)
            return cuts.at(stages.resolution)
        except NotEnoughTopics as error:
            # The work is done; as many topics as there are serve better than none.
            message = f"Fewer topics than wanted: {error}."
            self.log.note("clustering", "n_topics", error.best.n_informative, message)
            return error.best

    def assign(self, cut: ClusterCut) -> OutlierAssignment:
        """Assign outliers, and note who is left out and what became of the constraints."""
        graph, documents, constraints = self.context.graph, self.context.documents, self.constraints
        coverage = self.stages.coverage
        assigned = assign_constrained(graph, cut, documents.weights, coverage, constraints)
        note_topics(self.log, cut, assigned, documents)
        self.log.decisions.extend(outcome(constraints, assigned, documents))
        return assigned

    def describe(
        self, found: Clustering, counts: TermCounts, languages: tuple[str, ...]
    ) -> tuple[tuple[Topic, ...], csr_matrix]:
        vectors, documents, stages = self.context.embeddings, self.context.documents, self.stages
        topics, topic_terms = describe_topics(
            counts, vectors, found, documents, stages.weighting, stages.terms, languages
        )
        if stages.languages == "auto" and len(languages) > 1:
            texts = self.context.corpus.document_texts()
            known = leakage_decision(texts, found.labels, languages)
            self.log.decisions += [] if known is None else [known]
        weights = documents.weights
        return named_topics(topics, found.labels, weights, self.constraints), topic_terms


STAGES = ("corpus", "encoder", "neighbors", "reduction", "clustering", "terms")


@dataclass
class Log:
    """Collects what the stages decide and how long they take."""

    decisions: list[Decision] = field(default_factory=list)
    languages: LanguageShares | None = None
    timings: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    def note(self, stage: str, name: str, value: Any, message: str) -> None:
        self.decisions.append(Decision(stage, name, value, message))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.timings[name] += time.perf_counter() - begin


def note_corpus(log: Log, corpus: Corpus, documents: DistinctDocuments) -> None:
    log.decisions.extend(corpus.notes)
    empty = int((documents.of_row < 0).sum())
    if empty:
        message = f"{empty:,} of {len(corpus):,} rows hold no text; they stay, in no topic."
        log.note("corpus", "empty", empty, message)
    _, as_text = storable(corpus.metadata)
    if as_text:
        message = f"Columns that files cannot hold as they are get saved as text: {as_text}."
        log.note("corpus", "columns_as_text", as_text, message)
    repeats = int(documents.weights.sum()) - len(documents)
    if repeats:
        message = (
            spell_count(repeats, "row repeats", "rows repeat")
            + " the text of another row; each text counts once, weighted by its rows, and its rows "
            "share one topic."
        )
        log.note("corpus", "duplicates", repeats, message)


def read_corpus(
    log: Log, corpus: Corpus, documents: DistinctDocuments, stages: Stages
) -> tuple[tuple[str, ...], Callable[[Any], TokenStream]]:
    """Return the languages of the texts, and what splits these into words."""
    note_corpus(log, corpus, documents)
    texts, rows = corpus.document_texts(), documents.first_rows.tolist()
    languages = choose_languages(log, texts, stages.languages)
    rules, notes = choose_rules(stages.words, languages)
    log.decisions += notes
    return languages, lambda _: tokenize(texts, rules=rules, rows=rows)


def choose_languages(
    log: Log, texts: Sequence[str], wanted: Sequence[str] | str
) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply."""
    if wanted != "auto":
        return (wanted,) if isinstance(wanted, str) else tuple(wanted)
    found = log.languages = languages_in_order(texts)  # which are in the order of their hash
    chosen = main_languages(found)
    if not chosen:
        log.note("corpus", "languages", [], "No language was recognized; no stop words apply.")
        return ()
    shares = ", ".join(f"{code} {found.shares[code]:.0%}" for code in chosen)
    message = f"Languages found in {found.n_sampled:,} sampled texts: {shares}."
    log.note("corpus", "languages", list(chosen), message)
    return chosen


def note_encoding(log: Log, encoding: Encoding, encoder: BaseEncoder) -> None:
    max_length = encoder.max_length
    recipe = None if encoder.transformer is None else encoder.transformer.recipe
    longer = f"of the texts are longer than the encoder reads ({max_length} tokens)"
    if encoding.truncated_share > 0:
        unseen = encoding.unseen_token_share
        if unseen > UNREAD:
            warnings.warn(f"The encoder does not read {unseen:.0%} of all tokens: they are behind "
                          f"the {max_length} that it reads of a text.", stacklevel=2)  # fmt: skip
        advice = (
            ' long_texts="chunk" of the encoder reads all.' if recipe and unseen > UNREAD else ""
        )
        log.note("encoder", "truncated", encoding.truncated_share,
                 f"{encoding.truncated_share:.1%} {longer}; {unseen:.1%} of all tokens were not "
                 f"seen.{advice}")  # fmt: skip
    elif recipe and recipe.long_texts == "chunk":
        behind = np.maximum(encoding.n_tokens - recipe.max_length, 0)
        share = behind.sum() / max(1, encoding.n_tokens.sum())
        log.note("encoder", "long_texts", "chunk",
                 f"{np.mean(behind > 0):.1%} {longer}, and were read in windows whose vectors were "
                 f"averaged; at least {share:.1%} of all tokens would not be seen with "
                 'long_texts="truncate", which reads the beginnings alone.')  # fmt: skip
    if encoding.n_cached:
        n_texts = len(encoding.n_tokens)
        message = f"The vectors of {encoding.n_cached:,} of {n_texts:,} texts were on disk already."
        log.note("encoder", "cached", encoding.n_cached, message)
    if encoding.unknown_token_share > 0.001:
        share = encoding.unknown_token_share
        message = f"{share:.1%} of the tokens are unknown to the encoder."
        log.note("encoder", "unknown_tokens", share, message)


def note_without_vector(log: Log, vectors: FloatArray, documents: DistinctDocuments) -> None:
    """Note texts of which the encoder makes nothing: similar to none, they are in no topic."""
    without = ~vectors.any(axis=1)
    if not without.any():
        return
    n_rows = int(documents.weights[without].sum())
    if without.all():
        raise InputError(
            f"expected texts of which the encoder makes something, got zeros for all {n_rows:,} "
            "texts; take another encoder, or texts with words"
        )
    log.note("encoder", "without_vector", n_rows,
             f"{spell_count(n_rows, 'text is', 'texts are')} in no topic, for the encoder knows "
             "nothing that is written there.")  # fmt: skip


def note_graph(log: Log, graph: NeighborGraph, places: Places, wanted: int) -> None:
    n_shared = len(places.of_document) - len(places.first)
    if n_shared and places.means is None:
        message = spell_count(n_shared, "text has", "texts have")
        message += " the very same vector as another text, and its place."
        log.note("neighbors", "same_vector", n_shared, message)
    elif n_shared:
        near = spell_count(n_shared, "text is a near-copy", "texts are near-copies")
        message = f"{near} of other texts, with which they share a place."
        log.note("neighbors", "near_copies", n_shared, message)
    if graph.method != "exact":
        log.note("neighbors", "recall", graph.recall,
                 f"Neighbours were searched approximately; {graph.recall:.1%} of the true ones "
                 "were found in a sample.")  # fmt: skip
    if graph.k < wanted:
        message = f"Documents have {graph.k} neighbours, not {wanted}: the collection is small."
        log.note("neighbors", "k", graph.k, message)


def note_topics(
    log: Log, cut: ClusterCut, assigned: OutlierAssignment, documents: DistinctDocuments
) -> None:
    empty = int((~cut.is_informative).sum())
    if empty:
        groups = spell_count(
            empty, "dense group of texts is no topic", "dense groups are no topics"
        )
        message = f"{groups}: the words are those of the whole corpus."
        log.note("clustering", "no_subject", empty, message)
    reasons = assigned.clustering.reasons
    if reasons is None or not (outside := reasons != Reason.IN_TOPIC).any():
        return
    rows = np.bincount(reasons[outside], documents.weights[outside], minlength=len(Reason))
    said = ", ".join(f"{int(rows[r]):,} {Reason(r).text}" for r in np.flatnonzero(rows).tolist())
    message = f"{spell_count(int(rows.sum()), 'text is', 'texts are')} in no topic: {said}."
    log.note("clustering", "outside", int(rows.sum()), message)


def note_words(
    log: Log,
    tokens: TokenStream,
    counts: TermCounts,
    languages: tuple[str, ...],
    texts: Sequence[str],
) -> None:
    note_terms(log, counts.stop_words, counts.function_words, languages)
    if tokens.rules.social:
        found = counted_social(texts)
        tags, names, emoji, addresses = (f"{n:,} {kind}" for kind, n in found.items())
        what = f"{tags}, {names}, {emoji} and {addresses}"
        message = {
            "kept": f"Kept as words: {what}.",
            "dropped": f"Left out of the words: {what}.",
            "split": f"Split into words at their capitals: {tags} and {names}; "
            f"left out: {emoji} and {addresses}.",
        }[tokens.rules.social]
        log.note("terms", "social", found, message)


def note_terms(
    log: Log, stop_words: Sequence[str], function_words: Sequence[str], languages: tuple[str, ...]
) -> None:
    unlisted = [code for code in languages if not stop_words_for([code])]
    if unlisted:
        message = f"There is no stop-word list for: {', '.join(unlisted)}."
        log.note("terms", "no_stop_words", unlisted, message)
    if stop_words:
        whose = ", ".join(languages) or "given"
        left_out = spell_count(len(stop_words), "stop word was", "stop words were")
        message = f"{left_out} left out ({whose})."
        log.note("terms", "stop_words", list(stop_words), message)
    if function_words:
        shown = ", ".join(function_words[:12]) + (", ..." if len(function_words) > 12 else "")
        log.note("terms", "function_words", list(function_words),
                 f"{spell_count(len(function_words), 'word is', 'words are')} used equally in all "
                 f"topics of this corpus, and left out: {shown}.")  # fmt: skip
