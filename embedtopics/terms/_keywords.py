"""The few terms that name a topic.

Class-TF-IDF weights terms that are frequent in one topic and rare in others. As a list of keywords,
this ranking has six faults, each with one remedy here. With W[t, c] the weight and d_t the number
of documents with a term:

- Rare terms rank too high: a term with twenty occurrences in one document outweighs one with one
  occurrence in fifteen documents. The weight is multiplied by sqrt(d_t).
- Some frequent terms belong to no subject. The weight is multiplied by cos(v_t, v_c)^3, where v_t
  is the mean embedding of the documents with the term, minus the mean of all documents, and v_c is
  the weighted mean of the v_t of the topic's candidates. Cosines below 0.01 count as 0.01. A single
  topic has no contrast, and skips this factor.
- Words such as *based* or *problem* are above average in many topics. The weight is multiplied by
  (log(C / a_t) / log(C))^0.75, where C is the number of topics and a_t the number of those in which
  the term weighs at least as much as in the mean topic.
- A term in nearly as many documents elsewhere says little, although it weighs much in short texts.
  The weight is multiplied by l - 1, from 0.02 to 1, with l the share of the topic's documents with
  the term over that of the others.
- A term that names one topic recurs in others. Its relevance, relative to the best term of the
  topic, is compared with that in the topic where it is strongest. Below 0.9 times that value, it is
  multiplied by 0.4.
- Terms repeat each other: see `select_keywords`.

The constants were set on sixteen labelled corpora at the automatic number of topics. With topics
and words from one half of the documents, and scores from the other (benchmarks/topic_words.py),
mean NPMI, diversity, and the share of words above average in at most a fifth of the topics are
-0.15, 0.91 and 0.70. Those of the words of largest class-TF-IDF without stop words are -0.16, 0.86
and 0.66. NPMI is lower on five of seventeen corpora, by up to 0.06 (DBLP).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._representative import best_terms
from embedtopics.terms._stop_words import Stems, repeats, stems_of
from embedtopics.terms.results import TermCounts

_CANDIDATES = 30
"""Number of candidate terms, by weight, for up to ten keywords."""
_CLOSENESS, _RARITY = 3, 0.75
"""Exponents of the cosine with the topic, and of the rarity among topics."""
_MOSTLY, _NEARLY_ALWAYS = 0.5, 0.8
"""Shares of a word's occurrences in the topic, within one longer term, or at the beginning of any,
from which the longer term replaces it: *al* is the beginning of *al qaida* and *al nusra*."""

_DISTINCT, _ELSEWHERE = 0.9, 0.4
"""Relevance, relative to that in another topic, below which a term names the other; its factor."""


def keywords(
    topic_terms: csr_matrix,
    term_counts: TermCounts,
    embeddings: FloatArray,
    *,
    n: int = 10,
    languages: Sequence[str] = ("en",),
    ngram_range: tuple[int, int] | None = None,
    labels: Int32Array | None = None,
) -> list[list[tuple[str, float]]]:
    """Choose the terms that name each topic.

    The best terms by weight are ranked by relevance, as above, and selected by `select_keywords`.
    With `labels` (n_documents,), a longer term replaces words that mostly occur in it, and terms
    that are common elsewhere stand behind.
    """
    candidates = best_terms(topic_terms, term_counts, _CANDIDATES + max(0, n - 10), ngram_range)
    pool = np.unique(np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in candidates)]))
    middle = embeddings.mean(axis=0, dtype=np.float64)
    vectors = term_embeddings(term_counts.counts, embeddings, pool, origin=middle)
    if labels is not None:
        lifts = document_lifts(term_counts.counts[:, pool], labels, len(candidates))
        inside = count_by_topic(term_counts.counts, labels, len(candidates))
        begin = inside @ first_words(term_counts)
    holders = np.bincount(term_counts.counts.indices, minlength=len(term_counts.terms))
    rarity, ranked = rarity_of(topic_terms), []
    for topic, (ids, weights) in enumerate(candidates):
        relevance = weights * np.sqrt(holders[ids])
        if len(candidates) > 1:
            of_terms = vectors[np.searchsorted(pool, ids)]
            relevance *= _closeness(of_terms, weights) ** _CLOSENESS * rarity[ids] ** _RARITY
        if labels is not None and len(ids):
            if len(candidates) > 1:
                relevance *= np.clip(lifts[topic, np.searchsorted(pool, ids)] - 1, 0.02, 1)
            terms = [term_counts.terms[i] for i in ids]
            of_topic, first = (m[topic, ids].toarray().ravel() for m in (inside, begin))
            relevance = prefer_longer(relevance, terms, of_topic, first)
        ranked.append(relevance)
    places = [np.searchsorted(pool, ids) for ids, _ in candidates]
    selected = []
    demoted = _demote_shared(ranked, places, len(pool))
    for (ids, weights), relevance in zip(candidates, demoted, strict=True):
        terms = [term_counts.terms[i] for i in ids]
        picked = select_keywords(relevance, terms, n=n, languages=languages)
        selected.append([(terms[i], float(weights[i])) for i in picked])
    return selected


def select_keywords(
    relevance: npt.ArrayLike,
    terms: Sequence[str],
    *,
    n: int = 10,
    languages: Sequence[str] = ("en",),
) -> list[int]:
    """Select the most relevant candidates (n_candidates,), without repetitions.

    No keyword begins or ends with a stem of another one: *interest rates* excludes *interest* and
    *rate cut*.
    """
    score = np.asarray(relevance, dtype=np.float64)
    score = score / (score.max(initial=0.0) or 1.0)
    by_name = [i for i in sorted(range(len(terms)), key=terms.__getitem__) if score[i] > 0]
    picked: list[int] = []
    stems: list[Stems] = []
    for i in sorted(by_name, key=lambda i: -score[i]):
        term_stems = stems_of(terms[i], languages)
        if len(picked) < n and not any(repeats(term_stems, other) for other in stems):
            picked.append(i)
            stems.append(term_stems)
    return picked


def term_embeddings(
    counts: csr_matrix,
    embeddings: FloatArray,
    term_ids: npt.ArrayLike,
    *,
    origin: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Embed terms (m,) as the mean of their documents, (m, n_dimensions)."""
    presence = counts[:, np.asarray(term_ids, dtype=np.int64)]
    presence.data = np.ones(len(presence.data), dtype=np.float32)
    # The transposed product reads each document once, which is four times faster.
    sums = np.asarray(presence.T @ np.asarray(embeddings, dtype=np.float32))
    holders = np.bincount(presence.indices, minlength=presence.shape[1])
    sums -= (holders[:, None] * np.asarray(origin, dtype=np.float64)).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
    unit: FloatArray = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    return unit


