"""Vectors of documents, the unique ones among them, and centroids of topics.

A topic has two centroids. `core_centroids` weigh documents by their probabilities: they serve
questions about the subject, such as representative documents or the topic of a query.
`row_centroids` weigh all rows the same: they serve questions about topics as sets of rows, such as
merging or adding documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.display import spell_count
from embedtopics.clustering._resolution import automatic_min_cluster_size, place_numbers
from embedtopics.corpus._alignment import align_frame
from embedtopics.corpus._corpus import Corpus
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._order import check_order
from embedtopics.encoders._registry import (
    GIVEN,
    check_encoder,
    check_space,
    encoder_from_settings,
    resolve_encoder,
)
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError, Remedy
from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.terms._representative import centroid
from embedtopics.topics._describe import FITTED_ROWS, LEFT_OUT, TEXTS
from embedtopics.topics._repetition import texts_to_learn
from embedtopics.topics.results import TopicResult

ROWS_AT_ONCE = 8192

NEAR_DUPLICATE = 0.8
"""Smallest similarity of near-duplicates, on a scale where 0 is the mean of the collection."""

MOST_DUPLICATES, FEW_DUPLICATES = 0.04, 0.01
"""Largest share of near-duplicates among all neighbors: collections of distinct texts have 0.00 to
0.02 (ten labelled corpora), with one copy of each text 0.07. Above the first, near-duplicates are
merged until their share is below the second."""

LONG, SHINGLE, SHARED_SHINGLES = 150, 3, 0.25
"""Words of a long text, words in a run, and the share of the runs of the shorter of two long texts
that near-duplicates have in common. Vectors of long texts are means: speeches of one country have
similar ones, and share up to .17."""

_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|\w+")
"""A word, or one sign of a script without spaces."""


def given_vectors(
    embeddings: npt.ArrayLike, corpus: Corpus, documents: Int64Array | None = None
) -> tuple[FloatArray, int]:
    """Return the unit vectors of documents, and how many have rows with different vectors.

    Of different vectors for one text, the first in lexicographic order counts.
    """
    # A masked array stays one, so that `unit_rows` refuses it.
    array = np.asanyarray(align_frame(embeddings, corpus, "embeddings"))
    if array.ndim != 2 or len(array) != len(corpus):
        expected = f"one row for each of the {len(corpus):,} texts"
        raise InputError("embeddings", expected, found=f"shape {array.shape}")

    distinct = corpus.distinct()
    if documents is None:
        documents = np.arange(len(distinct))
    rows = distinct.first_rows[documents].copy()
    n_conflicts = 0
    repeated = np.flatnonzero(distinct.weights[documents] > 1)
    if len(repeated):
        order = np.argsort(distinct.of_row, kind="stable")
        ends = np.searchsorted(distinct.of_row[order], documents[repeated], side="right")
        for place, end in zip(repeated, ends, strict=True):
            same = order[end - distinct.weights[documents[place]] : end]
            candidates = array[same]
            if (candidates != candidates[0]).any():
                rows[place] = same[np.lexsort(candidates.T[::-1])[0]]
                n_conflicts += 1

    return unit_rows(array, rows=rows), n_conflicts


def given_documents(
    embeddings: npt.ArrayLike,
    corpus: Corpus,
    texts: Sequence[str],
    make_encoder: Callable[[Sequence[str]], BaseEncoder] | None,
) -> tuple[FloatArray, Callable[[Sequence[str]], FloatArray], list[Decision]]:
    """Return the unit vectors of the documents of a fit, an encoder of names, and decisions.

    `make_encoder` makes the encoder that the caller named beside the embeddings, if any.
    """
    vectors, n_conflicts = given_vectors(embeddings, corpus)
    given = "The embeddings were given, not computed here."
    notes = [Decision("encoder", "given", True, given)]
    if n_conflicts:
        message = spell_count(n_conflicts, "repeated text has", "repeated texts have")
        message += " different embeddings; all rows of a text use one of them."
        notes.append(Decision("encoder", "conflicting_embeddings", n_conflicts, message))
    if make_encoder is not None:
        note = check_order(make_encoder(texts), texts, vectors)
        notes += [] if note is None else [note]

    def encode_like_given(names: Sequence[str]) -> FloatArray:
        remedy = "give the encoder that computed the embeddings, TopicModel(encoder)"
        if make_encoder is None:
            remedy += ", or ZeroShot(embeddings=)"
            raise InputError("encoder", "given to encode names", None, remedy)
        encoder = make_encoder(texts)
        check_space(encoder, texts, vectors, f"{remedy}, or leave embeddings out")
        return encode_uncached(encoder, names)

    return vectors, encode_like_given, notes


def encode_documents(
    encoder: BaseEncoder, texts: Sequence[str], rows: Int64Array, show_progress: bool | None
) -> tuple[FloatArray, Encoding]:
    """Return the unit vectors of texts from an encoder, and its report."""
    report = encoder.encode_with_report(texts, show_progress=show_progress)
    embeddings: Any = report.embeddings
    vectors = np.asarray(
        embeddings.astype(np.float32).toarray() if hasattr(embeddings, "toarray") else embeddings
    )
    if vectors.ndim != 2 or len(vectors) != len(texts):
        expected = f"an object that returns one vector per text, {len(texts):,} rows"
        shape = f"shape {vectors.shape} from {encoder.name}"
        raise InputError("encoder", expected, found=shape)
    what = "the encoder's vectors"
    return unit_rows(vectors, what=what, row_numbers=rows, keep_zeros=True), report


def encoder_of_fit(result: TopicResult, encoder: Encoder | str | None = None) -> BaseEncoder:
    """Return an encoder that matches a fit: `encoder`, or that of the settings, made again."""
    if encoder is not None:
        return matching_encoder(encoder, result)

    settings = result.settings
    if settings.get("encoder_settings") is not None:
        return matching_encoder(encoder_from_settings(settings["encoder_settings"]), result)

    name = settings.get("encoder")
    if name == GIVEN:
        expected = "given for new texts, because the model was fitted on embeddings"
        remedy = Remedy("embeddings", alternative="load the model with their encoder")
        raise InputError("embeddings", expected, remedy=remedy)
    expected = f"given, because the encoder of the fit ({name}) cannot be loaded by name"
    raise InputError("encoder", expected, remedy=Remedy("encoder", alternative="give embeddings"))


def matching_encoder(encoder: Any, result: TopicResult) -> BaseEncoder:
    """Return the encoder after making sure that its vectors can be compared with those of a fit.

    An encoder that learns from texts is fitted to those of the fit first.
    """
    resolved = resolve_encoder(encoder).reading_as(result.settings)

    if not resolved.is_fitted:
        settings = result.settings
        if settings.get(TEXTS) == LEFT_OUT:
            name = settings.get("encoder")
            expected = f"given, because that of the fit ({name}) learned from texts that were left "
            remedy = Remedy("encoder", alternative="give embeddings")
            raise InputError("encoder", f"{expected}out when the result was shared", remedy=remedy)
        # Not the texts that came later.
        n_rows = settings.get(FITTED_ROWS, len(result.corpus))
        documents = result.distinct.of_row[:n_rows]
        fitted, weights = np.unique(documents[documents >= 0], return_counts=True)
        texts = result.corpus.document_texts()
        learned = texts_to_learn([texts[document] for document in fitted.tolist()], weights)
        resolved = resolved.fitted_to(learned)

    # Documents are ordered by a hash of their content, so that the first are a fair sample.
    texts = result.corpus.document_texts()
    vectors = result.embeddings

    def sample(n: int) -> tuple[Sequence[str], FloatArray]:
        return texts[:n], vectors[:n]

    check_encoder(resolved, result.settings, sample, owner="the fit", redo="fit again")
    return resolved


def encode_uncached(
    encoder: BaseEncoder, texts: Sequence[str], width: int | None = None
) -> FloatArray:
    """Return the unit vectors of a few texts, without writing them to the cache."""
    vectors = encode_documents(encoder.uncached, list(texts), np.arange(len(texts)), False)[0]
    if width is not None and vectors.shape[1] != width:
        raise InputError("encoder", f"one of {width} dimensions, as the fit", vectors.shape[1])
    return vectors


@dataclass(frozen=True, eq=False)
class UniqueVectors:
    """The unique vectors of documents; near-duplicates may share one.

    `first` (n_unique,) is the first document of each vector, `of_document` (n_documents,) the
    vector of each document, `means` (n_unique, n_dimensions) the unit means of near-duplicates.
    """

    first: Int64Array
    of_document: Int64Array
    means: FloatArray | None = None

    @property
    def all_distinct(self) -> bool:
        """Whether no two documents share a vector."""
        return len(self.first) == len(self.of_document)

    def within(self, vectors: FloatArray) -> tuple[FloatArray, Int64Array | None]:
        """Return an array that holds the unique vectors, without a copy, and their rows in it.

        None stands for all rows.
        """
        if self.means is not None:
            return self.means, None
        return vectors, None if self.all_distinct else self.first

    def of(self, vectors: FloatArray) -> FloatArray:
        """Return the unique vectors, (n_unique, n_dimensions)."""
        array, rows = self.within(vectors)
        return array if rows is None else array[rows]

    def spread(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the value of each document from those of the unique vectors."""
        return values if self.all_distinct else values[self.of_document]

    def merged(self, leader: Int64Array, vectors: FloatArray) -> UniqueVectors:
        """Merge each unique vector into its leader, (n_unique,); leaders lead themselves."""
        leaders, number = np.unique(leader, return_inverse=True)
        means = unit_rows(members(number) @ self.of(vectors), keep_zeros=True)
        of_document = number[self.of_document].astype(np.int64)
        return UniqueVectors(self.first[leaders], of_document, means)


