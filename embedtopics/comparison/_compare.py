"""Several encoders on the same texts, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import spell_count
from embedtopics._utils.machine import package_versions
from embedtopics.clustering._density import DensityClusterer, cluster
from embedtopics.clustering.results import NOISE
from embedtopics.comparison._maps import draw_maps, edges_of, narrow
from embedtopics.comparison._scores import measure_by_labels, measure_maps, score_frame
from embedtopics.comparison._tables import compare_neighbors, difference_table, find_moves
from embedtopics.comparison._vectors import (
    Log,
    Vectors,
    make_vectors,
    name_encoders,
    neighbor_graph,
    open_encoder,
)
from embedtopics.comparison.results import Comparison, EncoderView
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.corpus.results import DistinctDocuments, LanguageShares
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, RandomState
from embedtopics.reduction._components import principal_start
from embedtopics.reduction._layout import edge_schedule, layout
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._keywords import keywords, unique_labels
from embedtopics.terms._rules import choose_rules
from embedtopics.terms._stop_words import function_words, stop_words_for
from embedtopics.terms._tokens import tokenize
from embedtopics.terms._weighting import ClassTfidf
from embedtopics.terms.results import TermCounts, TokenStream

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


N_COMPONENTS = 5
"""Dimensions in which documents are clustered, as by the topic model."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels or topics of the documents, (n_documents,), as places in `names`; -1 for none.

    The largest group comes first, ties by name; `grouped_by` says where they come from.
    """

    of_document: Int32Array
    names: tuple[str, ...]
    grouped_by: str


def given_groups(log: Log, labels: Any, corpus: Corpus) -> Groups:
    """Read the labels of the rows, (n_rows,): a text gets the most frequent one, ties by name."""
    if isinstance(labels, str):
        columns = list(corpus.metadata.columns)
        if labels not in columns:
            shown = ", ".join(repr(column) for column in columns[:30]) or "none"
            raise InputError("labels", f"a column of {corpus.source} ({shown})", labels)
        values, grouped_by = corpus.metadata[labels].to_numpy(dtype=object), f'label "{labels}"'
    else:
        values, grouped_by = np.asarray(labels, dtype=object), "labels given"
        if values.shape != (len(corpus),):
            expected = f"a column's name, or one label for each of the {len(corpus):,} rows"
            raise InputError("labels", expected, found=f"shape {values.shape}")
    documents = corpus.distinct()
    of_document, n_conflicts = _labels_of_documents([_spell(v) for v in values], documents)
    if n_conflicts:
        log.note("comparison", "conflicting_labels", n_conflicts,
                 f"{spell_count(n_conflicts, 'text that repeats has', 'texts that repeat have')} "
                 "rows of different labels; the most frequent was taken.")  # fmt: skip
    sizes = Counter(label for label in of_document if label is not None)
    if len(sizes) < 2:
        raise InputError("labels", "of at least two kinds", found=f"{len(sizes)}")
    n_missing = of_document.count(None)
    if n_missing:
        log.note("comparison", "unlabelled", n_missing,
                 f"{n_missing:,} of {len(documents):,} texts have no label; they are on the maps, "
                 "and in no score by label.")  # fmt: skip
    names = tuple(sorted(sizes, key=lambda label: (-sizes[label], label)))
    place: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    place[None] = NOISE
    return Groups(np.array([place[v] for v in of_document], dtype=np.int32), names, grouped_by)


def _spell(value: Any) -> str | None:
    """Return a label as a string; None where it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)  # a column of whole numbers with gaps comes as 1.0, 2.0
    return " ".join(str(value).split()) or None


def _labels_of_documents(
    rows: Sequence[str | None], documents: DistinctDocuments
) -> tuple[list[str | None], int]:
    """Return the label of each document, and of how many the rows differ."""
    labels: list[str | None] = [rows[row] for row in documents.first_rows.tolist()]
    votes: dict[int, Counter[str]] = {}
    repeated = documents.weights[documents.of_row] > 1
    for row in np.flatnonzero(repeated & (documents.of_row >= 0)).tolist():
        label = rows[row]
        counter = votes.setdefault(int(documents.of_row[row]), Counter())
        if label is not None:
            counter[label] += 1
    for document, counter in votes.items():
        labels[document] = min(counter, key=lambda label: (-counter[label], label), default=None)
    return labels, sum(len(counter) > 1 for counter in votes.values())


def scored_classes(log: Log, groups: Groups) -> Int32Array:
    """Return the class of each document for the scores: those of one document have none."""
    sizes = np.bincount(groups.of_document[groups.of_document >= 0], minlength=len(groups.names))
    single = np.flatnonzero(sizes == 1)
    if np.count_nonzero(sizes >= 2) < 2:
        raise InputError(
            "labels", "at least two with two texts each", found=f"{np.count_nonzero(sizes >= 2)}"
        )
    if len(single):
        names = [groups.names[i] for i in single.tolist()]
        shown = ", ".join([*names[:5], *["..."] * (len(names) > 5)])
        log.note("comparison", "single_labels", names,
                 f"{spell_count(len(single), 'label has', 'labels have')} a single text ({shown}): "
                 "coloured, and in no score.")  # fmt: skip
    return np.where(np.isin(groups.of_document, single), NOISE, groups.of_document).astype(np.int32)


