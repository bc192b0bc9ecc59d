"""Topics for queries, and samples of documents."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import embedtopics as et
from embedtopics.topics import documents, find, sample_documents
from embedtopics.topics.reading._find import STRATEGIES
from embedtopics.topics.results import Reason
from tests.factories import make_result, refuses


class Turned:
    """An encoder of the user's own: vectors of the fit, or the same in another space."""

    def __init__(self, result, turn=None):
        texts = result.corpus.document_texts()
        self.vectors = dict(zip(texts, result.embeddings, strict=True))
        self.turn = np.eye(result.embeddings.shape[1]) if turn is None else turn

    def encode(self, texts):
        first = next(iter(self.vectors.values()))
        return np.array([self.vectors.get(text, first) for text in texts]) @ self.turn


def test_similarity_is_the_cosine_with_the_weighted_centroid(branched):
    queries = branched.embeddings[[3, 70, 200]]
    texts = branched.corpus.document_texts()
    names = [texts[3], texts[70], texts[200]]
    found = find(branched, names, encoder=Turned(branched), n_topics=4)
    labels, probabilities = branched.clustering.labels, branched.clustering.probabilities
    middles = np.array([
        np.average(branched.embeddings[labels == t], axis=0, weights=probabilities[labels == t])
        for t in range(branched.n_topics)
    ])  # fmt: skip
    oracle = cosine_similarity(queries, middles)
    for place, name in enumerate(names):
        rows = found[found["query"] == name]
        best = np.argsort(-oracle[place])[:4]
        assert rows["topic"].tolist() == best.tolist() and rows["rank"].tolist() == [1, 2, 3, 4]
        np.testing.assert_allclose(rows["similarity"], oracle[place][best], atol=1e-6)
        assert rows["topic_name"].tolist() == [branched.topics[t].name for t in best]
    assert (found["space"] == "embeddings").all()
    assert found["terms"][0] == list(branched.topics[found["topic"][0]].keywords)


def test_terms_find_the_topics_that_hold_them(press):
    found = find(press, "River!", n_topics=5)
    assert found["topic"].tolist() == [1] and (found["space"] == "terms").all()
    weights = press.topic_terms.toarray()
    column = press.term_counts.terms.index("river")
    expected = weights[1, column] / np.linalg.norm(weights[1])
    assert found["similarity"][0] == pytest.approx(expected)
    both = find(press, ["tax CUT", "boat"], space="terms")
    assert both["topic"].tolist() == [0, 1] and both["query"].tolist() == ["tax CUT", "boat"]
    columns = [press.term_counts.terms.index(t) for t in ("tax", "cut", "tax cut")]
    expected = weights[0, columns].sum() / np.linalg.norm(weights[0]) / np.sqrt(3)
    assert both["similarity"][0] == pytest.approx(expected)


def test_the_encoder_of_the_fit_is_made_again(toy):
    texts, _, themes = toy
    result = et.TopicModel("lsa", languages=["en"], random_state=1).fit(texts).result_
    found = find(result, ["checkmate with a rook", "a ripe pear"], n_topics=1)
    assert (found["space"] == "embeddings").all()
    labels = result.labels
    for query, theme in (("checkmate with a rook", 2), ("a ripe pear", 0)):
        topic = found.set_index("query").loc[query, "topic"]
        assert np.bincount(themes[labels == topic]).argmax() == theme
    fitted = find(result, texts[0], encoder="lsa", n_topics=1)
    known = find(result, texts[0], encoder=Turned(result), n_topics=1)
    assert fitted["topic"][0] == known["topic"][0]
    assert fitted["similarity"][0] == pytest.approx(known["similarity"][0], abs=1e-5)
    with refuses("query"):
        find(result, "zzz")


def test_an_encoder_of_another_space_than_the_given_embeddings_is_refused(toy):
    texts = toy[0]
    vectors = np.random.default_rng(0).normal(size=(len(texts), 32))
    result = et.TopicModel(languages=["en"]).fit(texts, embeddings=vectors).result_
    assert len(find(result, texts[0], encoder=Turned(result)))
    other = Turned(result, np.roll(np.eye(32), 1, axis=0))
    for encoder in (other, "random"):
        with refuses("encoder"):
            find(result, texts[0], encoder=encoder)
        with refuses("encoder"):
            et.topics.assign(result, ["a text that is new"], encoder=encoder)


