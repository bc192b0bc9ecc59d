"""Mutual information of topics and languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.corpus._languages import language_of
from embedtopics.decisions import Decision
from embedtopics.protocols import Int32Array

TEXTS_TO_TELL = 1_000
"""Texts with a topic whose language is detected."""


def language_information(topics: Int32Array, codes: Sequence[str]) -> float:
    """Return Theil's U: the share of the entropy of the languages that the topics explain.

    It is the mutual information over the entropy of the languages, less the bias to first order,
    (n_topics - 1) (n_languages - 1) / 2n (Miller 1955).
    """
    from sklearn.metrics import mutual_info_score

    n, n_of_language = len(topics), np.unique(codes, return_counts=True)[1]
    chance = (len(np.unique(topics)) - 1) * (len(n_of_language) - 1) / (2 * n)
    entropy = -(n_of_language / n * np.log(n_of_language / n)).sum()
    information = mutual_info_score(topics, codes) - chance
    return float(np.clip(information / max(entropy, 1e-12), 0.0, 1.0))


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
        f"The topic of a text explains {share:.0%} of the entropy of its language "
        f"({', '.join(languages)}; {len(pairs):,} texts). To reduce this, use a multilingual "
        "encoder and set across_languages=True in the model."
    )
    return [Decision("clustering", "language_information", round(share, 4), message)]
