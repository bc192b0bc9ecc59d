"""What cannot be stored is refused before anything is encoded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.retrieval import SearchIndex, _build
from tests.factories import refuses

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

    monkeypatch.setattr(_build, "prepare", prepare)


@pytest.mark.parametrize(
    ("columns", "parameter"),
    [
        ({}, "id"),
        ({"id": ["3", "4"], "n": ["a", "b"]}, "column 'n' of the metadata"),
        (
            {"id": ["3", "4"], "when": pd.to_timedelta([1, 2], "D")},
            "column 'when' of the metadata",
        ),
    ],
)
def test_adding(index, no_encoding, columns, parameter):
    with refuses(parameter, row=0):
        index.add(corpus(**columns), embeddings=np.eye(2))


def test_building(no_encoding, tmp_path):
    with refuses("column 'when' of the metadata", row=0):
        SearchIndex.build(
            corpus(when=pd.period_range("2020", periods=2, freq="Y")), tmp_path / "a",
            encoder="random",
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_column_does_not_become_one_of_attached_topics(index, no_encoding):
    with index._reader.collection.writing() as writer:
        frame = pd.DataFrame({"topic": [1]})
        writer.annotate([1], frame, {"topics": {"columns": ["topic"]}})
    with pytest.raises(InputError, match="a column 'topic' of its own"):
        index.add(corpus(id=["3", "4"], topic=[5, 6]), embeddings=np.eye(2))
