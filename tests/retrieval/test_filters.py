"""Filters: what they are read as, what they answer beside pandas, and how errors show the place."""

import sqlite3

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.corpus.filters._expressions import parse_filter
from embedtopics.errors import InputError
from tests.factories import refuses
from tests.retrieval.drawn_filters import (
    COLUMNS,
    DATES,
    MOMENTS,
    OPERATORS,
    date_condition,
    filters,
    rows,
)

READ = {"year": "integer", "source": "text", "a b": "real", "ok": "boolean", "date": "date"}
NOTHING = dict.fromkeys(COLUMNS)


def stored(records):
    """Keep rows in SQLite as a collection does."""
    database = sqlite3.connect(":memory:")
    database.execute(
        'CREATE TABLE t (place TEXT, n INTEGER, "share of votes" REAL, open INTEGER, day TEXT)'
    )
    values = [tuple({**NOTHING, **record}.values()) for record in records]
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", values)
    return database


def answers(where, records):
    """Return for each row whether it passes; what passes a filter fails its negation."""
    condition, parameters = parse_filter(where, COLUMNS, lambda name: f'"{name}"').sql
    query = f"SELECT {condition}, NOT {condition} FROM t ORDER BY rowid"
    found = list(stored(records).execute(query, parameters * 2))
    assert all({one, other} == {0, 1} for one, other in found)
    return [bool(one) for one, _ in found]


@settings(max_examples=100, deadline=None)
@given(rows, filters)
def test_answers_are_those_of_pandas(records, drawn):
    text, mask = drawn
    frame = pd.DataFrame({name: pd.Series([r[name] for r in records], dtype=object)
                          for name in COLUMNS})  # fmt: skip
    frame = frame.where(frame.notna(), None)
    assert answers(text, records) == [bool(one) for one in mask(frame)]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("written", DATES)
def test_each_date_is_a_period(written, operator):
    records = [{**NOTHING, "day": moment} for moment in (*MOMENTS, None)]
    text, mask = date_condition(written, operator)
    assert answers(text, records) == mask(pd.DataFrame(records)).tolist()


def test_by_hand():
    records = [
        {"place": "Lyon", "n": 2019, "share of votes": 0.5, "open": True, "day": "2020-01-31"},
        NOTHING,
        {"place": "Paris", "n": 2021, "share of votes": 1.5, "open": False,
         "day": "2020-01-31T08:00:00"},
    ]  # fmt: skip
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
        "day > '2020-01-31T09:00+02:00'": [],
        "day == '2020-01-31T08:00-05:00'": [3],
        "day <= '9999'": [1, 3],
        "day > '9999-12-31'": [],
        "place contains 'ON'": [],
        "n == 2019 or n == 2021 and place == 'Lyon'": [1],
        "(n == 2019 or n == 2021) and place == 'Paris'": [3],
    }
    for text, numbers in expected.items():
        found = [n for n, passes in enumerate(answers(text, records), 1) if passes]
        assert found == numbers, text


@pytest.mark.parametrize("word", ["==", "contains", "startswith", "endswith"])
@pytest.mark.parametrize("value", ["b", "ab", "a", "", "é"])
def test_a_stored_nul_ends_no_text(word, value):
    test = {"==": str.__eq__, "contains": str.__contains__, "startswith": str.startswith,
            "endswith": str.endswith}[word]  # fmt: skip
    places = ("a\0b", "\0", "ab\0", "a\0é", "\0ab")
    found = answers(f"place {word} '{value}'", [{"place": place} for place in places])
    assert found == [test(place, value) for place in places]


def test_values_never_reach_the_sql():
    text = "x' OR 1=1; DROP TABLE t; --"
    where = f"place in ({text!r}, 'y')"
    condition, parameters = parse_filter(where, COLUMNS).sql
    assert condition == "(place IS NOT NULL AND place IN (?, ?))" and parameters == [text, "y"]


@pytest.mark.slow
def test_the_longest_and_deepest_filters_are_answered():
    record = {"place": "a", "n": 1}
    assert answers(" or ".join(["n<1"] * 1400), [record]) == [False]
    assert answers("not(" * 6 + "n == 1" + ")" * 6, [record]) == [True]
    with refuses("where"):
        parse_filter("x" * 10_001, COLUMNS)


def sql(where):
    return parse_filter(where, READ).sql


