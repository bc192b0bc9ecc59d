"""Near documents and near-copies, held against all pairs; topics of the same documents."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, SearchIndex
from embedtopics.errors import InputError
from embedtopics.retrieval.storage._checks import check
from tests.factories import make_result, refuses
from tests.retrieval.oracle import Tiny, build


class Table:
    """Gives each word a vector, and reads one word at a time."""

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, texts):
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def windows(self, texts):
        made = []
        for text in texts:
            ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
            made.append(list(zip([0, *(ends[:-1] + 1)], ends, strict=True)))
        return made


def table_index(texts, **vectors):
    corpus = Corpus(list(texts.values()), ids=list(texts))
    return build(corpus, encoder=Table(**vectors))


def test_all_passages_of_a_long_document_are_asked():
    index = table_index(
        {"Q": "q r", "A": " ".join(["a"] * 40), "B": "b", "C": "c", "D": "d"},
        q=[1, 0, 0, 0], r=[0, 1, 0, 0], a=[0.99, 0, 0.14, 0], b=[0.9, -0.3, 0, 0.3],
        c=[0, 0.5, 0, 0.87], d=[-1, -1, 0, 0],
    )  # fmt: skip
    # The nearest passages of "q" are all of A, and those of "r" do not have B among them.
    for k in (1, 2, 3, 4, 9):
        (hits,) = index.similar("Q", k).hits
        assert [hit.id for hit in hits] == ["A", "B", "C", "D"][:k]
    assert hits[1].score == pytest.approx(0.9 / np.sqrt(0.99))
    assert hits[1].similarity == hits[1].score and np.isnan(hits[1].bm25)
    assert index.similar("Q", 1).queries == ("q r",) and index.similar("Q", 1).mode == "dense"


def test_the_most_similar_passage_is_shown():
    index = table_index(
        {"Q": "q", "A": "a b c", "B": "b"}, q=[1, 0], a=[0, 1], b=[1, 1], c=[1, 0.2]
    )
    (hits,) = index.similar("Q", 5).hits
    assert [(hit.id, hit.passage, hit.span) for hit in hits] == [
        ("A", "c", (4, 5)), ("B", "b", (0, 1)),
    ]  # fmt: skip


def test_what_cannot_be_compared_is_refused_or_left_out():
    corpus = Corpus(["cat", None, "  ", "dog", "?"], ids=[1, 2, 3, 4, 5])
    index = build(corpus)
    assert {hit.id for hit in index.similar(1).hits[0]} <= {"4", "5"}
    assert [hit.id for hit in index.similar(4.0, 1).hits[0]] == ["1"] or index.similar(4).hits
    for id in (2, 3, 5):
        with refuses("id"):
            index.similar(id)
    with refuses("id"):
        index.similar(17)
    for id in (None, float("nan"), ""):
        with refuses("id"):
            index.similar(id)
    with pytest.raises(InputError, match="k must be"):
        index.similar(1, 0)


def test_similar_under_a_filter_and_after_changes():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    frame = pd.DataFrame({"id": range(60), "text": [f"t{i}" for i in range(60)], "n": range(60)})
    corpus = Corpus(frame, text="text", id="id")
    index = build(corpus.take(range(40)), embeddings=vectors[:40], encoder=Eight())
    index.add(corpus.take(range(40, 60)), embeddings=vectors[40:], show_progress=False)
    index.remove(range(0, 60, 7))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for where, kept in (
        (None, range(60)), ("n < 20", range(20)), ("n == 3", [3]), ("n == 5", [5]), ("n > 99", []),
    ):  # fmt: skip
        left = [i for i in kept if i % 7 and i != 5]
        order = sorted(left, key=lambda i: -float(unit[i] @ unit[5]))
        found = index.similar(5, 8, where)
        assert [hit.id for hit in found.hits[0]] == [str(i) for i in order[:8]]
        assert found.where == (where or "")


class Eight:
    def encode(self, texts):
        raise AssertionError("vectors were given")


def by_all_pairs(vectors, threshold):
    """Return pairs and groups of places, as `duplicates` promises them."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    n = len(vectors)
    pairs = {(i, j) for i in range(n) for j in range(i + 1, n) if cosines[i, j] >= threshold}
    group = list(range(n))
    for i, j in pairs:
        old, new = group[j], group[i]
        group = [new if one == old else one for one in group]
    members = {}
    for place, name in enumerate(group):
        members.setdefault(name, []).append(place)
    groups = [tuple(places) for places in members.values() if len(places) > 1]
    return cosines, pairs, sorted(groups, key=lambda one: (-len(one), one[0]))


