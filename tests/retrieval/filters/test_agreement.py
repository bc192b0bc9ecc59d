"""Filters asked of SQLite and of rows, beside pandas; expressions and masks are drawn together."""

from __future__ import annotations

import math
import sqlite3

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.retrieval.filters import expression_of, filter_sql, parse_filter, passes

COLUMNS = {
    "place": "text", "n": "integer", "share of votes": "real", "open": "boolean", "day": "date",
}  # fmt: skip
NAMES = {name: f'"{name}"' if " " in name else name for name in COLUMNS}

texts = st.text(st.sampled_from(list("aAbé'\"\\%_\n 中\U0001f600")), max_size=4)
integers = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
reals = st.one_of(st.sampled_from([0.5, -1.5, 1e300, 1e-9, 2.0]), st.integers(-2, 2).map(float))
moments = st.sampled_from(
    ["2019-12-31T23:59:59.999999", "2020-01-01T00:00:00", "2020-01-31T00:00:00", "2020-02-01",
     "2020-01-31T12:00:00", "2020-01-31T12:00:30", "2020-01-31T12:00:30.500000", "2020-12-31"]
)  # fmt: skip
rows = st.lists(
    st.fixed_dictionaries(
        {
            "place": st.none() | texts,
            "n": st.none() | integers,
            "share of votes": st.none() | reals | st.just(math.nan),
            "open": st.none() | st.booleans(),
            "day": st.none() | moments,
        }
    ),
    min_size=1,
    max_size=8,
)


def quoted(text):
    quote = "'" if len(text) % 2 else '"'
    return quote + text.replace("\\", "\\\\").replace(quote, quote * 2) + quote


def compared(column, operator, value):
    """Compare as pandas does; of nothing all comparisons are false but that for being unequal."""
    return {
        "==": column == value, "!=": ~(column == value), "<": column < value,
        "<=": column <= value, ">": column > value, ">=": column >= value,
    }[operator].fillna(operator == "!=").astype(bool)  # fmt: skip


ORDERS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@st.composite
def of_numbers(draw):
    name = draw(st.sampled_from(["n", "share of votes"]))
    values = draw(st.lists(integers | reals, min_size=1, max_size=3))
    if len(values) > 1:
        negation = draw(st.sampled_from(["", "not "]))
        written = ", ".join(map(repr, values))
        inside = lambda f: f[name].map(lambda v: v is not None and v in values)  # noqa: E731
        return (
            f"{NAMES[name]} {negation}in ({written})",
            lambda f: ~inside(f).astype(bool) if negation else inside(f).astype(bool),
        )
    operator = draw(ORDERS)
    return (
        f"{NAMES[name]} {operator} {values[0]!r}",
        lambda f: (
            f[name]
            .map(
                lambda v: (
                    operator == "!=" if v is None else bool(compare_exactly(v, operator, values[0]))
                )
            )
            .astype(bool)
        ),
    )


def compare_exactly(value, operator, asked):
    # Python's integers, because pandas would round those above 2**53 to floats.
    return {
        "==": value == asked, "!=": value != asked, "<": value < asked, "<=": value <= asked,
        ">": value > asked, ">=": value >= asked,
    }[operator]  # fmt: skip


@st.composite
def of_texts(draw):
    value = draw(texts)
    word = draw(st.sampled_from(["==", "!=", "<", ">=", "contains", "startswith", "endswith"]))
    series = lambda f: pd.Series(f["place"], dtype="str")  # noqa: E731
    masks = {
        "contains": lambda f: series(f).str.contains(value, regex=False, na=False),
        "startswith": lambda f: series(f).str.startswith(value, na=False),
        "endswith": lambda f: series(f).str.endswith(value, na=False),
    }
    if word in masks:
        return f"place {word.upper()} {quoted(value)}", masks[word]
    return f"place {word} {quoted(value)}", lambda f: compared(series(f), word, value)


@st.composite
def of_dates(draw):
    text = draw(st.sampled_from(["2020", "2020-01", "2020-01-31", "2020-02-01", "2020-01-31T12:00",
                                 "2020-01-31 12:00:30", "2019-12-31"]))  # fmt: skip
    operator = draw(ORDERS)
    period = pd.Period(text, freq=None if len(text) < 17 else "s")

    def mask(frame):
        day = pd.to_datetime(pd.Series(frame["day"], dtype=object), format="ISO8601")
        within = (day >= period.start_time) & (day <= period.end_time)
        return {
            "==": within, "!=": ~within, "<": day < period.start_time,
            "<=": day <= period.end_time, ">": day > period.end_time,
            ">=": day >= period.start_time,
        }[operator]  # fmt: skip

    return f"day {operator} '{text}'", mask


@st.composite
def of_the_rest(draw):
    name = draw(st.sampled_from(list(COLUMNS)))
    if draw(st.booleans()):
        return f"{NAMES[name]} IS null", lambda f: f[name].isna()
    if draw(st.booleans()):
        return f"{NAMES[name]} is not NULL", lambda f: f[name].notna()
    value = draw(st.booleans())
    return f"open == {str(value).lower()}", lambda f: f["open"].map(lambda v: v is value)


def joined(inside):
    several = st.lists(inside, min_size=2, max_size=3)
    return st.one_of(
        inside.map(lambda one: (f"not ({one[0]})", lambda f: ~one[1](f).astype(bool))),
        several.map(
            lambda parts: (
                " and ".join(f"({text})" for text, _ in parts),
                lambda f: pd.concat([mask(f) for _, mask in parts], axis=1).all(axis=1),
            )
        ),
        several.map(
            lambda parts: (
                "(" + ") OR (".join(text for text, _ in parts) + ")",
                lambda f: pd.concat([mask(f) for _, mask in parts], axis=1).any(axis=1),
            )
        ),
    )


filters = st.recursive(of_numbers() | of_texts() | of_dates() | of_the_rest(), joined, max_leaves=5)


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
