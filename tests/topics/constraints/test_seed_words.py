import numpy as np
import pytest

from embedtopics.errors import InputError
from embedtopics.topics import SeedWords
from tests.factories import refuses


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