def document_lifts(counts: csr_matrix, labels: Int32Array, n_topics: int) -> Float64Array:
    """Return the share of each topic's documents with a term over that of others, plus a half."""
    presence = csr_matrix((np.ones(counts.nnz), counts.indices, counts.indptr), counts.shape)
    inside = count_by_topic(presence, labels, n_topics).toarray()
    sizes = np.bincount(labels[labels >= 0], minlength=n_topics)[:, None]
    elsewhere = np.asarray(presence.sum(axis=0)) - inside + 0.5
    lifts: Float64Array = inside / np.maximum(sizes, 1) / (elsewhere / (len(labels) - sizes + 0.5))
    return lifts


def _closeness(vectors: FloatArray, weights: Float64Array) -> Float64Array:
    """Return the cosine of each candidate with the weighted mean of all, at least 0.01."""
    middle = np.einsum("i,id->d", weights, vectors, dtype=np.float64)
    length = np.sqrt(np.einsum("d,d->", middle, middle)) or 1.0
    closeness: Float64Array = np.maximum(np.einsum("id,d->i", vectors, middle / length), 0.01)
    return closeness


def rarity_of(topic_terms: csr_matrix) -> Float64Array:
    """Return 1 for terms above their mean weight in one topic, towards 0.02 for all, (n_terms,)."""
    n_topics, n_terms = topic_terms.shape
    ids, weights = topic_terms.indices, np.maximum(topic_terms.data, 0.0)
    means = np.bincount(ids, weights, minlength=n_terms) / max(1, n_topics)
    n_above = np.bincount(ids[weights >= 0.999 * means[ids]], minlength=n_terms)
    rarity = np.log(n_topics / np.maximum(n_above, 1)) / np.log(max(2, n_topics))
    return np.asarray(np.maximum(rarity, 0.02))


