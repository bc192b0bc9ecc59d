"""What a fit decides, says and takes: notes for the reader of a result, and the stages' times."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embedtopics._utils.table_files import storable
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.corpus.results import Decision, DistinctDocuments, LanguageShares
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics._propagation import OutlierAssignment
from embedtopics.topics._unique_vectors import UniqueVectors
from embedtopics.topics.results import Reason

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
        log.note("corpus", "duplicates", repeats,
                 f"{repeats:,} rows repeat the text of another row; each text counts once, "
                 "weighted by its rows, and its rows share one topic.")  # fmt: skip


def choose_languages(
    log: Log, texts: Sequence[str], wanted: Sequence[str] | str
) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply."""
    if wanted != "auto":
        return (wanted,) if isinstance(wanted, str) else tuple(wanted)
    found = log.languages = detect_languages(texts)
    chosen = main_languages(found)
    if not chosen:
        log.note("corpus", "languages", [], "No language was recognized; no stop words apply.")
        return ()
    shares = ", ".join(f"{code} {found.shares[code]:.0%}" for code in chosen)
    message = f"Languages found in {found.n_sampled:,} sampled texts: {shares}."
    log.note("corpus", "languages", list(chosen), message)
    return chosen


def note_encoding(log: Log, encoding: Any, max_length: int | None) -> None:
    if encoding.truncated_share > 0:
        log.note("encoder", "truncated", encoding.truncated_share,
                 f"{encoding.truncated_share:.1%} of the texts are longer than the encoder reads "
                 f"({max_length} tokens); {encoding.unseen_token_share:.1%} of all tokens were "
                 "not seen.")  # fmt: skip
    if encoding.n_cached:
        n_texts = len(encoding.n_tokens)
        message = f"The vectors of {encoding.n_cached:,} of {n_texts:,} texts were on disk already."
        log.note("encoder", "cached", encoding.n_cached, message)
    if encoding.unknown_token_share > 0.001:
        share = encoding.unknown_token_share
        message = f"{share:.1%} of the tokens are unknown to the encoder."
        log.note("encoder", "unknown_tokens", share, message)


def note_without_vector(log: Log, vectors: FloatArray, documents: DistinctDocuments) -> None:
    """Note texts of which the encoder makes nothing.

    They have a similarity of 0 to all others, and so lead, and are led, to no topic.
    """
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
             f"{n_rows:,} texts hold nothing that the encoder knows, and have no vector; they are "
             "in no topic.")  # fmt: skip


def note_graph(log: Log, graph: NeighborGraph, places: UniqueVectors, wanted: int) -> None:
    n_shared = len(places.of_document) - len(places.first)
    if n_shared:
        message = f"{n_shared:,} texts have the very same vector as another text, and its place."
        log.note("neighbors", "same_vector", n_shared, message)
    if graph.method != "exact":
        log.note("neighbors", "recall", graph.recall,
                 f"Neighbours were searched approximately; {graph.recall:.1%} of the true ones "
                 "were found in a sample.")  # fmt: skip
    if graph.k < wanted:
        message = f"Documents have {graph.k} neighbours, not {wanted}: the collection is small."
        log.note("neighbors", "k", graph.k, message)


def note_topics(
    log: Log, cores: ClusterCut, joined: OutlierAssignment, documents: DistinctDocuments
) -> None:
    empty = int((~cores.is_informative).sum())
    if empty:
        message = (
            f"{empty} dense groups of texts are no topics: their words are those of the whole "
            "corpus."
        )
        log.note("clustering", "no_subject", empty, message)
    reasons = joined.clustering.reasons
    if reasons is None or not (outside := reasons != Reason.IN_TOPIC).any():
        return
    rows = np.bincount(reasons[outside], documents.weights[outside], minlength=len(Reason))
    said = ", ".join(f"{int(rows[r]):,} {Reason(r).text}" for r in np.flatnonzero(rows).tolist())
    message = f"{int(rows.sum()):,} texts are in no topic: {said}."
    log.note("clustering", "outside", int(rows.sum()), message)


def note_terms(
    log: Log,
    stop_words: Sequence[str],
    function_words: Sequence[str],
    languages: tuple[str, ...],
) -> None:
    unlisted = [code for code in languages if not stop_words_for([code])]
    if unlisted:
        message = f"There is no stop-word list for: {', '.join(unlisted)}."
        log.note("terms", "no_stop_words", unlisted, message)
    if stop_words:
        whose = ", ".join(languages) or "given"
        message = f"{len(stop_words):,} stop words were left out ({whose})."
        log.note("terms", "stop_words", list(stop_words), message)
    if function_words:
        shown = ", ".join(function_words[:12]) + (", ..." if len(function_words) > 12 else "")
        log.note("terms", "function_words", list(function_words),
                 f"{len(function_words):,} words are used alike in all topics of this corpus and "
                 f"were left out: {shown}.")  # fmt: skip