def members(groups: Int64Array) -> csr_matrix:
    """Return ones for the members of each group: (n_members,) -> (n_groups, n_members)."""
    ones = np.ones(len(groups), dtype=np.float32)
    return csr_matrix((ones, (groups, np.arange(len(groups)))))


def unique_vectors_of(result: TopicResult) -> UniqueVectors:
    """Return the unique vectors of a result: documents that share coordinates share one."""
    of_document = place_numbers(result.coordinates)
    first = np.unique(of_document, return_index=True)[1]
    if len(first) == len(of_document):
        return UniqueVectors(np.arange(len(first)), np.arange(len(first)))
    order = np.argsort(first)
    number = np.argsort(order)[of_document]
    means = unit_rows(members(number) @ result.embeddings, keep_zeros=True)
    return UniqueVectors(first[order], number, means)


def merge_near_duplicates(
    vectors: FloatArray, texts: Sequence[str], k: int, seed: int
) -> tuple[UniqueVectors, NeighborGraph]:
    """Return the unique vectors of documents (n_documents, n_dimensions), and their neighbor graph.

    Near-duplicates that are most of a text's neighbors would break the graph into islands: they
    share their mean, again and again, but groups that are large enough for a topic stay apart.
    """
    unique = merged = find_unique_vectors(vectors)
    graph = merged_graph = build_graph(vectors, k, seed=seed, rows=unique.within(vectors)[1])
    center = _mean(vectors, unique.first)
    usual = float(center @ center)
    least, most = usual + NEAR_DUPLICATE * (1 - usual), MOST_DUPLICATES
    shares_words = _shares_words(texts)
    while merged_graph.k and (merged_graph.similarities >= least).mean() > most:
        leaders = _leaders(merged_graph, least, merged.first, shares_words)
        if (leaders == np.arange(len(leaders))).all():
            break
        merged = merged.merged(leaders, vectors)
        merged_graph = build_graph(merged.of(vectors), k, seed=seed)
        most = FEW_DUPLICATES
    n_texts = np.bincount(merged.of_document)
    is_merged = n_texts < automatic_min_cluster_size(len(vectors))
    if merged is unique or not (is_merged & (n_texts > 1)).any():
        return unique, graph
    if not is_merged.all():
        of_unique = merged.of_document[unique.first]
        leader = np.searchsorted(unique.first, merged.first[of_unique])
        stays = ~is_merged[of_unique]
        leader[stays] = np.flatnonzero(stays)
        merged = unique.merged(leader, vectors)
        merged_graph = build_graph(merged.of(vectors), k, seed=seed)
    return merged, merged_graph


