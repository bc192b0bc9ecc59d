"""Questions take a fitted model as they take its result, and say what moved where."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from tests.factories import refuses


@pytest.fixture(scope="module")
def model():
    return et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))


QUESTIONS = {
    "table": et.topics.table,
    "documents": et.topics.documents,
    "evaluate": lambda asked: et.topics.evaluate(asked, n_resamples=20),
    "find": lambda asked: et.topics.find(asked, "strike of the dockers"),
    "sample_documents": lambda asked: et.topics.sample_documents(asked, 1),
    "concordance": lambda asked: et.topics.concordance(asked, "strike", topics=[0, -1]),
    "keyness": lambda asked: et.topics.keyness(asked, "source == 'press'"),
    "themes": et.topics.themes,
    "over_time": lambda asked: et.topics.over_time(asked, "month").to_frame(),
    "by_group": lambda asked: et.topics.by_group(asked, "source").to_frame(),
    "effects": lambda asked: et.topics.effects(asked, "~ source", n_replicates=2).to_frame(),
    "mixture": lambda asked: et.topics.mixture(asked, 3).to_frame(),
    "assign": lambda asked: et.topics.assign(asked, ["dockers on strike", None]).to_frame(),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_model_and_its_result_have_one_answer(name, model):
    ask = QUESTIONS[name]

    pd.testing.assert_frame_equal(ask(model), ask(model.result_))


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_no_result_is_refused(name):
    with refuses("result"):
        QUESTIONS[name](["a text", "another text"])


def test_an_assignment_is_a_table_with_the_index_of_the_texts(model):
    texts = pd.Series(["dockers on strike", None], index=["first", "second"])

    assignment = et.topics.assign(model, texts)
    frame = assignment.to_frame()

    assert list(frame) == ["id", "topic", "topic_name", "membership", "novelty"]
    assert frame.index.tolist() == ["first", "second"]
    assert frame["topic"].tolist() == assignment.labels.tolist() == model.predict(texts).tolist()
    assert frame["topic_name"].iloc[1] == "(no topic)" and np.isnan(frame["novelty"].iloc[1])
    shares = assignment.memberships.toarray()[0]
    topic = assignment.labels[0]
    assert frame["membership"].iloc[0] == pytest.approx(shares[topic] if topic >= 0 else 0)
    assert repr(assignment).startswith("Assignment(2 texts, ")


@pytest.mark.parametrize(
    "name",
    ["adopt", "inspect_corpus", "report_card", "token_topics", "validation_sheets"],
)
def test_a_name_that_moved_says_where_to(name):
    with pytest.raises(AttributeError, match=rf"'{name}'; it is et\."):
        getattr(et.topics, name)


def test_trends_are_needed_for_changes(model):
    with refuses("trends"):
        et.topics.changes(model)
