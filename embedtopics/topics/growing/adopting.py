"""Groups of added documents become topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, TermWeighting
from embedtopics.results import (
    NOISE,
    Candidate,
    Clustering,
    Edit,
    Extension,
    Reason,
    TopicResult,
)
from embedtopics.topics.describe import describe_topics
from embedtopics.topics.growing._merging import widened
from embedtopics.topics.recorded import languages_of, term_settings_of, weighting_of
from embedtopics.topics.relabeling import carry_names, with_own_share

__all__ = ["adopt"]


def adopt(
    extension: Extension,
    candidates: int | Sequence[int] | None = None,
    *,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Make topics of groups that an extension found outside the topics.

    The new topics get the next numbers; the others keep theirs, and the names that were given.
    Topics are described anew, because a term is weighed by what the other topics say; keywords that
    `with_keywords` gave are chosen anew. From now on the documents of the new topics have
    a say in where further ones belong.

    Parameters
    ----------
    extension : Extension
    candidates : int or sequence of int, optional
        Numbers of the candidates, as in ``extension.to_frame()``; by default all.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the fit.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where there is no such candidate.
    """
    chosen = [extension.candidates[number] for number in _checked(extension, candidates)]
    result = extension.result
    if not chosen:
        return result
    before = result.clustering
    labels, strengths = before.labels.copy(), before.strengths.copy()
    reasons = None if before.reasons is None else before.reasons.copy()
    added = None if result.added is None else result.added.copy()
    for topic, candidate in enumerate(chosen, result.n_topics):
        members = np.array(candidate.documents)
        labels[members] = topic
        strengths[members] = _strengths(result, candidate)
        if reasons is not None:
            reasons[members] = Reason.IN_TOPIC
        if added is not None:
            added[members] = False
    n_topics = result.n_topics + len(chosen)
    persistence = np.append(before.persistence, np.full(len(chosen), np.nan))
    clustering = Clustering(labels, strengths, persistence, reasons)
    topics, topic_terms = describe_topics(
        result.term_counts, result.embeddings, clustering, result.documents,
        weighting_of(result, weighting), term_settings_of(result), languages_of(result),
    )  # fmt: skip
    topics = carry_names(topics, [*result.topics, *[None] * len(chosen)])
    of_new = np.where(labels >= result.n_topics, labels, NOISE).astype(np.int32)
    memberships = widened(result.memberships, n_topics)
    named = ", ".join(f"{topic.topic_id} ({topic.label})" for topic in topics[result.n_topics :])
    edit = Edit(
        "note",
        {"candidates": [extension.candidates.index(one) for one in chosen]},
        f"groups of added documents became topics: {named}",
        (),
        tuple(range(result.n_topics)),
    )
    return dataclasses.replace(
        result,
        clustering=clustering,
        memberships=with_own_share(memberships, of_new),
        topics=topics,
        topic_terms=topic_terms,
        history=(*result.history, edit),
        stability=None,
        added=added if added is None or added.any() else None,
    )


def _checked(extension: Extension, candidates: Any) -> list[int]:
    n_there = len(extension.candidates)
    if candidates is None:
        return list(range(n_there))
    if isinstance(candidates, (int, np.integer)) and not isinstance(candidates, bool):
        candidates = [candidates]
    if isinstance(candidates, (str, bytes, bool)) or not hasattr(candidates, "__iter__"):
        raise InputError(f"expected the number of a candidate or several; got {candidates!r}")
    for number in (wanted := list(candidates)):
        is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_whole or not 0 <= number < n_there:
            there = f"there are 0 to {n_there - 1}" if n_there else "there are none"
            raise InputError(f"there is no candidate {number!r}: {there}")
    return sorted({int(number) for number in wanted})


def _strengths(result: TopicResult, candidate: Candidate) -> FloatArray:
    """Return how central each document is, 1 for the most central: a group has no other depth."""
    vectors = result.embeddings[list(candidate.documents)].astype(np.float64)
    central = np.einsum("id,d->i", vectors, vectors.sum(axis=0))
    strengths: FloatArray = np.clip(central / central.max(), 0.01, 1.0).astype(np.float32)
    return strengths