def _mean(vectors: FloatArray, rows: Int64Array) -> Float64Array:
    """Return the mean of some rows, (n_dimensions,); copies a part at a time."""
    total = np.zeros(vectors.shape[1])
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        total += vectors[rows[begin : begin + ROWS_AT_ONCE]].sum(axis=0, dtype=np.float64)
    return total / max(1, len(rows))


def _shares_words(texts: Sequence[str]) -> Callable[[int, int], bool]:
    """Return a test whether two texts, by number, are short or share runs of words."""

    @lru_cache(maxsize=10_000)
    def runs_of(text: int) -> set[tuple[str, ...]]:
        words = _WORD.findall(texts[text].casefold())
        return set(zip(*(words[i:] for i in range(min(SHINGLE, len(words)))), strict=False))

    def shares_words(one: int, other: int) -> bool:
        first, second = runs_of(one), runs_of(other)
        fewest = min(len(first), len(second))
        return fewest < LONG or len(first & second) >= SHARED_SHINGLES * fewest

    return shares_words


def _leaders(
    near: NeighborGraph,
    least: float,
    first: Int64Array,
    shares_words: Callable[[int, int], bool],
) -> Int64Array:
    """Return the leader of each vector, (n_unique,): itself, or its first near-duplicate."""
    leader = np.arange(len(near))
    is_free = np.ones(len(near), dtype=np.bool_)
    for row in np.flatnonzero(near.similarities[:, 0] >= least).tolist():
        if is_free[row]:
            duplicates = near.indices[row][near.similarities[row] >= least]
            duplicates = duplicates[is_free[duplicates]]
            shared = [shares_words(int(first[row]), one) for one in first[duplicates].tolist()]
            duplicates = duplicates[np.array(shared, dtype=np.bool_)]
            leader[duplicates] = row
            is_free[duplicates] = is_free[row] = False
    return leader


