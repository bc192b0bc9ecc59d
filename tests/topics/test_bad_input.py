"""Embeddings as users give them: broken, degenerate, or in any form that NumPy knows."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.errors import InputError
from embedtopics.topics.results import Reason
from tests.factories import refuses


def texts_of(n):
    return [f"a text about number {i} and little else" for i in range(n)]


def fit(embeddings, texts=None, **parameters):
    texts = texts_of(len(embeddings)) if texts is None else texts
    model = et.TopicModel(**{"languages": ["en"], "random_state": 0} | parameters)
    return model.fit(texts, embeddings=embeddings)


def groups(sizes, n_dimensions=12, spread=0.1, seed=0):
    """Return vectors around directions that are far from one another."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(n_dimensions, len(sizes))))[0].T
    centers = np.repeat(directions, sizes, axis=0)
    return centers + spread * rng.normal(size=centers.shape)


def check(model, n_rows):
    """Whether a result holds together, whatever was found."""
    result = model.result_
    assert result.labels.shape == (n_rows,)
    assert np.isfinite(result.map).all() and np.isfinite(result.coordinates).all()
    assert set(result.labels) - {-1} == set(range(result.n_topics))
    np.testing.assert_array_equal(result.reasons == Reason.IN_TOPIC, result.labels >= 0)
    has_text = result.distinct.of_row >= 0
    outside = int((result.labels[has_text] < 0).sum())
    assert sum(topic.size for topic in result.topics) + outside == has_text.sum()
    np.testing.assert_array_equal(model.predict(list(result.corpus.texts)), result.labels)


