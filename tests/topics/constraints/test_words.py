"""Constraints from words and names."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.topics import SeedWords, ZeroShot, recluster
from tests.factories import Table, refuses


def test_documents_are_of_the_seed_whose_words_they_use(toy, fit):
    texts, _, themes = toy
    seeds = {"garden": ["apple", "orchard", "nowhere"], "board": ["bishop", "rook"]}
    result = fit(toy, SeedWords(seeds))
    groups = result.by_row(result.constraints.groups, -1)
    uses = np.array([[any(w in t for w in words) for words in seeds.values()] for t in texts])
    assert (groups == np.where(uses[:, 0], 0, np.where(uses[:, 1], 1, -1))).mean() > 0.95
    assert (themes[groups == 0] == 0).all() and (themes[groups == 1] == 2).all()
    lost = next(d for d in result.decisions if d.name == "missing_seed_words")
    assert lost.value == ["nowhere"]


def test_a_word_in_passing_is_not_enough(toy, fit):
    texts, vectors, themes = toy
    texts = list(texts)
    stray = int(np.flatnonzero(themes == 2)[0])
    texts[stray] += " apple"
    result = fit((texts, vectors), SeedWords([["apple", "orchard"]]))
    groups = result.by_row(result.constraints.groups, -1)
    assert groups[stray] == -1 and (groups[:60] == 0).sum() > 20
    assert result.constraints.names == ("apple, orchard",)


@pytest.fixture(scope="module")
def scattered():
    """Two blobs, and fourteen texts of an airline at their edges, half at each."""
    rng = np.random.default_rng(4)
    centers = np.linalg.qr(rng.normal(size=(16, 3)))[0].T
    blobs = np.repeat(centers[:2], 60, axis=0) + 0.12 * rng.normal(size=(120, 16))
    edges = np.repeat(centers[:2], 7, axis=0) + 0.35 * centers[2] + 0.08 * rng.normal(size=(14, 16))
    texts = [f"text {i} of {'one' if i < 60 else 'two'}" for i in range(120)]
    texts += [f"text {i} of an airline" for i in range(14)]
    return texts, np.vstack([blobs, edges]).astype(np.float32)


def test_seeded_documents_are_found_together(scattered, fit, monkeypatch):
    monkeypatch.setattr("embedtopics.topics.constraints._kinds.BOOST", 1.0)
    plain = fit(scattered, n_topics=3)
    guided = fit(scattered, SeedWords({"flights": ["airline"]}), n_topics=3)
    assert len(set(plain.labels[120:])) > 1
    assert len(set(guided.labels[120:])) == 1 and guided.labels[120] >= 0
    home = int(guided.labels[120])
    assert (guided.labels[:120] == home).sum() < 7
    said = next(d for d in guided.decisions if d.name == "guided_topics").value
    assert said == [f"flights: 100% in topic {home} of {guided.topics[home].size} texts"]
    np.testing.assert_array_equal(plain.embeddings, guided.embeddings)
    np.testing.assert_array_equal(plain.graph.similarities, guided.graph.similarities)


def test_a_seed_without_a_topic_is_named(scattered, fit):
    """Two topics of 67 texts: seven of the fourteen texts are under a fifth of either."""
    result = fit(scattered, SeedWords({"flights": ["airline"]}), n_topics=2)
    lost = next(d for d in result.decisions if d.name == "seeds_without_topic")
    assert lost.value[0].startswith("flights: ") and lost.value[0].endswith(" of that topic")
    assert "No topic is about these seeds" in lost.message
    kept = fit(scattered, SeedWords({"one": ["one"]}), n_topics=2)
    assert not [d for d in kept.decisions if d.name == "seeds_without_topic"]


@pytest.mark.parametrize(
    "seeds", [{"fruit": "apple"}, {"fruit": []}, {" ": ["apple"]}, [["apple"], ["apple"]]]
)
def test_bad_seeds_are_refused(seeds):
    with pytest.raises(InputError) as caught:
        SeedWords(seeds)
    assert caught.value.parameter in ("seeds", "names")


def test_a_seed_without_any_document_is_refused_by_name(toy, fit):
    with refuses("seeds"):
        fit(toy, SeedWords({"fruit": ["apple"], "sea": ["whale", "ship"]}))


def anchors(result):
    return {topic.name: topic for topic in result.topics if topic.is_seeded}


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
        theme = {"Fruit": 0, "Chess": 2}.get(topic.name, 1)
        assert (themes[named.labels == topic.topic_id] == theme).all()
        assert topic.size > 0.9 * (themes == theme).sum()
        assert topic.is_seeded == (topic.name in ("Fruit", "Chess")) and not topic.is_named


def test_a_number_is_the_least_cosine_with_the_best_name(toy, theme_vectors, fit):
    vectors = toy[1]
    constraints = ZeroShot(
        ["Fruit", "Chess"], min_similarity=0.85, embeddings=theme_vectors[[0, 2]]
    )
    result = fit(toy, constraints, coverage=0.0, n_topics=2)
    cosines = unit_rows(vectors) @ unit_rows(theme_vectors[[0, 2]]).T
    expected = np.where(cosines.max(axis=1) >= 0.85, cosines.argmax(axis=1), -1)
    assert 0.2 < (expected >= 0).mean() < 0.9
    order = [topic.name for topic in result.topics]
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
        again = recluster(result, wanted)
        assert again.n_topics == wanted
        kept = anchors(again)["Branch"]
        assert (again.labels[seeds] == kept.topic_id).all()
    for name in ("fine", "coarse"):
        assert "Branch" in anchors(recluster(result, name))


def test_names_must_fit_the_vectors_and_the_number_of_topics(toy, theme_vectors, fit):
    constraints = ZeroShot(["Fruit", "Chess"], embeddings=theme_vectors[[0, 2]])
    with refuses("n_topics"):
        fit(toy, constraints, n_topics=1)
    with refuses("n_topics"):
        recluster(fit(toy, constraints), 1)
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
    with refuses("embeddings"):
        turned = np.roll(vectors, 5, axis=1)
        et.TopicModel(Table(table), constraints=constraints).fit(texts, embeddings=turned)
    with refuses("encoder"):
        et.TopicModel(Table(table), constraints=constraints).fit(texts, embeddings=vectors[:, :5])


@pytest.mark.parametrize("names", ["sport", [], ["sport", " "], ["Sport", "sport "]])
def test_bad_names_are_refused(names):
    with refuses("names"):
        ZeroShot(names)