def find_topics(
    vectors: Vectors,
    edges: csr_matrix,
    documents: DistinctDocuments,
    tokens: TokenStream,
    languages: Sequence[str],
    seed: int,
) -> Groups:
    """Find the dense groups of one encoder's documents, named by their words, without outliers."""
    from scipy.sparse import csr_matrix

    labels = dense_groups(vectors, edges, documents.weights, seed)
    n_topics = int(labels.max(initial=NOISE)) + 1
    grouped_by = f"topics by {vectors.name}"
    if not n_topics:
        return Groups(labels, (), grouped_by)
    counts = count_terms(
        tokens,
        stop_words=stop_words_for(languages, rules=tokens.rules),
        function_words=function_words(tokens, labels),
    )
    by_topic = count_by_topic(counts.counts, labels, n_topics, documents.weights)
    terms: list[list[str]] = [[]] * n_topics
    if by_topic.nnz:
        weighted = csr_matrix(ClassTfidf().fit_transform(by_topic), dtype=np.float64)
        dense = narrow(vectors.rows, seed)
        best_terms = keywords(weighted, counts, dense, n=5, languages=tuple(languages))
        terms = [[term for term, _ in row] for row in best_terms]
    return Groups(labels, tuple(unique_labels(terms)), grouped_by)


def dense_groups(
    vectors: Vectors, edges: csr_matrix, weights: npt.NDArray[np.int64], seed: int
) -> Int32Array:
    """Find the dense groups of one encoder's documents, (n_documents,)."""
    start = principal_start(narrow(vectors.rows, seed), N_COMPONENTS)
    coordinates = layout(edge_schedule(edges, seed=seed), start)
    labels = cluster(DensityClusterer(), coordinates, weights).labels
    return np.where(vectors.has_vector, labels, NOISE).astype(np.int32)


DEFAULT_ENCODERS = ("tfidf", "fasttext", "all-MiniLM-L6-v2")
"""A baseline of words, one of words and their parts, and a transformer."""


