import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score, silhouette_score

from embedtopics import probing
from embedtopics.probing.words import _senses as module
from tests.factories import refuses
from tests.probing.made import made_states, reordered, unit


def used(n_uses, centers, seed=0, spread=0.25, long=0.0, width=8):
    """One use a text, around some directions; `long` stretches all clouds along one axis."""
    rng = np.random.default_rng(seed)
    texts, rows, truth = [], [], []
    for i in range(n_uses):
        sense = i % len(centers)
        texts.append(f"id{i} bat")
        vector = 2 * np.eye(width)[centers[sense]] + spread * rng.normal(size=width)
        vector[-1] += long * rng.normal()
        rows += [rng.normal(size=width), vector]
        truth.append(sense)
    return made_states(texts, [rows]), np.array(truth)


FAST = {"n_clouds": 19}


@pytest.mark.parametrize("centers", [[0, 1], [0, 0, 0, 1, 2]])
def test_senses_are_found(centers):
    states, truth = used(60, centers)
    found = probing.senses(states, "bat", **FAST)
    n = len(set(centers))
    assert found.n_senses == n and found.chosen and found.p == 1 / 20
    by_text = dict(zip([u.text for u in found.uses], found.labels.tolist(), strict=True))
    labels = [by_text[t] for t in range(60)]
    assert adjusted_rand_score([centers[t] for t in truth], labels) == 1
    assert list(found.sizes) == sorted(found.sizes, reverse=True) and sum(found.sizes) == 60
    # Silhouettes and cosines are those of scikit-learn and of the definition.
    rows = [use.row for use in found.uses]
    vectors = unit(states.layer(0).astype(np.float64)[rows])
    truth = silhouette_score(vectors, found.labels, metric="cosine")
    assert abs(found.silhouettes.mean() - truth) < 1e-9
    for sense in range(n):
        mean = unit(vectors[found.labels == sense].mean(axis=0))
        np.testing.assert_allclose(found.centers[sense], mean, atol=1e-6)
        np.testing.assert_allclose(
            found.similarities[found.labels == sense],
            vectors[found.labels == sense] @ mean, atol=1e-9,
        )  # fmt: skip
        best = max(np.flatnonzero(found.labels == sense), key=lambda i: found.similarities[i])
        assert found.examples(sense, 1) == (found.uses[best],)
    assert len(found.to_frame()) == 60 and found.to_frame()["sense"].tolist() == list(found.labels)


def test_one_long_cloud_is_one_sense():
    chosen = []
    for seed in range(10):
        states, _ = used(60, [0], seed=seed, long=1.5)
        found = probing.senses(states, "bat", max_senses=4, random_state=seed, **FAST)
        chosen.append(found.n_senses)
    # Each is cut wrongly with probability 0.05; three or more of ten with 0.01.
    assert sum(n > 1 for n in chosen) <= 2


def test_a_number_can_be_given():
    states, _ = used(40, [0, 1], seed=3)
    found = probing.senses(states, "bat", n_senses=3, **FAST)
    assert found.n_senses == 3 and not found.chosen and found.p > 0.2
    one = probing.senses(states, "bat", n_senses=1, **FAST)
    assert one.sizes == (40,) and np.isnan(one.p) and np.isnan(one.silhouettes).all()
    with refuses("n_senses"):
        probing.senses(states, "bat", n_senses=9, **FAST)


def test_single_far_uses_do_not_hide_two_senses():
    states, _ = used(40, [0, 1], seed=2)
    vectors = states.layer(0).copy()
    vectors[[5, 11]] = [-9 * np.eye(8)[5], -9 * np.eye(8)[6]]
    states = made_states(states.texts, [vectors])
    found = probing.senses(states, "bat", **FAST)
    assert found.n_senses == 2 and min(found.sizes) >= 19


def test_too_few_uses_are_one_sense_and_that_is_told():
    states, _ = used(8, [0, 1])
    found = probing.senses(states, "bat", **FAST)
    assert found.n_senses == 1 and np.isnan(found.p)
    assert found.decisions[-1].name == "too_few_uses"
    with refuses("sense"):
        found.examples(1)


def test_copies_make_no_sense_of_their_own():
    states, _ = used(30, [0], seed=1)
    texts = [*states.texts, *[states.texts[3]] * 15]
    rows = np.concatenate([states.layer(0), np.tile(states.layer(0)[6:8], (15, 1))])
    found = probing.senses(made_states(texts, [rows]), "bat", **FAST)
    told = {d.name: d.value for d in found.decisions}
    assert told["equal_sentences"] == 15 and len(found.uses) == 45 and found.n_senses == 1
    sentences = [use.sentence for use in found.examples(0, 100)]
    assert len(sentences) == len(set(sentences)) == 30


def test_uses_beyond_the_sample_are_assigned_to_the_nearest_cluster(monkeypatch):
    monkeypatch.setattr(module, "MOST_USES", 20)
    states, truth = used(60, [0, 1], seed=4)
    found = probing.senses(states, "bat", **FAST)
    by_text = dict(zip([u.text for u in found.uses], found.labels.tolist(), strict=True))
    assert adjusted_rand_score(truth, [by_text[t] for t in range(60)]) == 1
    assert {d.name for d in found.decisions} == {"uses_drawn"}


def test_the_order_of_the_texts_does_not_matter():
    states, _ = used(40, [0, 0, 1], seed=6, spread=0.8)
    other, _ = reordered(states)
    one, two = (probing.senses(s, "bat", **FAST) for s in (states, other))
    assert [u.sentence for u in one.uses] == [u.sentence for u in two.uses]
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.p == two.p


def test_the_tree_is_that_of_scipy_where_no_use_moves():
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(30, 5)) * 0.2 + np.repeat(2 * np.eye(5)[:3], 10, axis=0))
    cuts = module._cut(vectors, 6, 3)
    tree = linkage(vectors, method="ward")
    assert adjusted_rand_score(cuts.labels[3], fcluster(tree, 3, "maxclust")) == 1
    truth = silhouette_score(vectors, cuts.labels[3], metric="cosine")
    assert abs(cuts.widths[3] - truth) < 1e-9 and cuts.best(range(2, 7)) == 3
    for k, labels in cuts.labels.items():
        centers = np.array([unit(vectors[labels == c].mean(axis=0)) for c in range(k)])
        np.testing.assert_array_equal((vectors @ centers.T).argmax(axis=1), labels)
        assert np.bincount(labels).min() >= 3
