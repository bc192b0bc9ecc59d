"""Several encoders on the same texts, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics._randomness import resolve_seed
from embedtopics._versions import package_versions
from embedtopics.comparison._log import Log
from embedtopics.comparison.groups import Groups, find_topics, given_groups, scored_classes
from embedtopics.comparison.maps import draw_maps, edges_of
from embedtopics.comparison.moves import compare_neighbors, find_moves
from embedtopics.comparison.scoring import (
    measure_by_labels,
    measure_maps,
    score_frame,
)
from embedtopics.comparison.tables import difference_table
from embedtopics.comparison.vectors import (
    Vectors,
    make_vectors,
    name_encoders,
    neighbor_graph,
    open_encoder,
)
from embedtopics.corpus import Corpus, detect_languages, main_languages, require_text
from embedtopics.errors import InputError
from embedtopics.protocols import RandomState
from embedtopics.results import (
    Comparison,
    DistinctDocuments,
    EncoderView,
    LanguageShares,
    NeighborGraph,
    TermCounts,
    TokenStream,
)
from embedtopics.terms import count_terms, function_words, stop_words_for, tokenize

__all__ = ["DEFAULT_ENCODERS", "compare"]

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
    """Compare what several encoders make of the same texts.

    Does a transformer help on this corpus, or would TF-IDF do? Every encoder's cost, its
    neighbours, a map of it, aligned with the others, and scores with intervals say so; and the
    documents whose neighbours change most, with the words that the change brings, say why.

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
    A text that an encoder knows nothing of has the vector zero. It has no neighbours with that
    encoder, counts as wrong where a label is to be told, is no part of mean overlaps, and keeps
    the place on the map that all encoders together give it.

    Trustworthiness and continuity are those of the maps that are drawn here. As these start from
    what all encoders have in common, they are a little lower than on a map drawn alone: by 0.03 at
    most where two encoders have nothing in common.

    Examples
    --------
    >>> compare(corpus, ["tfidf", "all-MiniLM-L6-v2"], labels="section")  # doctest: +SKIP
    """
    named = name_encoders(encoders)
    _check_numbers(k, n_moves, n_resamples)
    _check_languages(languages)
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
        tokens = tokenize(texts)
        shares, codes = _languages(log, texts, languages)
    with log.stage("encoding"):
        # All are looked up before any encodes: a name that is not there is told at once.
        found = {name: open_encoder(spec) for name, spec in named.items()}
        vectors = [
            make_vectors(log, name, found.pop(name), corpus, texts, shares, show_progress)
            for name in named
        ]
    with log.stage("neighbors"):
        graphs = [neighbor_graph(log, made, k, seed) for made in vectors]
        overlaps = compare_neighbors(graphs)
    with log.stage("maps"):
        edges = [edges_of(graph) for graph in graphs]
        maps = draw_maps(vectors, edges, seed)
    with log.stage("groups"):
        if groups is None:
            groups = find_topics(vectors[-1], edges[-1], documents, tokens, codes, seed)
    with log.stage("moves"):
        counts = _count_words(tokens, groups, codes)
        moves = find_moves(graphs, overlaps, counts, n_moves)
    with log.stage("scores"):
        per_document = measure_maps(log, vectors, graphs, maps, seed)
        if classes is not None:
            per_document |= measure_by_labels(log, vectors, graphs, classes, seed)
        scores = score_frame(
            list(named), per_document, groups.of_document, _costs(vectors), n_resamples, seed
        )
    result = Comparison(
        corpus=corpus,
        documents=documents,
        encoders=_views(vectors, graphs, maps),
        groups=groups.of_document,
        group_names=groups.names,
        grouped_by=groups.grouped_by,
        scores=scores,
        overlaps=overlaps,
        moves=moves,
        decisions=tuple(log.decisions),
        settings={"encoders": list(named), "k": k, "n_moves": n_moves,
                  "n_resamples": n_resamples, "languages": list(codes), "seed": seed},
        versions=package_versions(),
        timings=log.timings,
        per_document=per_document,
    )  # fmt: skip
    return replace(result, differences=difference_table(result))


def _check_numbers(k: int, n_moves: int, n_resamples: int) -> None:
    for name, value, least in (
        ("k", k, 2),
        ("n_moves", n_moves, 0),
        ("n_resamples", n_resamples, 1),
    ):
        checked_count(value, name, least)


def _check_languages(languages: Any) -> None:
    given = [languages] if isinstance(languages, str) else languages
    if not isinstance(given, Sequence) or not all(isinstance(code, str) for code in given):
        raise InputError(
            'languages must be "auto" or codes such as ["en", "fr"], strings of two letters; got '
            f"{languages!r}"
        )


def _check_size(corpus: Corpus, documents: DistinctDocuments, k: int, log: Log) -> None:
    """Refuse a corpus that is too small, and note what the documents leave of the rows."""
    if len(documents) < k + 2:
        raise InputError(
            f"{k} neighbours need at least {k + 2} different texts; got {len(documents)}; "
            "give more texts or a smaller k"
        )
    log.decisions.extend(corpus.notes)
    empty = int((documents.of_row < 0).sum())
    if empty:
        message = f"{empty:,} of {len(corpus):,} rows hold no text and were left out."
        log.note("corpus", "empty", empty, message)
    repeats = int(documents.weights.sum()) - len(documents)
    if repeats:
        message = f"{repeats:,} rows repeat the text of another row; each text counts once."
        log.note("corpus", "duplicates", repeats, message)


def _languages(
    log: Log, texts: Sequence[str], wanted: Sequence[str] | str
) -> tuple[LanguageShares, tuple[str, ...]]:
    """Return the languages of the texts, and those whose stop words are left out of the terms."""
    if wanted != "auto":
        given = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        return LanguageShares({code: 1 / len(given) for code in given}, len(texts)), given
    found = detect_languages(texts)
    codes = main_languages(found)
    shown = ", ".join(f"{code} {found.shares[code]:.0%}" for code in codes) or "none could be told"
    log.note("corpus", "languages", list(codes), f"Languages found in the texts: {shown}.")
    return found, codes


def _count_words(tokens: TokenStream, groups: Groups, languages: Sequence[str]) -> TermCounts:
    """Count the single words that say something; the log-odds are those of a bag of words."""
    return count_terms(
        tokens,
        ngram_range=(1, 1),
        stop_words=stop_words_for(languages),
        function_words=function_words(tokens, groups.of_document),
    )


def _costs(vectors: Sequence[Vectors]) -> dict[str, list[float]]:
    n_documents = len(vectors[0].has_vector)
    return {
        "documents_per_second": [n_documents / np.float64(made.seconds) for made in vectors],
        "megabytes": [made.megabytes for made in vectors],
    }


def _views(
    vectors: Sequence[Vectors], graphs: Sequence[NeighborGraph], maps: Sequence[npt.NDArray[Any]]
) -> tuple[EncoderView, ...]:
    return tuple(
        EncoderView(
            name=made.name,
            graph=graph,
            map=positions,
            dimensions=int(made.rows.shape[1]),
            seconds=made.seconds,
            megabytes=made.megabytes,
            settings=made.settings,
        )
        for made, graph, positions in zip(vectors, graphs, maps, strict=True)
    )
