import numpy as np
import pytest

import embedtopics as et
from embedtopics.neighbors._graph import unit_rows
from embedtopics.topics import ZeroShot, at_resolution
from tests.factories import Table, refuses


def anchors(result):
    return {topic.label: topic for topic in result.topics if topic.is_seeded}


@pytest.fixture(scope="module")
def named(toy, theme_vectors, fit):
    """The themes fruit and chess are named beforehand; trains are to be found."""
    constraints = ZeroShot(["Fruit", "Chess"], embeddings=theme_vectors[[0, 2]])
    return fit(toy, constraints, min_cluster_size=8)


def test_named_topics_and_found_ones_stand_side_by_side(named, toy):
    _, _, themes = toy
    assert set(anchors(named)) == {"Fruit", "Chess"}
    assert named.n_topics == 3
    for topic in named.topics:
        theme = {"Fruit": 0, "Chess": 2}.get(topic.label, 1)
        assert (themes[named.labels == topic.topic_id] == theme).all()
        assert topic.size > 0.9 * (themes == theme).sum()
        assert topic.is_seeded == (topic.label in ("Fruit", "Chess")) and not topic.is_named


def test_a_number_is_the_least_cosine_with_the_best_name(toy, theme_vectors, fit):
    vectors = toy[1]
    constraints = ZeroShot(
        ["Fruit", "Chess"], min_similarity=0.85, embeddings=theme_vectors[[0, 2]]
    )
    result = fit(toy, constraints, coverage=0.0, n_topics=2)
    cosines = unit_rows(vectors) @ unit_rows(theme_vectors[[0, 2]]).T
    expected = np.where(cosines.max(axis=1) >= 0.85, cosines.argmax(axis=1), -1)
    assert 0.2 < (expected >= 0).mean() < 0.9
    order = [topic.label for topic in result.topics]
    names = np.array([*order, "none"])[result.labels]
    np.testing.assert_array_equal(names, np.array(["Fruit", "Chess", "none"])[expected])


def test_a_name_of_which_there_is_nothing_is_left_out_and_said(toy, theme_vectors, fit):
    nothing = -theme_vectors.sum(axis=0)
    odd = np.linalg.qr(np.vstack([theme_vectors, np.random.default_rng(0).normal(size=16)]).T)[0][
        :, 3
    ]
    vectors = np.vstack([theme_vectors[1], nothing, odd])
    with pytest.warns(UserWarning, match="left out: Nothing"):
        result = fit(toy, ZeroShot(["Trains", "Nothing", "Odd"], embeddings=vectors))
    assert set(anchors(result)) == {"Trains"}
    lost = next(d for d in result.decisions if d.name == "names_without_texts")
    assert lost.value == ["Nothing", "Odd"]
    with pytest.warns(UserWarning, match="Nothing"):
        alone = fit(toy, ZeroShot(["Nothing"], embeddings=nothing[None]))
    assert alone.topics == fit(toy).topics


@pytest.mark.parametrize("least", ["auto", 0.0, -1.0])
def test_names_and_texts_without_a_vector_match_nothing(toy, theme_vectors, least):
    texts, vectors, _ = toy
    table = {" ".join(text.split()): vector for text, vector in zip(texts, vectors, strict=True)}
    table |= {"Unknown": np.zeros(16), "Fruit": theme_vectors[0], "Chess": theme_vectors[2]}
    table["... ---"] = np.zeros(16)
    constraints = ZeroShot(["Unknown", "Fruit", "Chess"], min_similarity=least)
    model = et.TopicModel(Table(table), constraints=constraints, languages=["en"])
    with pytest.warns(UserWarning, match="left out: Unknown"):
        result = model.fit([*texts, "... ---"]).result_
    assert set(anchors(result)) == {"Fruit", "Chess"}
    assert result.by_row(result.constraints.groups, -1)[-1] == -1
    unknown = next(d for d in result.decisions if d.name == "names_without_vector")
    assert unknown.value == ["Unknown"] and "words that the texts use" in unknown.message
    assert not any(d.name == "names_without_texts" for d in result.decisions)