def find_unique_vectors(vectors: FloatArray) -> UniqueVectors:
    """Find the documents that share a vector."""
    n_documents = len(vectors)
    # Equal vectors have equal sums: only documents of equal sums are compared.
    sums = vectors.sum(axis=1, dtype=np.float64)
    order = np.argsort(sums, kind="stable")
    repeated = np.zeros(n_documents, dtype=bool)
    equal = sums[order][1:] == sums[order][:-1]
    repeated[order[1:][equal]] = repeated[order[:-1][equal]] = True
    of_first = np.arange(n_documents)
    seen: dict[bytes, int] = {}
    for document in np.flatnonzero(repeated).tolist():
        # Adding zero turns -0.0 into 0.0, which equals it but has other bytes.
        of_first[document] = seen.setdefault((vectors[document] + 0.0).tobytes(), document)
    first, of_document = np.unique(of_first, return_inverse=True)
    return UniqueVectors(first.astype(np.int64), of_document.astype(np.int64))


def spread_graph(graph: NeighborGraph, unique: UniqueVectors) -> NeighborGraph:
    """Return the graph of all documents from that of the unique vectors."""
    if unique.all_distinct:
        return graph
    indices = unique.first[graph.indices][unique.of_document].astype(np.int32)
    similarities = graph.similarities[unique.of_document]
    return replace(graph, indices=indices, similarities=similarities)


def core_centroid(result: TopicResult, topic: int) -> Float64Array:
    """Return the unit mean vector of a topic's documents, weighted by their probabilities."""
    members = np.flatnonzero(result.clustering.labels == topic)
    return centroid(result.embeddings[members], result.clustering.probabilities[members])


def core_centroids(result: TopicResult) -> Float64Array:
    """Return `core_centroid` of every topic, shape (n_topics, n_dimensions)."""
    means = np.zeros((result.n_topics, result.embeddings.shape[1]))
    for topic in range(result.n_topics):
        means[topic] = core_centroid(result, topic)
    return means


def row_centroids(result: TopicResult) -> Float64Array:
    """Return the unit mean vector of each topic's rows, shape (n_topics, n_dimensions)."""
    labels, weights = result.clustering.labels, result.distinct.weights
    return _unit(centroids(result.embeddings, labels, result.n_topics, weights))


def cosines(first: Float64Array, second: Float64Array) -> Float64Array:
    """Return the cosine of each row of one array with each of another; 0 for zero rows."""
    return np.asarray(np.einsum("id,jd->ij", _unit(first), _unit(second)))


def topic_cosines(result: TopicResult, space: str) -> Float64Array:
    """Return the cosines of all pairs of topics, by their weighted terms or their mean vectors."""
    if checked_choice(space, "space", ("terms", "embeddings")) == "terms":
        by_term = unit_term_rows(result.topic_terms)
        by_term.sum_duplicates()  # sorts the columns of each row, too: the order of the summation
        products: Float64Array = (by_term @ by_term.T).toarray()
        np.fill_diagonal(products, 1.0)
        return np.clip(products, -1.0, 1.0)
    means = row_centroids(result)
    return cosines(means, means)


def unit_term_rows(rows: csr_matrix) -> csr_matrix:
    """Return sparse rows scaled to length one; rows without entries stay so."""
    scaled = csr_matrix(rows, dtype=np.float64, copy=True)
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(scaled.indptr))
    return scaled


def _unit(rows: Float64Array) -> Float64Array:
    lengths = np.sqrt(np.einsum("id,id->i", rows, rows))
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0)[:, None])


def centroids(
    embeddings: FloatArray, labels: Int32Array, n_topics: int, weights: Int64Array | None = None
) -> Float64Array:
    """Add up the vectors of each topic's documents, shape (n_topics, n_dimensions)."""
    members = np.flatnonzero(labels >= 0)
    counts = np.ones(len(members)) if weights is None else weights[members].astype(np.float64)
    indicator = csr_matrix((counts, (labels[members], members)), shape=(n_topics, len(labels)))
    return np.asarray(indicator @ embeddings, dtype=np.float64)


def tightness(sums: Float64Array, sizes: npt.NDArray[np.int64]) -> Float64Array:
    """Return the mean cosine similarity of two different documents of each group, (n_groups,)."""
    squares = np.einsum("id,id->i", sums, sums)
    pairs = sizes * (sizes - 1.0)
    out = np.full(len(sums), np.nan)
    np.divide(squares - sizes, pairs, out=out, where=pairs > 0)
    return out
