"""Metadata: every kind that a column may have, and what is written to columns later."""

import datetime
import decimal
import enum
import math
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from embedtopics.corpus.filters._values import date_text
from embedtopics.errors import CorruptFileError
from embedtopics.retrieval.storage._checks import check
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import refuses
from tests.retrieval.collection.fake import add, assert_clean, state

NASTY = 'x"; drop table documents;--'
UTC = datetime.UTC


class Colour(str, enum.Enum):  # noqa: UP042
    RED = "red"


@pytest.fixture
def collection(tmp_path):
    return Collection.create(tmp_path / "a", {})


def grow(collection, frame, start=0):
    ids = list(range(start, start + len(frame)))
    before = frame.copy(deep=True)
    with collection.writing() as writer:
        add(writer, ids, ["t"] * len(ids), frame)
        decisions = writer.decisions
    pd.testing.assert_frame_equal(frame, before)
    return decisions


def column(collection, name):
    return [d.metadata[name] for batch in collection.batches() for d in batch]


def date(*parts):
    return datetime.datetime(*parts)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pd.Series(["é", None, "ʼ\x00"]), "text", ["é", None, "ʼ\x00"]),
        (pd.Series(["a", np.nan, pd.NA], dtype=object), "text", ["a", None, None]),
        (pd.Series(["b", "a", None], dtype="category"), "text", ["b", "a", None]),
        ([np.str_("a"), "b", ""], "text", ["a", "b", ""]),
        ([1, 2**63 - 1, -(2**63)], "integer", [1, 2**63 - 1, -(2**63)]),
        (np.array([1, 2, 3], np.uint8), "integer", [1, 2, 3]),
        (pd.Series([1, None, 3], dtype="Int64"), "integer", [1, None, 3]),
        ([np.int8(1), 2, None], "real", [1.0, 2.0, None]),  # pandas makes it so
        (pd.Series([np.int8(1), 2, None], dtype=object), "integer", [1, 2, None]),
        ([0.1, float("nan"), float("inf")], "real", [0.1, None, math.inf]),
        (np.array([0.5, 2, 3], np.float32), "real", [0.5, 2.0, 3.0]),
        (pd.Series([1, 2.5, None], dtype=object), "real", [1.0, 2.5, None]),
        ([True, False, True], "boolean", [True, False, True]),
        (pd.Series([np.bool_(True), None, False], dtype=object), "boolean", [True, None, False]),
        (pd.Series([True, None, False], dtype="boolean"), "boolean", [True, None, False]),
        (
            pd.to_datetime(["2020-02-01", None, "1999-12-31T23:59:59.5"], format="ISO8601"),
            "date", [date(2020, 2, 1), None, date(1999, 12, 31, 23, 59, 59, 500000)],
        ),
        (
            pd.Series(
                [datetime.date(1066, 10, 14), None, np.datetime64("2020-01-01")], dtype=object
            ),
            "date", [date(1066, 10, 14), None, date(2020, 1, 1)],
        ),
        ([None, float("nan"), pd.NaT], "missing", [None, None, None]),
        # Not a missing value to pandas, but to SQL.
        (pd.array([math.nan, 1.0, None], pd.ArrowDtype(pa.float64())), "real", [None, 1.0, None]),
        (pd.array([math.nan] * 3, pd.ArrowDtype(pa.float64())), "missing", [None] * 3),
        (pd.array([2**53 + 1, None], pd.ArrowDtype(pa.int64())), "integer", [2**53 + 1, None]),
        (pd.Series([Colour.RED, "blue"], dtype=object), "text", ["red", "blue"]),
        (pd.Series([2, 1, None], dtype="category"), "integer", [2, 1, None]),
        (np.array([0.1, -np.inf], np.float16), "real", [0.0999755859375, -math.inf]),
    ],
)  # fmt: skip
def test_every_kind_comes_back(collection, values, kind, expected):
    grow(collection, pd.DataFrame({"k": values}))
    assert collection.columns() == {"k": kind}
    found = column(collection, "k")
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert_clean(collection)


