"""Labels that are measured by the texts they find, beside scikit-learn's AUC and resampling."""

import dataclasses
import shutil
import zlib

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import embedtopics as et
from embedtopics import topics
from embedtopics.encoders import StaticEncoder
from embedtopics.terms._keywords import unique_labels
from embedtopics.topics._vectors import row_centroids
from embedtopics.topics.naming._name_scores import (
    MIN_TEXTS,
    N_SIBLINGS,
    N_TEXTS,
    _error,
    _with_interval,
    score_with,
)
from tests.factories import make_result, refuses


def by_chance(text, width):
    """A direction of its own for each text."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).normal(size=width)
    return vector / np.linalg.norm(vector)


def encode_with(result, known=()):
    """Return an encoder that puts known texts on topics, others anywhere."""
    width, means = result.embeddings.shape[1], row_centroids(result)
    places = {text: means[topic] for text, topic in dict(known).items()}
    return lambda texts: np.array(
        [places.get(t, by_chance(t, width)) for t in texts], dtype=np.float32
    )


def keywords_of(topic):
    return ", ".join(topic.keywords[:3])


@pytest.fixture(scope="module")
def result():
    made = make_result(400, 6)
    plain = unique_labels([topic.keywords for topic in made.topics])
    topics_of = [
        dataclasses.replace(topic, name=name, is_named=False)
        for topic, name in zip(made.topics, plain, strict=True)
    ]
    return dataclasses.replace(made, topics=tuple(topics_of))


def test_scores_are_areas_under_the_roc_curve(result):
    encode = encode_with(result)
    scored = score_with(result, encode)
    means, labels = row_centroids(result), result.clustering.labels
    for topic, before in zip(scored.topics, result.topics, strict=True):
        assert topic.name == before.name
        near = np.argsort(-(means @ means[topic.topic_id]), kind="stable")
        near = [other for other in near if other != topic.topic_id][:N_SIBLINGS]
        own = np.flatnonzero(labels == topic.topic_id)[:N_TEXTS]
        each = [np.flatnonzero(labels == other)[: N_TEXTS // N_SIBLINGS] for other in near]
        others = np.concatenate(each)
        vectors = result.embeddings[np.concatenate([own, others])]
        truth = np.repeat([1, 0], [len(own), len(others)])
        expected = roc_auc_score(truth, vectors @ encode([keywords_of(topic)])[0])
        assert topic.keywords_auc == pytest.approx(expected)
        assert topic.name_auc[0] == pytest.approx(expected)
        assert topic.name_auc[1] < expected < topic.name_auc[2]


def test_the_standard_error_is_that_of_resampling():
    rng = np.random.default_rng(0)
    near, far = rng.normal(1.0, 1.0, 80), rng.normal(0.0, 1.5, 60)
    wins = (near[:, None] > far[None, :]).astype(float)
    drawn = [
        wins[np.ix_(rng.integers(0, 80, 80), rng.integers(0, 60, 60))].mean() for _ in range(3000)
    ]
    assert _error(wins.mean(axis=1), wins.mean(axis=0)) == pytest.approx(np.std(drawn), rel=0.05)


def test_no_label_is_certain():
    auc, low, high = _with_interval(np.ones(20), np.ones(30))
    assert (auc, high) == (1.0, 1.0)
    assert low == pytest.approx(20 / (20 + 1.959964**2))  # Wilson's bound of 20 hits of 20
    assert _with_interval(np.zeros(20), np.zeros(30))[:2] == (0.0, 0.0)


def test_names_that_were_given_stay_and_are_marked_where_they_are_worse(result):
    good = {keywords_of(topic): topic.topic_id for topic in result.topics} | {"Fitting": 1}
    named = topics.rename(result, {0: "Zebra", 1: "Fitting"})
    scored = score_with(named, encode_with(result, good))
    assert [topic.name for topic in scored.topics[:2]] == ["Zebra", "Fitting"]
    assert [topic.is_name_worse for topic in scored.topics[:3]] == [True, False, False]
    assert scored.decisions[-1].name == "names_worse" and scored.decisions[-1].value == [0]
    table = topics.table(scored)
    assert table["name_worse"].tolist()[:3] == [True, False, False]
    assert table["name_auc"][1] == scored.topics[1].name_auc[0]
    assert np.isnan(table["keywords_auc"].iloc[-1]) and table["topic"].iloc[-1] == -1
    assert "name_auc" not in topics.table(result)


def test_scores_stay_with_what_they_are_of(result, tmp_path):
    label = result.topics[2].name
    scored = score_with(topics.rename(result, {3: "Given"}), encode_with(result, {label: 2}))
    loaded = et.TopicResult.load(scored.save(tmp_path / "scored"))
    assert loaded.topics == scored.topics
    merged = topics.merge(scored, [[0, 1]])
    again = next(topic for topic in merged.topics if topic.name == "Given")
    assert again.name_auc == scored.topics[3].name_auc
    scores = {topic.name: topic.name_auc for topic in scored.topics}
    assert all(topic.name_auc == scores.get(topic.name) for topic in merged.topics)
    shorter = topics.update_terms(scored, stop_words=[scored.topics[2].keywords[0]])
    assert shorter.topics[2].name_auc is None and shorter.topics[2].name != label
    assert shorter.topics[3].name_auc == scored.topics[3].name_auc
    renamed = topics.rename(scored, {2: "Other"})
    assert renamed.topics[2].name_auc is None
    assert renamed.topics[2].keywords_auc == scored.topics[2].keywords_auc


def test_edits_score_what_they_change_while_the_encoder_is_at_hand(tmp_path):
    rows = list(make_result(300, 4).corpus.texts)
    words = sorted({word for row in rows for word in row.lower().replace(".", " ").split()})
    ids = {word: i for i, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    table = np.random.default_rng(0).normal(size=(len(ids), 16))
    StaticEncoder.from_arrays(table, tokenizer).save(tmp_path / "static")
    model = et.TopicModel(StaticEncoder(tmp_path / "static"), n_topics=4, languages=["en"])
    fitted = model.fit(rows).result_

    def scores(result):
        return [(topic.name_auc, topic.keywords_auc) for topic in result.topics]

    for edited in (
        topics.merge(fitted, [[0, 1]]),
        topics.recluster(fitted, 3),
        topics.rename(fitted, {0: words[5]}),
    ):
        assert None not in dict(scores(edited)) and set(scores(edited)) - set(scores(fitted))
        new = set(scores(edited)) - set(scores(fitted))
        assert new <= set(scores(topics.with_name_scores(edited)))
    shutil.rmtree(tmp_path / "static")
    assert None in dict(scores(topics.merge(fitted, [[0, 1]])))


def test_few_texts_and_single_topics_have_no_score():
    single = make_result(60, 1)
    assert score_with(single, encode_with(single)).topics == single.topics
    small = make_result(3 * MIN_TEXTS, 6)
    for topic in score_with(small, encode_with(small)).topics:
        n_own = int((small.clustering.labels == topic.topic_id).sum())
        assert (topic.name_auc is None) == (n_own < MIN_TEXTS)


def test_an_encoder_is_needed(result):
    with refuses("encoder"):
        topics.with_name_scores(result)


def test_a_fit_that_encodes_scores_whatever_the_order_of_the_rows():
    rows = list(make_result(300, 4).corpus.texts)
    order = np.random.default_rng(1).permutation(len(rows))
    model = et.TopicModel("lsa", n_topics=4, languages=["en"], random_state=0)
    one = model.fit(rows).result_.topics
    two = model.fit([rows[i] for i in order]).result_.topics
    assert [t.name for t in one] == [t.name for t in two]
    for first, second in zip(one, two, strict=True):
        assert first.name_auc == pytest.approx(second.name_auc, abs=0.01)
        assert first.name_auc[1] <= first.name_auc[0] <= first.name_auc[2]
        assert not first.is_named and not first.is_name_worse