def index_of(vectors):
    corpus = Corpus([f"t{i}" for i in range(len(vectors))], ids=range(len(vectors)))
    return build(corpus, embeddings=vectors, encoder=Eight())


def around(rng, centre, n, spread):
    return centre + spread * rng.normal(size=(n, len(centre)))


def test_duplicates_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    axes = np.eye(16)
    parts = [
        np.repeat(axes[:1], 40, axis=0),  # more copies than neighbors
        around(rng, axes[3], 40, 0.02), around(rng, axes[5], 3, 0.02), rng.normal(size=(60, 16)),
        axes[7] + np.linspace(0, 1, 30)[:, None] * axes[8],  # a chain
    ]  # fmt: skip
    vectors = rng.permutation(np.concatenate(parts)).astype(np.float32)
    cosines, pairs, groups = by_all_pairs(vectors.astype(float), 0.95)
    assert sorted(map(len, groups)) == [3, 30, 40, 40]
    found = index_of(vectors).duplicates(0.95)
    assert [tuple(map(int, ids)) for ids in found.groups] == groups
    assert (found.n_documents, found.decisions) == (len(vectors), ())
    named = {(int(i), int(j)): cosine for i, j, cosine in found.pairs}
    assert named.keys() <= pairs and len(named) == len(found.pairs)
    assert all(cosine == pytest.approx(cosines[pair], abs=1e-6) for pair, cosine in named.items())
    listed = [cosine for *_, cosine in found.pairs]
    assert listed == sorted(listed, reverse=True) and max(listed) <= 1.0
    # All pairs of those that have few.
    (small,) = (set(one) for one in groups if len(one) == 3)
    assert {pair for pair in pairs if set(pair) <= small} <= named.keys()
    assert len(found.to_frame()) == 113


@pytest.mark.parametrize("threshold", [0.3, 0.8, 0.999, 1.0])
def test_few_documents_give_all_their_pairs(threshold):
    rng = np.random.default_rng(int(100 * threshold))
    vectors = around(rng, np.ones(6), 14, 0.5).astype(np.float32)
    vectors[9], vectors[4] = vectors[2], vectors[2] * 3
    _, pairs, groups = by_all_pairs(vectors.astype(float), min(threshold, 1 - 1e-6))
    found = index_of(vectors).duplicates(threshold)
    assert {(int(i), int(j)) for i, j, _ in found.pairs} == pairs
    assert [tuple(map(int, ids)) for ids in found.groups] == groups


def test_duplicates_of_long_documents_are_those_of_their_means():
    index = table_index(
        {"A": "a b", "B": "a b", "C": "b a", "D": "a a", "E": "c", "F": ""},
        a=[1, 0], b=[0, 1], c=[-1, 0.01],
    )  # fmt: skip
    found = index.duplicates(0.99)
    assert found.groups == (("A", "B", "C"),) and found.n_documents == 5
    index.remove(["B"])
    assert index.duplicates(0.99).groups == (("A", "C"),)
    index.remove(["A", "C", "D", "E"])
    assert index.duplicates().groups == () and index.duplicates().n_documents == 0


def test_documents_that_are_removed_meanwhile_are_in_no_group(monkeypatch):
    index = index_of(np.ones((3, 4), np.float32))
    version = index._reader.newest()
    index.remove([1])
    monkeypatch.setattr(index._reader, "newest", lambda: version)
    found = index.duplicates()
    assert found.groups == (("0", "2"),) and [pair[:2] for pair in found.pairs] == [("0", "2")]


