"""Each row of the README's table runs on both sides, and the values are compared.

The labels, the vectors and the words are the same (conftest.py), so what both compute from them
must be the same too: to 1e-6 where it is a number.
"""

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import embedtopics as et
from tests.coming_from_bertopic import comparisons
from tests.coming_from_bertopic.conftest import fit_bertopic
from tests.coming_from_bertopic.table import habit_of, method_of, names_the_call, rows

pytestmark = pytest.mark.slow

ROWS = rows()
COMPARED = {
    name: compare
    for name, compare in inspect.getmembers(comparisons, inspect.isfunction)
    if not name.startswith("_")
}
NOT_RUN = {
    "partial_fit": "needs partial_fit in every stage",
    "push_to_hf_hub": "needs the network",
    "visualize_approximate_distribution": "fails with pandas 3",
    "visualize_document_datamap": "needs the package datamapplot",
}
"""Rows of which BERTopic's side cannot run here."""
PREPARED = {
    "load": lambda both: (
        both.topic_model.save("theirs", serialization="safetensors", save_ctfidf=True),
        both.model.save("ours"),
    ),
    # A fit with the noise in it: after delete_topics, BERTopic goes on with what it deleted.
    "reduce_outliers": lambda both: setattr(both, "topic_model", fit_bertopic(both.with_noise)),
}
"""What BERTopic needs before a row, for its methods change the model that they are called on."""


@pytest.fixture
def both(frame, corpus, model, result, topic_model, tmp_path, monkeypatch):
    """The names that the rows use."""
    from bertopic.representation import MaximalMarginalRelevance
    from bertopic.vectorizers import ClassTfidfTransformer
    from sklearn.feature_extraction.text import CountVectorizer

    monkeypatch.chdir(tmp_path)
    docs = list(result.corpus.texts)
    vectors = result.by_row(result.embeddings, 0.0)
    new_docs = [" ".join(reversed(text.split())) for text in docs[:12]]
    names = SimpleNamespace(
        et=et,
        np=np,
        BERTopic=type(topic_model),
        ClassTfidfTransformer=ClassTfidfTransformer,
        MaximalMarginalRelevance=MaximalMarginalRelevance,
        topic_model=topic_model,
        docs=docs,
        vectors=vectors,
        labels=result.labels.tolist(),
        new_docs=new_docs,
        new_vectors=vectors[:12],
        topics=[int(label) if label < 7 else -1 for label in result.labels],
        sources=frame["source"].tolist(),
        years=frame["date"].dt.year.tolist(),  # it cannot read strings with pandas 3
        options={"languages": [], "stop_words": [], "ngram_range": (1, 1), "min_df": 1},
        corpus=corpus,
        model=model,
        result=result,
        with_noise=et.topics.remove(result, [7]),
        hierarchy=et.topics.hierarchy(result, space="terms"),
        trends=et.topics.over_time(result, every="year"),
        groups=et.topics.by_group(result, "source"),
        fewer_words=CountVectorizer(
            tokenizer=topic_model.vectorizer_model.tokenizer,
            token_pattern=None,
            stop_words=["people"],
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names.hierarchical = topic_model.hierarchical_topics(docs)
        names.over_time = topic_model.topics_over_time(docs, names.years)
        names.per_class = topic_model.topics_per_class(docs, names.sources)
        names.distribution, names.by_token = topic_model.approximate_distribution(
            docs, calculate_tokens=True
        )
    return names


@pytest.mark.filterwarnings("ignore")  # BERTopic's, and those of what it draws with
@pytest.mark.parametrize(("theirs", "ours"), ROWS, ids=[method_of(theirs) for theirs, _ in ROWS])
def test_row(theirs, ours, both):
    method = method_of(theirs)
    PREPARED.get(method, lambda both: None)(both)
    made = {}
    for side, code in (("theirs", theirs), ("ours", ours)):
        if side == "theirs" and method in NOT_RUN:
            made[side] = NOT_RUN[method]
        else:
            made[side] = eval(code, dict(vars(both)))
    COMPARED[method](made["theirs"], made["ours"], both)


@pytest.mark.parametrize(
    ("theirs", "ours"), [row for row in ROWS if habit_of(row[0])], ids=lambda code: code[:40]
)
def test_the_method_of_a_row_is_there_or_its_error_names_our_call(theirs, ours, model, result):
    name = habit_of(theirs)[1]
    is_of_model = ours.startswith("model.")
    for value in (model,) if is_of_model else (model, result):
        if not hasattr(value, name):
            with pytest.raises(AttributeError) as raised:
                getattr(value, name)
            assert names_the_call(str(raised.value), ours)


def test_every_attribute_of_a_fitted_bertopic_names_our_call(fitted, model):
    attributes = {name for name in vars(fitted) if name.endswith("_")} | {"topic_labels_"}
    assert len(attributes) > 9
    for name in attributes - {"mappings_"}:
        with pytest.raises(AttributeError, match=r"; (call|it is) (et|model)\."):
            getattr(model, name)


def test_every_method_of_bertopic_has_a_row():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from bertopic import BERTopic
    public = {name for name in dir(BERTopic) if not name.startswith("_")}
    public.remove("visualize_heatmap")  # the hierarchy shows which topics are similar
    assert public <= {method_of(theirs) for theirs, _ in ROWS}


def test_every_row_is_compared():
    assert {method_of(theirs) for theirs, _ in ROWS} == set(COMPARED)