def test_names_are_never_sql(collection):
    names = [NASTY, "année", "", "Year", "year", "c0", "a.b", "?", "'", "\x00", "number", "id"]
    grow(collection, pd.DataFrame({name: [i, -i] for i, name in enumerate(names)}))
    assert list(collection.columns()) == names
    (first, second) = collection.documents([1, 2])
    assert dict(first.metadata) == {name: i for i, name in enumerate(names)}
    assert dict(second.metadata) == {name: -i for i, name in enumerate(names)}
    for i, name in enumerate(names[1:], 1):
        found = collection.candidates(f"{collection.column_sql(name)} = ?", [i])
        assert found.tolist() == [1], name


def test_columns_are_added_later(collection):
    grow(collection, pd.DataFrame({"a": ["x"]}))
    with collection.writing() as writer:
        add(writer, ["no metadata"], ["t"])
    grow(collection, pd.DataFrame({"b": [True], "gap": [None]}), 10)
    assert collection.columns() == {"a": "text", "b": "boolean", "gap": "missing"}
    assert column(collection, "a") == ["x", None, None]
    assert column(collection, "b") == [None, None, True]
    grow(collection, pd.DataFrame({"gap": [datetime.date(2020, 1, 1)]}), 20)
    assert collection.columns()["gap"] == "date"
    assert column(collection, "gap")[-2:] == [None, date(2020, 1, 1)]
    assert_clean(collection)


def test_a_column_keeps_its_kind(collection):
    grow(collection, pd.DataFrame({"a": [1, 2], "b": ["x", None]}))
    before = state(collection)
    for frame, name, row in (
        ({"b": ["y", "z"], "a": [None, "three"]}, "a", 1),
        ({"a": [True, False]}, "a", 0),
        ({"c": [1, 2], "b": [None, 1.5]}, "b", 1),
        ({"b": [date(2020, 1, 1)] * 2}, "b", 0),
    ):
        with refuses(f"column {name!r} of the metadata", row=row):
            grow(collection, pd.DataFrame(frame), 10)
    assert state(collection) == before and collection.snapshot().version == 1
    assert collection.columns() == {"a": "integer", "b": "text"}


def test_integers_and_real_numbers_meet(collection):
    grow(collection, pd.DataFrame({"year": [2020, 2021], "score": [0.5, 1.5]}))
    decisions = grow(collection, pd.DataFrame({"year": [2022.0, np.nan], "score": [1, 2]}), 10)
    assert decisions == [] and collection.columns() == {"year": "integer", "score": "real"}
    assert column(collection, "year") == [2020, 2021, 2022, None]
    assert [type(value) for value in column(collection, "score")] == [float] * 4
    (decision,) = grow(collection, pd.DataFrame({"year": [2022.5]}), 20)
    assert (decision.name, decision.value) == ("metadata_widened", "year")
    assert collection.columns()["year"] == "real"
    assert column(collection, "year") == [2020.0, 2021.0, 2022.0, None, 2022.5]
    assert type(column(collection, "year")[0]) is float
    assert_clean(collection)
    with refuses("column 'score' of the metadata", row=1):
        grow(collection, pd.DataFrame({"score": [1, 2**53 + 1]}), 30)
    grow(collection, pd.DataFrame({"large": [2**53 + 1]}), 30)
    with refuses("column 'large' of the metadata", row=0):
        grow(collection, pd.DataFrame({"large": [0.5]}), 40)


