from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from embedtopics.corpus import Corpus
from embedtopics.retrieval import SearchIndex
from tests.factories import refuses

TEXTS = ["Cats purr.", "", "  \n", "\u200b", "Dogs bark."]
WRITTEN = {"a", "e"}


def index_of(texts, **others):
    frame = pd.DataFrame({"id": list("abcde"), "text": texts})
    corpus = Corpus.from_frame(frame, text="text", id="id")
    return SearchIndex.build(corpus, **{"encoder": "random", "languages": ["en"], **others})


@pytest.mark.parametrize("passages", [True, False])
@pytest.mark.parametrize("mode", ["dense", "hybrid", "lexical"])
def test_no_query_finds_a_row_without_text(mode, passages):
    index = index_of(TEXTS, passages=passages)
    assert len(index) == 5
    found = index.search("cats and dogs", k=5, mode=mode)
    assert {hit.id for hit in found.hits[0]} == WRITTEN
    assert [note.value for note in index.decisions if note.name == "without text"] == [3]


def test_nor_is_it_similar_to_another_whatever_vector_it_was_given():
    vectors = np.ones((5, 4), dtype=np.float32)
    index = index_of(TEXTS, embeddings=vectors, encoder=None)
    assert {hit.id for hit in index.similar("a", k=5).hits[0]} == {"e"}
    assert index.duplicates().groups == (("a", "e"),)
    with refuses("id"):
        index.similar("c")
