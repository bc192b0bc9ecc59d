"""How much the topics of texts tell of their languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.corpus._languages import language_of
from embedtopics.corpus.results import Decision
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array, Int32Array

TEXTS_TO_TELL = 1_000
"""Texts with a topic whose languages are looked at."""


def language_information(topics: Int32Array, codes: Sequence[str], seed: int = 0) -> Estimate:
    """Return the share of the uncertainty about a text's language that its topic takes away.

    Mutual information over the entropy of the languages (Theil's U), less what as many topics of
    these sizes tell by chance: to first order (n_topics - 1) (n_languages - 1) / 2n (Miller 1955).
    """
    from embedtopics.evaluation._bootstrap import estimate_of_counts

    topic, language = (np.unique(values, return_inverse=True)[1] for values in (topics, codes))
    n, n_topics, n_languages = len(topic), topic.max() + 1, language.max() + 1
    cell = np.zeros((n, n_topics * n_languages))
    cell[np.arange(n), topic * n_languages + language] = 1
    chance = (n_topics - 1) * (n_languages - 1) / (2 * n)

    def measure(times: Float64Array) -> Float64Array:
        table = (times @ cell).reshape(-1, n_topics, n_languages) / n
        of_topic, of_language = table.sum(axis=2), table.sum(axis=1)
        entropies = [_entropy(p.reshape(len(p), -1)) for p in (of_topic, of_language, table)]
        known = entropies[0] + entropies[1] - entropies[2] - chance
        found: Float64Array = np.clip(known / np.maximum(entropies[1], 1e-12), 0.0, 1.0)
        return found

    return estimate_of_counts(measure, n, 500, seed)


def _entropy(shares: Float64Array) -> Float64Array:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    found: Float64Array = -(shares * logs).sum(axis=1)
    return found


def leakage_decision(
    texts: Sequence[str], topics: Int32Array, languages: tuple[str, ...]
) -> Decision | None:
    """Return how much the topics tell of the languages, of a corpus that has several."""
    placed = np.flatnonzero(topics >= 0)  # documents are in the order of their hashes
    some = [(row, language_of(texts[row])) for row in placed[:TEXTS_TO_TELL].tolist()]
    known = [(topics[row], code) for row, code in some if code in languages]
    if len({code for _, code in known}) < 2:
        return None
    numbers, codes = zip(*known, strict=True)
    found = language_information(np.array(numbers, dtype=np.int32), codes)
    message = (
        f"The topic of a text takes {found.value:.0%} ({found.low:.0%} to {found.high:.0%}) of the "
        f"uncertainty about its language away ({', '.join(languages)}; {len(known):,} "
        "texts); across_languages=True of the model, with a multilingual encoder, makes that less."
    )
    value = {"share": round(found.value, 4), "low": round(found.low, 4),
             "high": round(found.high, 4)}  # fmt: skip
    return Decision("clustering", "language_information", value, message)
