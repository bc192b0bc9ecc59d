"""Searches of a whole index, where parts come together."""

from __future__ import annotations

import numpy as np
import pytest

from embedtopics.retrieval import SearchIndex

TEXTS = [
    "the trains of the north are late", "the trains of the north are late again",
    "a hospital closes in the valley", "the price of bread rises", "new trains for the coast",
    "schools open in the valley", "rates rise and bread with them", "the coast has a new hospital",
]  # fmt: skip


@pytest.fixture(scope="module")
def index():
    return SearchIndex.build(TEXTS, encoder="random")


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_diversity_is_the_same_for_scores_that_lie_lower(index, mode):
    def shown(lower):
        def length(pairs):
            return [len(passage) / 10 - lower for _, passage in pairs]

        found = index.search("trains", 4, mode, reranker=length, diversity=0.7)
        return [hit.text for hit in found]

    plain = index.search("trains", 4, mode, reranker=lambda p: [len(d) / 10 for _, d in p])
    by_length = [hit.text for hit in plain]
    # From the lowest to the highest, whatever the cross-encoder's zero is.
    assert shown(5) == shown(50)
    if mode == "dense":
        assert shown(50) != by_length


def test_a_recall_that_is_missed_is_said(index):
    # Rounded to float16, vectors that differ this little are no longer told apart.
    rng = np.random.default_rng(0)
    vectors = 0.02 * rng.normal(size=(400, index.settings["n_dimensions"]))
    vectors[:, 0] = 20
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"text {i}" for i in range(400)]
    made = SearchIndex.build(
        texts, encoder="random", embeddings=vectors, kind="ivf", memory_limit=1
    )
    told = {note.name: note for note in made.decisions}
    assert told["recall missed"].value == made.measured[0]["measured"]["recall"] < 0.95
    assert "less than the 95.0%" in told["recall missed"].message
    exact = SearchIndex.build(texts, encoder="random", embeddings=vectors, kind="flat")
    assert "recall missed" not in {note.name for note in exact.decisions}
