"""Several encoders on the same texts, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import excerpt
from embedtopics._utils.machine import package_versions
from embedtopics.clustering._density import DensityClusterer, cluster
from embedtopics.clustering.results import NOISE
from embedtopics.comparison._maps import draw_maps, narrow
from embedtopics.comparison._tables import (
    compare_neighbors,
    difference_table,
    find_moves,
    measure_by_labels,
    measure_maps,
    score_frame,
)
from embedtopics.comparison._vectors import (
    Vectors,
    make_vectors,
    neighbor_graph,
    open_encoders,
)
from embedtopics.comparison.results import Comparison, EncoderView
from embedtopics.corpus._corpus import Corpus, as_corpus, require_text
from embedtopics.corpus.results import DistinctDocuments, LanguageShares
from embedtopics.errors import InputError
from embedtopics.evaluation._labels import Groups, groups_of, scored_classes
from embedtopics.protocols import RandomState
from embedtopics.reduction._components import principal_start
from embedtopics.reduction._fuzzy import positive_edges
from embedtopics.reduction._layout import edge_schedule, layout
from embedtopics.results import Decision, counted
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._keywords import keywords, unique_labels
from embedtopics.terms._languages import detect_languages, main_languages
from embedtopics.terms._rules import choose_rules
from embedtopics.terms._stop_words import account_names, function_words, stop_words_for
from embedtopics.terms._tokens import tokenize
from embedtopics.terms._weighting import ClassTfidf
from embedtopics.terms.results import TokenStream

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_COMPONENTS = 5
"""Dimensions in which documents are clustered, as by the topic model."""


def find_topics(
    vectors: Vectors,
    edges: csr_matrix,
    corpus: Corpus,
    tokens: TokenStream,
    languages: Sequence[str],
    accounts: Sequence[str],
    seed: int,
) -> Groups:
    """Find the dense groups of one encoder's documents, and name them by keywords or a text."""
    from scipy.sparse import csr_matrix

    dense = narrow(vectors.rows, seed)
    start = principal_start(dense, N_COMPONENTS)
    coordinates = layout(edge_schedule(edges, seed=seed), start)
    weights = corpus.distinct().weights
    labels = cluster(DensityClusterer(), coordinates, weights).labels
    labels = np.where(vectors.has_vector, labels, NOISE).astype(np.int32)
    n_topics = int(labels.max(initial=NOISE)) + 1
    grouped_by = f"topics by {vectors.name}"
    if not n_topics:
        return Groups(labels, (), grouped_by)
    counts = count_terms(
        tokens,
        stop_words=[*stop_words_for(languages, rules=tokens.rules), *accounts],
        function_words=function_words(tokens, labels),
    )
    by_topic = count_by_topic(counts.counts, labels, n_topics, weights)
    terms: list[list[str]] = [[]] * n_topics
    if by_topic.nnz:
        weighted = csr_matrix(ClassTfidf().fit_transform(by_topic), dtype=np.float64)
        best_terms = keywords(weighted, counts, dense, n=5, languages=languages, labels=labels)
        terms = [[term for term, _ in row] for row in best_terms]
    texts, firsts = corpus.document_texts(), [int(np.argmax(labels == i)) for i in range(n_topics)]
    quotes = [f"\u201c{excerpt(texts[first], 40)}\u201d" for first in firsts]
    names = unique_labels(row or [quote] for row, quote in zip(terms, quotes, strict=True))
    return Groups(labels, tuple(names), grouped_by)


DEFAULT_ENCODERS = ("tfidf", "fasttext", "all-MiniLM-L6-v2")
"""A baseline of words, one of subwords, and a transformer."""


