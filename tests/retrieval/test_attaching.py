"""Topics of a fit in an index of the same documents."""

import numpy as np
import pandas as pd
import pytest

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.retrieval import SearchIndex
from embedtopics.retrieval.storage._checks import check
from tests.factories import make_result, refuses
from tests.retrieval.oracle import Tiny, build


@pytest.fixture(scope="module")
def result():
    return make_result(80, 4)


def expected(result):
    """Return (topic, position) of each row by its id; None for rows without text."""
    known = {}
    for id, document in zip(result.corpus.ids, result.documents.of_row, strict=True):
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
    assert index.topics(result) is index
    known, found = expected(result), found_of(index)
    assert found.keys() == {id for id, one in known.items() if one}
    assert found == {id: known[id] for id in found}
    assert -1 in {topic for topic, _ in found.values()}
    (hit,) = index.search("river", 1)
    names = {topic.topic_id: topic.label for topic in result.topics}
    assert hit.metadata == {"date": hit.metadata["date"], "topic_name": names.get(hit.topic)}
    assert {"topic": "integer", "topic_name": "text", "map_x": "real"}.items() <= (
        index.columns.items()
    )


def test_filters_ask_for_topics_and_places(result):
    index = build(result.corpus).topics(result)
    known = {id: one for id, one in expected(result).items() if one}
    label = result.topics[1].label

    def ids(where):
        return {hit.id for hit in index.search("people often found", 1000, "dense", where)}

    assert ids("topic == 1") == {id for id, (topic, _) in known.items() if topic == 1}
    assert ids({"topic_name": [label]}) == ids("topic == 1")
    assert ids("topic == -1 or map_x > 0") == {
        id for id, (topic, (x, _)) in known.items() if topic == -1 or x > 0
    }
    assert ids("topic == 99") == set()


def test_topics_stay_with_their_documents_through_all_changes(result, tmp_path):
    corpus = result.corpus
    index = build(corpus.take(range(60)), tmp_path / "i")
    index.add(corpus.take(range(60, len(corpus))), show_progress=False)
    index.topics(result)
    known = expected(result)
    again = corpus.ids[3]
    index.remove(corpus.ids[:3])
    new = pd.DataFrame({"id": ["new", again], "text": ["people often found", "line field"]})
    index.add(Corpus.from_frame(new, text="text", id="id"), update=True, show_progress=False)
    index.compact()
    index.save(tmp_path / "j")
    other = SearchIndex.load(tmp_path / "j", encoder=Tiny(), verify=True)
    assert check(tmp_path / "j") == []
    for one in (index, other):
        found = found_of(one)
        assert found.pop("new") == found.pop(again) == (None, None)
        assert found == {id: known[id] for id in found} and len(found) > 50


def test_attaching_again_replaces_all_that_was_attached(result):
    index = build(result.corpus).topics(result)
    rows = np.arange(0, 40)
    other = make_result(80, 2, seed=1, texts=[result.corpus.texts[row] for row in rows])
    index.topics(other)
    known, found = expected(other), found_of(index)
    assert found == {id: known.get(id) or (None, None) for id in found}
    assert {topic for topic, _ in found.values()} >= {None, 0, 1}


def test_an_index_that_knows_fewer_documents_than_the_result(result):
    index = build(result.corpus.take(range(10))).topics(result)
    known = expected(result)
    assert found_of(index) == {id: known[id] for id in result.corpus.ids[:10]}


def test_results_that_do_not_belong(result):
    index = build(["a text", "another"])
    with refuses("result"):
        index.topics(result)
    assert "topic" not in index.columns
    with refuses("result"):
        index.topics(5)


@pytest.mark.parametrize("name", ["topic", "topic_name", "map_x", "map_y"])
def test_columns_of_the_metadata_are_never_overwritten(result, name):
    corpus = result.corpus
    frame = pd.DataFrame({"id": corpus.ids, "text": corpus.texts, name: ["mine"] * len(corpus)})
    own = Corpus.from_frame(frame, text="text", id="id")
    index = build(own)
    with pytest.raises(InputError, match=f"column '{name}' of its own.*rename"):
        index.topics(result)
    assert index.search("river", 1)[0].metadata[name] == "mine"
    attached = build(corpus.take(range(50))).topics(result)
    with pytest.raises(InputError, match=f"column '{name}' of its own.*rename"):
        attached.add(own.take(range(50, 60)), show_progress=False)
    assert len(attached) == 50
