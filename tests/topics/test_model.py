"""The model, as a scikit-learn estimator too, and the textbook pipeline by name."""

from html import escape

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import check_estimator

import embedtopics as et
from embedtopics.errors import InputError
from embedtopics.report._explorer import explorer_html
from embedtopics.terms._tokens import tokenize
from embedtopics.topics._describe import closing_words
from embedtopics.topics.results._result import QUESTIONS
from tests.factories import Table, each, encodes, raising, refuses


@pytest.fixture(scope="module")
def fitted(toy):
    texts, vectors, _ = toy
    return et.TopicModel(languages=["en"], random_state=1).fit(texts, embeddings=vectors)


def test_finds_the_themes(fitted, toy):
    _, _, themes = toy
    labels = fitted.labels_
    assert fitted.result_.n_topics == 3
    assert fitted.result_.coverage > 0.9
    assert (labels[labels >= 0] == themes[labels >= 0]).all()  # largest first: 60, 45, 30


def test_names_of_accounts_are_no_terms(toy):
    texts, vectors, _ = toy
    model = et.TopicModel(languages=["en"], random_state=1)
    result = model.fit([f"@bob {text}" for text in texts], embeddings=vectors).result_
    assert result.settings["extra_stop_words"] == ["bob"]
    assert "bob" not in result.term_counts.terms
    assert "bob" in et.topics.update_terms(result, stop_words=["the"]).term_counts.terms


def test_words_that_close_many_texts_are_no_terms(toy):
    texts, vectors, _ = toy
    closed = [f"{text} Staff writer" if row % 2 else text for row, text in enumerate(texts)]
    result = et.TopicModel(languages=["en"], random_state=1).fit(closed, embeddings=vectors).result_
    assert result.settings["extra_stop_words"] == ["staff", "writer"]
    assert [d.value for d in result.decisions if d.name == "closing_words"] == [["staff", "writer"]]
    opened = [f"Staff writer {text}" for text in closed]  # they stand elsewhere, too
    assert closing_words(tokenize(opened)) == []
    assert closing_words(tokenize([f"word{i} end" for i in range(19)])) == []
    assert closing_words(tokenize([f"word{i} end" for i in range(20)])) == ["end"]


def test_stages_can_be_replaced_and_stay_unfitted(toy):
    texts, vectors, themes = toy
    reducer, clusterer = PCA(4, random_state=0), KMeans(3, n_init=3, random_state=0)
    model = et.TopicModel(reducer=reducer, clusterer=clusterer, languages=["en"])
    labels = model.fit_predict(texts, embeddings=vectors)
    np.testing.assert_array_equal(labels, themes)
    assert not hasattr(reducer, "components_") and not hasattr(clusterer, "labels_")
    assert model.result_.coordinates.shape[1] == 4
    assert np.isnan(model.result_.topics[0].persistence)


def test_any_object_with_encode_is_an_encoder(toy):
    texts, vectors, _ = toy
    encoder = Table(dict(zip(texts, vectors, strict=True)) | {"never seen": vectors[0]})
    encoder.name = "a table"
    model = et.TopicModel(encoder, languages=["en"], random_state=1).fit(texts)
    assert sum(map(len, encoder.asked)) == len(texts)
    assert model.result_.settings["encoder"] == "a table"
    np.testing.assert_array_equal(model.predict([texts[0], "never seen"]), [0, 0])
    assert encoder.asked[-1] == ["never seen"]  # what the fit knows is not encoded again


WRONG = each(
    n_neighbors=[0],
    min_cluster_size=["big", 1],
    ngram_range=[(2, 1)],
    random_state=[-1],
    stop_words=["english"],
)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bad_parameters_are_named(toy, name, value):
    never = encodes(raising(AssertionError("parameters are checked before the work")))
    with pytest.raises(InputError):
        et.TopicModel(**{"encoder": never, name: value}).fit(toy[0])


def test_bad_embeddings_are_named(toy, fitted):
    texts, vectors, _ = toy
    with refuses("embeddings"):
        et.TopicModel(languages=["en"]).fit(texts, embeddings=vectors[:-1])
    for given in (None, np.ones((1, 5))):
        with refuses("embeddings"):
            fitted.predict(["never seen before"], embeddings=given)


def test_all_empty_is_refused():
    with pytest.raises(InputError):
        et.TopicModel().fit(["", None, "  "])


def test_bad_rows_are_counted_as_the_caller_counts(fitted, toy):
    texts, vectors, _ = toy
    with pytest.raises(InputError):
        fitted.predict([texts[0], "a new one"], embeddings=[vectors[0], np.full(16, np.nan)])

    some = [f"text number {i}" for i in range(50)]
    broken = encodes(lambda texts: np.array([[np.nan if "42" in t else 1.0] * 3 for t in texts]))
    with pytest.raises(InputError):
        et.TopicModel(broken, languages=["en"]).fit(some)
    with refuses("encoder"):
        et.TopicModel(encodes(lambda texts: np.ones((len(texts) - 1, 3)))).fit(some)