def compare_encoders(
    encoders: Mapping[str, Any] | Sequence[Any],
    corpus: Any,
    labels: str | npt.ArrayLike | None = None,
    *,
    k: int = 15,
    n_moves: int = 20,
    n_resamples: int = 1000,
    languages: Sequence[str] | str = "auto",
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> Comparison:
    """Compare several encoders on the same texts.

    The result contains, for each encoder, its cost, its neighbours, a map aligned with the others
    and scores with intervals; and, for each pair of encoders, the documents whose neighbours differ
    most, with distinctive words.

    Parameters
    ----------
    encoders : sequence, or mapping of name to encoder
        Names, folders, objects with ``encode(texts)`` or transformers of scikit-learn. A mapping
        can also contain vectors, one row for each row of the corpus. `Comparison.differences`
        compares the others with the first.
    corpus : Corpus, or what `Corpus` takes
        Each distinct text counts once.
    labels : str or array_like of shape (n_rows,), optional
        Column of the corpus, or a label for each row; labels may be missing. Without labels, the
        documents are grouped by topics of the last encoder, and no score uses these groups,
        because they favour that encoder.
    k : int
        Number of neighbours of each document.
    n_moves : int
        Number of documents whose neighbours change most, for each pair of encoders.
    n_resamples : int
        Number of bootstrap resamples of the documents.
    languages : sequence of str or "auto"
        ISO 639-1 codes for the stop words; "auto" detects the languages.
    random_state : None, int or numpy.random.Generator
    show_progress : bool, optional
        Whether encoders show a progress bar.

    Returns
    -------
    Comparison
        Apart from times, it depends on vectors and seed only, not on the order of rows.

    Raises
    ------
    InputError
        With fewer than two encoders, fewer than k + 2 documents, vectors that do not fit the
        corpus, or labels of fewer than two kinds.

    Notes
    -----
    A text with a zero vector has no neighbours, counts as wrong in accuracies, is left out of mean
    overlaps, and keeps its position on the mean map. Trustworthiness and continuity refer to the
    aligned maps; they are up to 0.03 lower than those of a map drawn alone.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=200)
    >>> compared = et.comparison.compare_encoders(["tfidf", "random"], corpus, "theme")
    >>> compared.names
    ('tfidf', 'random')
    >>> compared.differences().columns.tolist()
    ['measure', 'encoder', 'against', 'difference', 'low', 'high', 'n']
    >>> compared.overlaps()[["first", "second"]].to_dict("records")
    [{'first': 'tfidf', 'second': 'random'}]
    """
    if isinstance(encoders, Corpus) or hasattr(encoders, "columns"):
        remedy = "call et.comparison.compare_encoders(encoders, corpus)"
        raise InputError("encoders", "encoders or names", encoders, remedy)
    opened = open_encoders(encoders)
    names = list(opened)
    checked_count(k, "k", 2)
    checked_count(n_resamples, "n_resamples")
    seed = resolve_seed(random_state)
    corpus = as_corpus(corpus)
    decisions: list[Decision] = []
    documents = _distinct(decisions, corpus, k)
    groups = None if labels is None else groups_of(labels, corpus, decisions)
    classes = None if groups is None else scored_classes(groups, decisions)
    texts = corpus.document_texts()
    # Loads what reading words needs before the encoders are timed.
    shares, codes = _languages(decisions, texts, languages)
    rules, notes = choose_rules("auto", codes)
    decisions += notes
    tokens = tokenize(texts, rules=rules)
    accounts = account_names(texts, tokens)
    vectors = [
        make_vectors(decisions, name, opened.pop(name), corpus, shares, show_progress)
        for name in names
    ]
    graphs = [neighbor_graph(decisions, encoder_vectors, k, seed) for encoder_vectors in vectors]
    overlaps = compare_neighbors(graphs)
    edges = [positive_edges(graph) for graph in graphs]
    maps = draw_maps(vectors, edges, seed)
    if groups is None:
        groups = find_topics(vectors[-1], edges[-1], corpus, tokens, codes, accounts, seed)
    words = count_terms(
        tokens, ngram_range=(1, 1), function_words=function_words(tokens, groups.of_document),
        stop_words=[*stop_words_for(codes, rules=tokens.rules), *accounts],
    )  # fmt: skip
    moves = find_moves(graphs, overlaps, words, n_moves)
    per_document = measure_maps(decisions, vectors, graphs, maps, seed)
    if classes is not None:
        per_document |= measure_by_labels(decisions, vectors, graphs, classes, seed)
    scores = score_frame(vectors, per_document, groups.of_document, n_resamples, seed)
    views = tuple(
        EncoderView(v.name, graph, places, v.rows.shape[1], v.seconds, v.megabytes, v.settings)
        for v, graph, places in zip(vectors, graphs, maps, strict=True)
    )
    result = Comparison(
        corpus=corpus, distinct=documents, encoders=views, groups=groups.of_document,
        group_names=groups.names, grouped_by=groups.grouped_by, scores=scores,
        neighbor_overlaps=overlaps, moved=moves, decisions=tuple(decisions),
        settings={"encoders": names, "k": k, "n_moves": n_moves,
                  "n_resamples": n_resamples, "languages": list(codes), "seed": seed},
        versions=package_versions(), per_document=per_document,
        tokens=tokens, term_counts=words,
    )  # fmt: skip
    return replace(result, gains=difference_table(result))


def _distinct(decisions: list[Decision], corpus: Corpus, k: int) -> DistinctDocuments:
    """Return the documents, and note the rows that are left out."""
    require_text(corpus)
    documents = corpus.distinct()
    if len(documents) < k + 2:
        expected = f"at least {k + 2} different texts for k={k}"
        raise InputError("corpus", expected, found=f"{len(documents)}")
    n_empty = int((documents.of_row < 0).sum())
    n_repeats = int(documents.weights.sum()) - len(documents)
    decisions += corpus.decisions
    decisions += counted("corpus", "empty", n_empty, "rows without text were left out.")
    message = "repeated rows; each text counts once."
    decisions += counted("corpus", "duplicates", n_repeats, message)
    return documents


def _languages(
    decisions: list[Decision], texts: Sequence[str], languages: Sequence[str] | str
) -> tuple[LanguageShares, tuple[str, ...]]:
    """Return the languages of the texts, and those whose stop words are removed."""
    if languages != "auto":
        codes = (languages,) if isinstance(languages, str) else tuple(languages)
        return LanguageShares({code: 1 / len(codes) for code in codes}, len(texts)), codes
    shares = detect_languages(texts)
    codes = main_languages(shares)
    listed = ", ".join(f"{code} {shares.shares[code]:.0%}" for code in codes) or "none detected"
    message = f"Detected languages: {listed}."
    decisions.append(Decision("corpus", "languages", list(codes), message))
    return shares, codes
