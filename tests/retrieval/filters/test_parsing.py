"""What filters are read as, and how what they cannot say is refused."""

from __future__ import annotations

import sqlite3
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.retrieval.filters import (
    Condition,
    Every,
    Not,
    Some,
    expression_of,
    filter_sql,
    parse_filter,
    passes,
)

COLUMNS = {"year": "integer", "source": "text", "a b": "real", "ok": "boolean", "date": "date"}


def tree(where):
    return parse_filter(where, COLUMNS).tree


def test_precedence_case_and_forms():
    year = Condition("year", "integer", "==", (1,))
    ok = Condition("ok", "boolean", "==", (True,))
    absent = Condition("source", "text", "is null", ())
    assert tree("year = 1 OR ok == TRUE And source IS Null") == Some((year, Every((ok, absent))))
    assert tree("Not year == 1 and ok == true") == Every((Not(year), ok))
    assert tree("year <> 1") == tree("year != 1") == tree("not (year == 1)") == Not(year)
    assert tree("year in [1, 1.0,]") == tree("year == 1.0") == year
    assert tree("'a b' > -.5e1").values == (-5,)
    assert tree("year not between 1 and 3") == Not(tree("year between 1 and 3"))
    assert tree("source is not none") == Not(absent)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'it\'s'", "it's"), ("'it''s'", "it's"), ('"it\'s"', "it's"), (r'"a\\b\n"', "a\\b\n"),
        ("'%_*'", "%_*"), ("'and (or)'", "and (or)"), ("''", ""), ("'-- ; `x`'", "-- ; `x`"),
    ],
)  # fmt: skip
def test_quoted_texts(written, value):
    assert tree(f"source == {written}").values == (value,)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("__import__('os')", ">>>__import__<<<('os')", "call no functions"),
        ("source == len('a')", ">>>len<<<('a')", "put texts in quotes"),
        ("source.upper == 'A'", "source>>>.<<<upper", "no attributes"),
        ("year == 1; DROP TABLE t", "year == 1>>>;<<<", "one expression"),
        ("`year` == 1", ">>>`<<<year", "double quotes"),
        ("year == 1 -- all", "year == 1 >>>--<<< all", "no comments"),
        ("year == 1 /* all */", ">>>/*<<<", "no comments"),
        ("year + 1 == 2", "year >>>+<<< 1", "do not compute"),
        ("year == 2 -1", "year == 2 >>>-1<<<", "do not compute"),
        ("year == 2 * 3", "2 >>>*<<< 3", "do not compute"),
        ("published-at == 1", "published>>>-<<<at", "double quotes"),
        ("source == 'abc", ">>>'abc<<<", "never closed"),
        ("source == 'it's'", "'it's>>>'<<<", "inside twice"),
        ("2000 <= year <= 2010", ">>>2000<<<", "between"),
        ("year < 3 < 5", ">>><<<< 5", "not chained"),
        ("yaer == 1", ">>>yaer<<<", "did you mean 'year'"),
        ("zzz == 1", ">>>zzz<<<", "the columns are 'year', 'source'"),
        ("ok == true and year == '5'", "year == >>>'5'<<<", "holds integers; got the text '5'"),
        ("source == 5", ">>>5<<<", "put the text in quotes"),
        ("source == Monde", ">>>Monde<<<", "as in 'Monde'"),
        ("year == source", ">>>source<<<", "not compared with one another"),
        ("ok and year == 1", "ok >>>and<<<", "write ok == true"),
        ("ok == 1", ">>>1<<<", "true or false without quotes"),
        ("ok < true", ">>>true<<<", "no order"),
        ("date >= 202001", ">>>202001<<<", "'2020-01-31' or '2020-01', in quotes, or a year"),
        ("date >= 999", ">>>999<<<", "holds dates; got the number 999"),
        ("date == 2020.5", ">>>2020.5<<<", "holds dates; got the number 2020.5"),
        ("date == true", ">>>true<<<", "holds dates; got true"),
        ("date == '31/01/2020'", ">>>'31/01/2020'<<<", "YYYY-MM-DD"),
        ("date == '2020-02-30'", ">>>'2020-02-30'<<<", "does not exist"),
        ("date == 2020-01-31", ">>>2020-01<<<", "put texts and dates in quotes"),
        ("year contains 'x'", ">>>'x'<<<", "looks into texts"),
        ("year == null", ">>>null<<<", "year is null"),
        ("year in (1, null)", ">>>null<<<", "year is null"),
        ("year in ()", ">>>()<<<", "at least one value"),
        ("year in (1, 2", ">>><<<", "expected a comma or )"),
        ("year in 1", ">>>1<<<", "expected a list"),
        ("year between 1 or 2", ">>>or<<<", "two ends"),
        ("(year == 1", ">>>(<<<year", "never closed"),
        ("year == 1)", ">>>)<<<", "never opened"),
        ("", ">>><<<", "empty"),
        ("year == 1 and", "and>>><<<", "expected a condition"),
        ("and year == 1", ">>>and<<<", "name of a column"),
        ("year == 99999999999999999999", ">>>9", "64 bits"),
        ("year == 1e999", ">>>1e999<<<", "1.8e308"),
        ("year == 1_000", ">>>1_000<<<", "in digits"),
        ("year == 0x10", ">>>0x10<<<", "in digits"),
        ("source == 'a\\d'", r">>>\d<<<", "for a backslash"),
        ("source == 'a\0'", r">>>\x00<<<", "NUL"),
        ("source == '\ud800'", r">>>\ud800<<<", "half a character"),
        ("source == \u201cx\u201d", ">>>\u201c<<<", "straight quotes"),
        ("source == \u2032x\u2032", ">>>\u2032<<<", "straight quotes"),
        ("source == 'x\u2019", ">>>'x\u2019<<<", "not closed by a curved one"),
        ("year \u2265 2020", ">>>\u2265<<<", "write >="),
        ("year == \u22122", ">>>\u2212<<<", "as -"),
        ("\t\U0001f600 == 1", "\\t>>>\U0001f600<<<", "character 2: "),
        ("year == 1 && ok == true", ">>>&<<<", "write and"),
        ("year == {1}", ">>>{<<<", "parentheses"),
        ("(" * 200 + "year == 1" + ")" * 200, ">>>(<<<", "100 levels"),
        ("not " * 200 + "year == 1", ">>>not<<<", "100 levels"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_where_it_stands(text, place, message):
    with pytest.raises(InputError) as caught:
        parse_filter(text, COLUMNS)
    said = str(caught.value)
    assert place in said and message in said and "\n" not in said


def test_years_may_be_numbers_where_dates_are():
    for operator in ("==", "!=", "<", "<=", ">", ">="):
        assert tree(f"date {operator} 2020") == tree(f"date {operator} '2020'")
    assert tree("date in (2020, 1999.0)") == tree("date in ('2020', '1999')")
    assert tree("date between 1000 and 9999") == tree("date between '1000' and '9999'")
    assert tree({"date": [2020, np.int32(2021)]}) == tree("date in ('2020', '2021')")


def test_names_that_are_words_of_filters_stand_in_quotes():
    columns = {"in": "integer", "True": "integer", "not": "integer", "between": "text"}
    where = parse_filter('"in" in (1) and "True" == 2 and not "not" == 3', columns)
    assert where.columns == {"in", "True", "not"}
    assert parse_filter(expression_of(where.tree), columns).tree == where.tree
    for text, written in (("in == 1", '"in"'), ("True == 2", '"True"'), ("between < 'a'", '"betw')):
        with pytest.raises(InputError, match=f"is a word of filters, too; write .* as {written}"):
            parse_filter(text, columns)


def test_a_column_without_values_may_be_compared_with_anything():
    columns = {"m": "missing"}
    for text in ("m == 1", "m > 'a'", "m contains 'a'", "m == true", "m in (1, 2.5)", "m is null"):
        where = parse_filter(text, columns)
        assert where.columns == {"m"} and parse_filter(where, columns) is where
        assert passes(where, {"m": None}) == (text == "m is null")
        condition, parameters = filter_sql(where, lambda name: "NULL")
        (answer,) = (
            sqlite3.connect(":memory:").execute(f"SELECT {condition}", parameters).fetchone()
        )
        assert answer == (text == "m is null")
    assert (
        tree({"date": datetime(2020, 1, 1)})
        == parse_filter({"date": datetime(2020, 1, 1)}, {"date": "missing"}).tree
    )
    with pytest.raises(InputError, match=r">>>'a'<<<"):
        parse_filter("m in (1, 'a')", columns)


def test_the_place_is_counted_from_one():
    with pytest.raises(InputError, match=r"^filter, character 26: .* 'x'; write a number"):
        parse_filter("source == 'a' and  year ==\n'x'"[:25] + "'x'", COLUMNS)
    with pytest.raises(InputError, match=r"at most 10,000 characters; got 10,001"):
        parse_filter("x" * 10_001, COLUMNS)


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
        where = parse_filter(text, COLUMNS)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert tree(expression_of(where.tree)) == where.tree
        assert where.columns <= set(COLUMNS)


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ({"year": 2020, "source": ["a", "b"]}, "year in (2020) and source in ('a', 'b')"),
        ({"year": np.array([1, 2])}, "year in (1, 2)"),
        ({"year": pd.Series([1, 2])}, "year in (1, 2)"),
        ({"source": {"b", "a"}}, "source in ('a', 'b')"),
        ({"source": None}, "source is null"),
        ({"source": ["a", None]}, "source == 'a' or source is null"),
        ({"a b": [np.float32(0.5), float("nan")]}, "'a b' == 0.5 or 'a b' is null"),
        ({"ok": np.bool_(False)}, "ok == false"),
        ({"date": date(2020, 1, 31)}, "date == '2020-01-31'"),
        ({"date": "2020"}, "date == '2020'"),
        ({"date": datetime(2020, 1, 31, 12)}, "date == '2020-01-31T12:00:00.000000'"),
        ({"date": pd.Timestamp("2020-01-31T12:00+01:00")}, "date == '2020-01-31T11:00:00.000000'"),
        ({"date": np.datetime64("2020-01-31T12", "ns")}, "date == '2020-01-31T12:00:00.000000'"),
        ({"date": pd.NaT}, "date is null"),
    ],
)
def test_mappings_are_short_for_expressions(mapping, text):
    assert tree(mapping) == tree(text)
    assert tree(str(parse_filter(mapping, COLUMNS))) == tree(text)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({}, "empty mapping"),
        (["year"], "got a list"),
        ({"yaer": 1}, "entry 'yaer': there is no column 'yaer'; did you mean 'year'"),
        ({"year": "2020"}, "entry 'year': column 'year' holds integers; got the text '2020'"),
        ({"year": []}, "entry 'year': expected at least one value"),
        ({"year": {">": 3}}, "got a dict; write other conditions as text"),
        ({"year": 1 << 64}, "64 bits"),
        ({"a b": float("inf")}, "must be finite"),
        ({"source": "a\0"}, "NUL"),
        ({"year": range(30_001)}, "got a range"),
        ({"year": list(range(30_001))}, "at most 30,000 values, .* got 30,001"),
    ],
)
def test_mappings_that_make_no_sense(where, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        parse_filter(where, COLUMNS)


def test_filters_that_were_read_are_taken_if_the_columns_are_the_same():
    where = parse_filter("year == 1 and not source is null", COLUMNS)
    assert parse_filter(where, COLUMNS) is where and where.columns == {"year", "source"}
    with pytest.raises(InputError, match="here it is text"):
        parse_filter(where, {**COLUMNS, "year": "text"})
    with pytest.raises(InputError, match="must be of one of the kinds"):
        parse_filter("year == 1", {"year": "int64"})
    with pytest.raises(InputError, match="the documents have no metadata"):
        parse_filter("year == 1", {})