def test_precedence_case_and_forms():
    year, ok = "(year IS NOT NULL AND year = ?)", "(ok IS NOT NULL AND ok = ?)"
    absent = "(source IS NULL)"
    assert sql("year = 1 OR ok == TRUE And source IS Null") == (
        f"({year} OR ({ok} AND {absent}))", [1, 1]
    )  # fmt: skip
    assert sql("Not year == 1 and ok == true") == (f"(NOT {year} AND {ok})", [1, 1])
    assert sql("year <> 1") == sql("year != 1") == sql("not (year == 1)") == (f"NOT {year}", [1])
    assert sql("year in [1, 1.0,]") == ("(year IS NOT NULL AND year IN (?, ?))", [1, 1])
    assert sql("year == 1.0") == (year, [1])
    assert sql("'a b' > -.5e1")[1] == [-5]
    between = sql("year between 1 and 3")
    assert sql("year not between 1 and 3") == (f"NOT {between[0]}", between[1])
    assert sql("source is not none") == (f"NOT {absent}", [])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'it\'s'", "it's"), ("'it''s'", "it's"), ('"it\'s"', "it's"), (r'"a\\b\n"', "a\\b\n"),
        ("'%_*'", "%_*"), ("'and (or)'", "and (or)"), ("''", ""), ("'-- ; `x`'", "-- ; `x`"),
    ],
)  # fmt: skip
def test_quoted_texts(written, value):
    assert sql(f"source == {written}")[1] == [value]


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("__import__('os')", "__import__>>>(<<<'os')", "a comparison after the column"),
        ("year == 1; DROP TABLE t", "year == 1>>>;<<<", "one expression"),
        ("year + 1 == 2", "year >>>+<<< 1", "do not compute"),
        ("year == 2 -1", "year == 2 >>>-1<<<", "and, or"),
        ("source == 'abc", ">>>'<<<abc", "never closed"),
        ("2000 <= year <= 2010", ">>>2000<<<", "between"),
        ("yaer == 1", ">>>yaer<<<", "did you mean 'year'"),
        ("zzz == 1", ">>>zzz<<<", "the columns are 'year', 'source'"),
        ("ok == true and year == '5'", "year == >>>'5'<<<", "holds integers; got '5'"),
        ("source == 5", ">>>5<<<", "put the text in quotes"),
        ("source == Monde", ">>>Monde<<<", "as in 'Monde'"),
        ("ok and year == 1", "ok >>>and<<<", "; write ok == true"),
        ("year", "year>>><<<", "or is null"),
        ("ok == 1", ">>>1<<<", "true or false without quotes"),
        ("ok < true", ">>>ok<<<", "no order"),
        ("date >= 202001", ">>>202001<<<", "'2020-01-31' or '2020-01', in quotes, or a year"),
        ("date == '31/01/2020'", ">>>'31/01/2020'<<<", "YYYY-MM-DD"),
        ("year contains 'x'", ">>>year<<<", "searches texts"),
        ("year in (1, null)", ">>>null<<<", "is null"),
        ("year in 1", ">>>1<<<", "a list after in"),
        ("year between 1 or 2", ">>>or<<<", "two ends"),
        ("(year == 1", ">>><<<", "not closed"),
        ("", ">>><<<", "a column"),
        ("year == 99999999999999999999", ">>>9", "64 bits"),
        ("source == 'a\\d'", ">>>'<<<a", "a backslash"),
        ("source == \u201cx\u201d", ">>>\u201c<<<", "straight quotes"),
        ("(" * 200 + "year == 1" + ")" * 200, ">>>(<<<", "12 levels"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_where_it_stands(text, place, hint):
    with refuses("where") as caught:
        parse_filter(text, READ)
    said = str(caught.value)
    assert place in said and hint in said and "\n" not in said


def test_years_may_be_numbers_where_dates_are():
    for operator in OPERATORS:
        assert sql(f"date {operator} 2020") == sql(f"date {operator} '2020'")
    assert sql("date in (2020, 1999.0)") == sql("date in ('2020', '1999')")


def test_names_that_are_words_of_filters_stand_in_quotes():
    columns = {"in": "integer", "True": "integer", "not": "integer", "between": "text"}
    where = parse_filter('"in" in (1) and "True" == 2', columns).sql[0]
    assert where == "((in IS NOT NULL AND in IN (?)) AND (True IS NOT NULL AND True = ?))"
    for text in ("in == 1", "True == 2", "between < 'a'"):
        with pytest.raises(InputError, match="is a keyword of filters"):
            parse_filter(text, columns)


def test_a_column_without_values_may_be_compared_with_anything():
    columns = {"m": "missing"}
    for text in ("m == 1", "m > 'a'", "m contains 'a'", "m == true", "m in (1, 2.5)", "m is null"):
        condition, parameters = parse_filter(text, columns, lambda name: "NULL").sql
        database = sqlite3.connect(":memory:")
        (answer,) = database.execute(f"SELECT {condition}", parameters).fetchone()
        assert answer == (text == "m is null")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=30),
        st.lists(
            st.sampled_from(
                ["year", "source", "==", "!=", "<", "(", ")", "in", "not", "and", "or", "1", "-2.5",
                 "'a'", ",", "is", "null", "between", "contains", "true", '"a b"', "ok", ".", "--"]
            ),
            max_size=12,
        ).map(" ".join),
    )
)  # fmt: skip
def test_any_text_is_read_or_refused_in_one_line(text):
    try:
        parse_filter(text, READ)
    except InputError as error:
        assert "\n" not in str(error) and error.parameter == "where"