def _demote_shared(
    ranked: Sequence[Float64Array], places: Sequence[npt.NDArray[np.int64]], n_terms: int
) -> list[Float64Array]:
    """Reduce the relevance of terms that name another topic."""
    scaled = [np.asarray(one / (one.max(initial=0.0) or 1.0)) for one in ranked]
    strongest = np.zeros(n_terms)
    for one, place in zip(scaled, places, strict=True):
        strongest[place] = np.maximum(strongest[place], one)
    return [
        np.where(one >= _DISTINCT * strongest[place], one, _ELSEWHERE * one)
        for one, place in zip(scaled, places, strict=True)
    ]


def first_words(term_counts: TermCounts) -> csr_matrix:
    """Return a matrix, (n_terms, n_terms), with a 1 for each phrase and its first word."""
    terms, numbers = term_counts.terms, {term: i for i, term in enumerate(term_counts.terms)}
    firsts = [numbers.get(term.split(" ", 1)[0], -1) for term in terms]
    inside = [(i, first) for i, first in enumerate(firsts) if first not in (-1, i)]
    rows, columns = np.array(inside, dtype=np.int64).reshape(-1, 2).T
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(terms), len(terms)))


def prefer_longer(
    relevance: Float64Array,
    terms: Sequence[str],
    occurrences: npt.NDArray[Any],
    n_first: npt.NDArray[Any],
) -> Float64Array:
    """Replace words that mostly occur within a candidate, or begin one of them `n_first` times."""
    position = {term: i for i, term in enumerate(terms)}
    handed_on = relevance.copy()
    for longer, term in enumerate(terms):
        words = set(term.split(" "))  # *ha ha* equals *ha*
        inner = [position[word] for word in sorted(words) if word in position]
        if len(words) > 1 and inner and occurrences[longer] > _MOSTLY * occurrences[inner].max():
            handed_on[longer] = max(relevance[longer], relevance[inner].max())
            handed_on[inner] = 0.0
    for i in np.flatnonzero((n_first >= _NEARLY_ALWAYS * occurrences) & (handed_on > 0)).tolist():
        phrases = [j for j, term in enumerate(terms) if term.startswith(terms[i] + " ")]
        phrases = [j for j in phrases if occurrences[j] > 1]
        if phrases:
            best = max(phrases, key=lambda j: occurrences[j])
            handed_on[best] = max(handed_on[best], handed_on[i])
            handed_on[i] = 0.0
    return handed_on


def unique_labels(
    keywords: Iterable[Sequence[str]], n: int = 3, *, reserved: Iterable[str] = ()
) -> list[str]:
    """Return distinct names of topics: `n` keywords or more, or else a number.

    Labels are distinct if their words are, in whatever order.
    """
    labels: list[str] = []
    used = {label_words(label) for label in reserved}
    for words in keywords:
        terms = list(words) or ["no terms"]
        sizes = range(min(n, len(terms)), len(terms) + 1)
        candidates = [", ".join(terms[:size]) for size in sizes]
        candidates += [f"{candidates[0]} ({number})" for number in range(2, len(used) + 3)]
        label = next(name for name in candidates if label_words(name) not in used)
        used.add(label_words(label))
        labels.append(label)
    return labels


def label_words(label: str) -> frozenset[str]:
    """Return the words of a label: two labels of the same words name the same."""
    return frozenset(label.casefold().replace(",", " ").split())
