"""What is new is told: how many belong nowhere, against what was expected, and in what groups."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import betabinom

import embedtopics as et
from embedtopics.clustering.results import NOISE
from embedtopics.neighbors._graph import nearest
from embedtopics.topics import assign, extend
from embedtopics.topics.growing._novelty import chance_of, expected_outside
from embedtopics.topics.results import Reason
from tests.factories import refuses

STRANGE = [f"zork{i % 7} plim{i % 5} grue quendor {i}" for i in range(40)]


def strange(n=40, seed=2):
    """Return vectors around a direction that the fit does not know."""
    direction = np.random.default_rng(seed).normal(size=24)
    spread = 0.05 * np.random.default_rng(seed + 1).normal(size=(n, 24))
    return direction / np.linalg.norm(direction) + spread


@pytest.fixture(scope="module")
def surprising(split):
    result, texts, vectors = split
    return extend(result, texts + STRANGE, embeddings=np.vstack([vectors, strange()]))


@pytest.fixture(scope="module")
def adopted(split):
    """The same extension, with its group as a topic."""
    result, texts, vectors = split
    given = np.vstack([vectors, strange()])
    return extend(result, texts + STRANGE, adopt=True, embeddings=given)


def the_only(extension):
    """Return the only candidate of an extension, a row of its table."""
    (row,) = extension.to_frame().itertuples()
    return row


def test_the_expected_share_is_that_of_documents_left_out_one_by_one(split):
    result = split[0]
    share, n_documents = expected_outside(result)
    outside = 0
    for document in range(len(result.distinct)):
        others = np.delete(np.arange(len(result.distinct)), document)
        k = result.graph.k
        near, close = nearest(result.embeddings[[document]], result.embeddings[others], k)
        outside += is_outside(result, others[near[0]], close[0])
    assert n_documents == len(result.distinct)
    assert share == pytest.approx(outside / n_documents, abs=1e-12)


def is_outside(result, near, close):
    """Judge by hand: the best topic's votes against the next and the rest, and how far it is."""
    weights = np.maximum(close.astype(float), 0)
    topics = result.clustering.labels[near]
    votes = np.bincount(topics[topics >= 0], weights[topics >= 0], minlength=result.n_topics)
    votes /= weights.sum()
    best, second = np.sort(votes)[::-1][:2]
    none = 1 - votes.sum()
    means = result.graph.similarities.mean(axis=1, dtype=float)
    is_far = np.mean(means > close.mean(dtype=float)) > 0.99
    is_clear = best >= 1.2 * max(second, none / 3) and best > 0
    return not (is_clear and not is_far)


@pytest.mark.parametrize("n_outside", [0, 1, 7, 40])
@pytest.mark.parametrize(("expected", "n_fitted"), [(0.0, 50), (0.1, 50), (0.1, 50_000), (1.0, 9)])
def test_the_chance_is_that_of_the_predictive_distribution(n_outside, expected, n_fitted):
    n_before = round(expected * n_fitted)
    law = betabinom(40, n_before + 0.5, n_fitted - n_before + 0.5)
    chance = min(1.0, law.sf(n_outside - 1))
    assert chance_of(n_outside, 40, expected, n_fitted) == pytest.approx(chance, rel=1e-8)
    # Of nothing nothing follows, and many documents are no matter.
    assert chance_of(0, 0, 0.5, 10) == 1.0 and chance_of(60_000, 60_000, 0.1, 60_000) < 1e-300


def test_more_of_the_same_is_no_alarm(split):
    result, texts, vectors = split
    said = extend(result, texts, embeddings=vectors)
    assert not said.is_alarming and len(said.candidates) == 0
    assert said.to_frame().empty and len(said.to_frame().columns) == 11
    labels = said.result.clustering.labels[said.documents]
    assert said.outside == pytest.approx(np.mean(labels == NOISE))