def compare(
    corpus: Any,
    encoders: Mapping[str, Any] | Sequence[Any] = DEFAULT_ENCODERS,
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

    For each its cost, its neighbours, a map that is aligned with the others, and scores with
    intervals; for every two the documents whose neighbours differ most, with the words of the
    difference.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus.of` reads
        Each distinct text counts once.
    encoders : sequence, or mapping of name to encoder
        Names and folders that `encoders.resolve_encoder` knows, or objects with ``encode(texts)``
        that return an array or a sparse matrix; in a mapping also ready vectors, one row for each
        row of the corpus. The first is the one that `difference_table` compares with.
    labels : str or array_like of shape (n_rows,), optional
        A column of the corpus, or a label for each row, missing where there is none. Without
        labels, the documents are grouped by topics of the last encoder, and no score uses them:
        it would favour that encoder.
    k : int
        Neighbours of each document.
    n_moves : int
        Documents whose neighbours change most, for every two encoders.
    n_resamples : int
        Resamples of the documents for each interval.
    languages : sequence of str or "auto"
        ISO 639-1 codes, for the stop words of the terms; "auto" detects them.
    random_state : None, int or numpy.random.Generator
    show_progress : bool, optional
        For encoders that take it.

    Returns
    -------
    Comparison
        For the same vectors and seed the same, whatever the order of the rows, times left out.

    Raises
    ------
    InputError
        With fewer than two encoders, fewer than k + 2 documents, vectors that do not fit the
        corpus, or labels of fewer than two kinds.

    Notes
    -----
    A text whose vector is zero has no neighbours with that encoder, counts as wrong in accuracies,
    is not part of mean overlaps, and keeps the place on the map that all encoders together give
    it. Trustworthiness and continuity are those of the aligned maps, which are lower than those of
    a map drawn alone, by at most 0.03.

    Examples
    --------
    >>> compare(corpus, ["tfidf", "all-MiniLM-L6-v2"], labels="section")  # doctest: +SKIP
    """
    named = name_encoders(encoders)
    _check_settings(k, n_moves, n_resamples, languages)
    seed = resolve_seed(random_state)
    corpus = Corpus.of(corpus)
    log = Log()
    require_text(corpus)
    documents = corpus.distinct()
    _check_size(corpus, documents, k, log)
    groups = None if labels is None else given_groups(log, labels, corpus)
    classes = None if groups is None else scored_classes(log, groups)
    texts = corpus.document_texts()
    # Before the encoders are timed: what has to be loaded to read words is not their time.
    with log.stage("words"):
        shares, codes = _languages(log, texts, languages)
        tokens = _read_words(log, texts, codes)
    with log.stage("encoding"):
        # All are resolved before any encodes, so that a wrong name is refused at once.
        opened = {name: open_encoder(spec) for name, spec in named.items()}
        vectors = [
            make_vectors(log, name, opened.pop(name), corpus, texts, shares, show_progress)
            for name in named
        ]
    with log.stage("neighbors"):
        graphs = [neighbor_graph(log, encoder_vectors, k, seed) for encoder_vectors in vectors]
        overlaps = compare_neighbors(graphs)
    with log.stage("maps"):
        edges = [edges_of(graph) for graph in graphs]
        maps = draw_maps(vectors, edges, seed)
    with log.stage("groups"):
        if groups is None:
            groups = find_topics(vectors[-1], edges[-1], documents, tokens, codes, seed)
    with log.stage("moves"):
        counted = _count_words(tokens, groups, codes)
        moves = find_moves(graphs, overlaps, counted, n_moves)
    with log.stage("scores"):
        per_document = measure_maps(log, vectors, graphs, maps, seed)
        if classes is not None:
            per_document |= measure_by_labels(log, vectors, graphs, classes, seed)
        scores = score_frame(vectors, per_document, groups.of_document, n_resamples, seed)
    views = tuple(
        EncoderView(v.name, graph, places, v.rows.shape[1], v.seconds, v.megabytes, v.settings)
        for v, graph, places in zip(vectors, graphs, maps, strict=True)
    )
    result = Comparison(
        corpus=corpus,
        documents=documents,
        encoders=views,
        groups=groups.of_document,
        group_names=groups.names,
        grouped_by=groups.grouped_by,
        scores=scores,
        overlaps=overlaps,
        moves=moves,
        decisions=tuple(log.decisions),
        settings={"encoders": list(named), "k": k, "n_moves": n_moves,
                  "n_resamples": n_resamples, "languages": list(codes), "seed": seed},
        versions=package_versions(), timings=log.timings, per_document=per_document,
        tokens=tokens, term_counts=counted,
    )  # fmt: skip
    return replace(result, differences=difference_table(result))


def _check_settings(k: int, n_moves: int, n_resamples: int, languages: Any) -> None:
    checked_count(k, "k", 2)
    checked_count(n_moves, "n_moves", 0)
    checked_count(n_resamples, "n_resamples")
    codes = [languages] if isinstance(languages, str) else languages
    if not isinstance(codes, Sequence) or not all(isinstance(code, str) for code in codes):
        raise InputError("languages", '"auto" or codes of two letters such as ["en"]', languages)


def _check_size(corpus: Corpus, documents: DistinctDocuments, k: int, log: Log) -> None:
    """Refuse a corpus that is too small, and note what the documents leave of the rows."""
    if len(documents) < k + 2:
        raise InputError(
            "corpus", f"at least {k + 2} different texts for k={k}", found=f"{len(documents)}",
            remedy="give more texts or a smaller k",
        )  # fmt: skip
    log.decisions.extend(corpus.notes)
    empty = int((documents.of_row < 0).sum())
    if empty:
        message = f"{empty:,} of {len(corpus):,} rows hold no text and were left out."
        log.note("corpus", "empty", empty, message)
    repeats = int(documents.weights.sum()) - len(documents)
    if repeats:
        message = spell_count(repeats, "row repeats", "rows repeat")
        message += " the text of another row; each text counts once."
        log.note("corpus", "duplicates", repeats, message)


def _languages(
    log: Log, texts: Sequence[str], languages: Sequence[str] | str
) -> tuple[LanguageShares, tuple[str, ...]]:
    """Return the languages of the texts, and those whose stop words are removed."""
    if languages != "auto":
        codes = (languages,) if isinstance(languages, str) else tuple(languages)
        return LanguageShares({code: 1 / len(codes) for code in codes}, len(texts)), codes
    shares = detect_languages(texts)
    codes = main_languages(shares)
    listed = ", ".join(f"{code} {shares.shares[code]:.0%}" for code in codes) or "none detected"
    log.note("corpus", "languages", list(codes), f"Detected languages: {listed}.")
    return shares, codes


def _read_words(log: Log, texts: Sequence[str], languages: Sequence[str]) -> TokenStream:
    rules, notes = choose_rules("auto", languages)
    log.decisions += notes
    return tokenize(texts, rules=rules)


def _count_words(tokens: TokenStream, groups: Groups, languages: Sequence[str]) -> TermCounts:
    """Count single words: the log-odds of a move are those of a bag of words."""
    return count_terms(
        tokens, ngram_range=(1, 1), stop_words=stop_words_for(languages, rules=tokens.rules),
        function_words=function_words(tokens, groups.of_document),
    )  # fmt: skip