def test_without_topics_nothing_is_found():
    result = make_result(30, 0)
    assert len(find(result, "people", space="terms")) == 0
    found = find(result, "x", encoder=Turned(result))
    assert len(found) == 0
    columns = ["query", "rank", "topic", "topic_name", "similarity", "terms", "space"]
    assert list(found.columns) == columns


@pytest.mark.parametrize(
    ("query", "arguments", "parameter"),
    [
        *((query, {}, "query") for query in ("rivar", "zzzz", "  ")),
        ("tax", {"space": "magic"}, "space"),
        ("tax", {"space": "embeddings"}, "embeddings"),
    ],
)
def test_bad_queries(press, query, arguments, parameter):
    with refuses(parameter) as caught:
        find(press, query, **arguments)
    assert query != "rivar" or "similar terms are 'river'" in str(caught.value)


COLUMNS = [
    "id", "text", "excerpt", "score", "topic", "topic_name", "membership", "second_topic",
    "second_topic_name", "second_share", "reason", "n",
]  # fmt: skip


@pytest.fixture(scope="module")
def fan(build):
    """Six texts at known angles in topic 0, of which two are near duplicates; two in topic 1."""
    degrees = np.array([0, 1, 20, -20, 40, -40, 90, 95])
    vectors = np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    shares = [
        [0.9, 0.1], [0.9, 0.0], [0.6, 0.3], [0.7, 0.2], [0.55, 0.45], [1.0, 0.0], [0.4, 0.6],
        [0.0, 1.0],
    ]  # fmt: skip
    texts = [f"text number {i} word{i}" for i in range(8)]
    return build(texts, [0] * 6 + [1] * 2, vectors=vectors, memberships=shares)


def test_central_is_nearest_the_centroid_without_near_duplicates(fan):
    found = sample_documents(fan, 0, n_documents=4)
    # Their mean points to almost 0 degrees; 0 and 1 are near duplicates, as are 20 and 40.
    radians = np.radians([0, 1, 20, -20, 40, -40])
    mean = np.array([np.cos(radians).sum(), np.sin(radians).sum()])
    center = np.degrees(np.arctan2(mean[1], mean[0]))
    assert 0 < center < 0.5
    assert found.index.tolist() == [0, 2, 3, 4] and list(found.columns) == COLUMNS
    expected = np.cos(np.radians(np.array([0, 20, -20, 40]) - center))
    np.testing.assert_allclose(found["score"], expected, atol=1e-6)


def test_boundary_tells_the_other_topic(fan):
    found = sample_documents(fan, 0, strategy="boundary", n_documents=3)
    assert found.index.tolist() == [4, 2, 3]
    np.testing.assert_allclose(found["second_share"], [0.45, 0.3, 0.2])
    np.testing.assert_allclose(found["membership"], [0.55, 0.6, 0.7])
    assert (found["second_topic"] == 1).all()
    assert (found["second_topic_name"] == fan.topics[1].name).all()
    alone = sample_documents(fan, 0, strategy="boundary", n_documents=10).loc[[1, 5]]
    assert alone["second_topic"].tolist() == [-1, -1]
    assert alone["second_topic_name"].tolist() == ["", ""]


def test_typical_of_a_whole_topic_are_its_representatives(branched):
    rows = branched.distinct.first_rows
    for topic in branched.topics:
        found = sample_documents(branched, topic.topic_id, strategy="representative", n_documents=5)
        assert tuple(found.index) == topic.representatives
        assert set(found.index) <= set(rows.tolist())


def test_random_depends_on_the_texts_and_the_seed_alone(build):
    texts = [f"text number {i}" for i in range(200)]
    topics = np.arange(200) % 2
    vectors = np.eye(3)[topics]
    first = build(texts, topics, vectors=vectors)
    order = np.random.default_rng(0).permutation(200)
    other = build([texts[i] for i in order], topics[order], vectors=vectors[order])

    def drawn(result, n=12, seed=3):
        return sample_documents(result, 0, strategy="random", n_documents=n, random_state=seed)

    one = drawn(first)
    assert one["text"].tolist() == drawn(other)["text"].tolist()
    assert drawn(first, n=30)["text"].tolist()[:12] == one["text"].tolist()
    assert set(drawn(first, seed=4)["text"]) != set(one["text"])
    assert one["score"].is_monotonic_increasing and one["score"].between(0, 1).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_text_comes_once_and_of_its_topic(strategy):
    result = make_result(120, 3)
    table = documents(result)
    for topic in (-1, 0, 2):
        found = sample_documents(result, topic, strategy=strategy, n_documents=500)
        assert found["text"].is_unique and found.index.is_unique
        rows = table.loc[found.index]
        assert (rows["topic"] == topic).all() and (rows["status"] == "text").all()
        assert rows["text"].tolist() == found["text"].tolist()
        own = rows["none"] if topic == -1 else rows["membership"]
        np.testing.assert_allclose(found["membership"], own, rtol=1e-6)
        assert rows["reason"].tolist() == found["reason"].tolist()
        if strategy in ("boundary", "random"):  # the others leave near duplicates out
            n_texts = table.loc[(table["topic"] == topic) & (table["status"] == "text"), "text"]
            assert len(found) == n_texts.nunique() and found["n"].sum() == len(n_texts)