def test_a_strange_group_is_found_and_described(split, surprising):
    result = surprising.result
    assert surprising.is_alarming and surprising.p_value < 1e-6
    found = the_only(surprising)
    texts = result.corpus.document_texts()
    members = [texts[document] for document in found.documents]
    assert set(members) <= set(STRANGE) and len(members) > 35 and found.size == len(members)
    assert {"quendor", "grue"} & {word for term in found.terms for word in term.split()}
    assert found.name in surprising.summary() and found.n_before == 0
    assert set(found.representatives) <= set(range(len(result.corpus) - 40, len(result.corpus)))
    vectors = result.embeddings[list(found.documents)].astype(float)
    n = len(vectors)
    pairs = (vectors @ vectors.T)[~np.eye(n, dtype=bool)]
    assert found.similarity == pytest.approx(pairs.mean(), abs=1e-6)
    means = np.array([
        result.embeddings[result.clustering.labels == topic].mean(axis=0)
        for topic in range(result.n_topics)
    ])  # fmt: skip
    center = vectors.mean(axis=0)
    close = means @ center / np.linalg.norm(means, axis=1) / np.linalg.norm(center)
    assert found.nearest_topic == close.argmax()
    assert found.topic_similarity == pytest.approx(close.max(), abs=0.01)  # weights of repeats
    row = surprising.to_frame().iloc[0]
    assert (row["size"], row["topic"]) == (len(members), -1)
    assert row["examples"][0] in STRANGE


def test_groups_gather_over_several_extensions(split):
    result, _, vectors = split
    known = [f"again {i}" for i in range(60)]
    parts = [slice(0, 3), slice(3, 40)]
    given = np.vstack([vectors[:60] + 0.01, strange()[parts[0]]])
    first = extend(result, known + STRANGE[parts[0]], embeddings=given)
    assert len(first.candidates) == 0
    second = extend(first.result, STRANGE[parts[1]], embeddings=strange()[parts[1]])
    found = the_only(second)
    rows = second.result.distinct.first_rows[list(found.documents)]
    n_before = int((first.result.labels[-3:] == NOISE).sum())
    assert (rows < 463).sum() == n_before >= 2  # of the first extension, too


def test_what_the_fit_had_left_out_is_not_new(branches):
    texts, vectors = branches
    # Outside the topics of the fit there is already what comes with the new documents.
    fit = et.TopicModel(languages=[], random_state=2, min_cluster_size=25)
    strangers = np.vstack([vectors, strange(20)])
    result = fit.fit(texts + STRANGE[:20], embeddings=strangers).result_
    assert (result.labels[-20:] == NOISE).all()
    said = extend(result, [f"new {t}" for t in STRANGE[:20]], embeddings=strange(20) + 0.001)
    assert said.candidates["n_before"].iloc[0] == 20  # of twenty new ones: all
    both = [*(f"other {t}" for t in texts), *(f"new {t}" for t in STRANGE[:20])]
    mixed = extend(result, both, embeddings=np.vstack([vectors, strange(20)]) + 0.001)
    assert len(mixed.candidates) == 0


def test_without_topics_everything_is_outside(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(12, 24)).astype(np.float32)
    fit = et.TopicModel(languages=[]).fit([f"text {i}" for i in range(12)], embeddings=vectors)
    result = dataclasses.replace(fit.result_)
    assert result.n_topics == 0
    said = extend(result, STRANGE, embeddings=strange())
    assert said.outside == 1.0 == said.expected and not said.is_alarming
    found = the_only(said)
    assert found.nearest_topic == -1 and np.isnan(found.topic_similarity)
    grown = extend(result, STRANGE, adopt=True, embeddings=strange()).result
    assert grown.n_topics == 1 and grown.topics[0].size == found.size
    assert et.TopicResult.load(grown.save(tmp_path / "grown")).n_topics == 1


