"""Mutual information of topics and languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.corpus._languages import language_of
from embedtopics.decisions import Decision
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array, Int32Array

TEXTS_TO_TELL = 1_000
"""Texts with a topic whose language is detected."""


def language_information(topics: Int32Array, codes: Sequence[str], seed: int = 0) -> Estimate:
    """Return Theil's U: the share of the entropy of the languages that the topics explain.

    It is the mutual information over the entropy of the languages, less the bias to first order,
    (n_topics - 1) (n_languages - 1) / 2n (Miller 1955).
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
        information = entropies[0] + entropies[1] - entropies[2] - chance
        return np.asarray(np.clip(information / np.maximum(entropies[1], 1e-12), 0.0, 1.0))

    return estimate_of_counts(measure, n, 500, seed)


def _entropy(shares: Float64Array) -> Float64Array:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=1))


def leakage_decisions(
    texts: Sequence[str], labels: Int32Array, languages: tuple[str, ...]
) -> list[Decision]:
    """Return a decision on how much the topics depend on the languages; none for one language."""
    inside = np.flatnonzero(labels >= 0)  # documents are in the order of their hashes
    codes = {row: language_of(texts[row]) for row in inside[:TEXTS_TO_TELL].tolist()}
    pairs = [(labels[row], code) for row, code in codes.items() if code in languages]
    if len({code for _, code in pairs}) < 2:
        return []
    topics, detected = zip(*pairs, strict=True)
    share = language_information(np.array(topics, dtype=np.int32), detected)
    message = (
        f"The topic of a text explains {share.value:.0%} (95 % interval {share.low:.0%} to "
        f"{share.high:.0%}) of the entropy of its language ({', '.join(languages)}; "
        f"{len(pairs):,} texts). To reduce this, use a multilingual encoder and set "
        "across_languages=True in the model."
    )
    figures = {"share": share.value, "low": share.low, "high": share.high}
    value = {name: round(figure, 4) for name, figure in figures.items()}
    return [Decision("clustering", "language_information", value, message)]
