"""The decisions of a fit: what each stage chose, left out or could not do."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.corpus.results import DistinctDocuments, LanguageShares
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders.results import Encoding
from embedtopics.encoders.sentence._encoder import UNREAD
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.terms._phrases import phrases_of
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms.results import TermCounts
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics._inspection import MANY_WINDOWS
from embedtopics.topics._propagation import OutlierAssignment
from embedtopics.topics._vectors import UniqueVectors
from embedtopics.topics.results import Reason

STAGES = (
    "corpus", "encoder", "neighbors", "reduction", "clustering", "terms", "topics", "map", "labels",
)  # fmt: skip


@dataclass
class FitLog:
    """The decisions of the stages, and the seconds that the fit waited for each."""

    decisions: list[Decision] = field(default_factory=list)
    languages: LanguageShares | None = None
    timings: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    def note(self, stage: str, name: str, value: Any, message: str) -> None:
        self.decisions.append(Decision(stage, name, value, message))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.timings[name] = time.perf_counter() - begin


def note_encoding(log: FitLog, encoding: Encoding, encoder: BaseEncoder) -> None:
    max_length = encoder.max_seq_length
    recipe = None if encoder.transformer is None else encoder.transformer.recipe
    limit = "" if max_length is None else f" of {max_length:,} tokens"
    longer = f"of the texts are longer than the encoder's limit{limit}"

    if encoding.truncated_share > 0:
        unseen = encoding.unseen_token_share
        if unseen > UNREAD:
            warnings.warn(
                f"The encoder reads the first {max_length} tokens of a text and misses "
                f"{unseen:.0%} of all tokens.",
                stacklevel=2,
            )
        message = (
            f"{encoding.truncated_share:.1%} {longer}; {unseen:.1%} of all tokens were unread."
        )
        if recipe and unseen > UNREAD:
            message += ' An encoder with long_texts="chunk" reads them all.'
        log.note("encoder", "truncated", encoding.truncated_share, message)
    elif recipe and recipe.long_texts == "chunk":
        behind = np.maximum(encoding.n_tokens - recipe.max_length, 0)
        share = behind.sum() / max(1, encoding.n_tokens.sum())
        message = f"{np.mean(behind > 0):.1%} {longer}; their vectors are means over windows. With "
        message += f'long_texts="truncate" at least {share:.1%} of all tokens would not be read.'
        log.note("encoder", "long_texts", "chunk", message)
        if np.median(encoding.n_tokens) > MANY_WINDOWS * recipe.max_length:
            message = "Most texts are long: fit corpus.passages(encoder), or with --passages."
            log.note("encoder", "passages_advised", True, message)

    if encoding.n_cached:
        n_texts = len(encoding.n_tokens)
        message = f"The vectors of {encoding.n_cached:,} of {n_texts:,} texts came from the cache."
        log.note("encoder", "cached", encoding.n_cached, message)

    if encoding.unknown_token_share > 0.001:
        share = encoding.unknown_token_share
        message = f"{share:.1%} of the tokens are unknown to the encoder."
        log.note("encoder", "unknown_tokens", share, message)


def note_without_vector(log: FitLog, vectors: FloatArray, documents: DistinctDocuments) -> None:
    """Record texts with a zero vector: they are similar to nothing and in no topic."""
    is_zero = ~vectors.any(axis=1)
    if not is_zero.any():
        return

    n_rows = int(documents.weights[is_zero].sum())
    if is_zero.all():
        raise InputError(
            f"the encoder returned only zero vectors, for all {n_rows:,} texts; use another "
            "encoder, or texts with words"
        )

    message = spell_count(n_rows, "text is", "texts are")
    message += " in no topic, because the encoder knows none of its words."
    log.note("encoder", "without_vector", n_rows, message)


def note_graph(log: FitLog, graph: NeighborGraph, unique: UniqueVectors, k: int) -> None:
    n_shared = len(unique.of_document) - len(unique.first)
    if n_shared and unique.means is None:
        message = spell_count(n_shared, "text has", "texts have")
        message += " the same vector, and the same position, as another text."
        log.note("neighbors", "same_vector", n_shared, message)
    elif n_shared:
        message = spell_count(n_shared, "text is a near-duplicate", "texts are near-duplicates")
        message += " of other texts and share their positions."
        log.note("neighbors", "near_duplicates", n_shared, message)

    if graph.method != "exact":
        message = f"The neighbor search is approximate; it found {graph.recall:.1%} of the true "
        message += "neighbors of a sample."
        log.note("neighbors", "recall", graph.recall, message)

    if graph.k < k:
        message = f"Documents have {graph.k} neighbors, not {k}: the collection is small."
        log.note("neighbors", "k", graph.k, message)


def note_topics(
    log: FitLog, cut: ClusterCut, assigned: OutlierAssignment, documents: DistinctDocuments
) -> None:
    n_uninformative = int((~cut.is_informative).sum())
    if n_uninformative:
        message = spell_count(n_uninformative, "dense group is", "dense groups are")
        message += " not topics, because their words do not differ from those of the corpus."
        log.note("clustering", "uninformative", n_uninformative, message)

    if not cut.n_informative and cut.min_cluster_size:
        message = (
            f"No topics: no group of at least {cut.min_cluster_size:,} rows has texts that are "
        )
        message += "more similar to each other than to others. Add texts, or set a smaller "
        message += "min_cluster_size; a few short answers are counted rather than clustered."
        log.note("clustering", "no_topics", 0, message)

    reasons = assigned.clustering.reasons
    if reasons is None or not (outside := reasons != Reason.IN_TOPIC).any():
        return

    rows = np.bincount(reasons[outside], documents.weights[outside], minlength=len(Reason))
    parts = ", ".join(f"{int(rows[r]):,} {Reason(r).text}" for r in np.flatnonzero(rows).tolist())
    message = f"{spell_count(int(rows.sum()), 'text is', 'texts are')} in no topic: {parts}."
    log.note("clustering", "outside", int(rows.sum()), message)


def note_terms(
    log: FitLog,
    stop_words: Sequence[str],
    counts: TermCounts,
    languages: tuple[str, ...],
) -> None:
    """Record the words that are left out: listed ones, and those that this corpus uses equally."""
    unlisted = [code for code in languages if not stop_words_for([code])]
    if unlisted:
        message = f"There is no stop-word list for: {', '.join(unlisted)}."
        log.note("terms", "no_stop_words", unlisted, message)
    if stop_words:
        whose = ", ".join(languages) or "given"
        left_out = spell_count(len(stop_words), "stop word was", "stop words were")
        message = f"{left_out} left out ({whose})."
        log.note("terms", "stop_words", list(stop_words), message)

    if counts.function_words:
        words = counts.function_words
        phrases = phrases_of(counts)
        shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
        message = spell_count(len(words), "word was", "words were")
        message += f" left out, which all topics of this corpus use equally: {shown}."
        if phrases:
            shown = ", ".join(phrases[:12]) + (", ..." if len(phrases) > 12 else "")
            message += f" Phrases with them that some topics use more are terms: {shown}."
        log.note("terms", "function_words", list(words), message)