def test_repeats_with_different_vectors_are_noted(toy):
    texts, vectors, _ = toy
    given = np.vstack([vectors, vectors[1:3]])
    result = et.TopicModel(languages=["en"]).fit([*texts, *texts[:1] * 2], embeddings=given).result_
    assert [d.value for d in result.decisions if d.name == "conflicting_embeddings"] == [1]


def test_a_language_without_stop_words_is_noted(toy):
    texts, vectors, _ = toy
    result = et.TopicModel(languages=["kj"]).fit(texts, embeddings=vectors).result_
    assert [d.value for d in result.decisions if d.name == "no_stop_words"] == [["kj"]]


def test_odd_texts_go_through_all_stages(toy, tmp_path):
    texts, vectors, _ = toy
    odd = [
        "lone \ud800 surrogate", "a\x00b null",
        "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
        "<script>alert(1)</script> & %{x}", "emoji \U0001f600" * 5, "long word " * 200_000,
    ]  # fmt: skip
    model = et.TopicModel(n_topics=3, languages=["en"]).fit(
        texts + odd, embeddings=np.vstack([vectors, vectors[:6] + 0.01])
    )
    assert (model.labels_[-6:] == 0).all()
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(texts + odd), model.labels_)
    page = explorer_html(model.result_)
    assert "<script>alert(1)" not in page and len(page) < 9e6


@pytest.mark.filterwarnings("ignore")
def test_sklearn():
    check_estimator(et.TopicModel("tfidf"))


def test_shares_as_a_frame_with_a_column_a_topic(toy):
    texts, vectors, _ = toy
    model = et.TopicModel(languages=["en"])
    shares = model.fit_transform(texts, embeddings=vectors)
    assert shares.shape == (len(texts), model.result_.n_topics)
    np.testing.assert_array_equal(shares.toarray(), model.transform(texts).toarray())
    names = [topic.name for topic in model.result_.topics]
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
        pytest.param(  # as BERTopic sets them
            {"clusterer": "hdbscan", "reducer": "umap"},
            None,
            marks=[pytest.mark.slow, pytest.mark.smoke],
        ),
    ],
)
def test_stages_by_name(toy, stages, n_topics, tmp_path):
    texts, vectors, _ = toy
    model = et.TopicModel(languages=["en"], random_state=0, **stages)
    model.fit(texts, embeddings=vectors)
    assert model.result_.coverage > 0.8
    assert model.result_.coordinates.shape[1] == 5 or "reducer" not in stages
    assert n_topics in (None, model.result_.n_topics)
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    assert loaded.clusterer == stages["clusterer"] and loaded.reducer == stages.get("reducer")


def test_bad_stages_are_named(toy):
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


def test_a_result_shows_itself(branched):
    assert repr(branched).startswith(f"TopicResult({branched.n_topics} topics")
    assert "\n" not in repr(branched)
    renamed = et.topics.rename(branched, {0: "<b>Bold</b>"})
    html = renamed._repr_html_()
    assert "&lt;b&gt;Bold" in html and "<b>Bold" not in html


def test_a_summary_lists_the_largest_topics_and_the_decisions(branched):
    lines = branched.summary(3).splitlines()
    assert lines[0] == repr(branched)
    first = branched.topics[0]
    listed = [int(line[:4]) for line in lines[1:] if line[:4].strip().isdecimal()]
    assert {0, 1, 2, *(theme.topics[0] for theme in branched._themes)} == {*listed}
    place = next(i for i, line in enumerate(lines) if line.startswith("   0 "))
    assert f"{first.share:.1%}" in lines[place] and first.name in lines[place]
    theme = next(theme for theme in branched._themes if 0 in theme.topics)
    n = f"({len(theme.topics)} topics)"
    assert any(n in line and theme.label in line for line in lines[1:place])
    questions = lines[lines.index("Ask next:") :]
    assert [line.split(")  ")[0].strip(" )") for line in questions[1:]] == [
        call.strip(")") for call in QUESTIONS
    ]
    notes = list(dict.fromkeys(d.message for d in branched.decisions))
    assert lines[-len(questions) - len(notes) - 1 : -len(questions) - 1] == notes


def test_the_questions_of_a_summary_are_calls(branched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    needs_columns = ("over_time", "by_group", "find")  # the texts have neither dates nor an encoder
    for call in QUESTIONS:
        if not any(name in call for name in needs_columns):
            assert eval(call, {"et": et, "result": branched}) is not None
    assert (tmp_path / "report.html").stat().st_size > 0


def test_a_fitted_model_shows_its_topics_and_the_next_calls(branched):
    model = et.TopicModel.from_result(branched)

    shown = model._repr_html_()
    assert shown == model._repr_mimebundle_()["text/html"]
    assert escape(branched.topics[0].name) in shown
    assert "Ask: et.topics.over_time(model), .by_group, .find" in shown
    assert "Draw: et.plots.map(model) · Write: et.report.write_report(model, ...)" in shown
    assert "Ask: et.topics.over_time(result), " in branched._repr_html_()


def test_a_model_that_is_not_fitted_shows_its_parameters():
    shown = et.TopicModel("tfidf")._repr_html_()
    assert "sk-" in shown and "Ask:" not in shown
