"""What cannot be stored is refused before anything is encoded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.retrieval import SearchIndex, maintaining

FRAME = pd.DataFrame({"body": ["Cats purr.", "Dogs bark."], "id": ["1", "2"], "n": [1, 2]})


def corpus(**columns):
    return Corpus.from_frame(FRAME.assign(**columns), text="body", id="id")


@pytest.fixture
def index():
    made = SearchIndex.build(corpus(), encoder=None, embeddings=np.eye(2), languages=["en"])
    yield made
    assert len(made) == 2


@pytest.fixture
def no_encoding(index, monkeypatch):
    def prepare(*given, **named):
        raise AssertionError("was encoded")

    monkeypatch.setattr(maintaining, "prepare", prepare)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "the id '1' in row 1 is in the collection already, and 1 others are"),
        ({"id": ["3", "4"], "n": ["a", "b"]}, "'n' of the metadata holds integer values so far"),
        ({"id": ["3", "4"], "when": pd.to_timedelta([1, 2], "D")}, "row 1 a Timedelta"),
    ],
)
def test_adding(index, no_encoding, columns, said):
    with pytest.raises(InputError, match=said):
        index.add(corpus(**columns), embeddings=np.eye(2))


def test_building(no_encoding, tmp_path):
    with pytest.raises(InputError, match="row 1 a Period"):
        SearchIndex.build(
            corpus(when=pd.period_range("2020", periods=2, freq="Y")), tmp_path / "a",
            encoder="random",
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_column_does_not_become_one_of_attached_topics(index, no_encoding):
    with index._collection.writing() as writer:
        frame = pd.DataFrame({"topic": [1]})
        writer.annotate([1], frame, {"topics": {"columns": ["topic"]}})
    with pytest.raises(InputError, match="a column 'topic' of their own"):
        index.add(corpus(id=["3", "4"], topic=[5, 6]), embeddings=np.eye(2))
