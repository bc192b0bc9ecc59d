"""What the words of topics say: together, against each other, and to an encoder.

Topics are found in every second text of each set, and their ten best single words are scored by the
other texts. NPMI: how often two of the words meet in ten words. Diversity: the share of words that
are in one list only. Specific: the share of words that are above average in at most a fifth of the
topics. Intrusion: how often an encoder that chose nothing, multilingual E5 or latent semantic
analysis of the other texts, finds a word of another topic among five of this one.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_names import JUDGE
from benchmarks.topic_quality import word_tokens
from benchmarks.topic_sets import (
    ENCODERS,
    QUICK,
    SEED,
    SETS,
    Fit,
    LatentWords,
    fit_bertopic,
    fit_set,
)
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.evaluation import coherence, diversity
from embedtopics.terms._representative import best_terms
from embedtopics.topics._describe import top_words
from embedtopics.topics.naming._names import choose_keywords

__all__ = ["measure", "render"]

N_WORDS = 10
OF_TOPICS = 1 / 5
N_INTRUDERS, N_BESIDE = 8, 5
SYSTEMS = {
    "embedtopics": "embedtopics",
    "class_tfidf": "class-TF-IDF, same topics",
    "mmr": "MMR, same topics",
    "bertopic": "BERTopic",
}
MEASURES = {
    "npmi": "NPMI",
    "diversity": "diversity",
    "specific": "specific",
    "e5": "intrusion, E5",
    "lsa": "intrusion, LSA",
}


def measure(options: Options) -> dict[str, Any]:
    """Score the words of every set."""
    e5, rows = resolve_encoder(JUDGE, cached=False), []
    for name in QUICK if options.quick else SETS:
        fit = fit_set(name, is_half=True)
        tokens, judges = word_tokens(fit.held_out), {"lsa": LatentWords(fit.held_out)}
        if ENCODERS.get(name) != JUDGE:
            judges["e5"] = e5
        scores = {}
        for system, (labels, words) in _words(fit).items():
            if not words:  # BERTopic finds no topic in a hundred sentences
                scores[system] = dict.fromkeys(["npmi", "diversity", "specific", *judges])
                continue
            scores[system] = {
                "npmi": round(float(np.nanmean(coherence(words, tokens))), 4),
                "diversity": round(diversity(words), 4),
                "specific": _specific(fit.texts, labels, words),
                **{judge: _intrusion(words, by) for judge, by in judges.items()},
            }
        rows.append({"set": name, "n_topics": fit.result.n_topics, "scores": scores})
        print(rows[-1], file=sys.stderr)
    return {"sets": rows}


def _words(fit: Fit) -> dict[str, tuple[np.ndarray, list[list[str]]]]:
    """Return the topic of each text, and ten single words of each topic, by system."""
    result, counts = fit.result, fit.result.term_counts
    best = best_terms(result.topic_terms, counts, N_WORDS, (1, 1))
    diverse = choose_keywords(result, "diverse", n_terms=3 * N_WORDS)
    lists = {
        "embedtopics": top_words(result, n_terms=N_WORDS),
        "class_tfidf": [[counts.terms[i] for i in ids] for ids, _ in best],
        "mmr": [[term for term, _ in row if " " not in term][:N_WORDS] for row in diverse],
    }
    ours = {system: (result.labels, words) for system, words in lists.items()}
    return {**ours, "bertopic": fit_bertopic(fit)}


def _specific(texts: Sequence[str], labels: np.ndarray, lists: Sequence[Sequence[str]]) -> float:
    """Return the share of words that are above average in at most a fifth of the topics."""
    tokens = word_tokens(texts)
    rows = np.repeat(np.arange(len(texts)), np.diff(tokens.offsets))
    holds = csr_matrix((np.ones(len(rows)), (rows, tokens.ids)), (len(texts), len(tokens.words)))
    holds.data[:] = 1.0
    means = np.stack([np.asarray(holds[labels == t].mean(axis=0))[0] for t in range(len(lists))])
    n_above = (means > np.asarray(holds[labels >= 0].mean(axis=0))[0]).sum(axis=0)
    columns = {word: column for column, word in enumerate(tokens.words)}
    found = [n_above[columns[word]] for words in lists for word in words if word in columns]
    return round(float(np.mean(np.array(found) <= max(1.0, OF_TOPICS * len(lists)))), 4)


def _intrusion(lists: Sequence[Sequence[str]], judge: Any) -> float:
    """Return how often the word with the lowest mean cosine is the intruder."""
    rng, hits = np.random.default_rng(SEED), []
    vocabulary = sorted({word for words in lists for word in words})
    vectors = dict(zip(vocabulary, judge.encode(vocabulary), strict=True))
    for topic, words in enumerate(lists):
        for _ in range(N_INTRUDERS if len(words) >= N_BESIDE else 0):
            other = int(rng.integers(len(lists)))
            strange = [word for word in lists[other][:N_BESIDE] if word not in words]
            if other == topic or not strange:
                continue
            beside = rng.choice(len(words), N_BESIDE, replace=False)
            intruder = strange[int(rng.integers(len(strange)))]
            some = np.stack([vectors[word] for word in [*(words[i] for i in beside), intruder]])
            cosines = some @ some.T
            np.fill_diagonal(cosines, 0.0)
            hits.append(cosines.sum(axis=1).argmin() == N_BESIDE)
    return round(float(np.mean(hits)), 4)


def render(result: Mapping[str, Any]) -> str:
    """Return a table of each measure, with a row for each set, and the means."""
    tables = []
    for measured, title in MEASURES.items():
        judged = [row for row in result["sets"] if measured in row["scores"]["embedtopics"]]
        rows = [
            [row["set"], figure(row["n_topics"])]
            + [figure(row["scores"][system][measured], 3) for system in SYSTEMS]
            for row in judged
        ]
        compared = [
            row
            for row in judged
            if None not in [row["scores"][system][measured] for system in SYSTEMS]
        ]
        means = (
            statistics.fmean(row["scores"][system][measured] for row in compared)
            for system in SYSTEMS
        )
        rows.append(["mean", "", *(figure(mean, 3) for mean in means)])
        tables.append(markdown_table([title, "topics", *SYSTEMS.values()], rows))
    return "\n\n".join(tables)