# Topics of a fit in an index of the same documents.


@pytest.fixture(scope="module")
def result():
    return make_result(80, 4)


def expected(result):
    """Return (topic, position) of each row by its id; None for rows without text."""
    known = {}
    for id, document in zip(result.corpus.ids, result.distinct.of_row, strict=True):
        known[id] = None if document < 0 else (
            int(result.clustering.labels[document]), tuple(result.map[document].tolist()),
        )  # fmt: skip
    return known


def found_of(index):
    """Return (topic, position) of all documents that a search finds, by id."""
    hits = index.search(["people often found another", "line field season price"], 1000).hits
    return {hit.id: (hit.topic, hit.position) for one in hits for hit in one}


def test_hits_have_the_topic_and_place_of_their_row(result):
    index = build(result.corpus)
    assert {topic for topic, _ in found_of(index).values()} == {None}
    assert index.attach_topics(result) is index
    known, found = expected(result), found_of(index)
    assert found.keys() == {id for id, one in known.items() if one}
    assert found == {id: known[id] for id in found}
    assert -1 in {topic for topic, _ in found.values()}
    (hit,) = index.search("river", 1)
    names = {topic.topic_id: topic.name for topic in result.topics}
    assert hit.metadata == {"date": hit.metadata["date"], "topic_name": names.get(hit.topic)}
    assert {"topic": "integer", "topic_name": "text", "map_x": "real"}.items() <= (
        index.columns.items()
    )


def test_topics_stay_with_their_documents_through_all_changes(result, tmp_path):
    corpus = result.corpus
    index = build(corpus.take(range(60)), tmp_path / "i")
    index.add(corpus.take(range(60, len(corpus))), show_progress=False)
    index.attach_topics(result)
    known = expected(result)
    again = corpus.ids[3]
    index.remove(corpus.ids[:3])
    new = pd.DataFrame({"id": ["new", again], "text": ["people often found", "line field"]})
    index.add(Corpus(new, text="text", id="id"), update=True, show_progress=False)
    index.compact()
    index.save(tmp_path / "j")
    other = SearchIndex.load(tmp_path / "j", encoder=Tiny(), verify=True)
    assert check(tmp_path / "j") == []
    for one in (index, other):
        found = found_of(one)
        assert found.pop("new") == found.pop(again) == (None, None)
        assert found == {id: known[id] for id in found} and len(found) > 50


def test_attaching_again_replaces_all_that_was_attached(result):
    index = build(result.corpus).attach_topics(result)
    rows = np.arange(0, 40)
    other = make_result(80, 2, seed=1, texts=[result.corpus.texts[row] for row in rows])
    index.attach_topics(other)
    known, found = expected(other), found_of(index)
    assert found == {id: known.get(id) or (None, None) for id in found}
    assert {topic for topic, _ in found.values()} >= {None, 0, 1}


def test_results_that_do_not_belong(result):
    index = build(["a text", "another"])
    with refuses("result"):
        index.attach_topics(result)
    assert "topic" not in index.columns


@pytest.mark.parametrize("name", ["topic", "topic_name", "map_x", "map_y"])
def test_columns_of_the_metadata_are_never_overwritten(result, name):
    corpus = result.corpus
    frame = pd.DataFrame({"id": corpus.ids, "text": corpus.texts, name: ["mine"] * len(corpus)})
    own = Corpus(frame, text="text", id="id")
    index = build(own)
    with pytest.raises(InputError, match=f"column '{name}'.*rename"):
        index.attach_topics(result)
    assert index.search("river", 1)[0].metadata[name] == "mine"
    attached = build(corpus.take(range(50))).attach_topics(result)
    with pytest.raises(InputError, match=f"column '{name}'.*rename"):
        attached.add(own.take(range(50, 60)), show_progress=False)
    assert len(attached) == 50
