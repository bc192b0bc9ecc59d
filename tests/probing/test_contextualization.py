from itertools import combinations

import numpy as np

from embedtopics import probing
from embedtopics.probing import _contextualization
from tests.probing.made import made_states, random_states, reordered, rows_of, unit

WORDS = "alpha beta gamma delta epsilon".split()


def made_texts(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return [f"id{i} . " + " ".join(rng.choice(WORDS, 4, replace=False)) for i in range(n)]


def brute(states, layer):
    """Ethayarajh's figures over all uses of all words in at least five sentences."""
    vectors = states.layer(layer).astype(np.float64)
    cosine = unit(vectors) @ unit(vectors).T
    rows = {w: [r for r in range(len(states)) if states.words[r] == w] for w in WORDS}
    similarity = {w: np.mean([cosine[i, j] for i, j in combinations(own, 2)])
                  for w, own in rows.items()}  # fmt: skip
    # Each word counts the same, and in it each use.
    total, weight = 0.0, 0.0
    for v, w in combinations(WORDS, 2):
        for i in rows[v]:
            for j in rows[w]:
                share = 1 / len(rows[v]) / len(rows[w])
                total, weight = total + share * cosine[i, j], weight + share
    within = []
    for text in range(len(states.texts)):
        own = vectors[states.rows_of(text)]
        within.append(np.mean(unit(own) @ unit(own.mean(axis=0))))
    return np.mean(list(similarity.values())), total / weight, np.mean(within)


def test_figures_are_those_of_the_definitions():
    states = random_states(made_texts(), width=6, seed=4)
    found = probing.contextualization(states)
    assert found.words == tuple(sorted(WORDS))
    for layer in range(3):
        mean, anisotropy, within = brute(states, layer)
        value = {s.measure: s.value for s in rows_of(found, layer=layer)}
        expected = {"self-similarity": mean, "intra-sentence similarity": within}
        for measure, truth in expected.items():
            assert abs(value[measure] - truth) < 1e-12
            assert abs(value[f"corrected {measure}"] - (truth - anisotropy)) < 1e-12
        assert abs(value["anisotropy"] - anisotropy) < 1e-12
    for score in rows_of(found):
        assert score.low < score.value < score.high or score.measure == "anisotropy"


def test_static_vectors_have_no_context_and_random_ones_nothing_but():
    texts = made_texts(60)
    rng = np.random.default_rng(1)
    static = {}
    words = [w for text in texts for w in text.split()]
    own = np.array([static.setdefault(w, rng.normal(size=30)) for w in words])
    states = made_states(texts, [own, rng.normal(size=own.shape)])
    found = probing.contextualization(states)
    value = {m: rows["value"].tolist() for m, rows in found.to_frame().groupby("measure")}
    assert abs(value["self-similarity"][0] - 1) < 1e-9
    assert abs(value["corrected self-similarity"][1]) < 0.02


def test_equal_sentences_are_one_context_and_marks_are_no_words():
    texts = [*made_texts(6), *[made_texts(6)[0]] * 5]
    texts += ["lonely ."] * 9
    states = random_states(texts, width=5)
    found = probing.contextualization(states, min_uses=4)
    assert "." not in found.words and "lonely" not in found.words
    expected = {w: len({t for t in texts if w in t.split()}) for w in found.words}
    assert dict(zip(found.words, found.n_uses.tolist(), strict=True)) == expected


def test_draws_do_not_depend_on_the_order_of_the_texts(monkeypatch):
    for name, value in {"MAX_USES": 6, "N_WORDS": 3, "N_SENTENCES": 7}.items():
        monkeypatch.setattr(_contextualization, name, value)
    texts = made_texts(30)
    states = random_states(texts, width=5, seed=8)
    other, _ = reordered(states)
    one, two = (probing.contextualization(one, random_state=5) for one in (states, other))
    assert one.words == two.words and len(one.words) == 3
    for a, b in zip(rows_of(one), rows_of(two), strict=True):
        np.testing.assert_allclose([a.value, a.low, a.high], [b.value, b.low, b.high], atol=1e-12)
    assert rows_of(one, measure="intra-sentence similarity")[0].n == 7
    assert "3 of 5 words" in one.decisions[-1].message