@pytest.mark.filterwarnings("ignore:The encoder knows no word of these names")
def test_names_of_words_are_found_by_tfidf(toy):
    texts, _, themes = toy
    names = {"Fruit": "orchard juice apple", "Chess": "checkmate rook", "Odd": "knitting"}
    result = et.TopicModel(
        "tfidf", constraints=ZeroShot(names), languages=["en"], stop_words=()
    ).fit(texts).result_  # fmt: skip
    assert {"Fruit", "Chess"} <= set(anchors(result))
    matched = result.by_row(result.constraints.groups, -1)
    for name, theme in (("Fruit", 0), ("Chess", 2)):
        rows = matched == result.constraints.names.index(name)
        assert (themes[rows] == theme).all() and rows.sum() >= 15
    # Other words in the texts, of which the vectors then have more dimensions, change little.
    longer = [f"{text} note{i % 40} remark{i % 30}" for i, text in enumerate(texts)]
    result = (
        et.TopicModel("tfidf", constraints=ZeroShot(names), languages=["en"]).fit(longer).result_
    )
    assert {"Fruit", "Chess"} <= set(anchors(result))


@pytest.mark.parametrize("n_topics", [2, 3, 4, 7])
def test_a_number_of_topics_counts_the_named_ones(branches, fit, n_topics):
    middle = branches[1][:66].mean(axis=0)
    constraints = ZeroShot({"Branch": "the first branch"}, embeddings=middle[None])
    result = fit(branches, constraints, n_topics=n_topics)
    assert result.n_topics == n_topics and len(anchors(result)) == 1
    before = result.labels == anchors(result)["Branch"].topic_id
    seeds = result.by_row(result.constraints.groups, -1) == 0
    assert before[seeds].all()
    for wanted in (1, 2, 5):
        again = at_resolution(result, wanted)
        assert again.n_topics == wanted
        kept = anchors(again)["Branch"]
        assert (again.labels[seeds] == kept.topic_id).all()
    for name in ("fine", "coarse"):
        assert "Branch" in anchors(at_resolution(result, name))


def test_names_must_fit_the_vectors_and_the_number_of_topics(toy, theme_vectors, fit):
    constraints = ZeroShot(["Fruit", "Chess"], embeddings=theme_vectors[[0, 2]])
    with refuses("n_topics"):
        fit(toy, constraints, n_topics=1)
    with refuses("n_topics"):
        at_resolution(fit(toy, constraints), 1)
    with refuses("embeddings"):
        fit(toy, ZeroShot(["sport"], embeddings=np.ones((1, 4))))


def test_a_clusterer_of_ones_own_finds_the_rest(toy, theme_vectors, fit):
    from sklearn.cluster import KMeans

    _, _, themes = toy
    constraints = ZeroShot(["Fruit"], embeddings=theme_vectors[:1])
    result = fit(toy, constraints, clusterer=KMeans(3, n_init=3, random_state=0))
    fruit = anchors(result)["Fruit"].topic_id
    assert (themes[result.labels == fruit] == 0).all() and result.n_topics == 3


def test_names_are_encoded_as_the_texts_were(toy, theme_vectors):
    texts, vectors, _ = toy
    table = {" ".join(text.split()): vector for text, vector in zip(texts, vectors, strict=True)}
    table |= {"all about fruit": theme_vectors[0], "Chess": theme_vectors[2]}
    constraints = ZeroShot({"Fruit": "all about fruit", "Chess": "Chess"})
    for embeddings in (None, vectors):
        encoder = Table(table)
        model = et.TopicModel(encoder, constraints=constraints, languages=["en"])
        result = model.fit(texts, embeddings=embeddings).result_
        assert set(anchors(result)) == {"Fruit", "Chess"}
        assert encoder.asked[-1] == ["all about fruit", "Chess"]
        assert result.settings["constraints"]["names"] == constraints.names
    with refuses("encoder"):
        et.TopicModel(constraints=constraints).fit(texts, embeddings=vectors)
    with refuses("encoder"):
        turned = np.roll(vectors, 5, axis=1)
        et.TopicModel(Table(table), constraints=constraints).fit(texts, embeddings=turned)
    with refuses("encoder"):
        et.TopicModel(Table(table), constraints=constraints).fit(texts, embeddings=vectors[:, :5])


@pytest.mark.parametrize("names", ["sport", [], ["sport", " "], ["Sport", "sport "]])
def test_bad_names_are_refused(names):
    with refuses("names"):
        ZeroShot(names)