@pytest.mark.parametrize(
    "values",
    [
        [1, "two"], [None, "one", True], [1, True], [1, 2**63], [1.5, 2**60], ["a", ["b"]], [b"a"],
        [1j], [pd.Timedelta("1D")], [np.timedelta64(1, "D")],
        [pd.Timestamp("2020-01-01T00:00:00.000000001")], [np.datetime64("20000-01-01", "s")],
        [pd.Period("2020-01")], [pd.Interval(0, 1)], [decimal.Decimal("0.1")], [datetime.time(1)],
    ],
)  # fmt: skip
def test_other_values_are_refused(collection, values):
    with refuses("column 'k' of the metadata", row=len(values) - 1):
        grow(collection, pd.DataFrame({"k": pd.Series(values, dtype=object)}))
    assert collection.snapshot().version == 0 and collection.columns() == {}


def test_other_names_are_refused(collection):
    for frame in (pd.DataFrame([[1]], columns=[3]), pd.DataFrame([[1, 2]], columns=["a", "a"])):
        with refuses("metadata"):
            grow(collection, frame)


def test_what_is_done_to_values_is_noted(collection):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    frame = pd.DataFrame({
        "when": pd.Series([datetime.datetime(2020, 1, 1, 1, tzinfo=zone), None], dtype=object),
        "text": pd.Series(["a\ud800", "b"], dtype=object),
    })  # fmt: skip
    decisions = grow(collection, frame)
    assert [(d.name, d.value) for d in decisions] == [("metadata_time_zones", 1)]
    assert column(collection, "when") == [date(2020, 1, 1, 1), None]
    assert column(collection, "text") == ["a\ufffd", "b"]


def test_dates_sort_as_text():
    dates = [
        datetime.date(999, 1, 1), date(2020, 1, 1), date(2020, 1, 1, 0, 0, 0, 1),
        date(2020, 1, 1, 0, 0, 1), date(2020, 1, 1, 0, 0, 1, 500000), date(2020, 1, 1, 0, 0, 2),
        date(2020, 1, 1, 23), datetime.date(2020, 1, 2),
        datetime.datetime(2020, 1, 3, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        datetime.datetime(2020, 1, 3, 1, tzinfo=UTC),
    ]  # fmt: skip
    texts = [date_text(value) for value in dates]
    assert texts == sorted(texts) and len(set(texts)) == len(texts)
    assert texts[-2] == "2020-01-03"
    for value, text in zip(dates[1:7], texts[1:7], strict=True):
        assert datetime.datetime.fromisoformat(text) == value


# Metadata that come later are there for filters, and whole.


@pytest.fixture
def annotated(tmp_path):
    made = Collection.create(tmp_path / "c", {"encoder": "x"})
    with made.writing() as writer:
        frame = pd.DataFrame({"year": [2001, 2002, None]})
        add(writer, ["a", "b", "c"], ["A", "B", "C"], frame)
    return made


def test_what_does_not_fit_changes_nothing(annotated):
    before = annotated.snapshot().version, annotated.columns(), annotated.documents([1, 2, 3])
    with annotated.writing() as writer, refuses("column 'year' of the metadata", row=0):
        writer.annotate([1], pd.DataFrame({"year": ["old"]}), {"topics": {}})
    assert (
        annotated.snapshot().version,
        annotated.columns(),
        annotated.documents([1, 2, 3]),
    ) == before
    assert "topics" not in annotated.settings() and check(annotated.folder) == []


def test_damage_stays_to_be_seen(annotated):
    connection = sqlite3.connect(annotated.folder / "catalog.sqlite")
    connection.execute("UPDATE documents SET text = 'X' WHERE number = 2")
    connection.commit()
    connection.close()
    for frame in (pd.DataFrame({"topic": [1, 2]}), pd.DataFrame(index=[0, 1])):
        with annotated.writing() as writer:
            writer.annotate([2, 3], frame, {})
    assert [document.metadata["topic"] for document in annotated.documents([1, 3])] == [None, 2]
    with pytest.raises(CorruptFileError, match=r"'b' is damaged .*differs from its checksum"):
        annotated.documents([2])
    (problem,) = check(annotated.folder)
    assert problem.what == "the document 'b' differs from its checksum"
