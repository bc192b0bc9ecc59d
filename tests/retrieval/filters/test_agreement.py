"""Filters asked of SQLite and of rows, beside pandas; expressions and masks are drawn together."""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta

import pandas as pd
import pytest
from hypothesis import given, settings
from qdrant_client.local.payload_filters import check_filter

from embedtopics.errors import InputError
from embedtopics.retrieval.filters import expression_of, filter_sql, parse_filter, passes
from embedtopics.retrieval.stores.checking import checked_payload
from embedtopics.retrieval.stores.qdrant_filters import qdrant_filter
from tests.retrieval.drawn_filters import (
    COLUMNS,
    DATES,
    MOMENTS,
    OPERATORS,
    date_condition,
    filters,
    rows,
)


def stored(records):
    """Keep rows in SQLite as a collection does."""
    database = sqlite3.connect(":memory:")
    database.execute(
        'CREATE TABLE t (place TEXT, n INTEGER, "share of votes" REAL, open INTEGER, day TEXT)'
    )
    given_rows = [tuple(record[name] for name in COLUMNS) for record in records]
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", given_rows)
    return database


@settings(max_examples=100, deadline=None)
@given(rows, filters)
def test_sql_and_rows_agree_with_pandas(records, drawn):
    text, mask = drawn
    frame = pd.DataFrame({name: pd.Series([r[name] for r in records], dtype=object)
                          for name in COLUMNS})  # fmt: skip
    frame = frame.where(frame.notna(), None)
    expected = [bool(one) for one in mask(frame)]
    where = parse_filter(text, COLUMNS)
    condition, parameters = filter_sql(where, lambda name: f'"{name}"')
    found = stored(records).execute(
        f"SELECT {condition}, NOT {condition} FROM t ORDER BY rowid", parameters * 2
    )
    # Neither is ever NULL, so that a filter and its negation divide all documents.
    assert list(found) == [(int(one), int(not one)) for one in expected]
    assert [passes(where, record) for record in records] == expected
    assert parse_filter(expression_of(where.tree), COLUMNS).tree == where.tree


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("written", DATES)
def test_each_date_means_the_same_everywhere(written, operator):
    records = [{**dict.fromkeys(COLUMNS), "day": moment} for moment in (*MOMENTS, None)]
    text, mask = date_condition(written, operator)
    expected = mask(pd.DataFrame(records)).tolist()
    where = parse_filter(text, COLUMNS)
    condition, parameters = filter_sql(where, lambda name: f'"{name}"')
    answers = stored(records).execute(f"SELECT {condition} FROM t ORDER BY rowid", parameters)
    assert [bool(one) for (one,) in answers] == expected
    assert [passes(where, record) for record in records] == expected
    payloads = [{"metadata": checked_payload(r, COLUMNS, 0)} for r in records]
    assert [check_filter(qdrant_filter(where), one, 0, {}) for one in payloads] == expected


def test_by_hand():
    records = [
        {"place": "Lyon", "n": 2019, "share of votes": 0.5, "open": True, "day": "2020-01-31"},
        {"place": None, "n": None, "share of votes": None, "open": None, "day": None},
        {"place": "Paris", "n": 2021, "share of votes": 1.5, "open": False,
         "day": "2020-01-31T08:00:00"},
    ]  # fmt: skip
    database = stored(records)
    expected = {
        "n != 2019": [2, 3],
        "not n == 2019 and n is not null": [3],
        "n not in (2019, 2020)": [2, 3],
        "n < 2020 or place startswith 'P'": [1, 3],
        "n between 2019 and 2021": [1, 3],
        "n not between 2020 and 2022": [1, 2],
        "not open == true": [2, 3],
        "day == '2020-01-31'": [1, 3],
        "day == '2020-01-31T00:00'": [1],
        "day > '2020-01-31'": [],
        "day >= '2020-01-31T07:00+01:00'": [3],
        "day <= '9999'": [1, 3],
        "day > '9999-12-31'": [],
        "place contains 'ON'": [],
        "n == 2019 or n == 2021 and place == 'Lyon'": [1],
        "(n == 2019 or n == 2021) and place == 'Paris'": [3],
    }
    for text, numbers in expected.items():
        where = parse_filter(text, COLUMNS)
        condition, parameters = filter_sql(where, lambda name: f'"{name}"')
        found = database.execute(f"SELECT rowid FROM t WHERE {condition}", parameters)
        assert [row for (row,) in found] == numbers, text
        assert [n for n, r in enumerate(records, 1) if passes(where, r)] == numbers, text


