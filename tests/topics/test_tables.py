import numpy as np
import pandas as pd
import pytest

import embedtopics as et


@pytest.fixture(scope="module")
def result(toy):
    texts, vectors, _ = toy
    frame = pd.DataFrame({"t": texts, "topic": "given", "id": [f"x{i}" for i in range(len(texts))]})
    corpus = et.Corpus.from_frame(frame, text="t", id="id")
    return et.TopicModel(languages=["en"], random_state=1).fit(corpus, embeddings=vectors).result_


def test_table_adds_up(result, toy):
    frame = et.topics.table(result, n_terms=4, n_examples=2)
    assert list(frame.columns) == ["topic", "size", "share", "label", "terms", "examples"]
    assert frame["size"].sum() == len(toy[0])
    assert frame["share"].sum() == pytest.approx(1.0)
    topics = frame[frame["topic"] >= 0]
    assert topics["size"].is_monotonic_decreasing
    assert (topics["terms"].map(len) == 4).all() and (topics["examples"].map(len) == 2).all()
    sizes = pd.Series(result.labels).value_counts()
    assert dict(zip(frame["topic"], frame["size"], strict=True)) == sizes.to_dict()


def test_documents_keep_rows_and_given_columns(result, toy):
    frame = et.topics.documents(result)
    assert frame["text"].tolist() == toy[0]
    assert frame["excerpt"].str.len().max() <= 160 and "\n" not in "".join(frame["excerpt"])
    assert frame["id"].tolist()[:2] == ["x0", "x1"]
    assert (frame["topic_given"] == "given").all()
    np.testing.assert_array_equal(frame["topic"], result.labels)
    inside = frame["topic"] >= 0
    assert (frame.loc[inside, "membership"] >= 0.5).all()


def test_documents_tell_typical_texts(branched):
    frame = et.topics.documents(branched)
    for topic in branched.topics:
        texts = {branched.corpus.texts[row] for row in topic.representatives}
        inside = frame[frame["topic"] == topic.topic_id]
        assert inside["representative"].tolist() == inside["text"].isin(texts).tolist()
    assert not frame.loc[frame["topic"] < 0, "representative"].any()


def test_terms_are_the_best_of_each_topic(result):
    frame = et.topics.terms(result, n_terms=5)
    assert (frame.groupby("topic").size() == 5).all()
    weights = result.topic_terms[0].toarray()[0]
    np.testing.assert_allclose(frame["weight"][:5], np.sort(weights)[::-1][:5])
    column = result.term_counts.terms.index(frame["term"][0])
    holders = result.term_counts.counts[:, column].toarray().ravel() > 0
    expected = int((holders & (result.clustering.labels == 0)).sum())
    assert frame["n_documents"][0] == expected
