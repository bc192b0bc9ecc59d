"""The model as a scikit-learn estimator, and the textbook pipeline by name."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import embedtopics as et
from tests.factories import refuses


@pytest.fixture(scope="module")
def textbook(toy):
    """A model of UMAP and HDBSCAN, as BERTopic sets them."""
    texts, vectors, _ = toy
    model = et.TopicModel(reducer="umap", clusterer="hdbscan", languages=["en"], random_state=0)
    return model.fit(texts, embeddings=vectors)


@pytest.mark.filterwarnings("ignore")
def test_sklearn():
    check_estimator(et.TopicModel("tfidf"))


def test_shares_as_a_frame_with_a_column_a_topic(toy):
    texts, vectors, _ = toy
    model = et.TopicModel(languages=["en"])
    shares = model.fit_transform(texts, embeddings=vectors)
    assert shares.shape == (len(texts), model.result_.n_topics)
    np.testing.assert_array_equal(shares.toarray(), model.transform(texts).toarray())
    names = [topic.label for topic in model.result_.topics]
    assert model.get_feature_names_out().tolist() == names
    frame = model.set_output(transform="pandas").transform(texts[:5])
    assert list(frame.columns) == names
    np.testing.assert_array_equal(frame.to_numpy(), shares[:5].toarray())


@pytest.mark.parametrize(
    ("stages", "n_topics"),
    [
        ({"clusterer": "kmeans", "n_topics": 3}, 3),
        ({"clusterer": "kmeans", "reducer": "pca"}, 8),
        ({"clusterer": "hdbscan", "min_cluster_size": 20}, None),
    ],
)
def test_stages_by_name(toy, stages, n_topics, tmp_path):
    texts, vectors, _ = toy
    model = et.TopicModel(languages=["en"], **stages).fit(texts, embeddings=vectors)
    assert n_topics in (None, model.result_.n_topics)
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    assert loaded.clusterer == stages["clusterer"] and loaded.reducer == stages.get("reducer")


def test_the_textbook_pipeline_finds_the_groups(textbook, toy):
    labels, truth = textbook.labels_, toy[2]
    inside = labels >= 0
    assert textbook.result_.coordinates.shape[1] == 5 and inside.mean() > 0.8
    assert et.evaluation.agreement(np.asarray(truth)[inside], labels[inside]) is not None


def test_bad_stages(toy):
    texts, vectors, _ = toy
    for parameter, stages in (
        ("reducer", {"reducer": "tsne"}),
        ("clusterer", {"clusterer": "dbscan"}),
        ("n_topics", {"clusterer": "hdbscan", "n_topics": 3}),
        ("n_topics", {"clusterer": "kmeans", "n_topics": "fine"}),
        ("min_cluster_size", {"clusterer": "kmeans", "min_cluster_size": 5}),
    ):
        with refuses(parameter):
            et.TopicModel(**stages).fit(texts, embeddings=vectors)


QUESTIONS = {
    "table": lambda result: et.topics.table(result),
    "report_card": lambda result: et.topics.report_card(result, n_resamples=20),
    "merge": lambda result: et.topics.merge(result, [0, 1]),
    "split": lambda result: et.topics.split(result, 0, 2),
    "reassign": lambda result: et.topics.reassign(result),
    "update_terms": lambda result: et.topics.update_terms(result, extra_stop_words=["apple"]),
    "mixtures": lambda result: et.topics.mixtures(result),
    "assign": lambda result: et.topics.assign(result, result.corpus.texts[:3]),
    "topic_map": lambda result: et.plots.topic_map(result),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_later_questions_work_behind_the_textbook_pipeline(textbook, name):
    assert QUESTIONS[name](textbook.result_) is not None


def test_a_result_shows_itself(branched):
    assert repr(branched).startswith(f"TopicResult({branched.n_topics} topics")
    assert "\n" not in repr(branched)
    renamed = et.topics.rename(branched, {0: "<b>Bold</b>"})
    html = renamed._repr_html_()
    assert "&lt;b&gt;Bold" in html and "<b>Bold" not in html