def test_values_never_reach_the_sql():
    text = "x' OR 1=1; DROP TABLE t; --"
    where = parse_filter({"place": [text, "y"]}, COLUMNS)
    condition, parameters = filter_sql(where, lambda name: f'"{name}"')
    assert condition == '("place" IS NOT NULL AND "place" IN (?, ?))' and parameters == (text, "y")
    database = stored([{"place": text, "n": 1, "share of votes": 0, "open": 0, "day": None}])
    assert len(list(database.execute(f"SELECT * FROM t WHERE {condition}", parameters))) == 1


def test_an_index_serves_comparisons():
    database = stored([])
    database.execute("CREATE INDEX by_n ON t (n)")
    for text in ("n == 3", "n in (1, 2)", "n >= 3 and place contains 'x'"):
        where, parameters = filter_sql(parse_filter(text, COLUMNS), lambda name: f'"{name}"')
        plan = list(
            database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM t WHERE {where}", parameters)
        )
        assert "SEARCH t USING INDEX by_n" in plan[0][3], plan


def test_the_longest_and_deepest_filters_are_answered():
    database = stored([{"place": "a", "n": 1, "share of votes": 0, "open": 0, "day": None}])
    longest = " or ".join(["n<1"] * 1400)
    deepest = "not(" * 50 + "n == 1" + ")" * 50
    for text, expected in ((longest, 0), (deepest, 1)):
        where = parse_filter(text, COLUMNS)
        condition, parameters = filter_sql(where, lambda name: f'"{name}"')
        found = database.execute(f"SELECT {condition} FROM t", parameters)
        assert list(found) == [(expected,)]
        assert passes(where, {"n": 1}) == bool(expected)
    ids = [f"a{n}" for n in range(30_000)]
    condition, parameters = filter_sql(parse_filter({"place": ids}, COLUMNS), lambda name: name)
    assert list(database.execute(f"SELECT {condition} FROM t", parameters)) == [(0,)]
    days = [date(2000, 1, 1) + timedelta(days=n) for n in range(15_001)]
    condition, parameters = filter_sql(parse_filter({"day": days[:-1]}, COLUMNS), lambda name: name)
    assert list(database.execute(f"SELECT {condition} FROM t", parameters)) == [(0,)]
    with pytest.raises(InputError, match="a date counting twice; got 30,002"):
        parse_filter({"day": days}, COLUMNS)


@pytest.mark.parametrize("word", ["==", "contains", "startswith", "endswith"])
@pytest.mark.parametrize("value", ["b", "ab", "a", "", "é"])
def test_a_stored_nul_ends_no_text(word, value):
    for place in ("a\0b", "\0", "ab\0", "a\0é", "\0ab"):
        (record,) = [{**dict.fromkeys(COLUMNS), "place": place}]
        where = parse_filter(f"place {word} '{value}'", COLUMNS)
        condition, parameters = filter_sql(where, lambda name: name)
        ((answer,),) = stored([record]).execute(f"SELECT {condition} FROM t", parameters)
        assert bool(answer) == passes(where, record), (place, word, value)


def test_rows_may_hold_what_pandas_gives():
    where = parse_filter("day == '2020-01-31T11:00'", COLUMNS)
    assert passes(where, {"day": pd.Timestamp("2020-01-31T12:00+01:00")})
    assert not passes(where, {"day": pd.NA})
    assert passes(parse_filter("n is null", COLUMNS), {"n": pd.NA})