def test_topics_of_emoji_are_named_by_emoji():
    pictures = ["\U0001f602", "\U0001f525"]
    texts = [pictures[i // 30] * (1 + i % 30) for i in range(60)]
    result = fit(groups([30, 30]), [*texts[:59], "one word"]).result_
    assert {topic.name.split()[0] for topic in result.topics} == {*pictures}
    assert next(d for d in result.decisions if d.name == "social").value["emoji"] > 59


def test_topics_without_terms_are_named_by_texts():
    texts = [f"{'!?*'[i // 30] * 9} {i}" for i in range(90)]
    result = fit(groups([30, 30, 30]), texts).result_
    central = [texts[topic.representatives[0]] for topic in result.topics]
    assert [topic.name for topic in result.topics] == [f"“{text}”" for text in central]
    assert [d.value for d in result.decisions if d.name == "no_terms"] == [3]
    for topic in et.topics.merge(result, [0, 1]).topics:
        assert topic.name == f"“{texts[topic.representatives[0]]}”"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
def test_the_row_is_named(value):
    broken = groups([40, 30])
    broken[17] = value
    broken[50] = value
    with pytest.raises(InputError, match="row 17"):
        fit(broken)
    fitted = fit(groups([40, 30]))
    queries = groups([1, 1])
    queries[1] = value
    with pytest.raises(InputError, match="row 1"):
        fitted.predict(["new one", "new two"], embeddings=queries)


@pytest.mark.parametrize(
    "bad",
    [np.ones(70), np.ones((70, 0)), np.ones((70, 2, 2)), np.full((70, 3), "x"), [[None]] * 70],
)
def test_what_is_no_matrix_of_numbers_is_refused(bad):
    with pytest.raises(InputError, match="embeddings"):
        fit(bad, texts_of(70))


@pytest.mark.parametrize("n", [2, 3, 7, 15])
def test_fewer_documents_than_neighbors(n):
    model = fit(groups([n], spread=0.5))
    check(model, n)
    assert model.result_.graph.k == n - 1
    noted = [d.value for d in model.result_.decisions if d.name == "k"]
    assert noted == [n - 1]


def test_one_text():
    model = fit(np.ones((1, 3)))
    check(model, 1)
    assert model.labels_.tolist() == [-1] and model.result_.tree is None


def test_all_points_in_one_place_are_one_topic():
    model = fit(np.ones((80, 6)))
    check(model, 80)
    assert set(model.labels_) == {0} and model.result_.topics[0].size == 80
    few = fit(np.ones((4, 6)))
    check(few, 4)
    assert set(few.labels_) == {-1}
    # There is no other resolution, but one topic can be asked for.
    assert et.topics.levels(model.result_).empty
    assert et.topics.recluster(model.result_, 1).n_topics == 1
    assert fit(np.ones((80, 6)), n_topics=3).result_.n_topics == 1


@pytest.mark.parametrize("vectors", [groups([120, 60]), np.vstack([groups([120]), -groups([60])])])
def test_two_far_groups_only(vectors):
    truth = np.repeat([0, 1], [120, 60])
    model = fit(vectors)
    check(model, 180)
    # However fine the topics are, none holds documents of both.
    assert len(
        {*zip(model.labels_[model.labels_ >= 0], truth[model.labels_ >= 0], strict=True)}
    ) == (model.result_.n_topics)
    for two in (fit(vectors, n_topics=2), fit(vectors, min_cluster_size=50)):
        check(two, 180)
        np.testing.assert_array_equal(two.labels_, truth)


def test_two_thousand_copies_of_a_text_and_a_hundred_others():
    vectors = np.vstack([np.tile(groups([1], seed=1), (2_000, 1)), groups([50, 50], seed=2)])
    texts = ["the same text"] * 2_000 + texts_of(100)
    order = np.random.default_rng(0).permutation(len(texts))
    model = fit(vectors[order], [texts[i] for i in order])
    check(model, 2_100)
    labels = np.empty(2_100, int)
    labels[order] = model.labels_
    assert len(model.result_.distinct) == 101
    assert len(set(labels[:2_000])) == 1
    others = fit(vectors, texts, n_topics="fine").labels_[2_000:]
    assert len(others) == 100


FORMS = {
    "float64": lambda a: a.astype(np.float64),
    "float16": lambda a: a.astype(np.float16),
    "fortran": np.asfortranarray,
    "every other column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(">f4"),
    "list": lambda a: a.tolist(),
    "scaled": lambda a: a * np.float32(1024.0),
}


@pytest.fixture(scope="module")
def plain():
    # Values that float16 can hold, so that all forms hold the same.
    vectors = groups([60, 40], seed=4).astype(np.float16).astype(np.float32)
    return vectors, fit(vectors).result_


@pytest.mark.parametrize("form", list(FORMS))
def test_any_form_is_taken_and_left_alone(plain, form):
    vectors, expected = plain
    given = FORMS[form](vectors)
    if isinstance(given, np.ndarray):
        given.setflags(write=False)
    before = np.array(given)
    found = fit(given)
    np.testing.assert_array_equal(np.asarray(given), before)
    np.testing.assert_array_equal(found.labels_, expected.labels)
    np.testing.assert_array_equal(found.result_.embeddings, expected.embeddings)
    np.testing.assert_array_equal(found.result_.map, expected.map)
    names = [f"new {i}" for i in range(len(vectors))]
    predicted = found.predict(names, embeddings=given)
    np.testing.assert_array_equal(predicted, fit(vectors).predict(names, embeddings=vectors))
    np.testing.assert_array_equal(np.asarray(given), before)


def test_a_masked_value_is_refused():
    rng = np.random.default_rng(0)
    whole = np.ma.array(rng.normal(size=(40, 6)), mask=np.zeros((40, 6), dtype=bool))
    assert len(fit(whole).labels_) == 40
    whole.mask[3, 2] = True
    with pytest.raises(InputError, match="masked"):
        fit(whole)


def test_half_a_character_in_a_label_is_replaced():
    result = fit(groups([30, 30])).result_
    assert et.topics.rename(result, {0: "a\ud800b"}).topics[0].name == "a\ufffdb"


MIXED = "Привет hello 你好 שלום नमस्ते สวัสดี \u0301\u0302"
MARKS = "\u0301\u0302\u0e31\u0e31"


@pytest.mark.parametrize("what", [MIXED, MARKS])
def test_scripts_within_one_text_and_marks_alone(what):
    texts = [f"{chr(0x0301) * i}{what}{' chess' * (i < 20)}" for i in range(40)]
    vectors = groups([20, 20])
    model = et.TopicModel(random_state=0).fit(texts, embeddings=vectors)
    check(model, 40)
    assert model.result_.n_topics == 2
    index = et.SearchIndex.build(texts, encoder=None)
    assert index.settings["languages"] == []
    assert len(index.search("chess", k=40)) == 20
    assert len(index.search("नमस्ते", k=40)) == (40 if what is MIXED else 0)
    if what is MARKS:
        with refuses("texts"):  # nothing that an encoder of words could know
            et.TopicModel("tfidf").fit([MARKS, MARKS + "\u0301"])


def test_a_language_that_does_not_exist():
    for codes in ("zz", ["en", "zz"]):
        with refuses("languages"):
            fit(groups([20, 20]), languages=codes)
    with refuses("languages", row=1):
        et.SearchIndex.build(["a b"], encoder=None, languages=["en", "zz"])