def test_what_no_topic_holds_comes_with_reasons(build):
    result = build(
        ["one a", "two b", "three c", ""], [0, -1, -1, -1],
        vectors=[[1, 0], [0, 1], [-1, 0], [1, 1]],
        memberships=[[1.0], [0.1], [0.4], [0.0]],
        reasons=[Reason.IN_TOPIC, Reason.ISOLATED, Reason.BETWEEN, Reason.NO_TEXT],
    )  # fmt: skip
    found = sample_documents(result, -1)
    assert found.index.tolist() == [1, 2]
    np.testing.assert_allclose(found["membership"], [0.9, 0.6])
    assert found["reason"].tolist() == ["isolated", "between topics"]
    found = sample_documents(result, -1, strategy="boundary")
    assert found.index.tolist() == [2, 1] and found["second_topic"].tolist() == [0, 0]


def test_columns_and_masks_select_rows(press):
    def keys(where=None):
        found = sample_documents(press, 0, strategy="random", where=where)
        return found.index.sort_values().tolist()

    # Rows 0 and 2 share a text, which stands for the first of the selected ones.
    assert keys() == ["row0", "row1"]
    assert keys({"source": "Le Figaro"}) == ["row2"]
    assert keys({"source": ["Le Figaro", "Le Monde"]}) == ["row0", "row1"]
    assert keys("source == 'Le Figaro'") == ["row2"]
    assert keys("date >= '2020-07-01'") == keys(press.corpus.time >= "2020-07-01")
    assert keys(press.corpus.time >= "2020-07") == ["row1", "row2"]
    assert keys({"date": pd.Timestamp("2020-03-01"), "source": "Le Monde"}) == ["row0"]
    mask = np.array([False, True, True, True, False, False, True])
    assert keys(mask) == keys(mask.tolist()) == ["row1", "row2"]
    assert sample_documents(press, 0).loc["row0", "n"] == 2


def test_dates_and_groups_come_under_the_names_of_the_input(press, build):
    one = sample_documents(press, 1, where=press.corpus.time.dt.year == 2021).loc["row3"]
    assert (one["date"], one["source"]) == (pd.Timestamp("2021-12-31"), "Le Figaro")
    assert sample_documents(press, -1)["date"].isna().tolist() == [True]
    frame = pd.DataFrame({"t": ["one text", "two texts"], "score": ["2020", "2021"]})
    found = sample_documents(build(frame, [0, 0], text="t", time="score"), 0)
    assert found["score_given"].dt.year.tolist() and found["score"].dtype == float


def test_an_empty_selection_is_an_empty_frame(press):
    empty = sample_documents(press, 0, where=press.corpus.time < "1999")
    full = sample_documents(press, 0)
    assert len(empty) == 0 and list(empty.columns) == [*COLUMNS[:-1], "date", "source", "n"]
    assert (empty.dtypes == full.dtypes).all()
    for strategy in STRATEGIES:
        found = sample_documents(press, 1, strategy=strategy, where=np.zeros(7, bool))
        assert len(found) == 0
    everything = make_result(60, 0)
    assert len(sample_documents(everything, -1)) == 10


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"strategy": "best"}, "strategy"), ({"topic": 5}, "topic"),
        ({"where": "Die Zeit"}, "where"),
        ({"where": {"paper": 1}}, "where"),
        ({"where": [True]}, "where"),
        ({"where": np.ones(7)}, "where"),
        ({"where": pd.Series([True] * 7)}, "where"),
    ],
)  # fmt: skip
def test_bad_arguments(press, arguments, parameter):
    with refuses(parameter):
        sample_documents(press, **{"topic": 0, **arguments})
