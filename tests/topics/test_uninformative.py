"""Texts without sense that lie close together are no topic, from the fit to the tables."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.topics.results import Reason

N_EACH, N_SHUFFLED = 70, 60
SUBJECTS = {
    "sea": "harbor anchor sailor tide vessel wharf captain lighthouse rope storm deck cargo",
    "oven": "flour butter yeast oven dough crust sugar recipe whisk pastry cinnamon loaf",
    "court": "judge verdict lawyer witness jury appeal statute trial evidence oath prison bail",
}


@pytest.fixture(scope="module")
def collection():
    """Texts on three subjects, then texts of words from all of them; each group a direction."""
    rng = np.random.default_rng(11)
    texts = [
        " ".join(rng.choice(words.split(), 9, replace=False))
        for words in SUBJECTS.values()
        for _ in range(N_EACH)
    ]
    pool = [word for text in texts for word in text.split()]
    texts += [" ".join(rng.choice(pool, 9)) for _ in range(N_SHUFFLED)]
    directions = np.linalg.qr(rng.normal(size=(16, 4)))[0].T
    group = np.repeat([0, 1, 2, 3], [N_EACH] * 3 + [N_SHUFFLED])
    return texts, directions[group] + 0.08 * rng.normal(size=(len(group), 16)), group


@pytest.fixture(scope="module")
def model(collection):
    texts, vectors, _ = collection
    fitted = et.TopicModel(languages=["en"], min_cluster_size=35, random_state=0)
    return fitted.fit(texts, embeddings=vectors)


def test_shuffled_texts_are_no_topic(model, collection):
    _, _, group = collection
    result = model.result_
    assert result.n_topics == 3
    assert (result.labels[group == 3] == -1).all()
    reasons = result.reasons[group == 3]
    assert (reasons == Reason.UNINFORMATIVE).mean() > 0.9
    # Each subject is a topic, and its words are the topic's.
    assert len({*zip(result.labels[group < 3], group[group < 3], strict=True)}) == 3
    for topic in result.topics:
        subject = list(SUBJECTS.values())[group[result.labels == topic.topic_id][0]]
        assert set(" ".join(topic.keywords).split()) <= set(subject.split())


def test_it_is_told(model):
    noted = {d.name: d for d in model.result_.decisions}
    assert noted["uninformative"].value == 1
    assert noted["outside"].value >= 0.9 * N_SHUFFLED
    table = et.topics.documents(model.result_)
    assert (table["reason"] == "uninformative").sum() > 0.9 * N_SHUFFLED
    assert not table.loc[table["reason"] == "uninformative", "core"].any()


@pytest.mark.parametrize("parameters", [{"min_cluster_size": 50}, {"coverage": 1.0}])
def test_at_another_resolution_and_coverage(model, collection, parameters):
    _, _, group = collection
    read = et.topics.at_resolution(model.result_, **{"min_cluster_size": 35, **parameters})
    assert (read.labels[group == 3] == -1).mean() > 0.9


def test_with_a_clusterer_of_ones_own(collection):
    texts, vectors, group = collection

    class Known:
        def fit_predict(self, X, y=None):
            return self.labels

    known = Known()
    corpus = et.Corpus.of(texts)
    known.labels = group[corpus.distinct().first_rows]
    model = et.TopicModel(languages=["en"], clusterer=known)
    result = model.fit(corpus, embeddings=vectors).result_
    assert result.n_topics == 3 and (result.labels[group == 3] == -1).all()
    assert set(result.reasons[group == 3]) == {Reason.UNINFORMATIVE}


def test_texts_without_shared_words_are_not_judged():
    """Of texts that have no word in common nothing can be said, so that they stay topics."""
    rng = np.random.default_rng(0)
    vectors = np.repeat(np.eye(2, 8), 40, axis=0) + 0.05 * rng.normal(size=(80, 8))
    model = et.TopicModel(languages=["en"], min_cluster_size=20)
    model.fit([f"word{i}" for i in range(80)], embeddings=vectors)
    assert model.result_.n_topics == 2