def test_adopted_groups_are_topics(split, surprising, adopted):
    before, grown = surprising.result, adopted.result
    found = the_only(surprising)
    members = list(found.documents)
    n = before.n_topics
    assert grown.n_topics == n + 1 and grown.topics[n].topic_id == n
    assert grown.topics[n].size == found.size
    assert "grue quendor" in grown.topics[n].keywords or "quendor" in grown.topics[n].keywords
    assert (grown.clustering.labels[members] == n).all()
    others = np.setdiff1d(np.arange(len(before.distinct)), members)
    np.testing.assert_array_equal(grown.clustering.labels[others], before.clustering.labels[others])
    np.testing.assert_array_equal(grown.map, before.map)
    assert grown.memberships.shape == (len(before.distinct), n + 1)
    assert (grown.memberships.toarray()[members, n] >= 0.5).all()
    np.testing.assert_array_equal(
        grown.memberships[others, :n].toarray(), before.memberships[others].toarray()
    )
    assert (grown.memberships.sum(axis=1) <= 1 + 1e-6).all()
    assert (grown.clustering.probabilities[members] > 0).all()
    assert set(grown.clustering.reasons[members]) == {Reason.IN_TOPIC}
    assert not grown.added[members].any() and np.isnan(grown.clustering.persistence[n])
    assert "as topics: 12" in grown.history[-1].message
    assert len(et.topics.table(grown)) == n + 2


def test_further_texts_find_an_adopted_topic(adopted):
    grown = adopted.result
    queries = strange(seed=2)[:5] + 0.01
    found = assign(grown, [f"later {i}" for i in range(5)], embeddings=queries)
    assert found.labels.tolist() == [12] * 5
    again = extend(grown, [f"later {i}" for i in range(5)], embeddings=queries)
    assert again.result.topics[12].size == grown.topics[12].size + 5
    assert len(again.candidates) == 0


def test_several_candidates_become_topics(split):
    others = [f"frobnicate gizmo{i % 4} whatsit {i}" for i in range(30)]
    given = np.vstack([strange(), strange(30, seed=28)])
    said = extend(split[0], STRANGE + others, embeddings=given)
    sizes = said.candidates["size"].tolist()
    assert [size > 25 for size in sizes] == [True, True]
    both = extend(split[0], STRANGE + others, adopt=True, embeddings=given)
    grown = both.result
    assert grown.n_topics == 14 and grown.history[-1].parameters == {"n_adopted": 2}
    assert [topic.size for topic in grown.topics[12:]] == sizes
    assert both.candidates["topic"].tolist() == [12, 13]


def test_chosen_rows_of_the_candidates_become_topics(split):
    others = [f"frobnicate gizmo{i % 4} whatsit {i}" for i in range(30)]
    texts, given = STRANGE + others, np.vstack([strange(), strange(30, seed=28)])
    candidates = extend(split[0], texts, embeddings=given).to_frame()
    second = candidates.iloc[[1]]

    by_number = extend(split[0], texts, adopt=[1], embeddings=given)
    by_row = extend(split[0], texts, adopt=second, embeddings=given)

    assert by_number.result.n_topics == 13
    assert by_number.result.topics[12].size == second["size"].iloc[0]
    assert by_number.to_frame()["topic"].tolist() == [-1, 12]
    np.testing.assert_array_equal(by_row.result.labels, by_number.result.labels)
    assert repr(by_row) == "Extension(70 new documents, 2 candidate topics, 1 adopted)"


@pytest.mark.parametrize("adopt", [[1], [-1], ["zork"], [True]])
def test_groups_that_are_not_there_cannot_be_adopted(split, adopt):
    with refuses("adopt"):
        extend(split[0], STRANGE, adopt=adopt, embeddings=strange())


def test_many_documents_join_the_groups_of_a_sample(split, surprising, monkeypatch):
    result, texts, vectors = split
    monkeypatch.setattr("embedtopics.topics.growing._novelty.MOST", 15)
    said = extend(result, texts + STRANGE, embeddings=np.vstack([vectors, strange()]))
    found, whole = the_only(said), the_only(surprising)
    assert set(found.documents) == set(whole.documents)
