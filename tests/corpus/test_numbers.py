"""Numerals in the cells of files: which notations are read, and what stays text."""

import datetime
import math

import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics.corpus._numbers import has_inexact_integers, infer_type, read_numbers


def read(cells, delimiter=",", **others):
    """Return the numbers of a column of cells, and the names of the decisions."""
    frame = pd.DataFrame({"x": cells, **others}, dtype=object)
    frame, decisions = read_numbers(frame, (), delimiter)
    return frame["x"], {decision.name: decision for decision in decisions}


@pytest.mark.parametrize(
    "numbers",
    [[1 / 3, 2 / 7], [5e-324, 1.7976931348623157e308], [-1e-05, 12.5], [0.1 + 0.2, -0.0], [1e22]],
    ids=["sixteen digits", "extremes", "exponent", "rounding", "large"],
)
def test_whatever_python_writes_is_read_to_the_bit(numbers):
    column, notes = read([repr(number) for number in numbers])

    assert column.tolist() == numbers
    assert [math.copysign(1, x) for x in column] == [math.copysign(1, x) for x in numbers]
    assert notes["numeric_columns"].value == ["x"]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["-.25", "+3."], [-0.25, 3.0]),
        (["2E+3", "1e-2"], [2000.0, 0.01]),
        (["\u2212 5".replace(" ", ""), " 7 "], [-5, 7]),
        (["12,5", "3"], [12.5, 3.0]),
        (["0,125", "1,250"], [0.125, 1.25]),
        (["1,5E-3", "-,5"], [0.0015, -0.5]),
        (["12,345.5", "999"], [12345.5, 999.0]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1.234,5", "12"], [1234.5, 12.0]),
        (["1.234.567", "8.000"], [1234567, 8000]),
        (["1 234", "23 456 789"], [1234, 23456789]),
        (["1\u00a0234,5", "1\u202f000,25"], [1234.5, 1000.25]),
        (["1'234", "1\u2019000\u2019000"], [1234, 1000000]),
    ],
)
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_one_notation_of_a_column_is_read(cells, numbers, delimiter):
    column, _ = read(cells, delimiter)

    assert column.tolist() == numbers


def test_separators_are_reported_with_an_example():
    _, notes = read(["7", "0,75"], ";")

    assert notes["number_separators"].message.endswith("as follows: x ('0,75' is 0.75).")


@pytest.mark.parametrize(
    ("cells", "delimiter"),
    [
        (["1,234", "5,678"], ";"),
        (["1.234", "5.678"], ";"),
        (["0,5", "1.5"], ";"),
        (["1,234.5", "1.234,5"], ";"),
        (["1e999", "2"], ","),
        (["9007199254740993", "0.5"], ","),
        (["12345678901234567890", "5"], ","),
    ],
)
def test_ambiguous_numerals_stay_text_and_are_named(cells, delimiter):
    column, notes = read(cells, delimiter)

    assert column.tolist() == cells
    assert notes["numerals_as_text"].value == ["x"]


@pytest.mark.parametrize(
    "cells",
    [
        ["007", "101"],
        ["01.5", "2.5"],
        ["-01", "5"],
        ["+4930123456", "+4930123457"],
        ["1,23,456", "5"],
        ["12,34", "five"],
        ["1_000", "2"],
        ["0x10", "2"],
        ["\u0661", "2"],
        ["inf", "1"],
        ["1 2 3", "5"],
    ],
)
def test_codes_and_words_stay_text_in_silence(cells):
    column, notes = read(cells)

    assert column.tolist() == cells
    assert notes == {}


def test_commas_in_quotes_separate_thousands_in_a_file_with_commas():
    column, notes = read(["1,234", "56"], ",")

    assert column.tolist() == [1234, 56]
    assert "number_separators" in notes


@pytest.mark.parametrize(("other", "numbers"), [("0,5", [1.234, 5.678]), ("0.5", [1234, 5678])])
def test_another_column_tells_what_a_comma_means(other, numbers):
    column, _ = read(["1,234", "5,678"], ";", other=[other, other])

    assert column.tolist() == numbers


def test_points_are_ambiguous_beside_decimal_commas():
    column, notes = read(["1.234", "5.678"], "\t", other=["0,5", "1,5"])

    assert column.tolist() == ["1.234", "5.678"]
    assert notes["numerals_as_text"].value == ["x"]


def test_points_without_other_evidence_are_decimals():
    column, _ = read(["1.234", "5.678"], "\t")

    assert column.tolist() == [1.234, 5.678]


def test_integers_with_gaps_stay_exact():
    column, _ = read(["9007199254740993", None, "NA", " ", "n/a", "7"])

    assert column.dtype == "Int64"
    assert column[0] == 9007199254740993
    assert column.isna().tolist() == [False, True, True, True, True, False]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) + 1, 1765432109876543210])
def test_integers_of_64_bits_are_exact(number):
    column, _ = read([str(number), "5"])

    assert column.dtype == "int64"
    assert column[0] == number


@pytest.mark.parametrize("numeral", ["9223372036854775808", "-99999999999999999999"])
def test_integers_beyond_64_bits_stay_text(numeral):
    column, notes = read([numeral, "5"])

    assert column.tolist() == [numeral, "5"]
    assert notes["numerals_as_text"].value == ["x"]


def test_numbers_and_numerals_of_a_workbook_are_one_column():
    column, _ = read([5, "9007199254740993", None])

    assert column.tolist()[:2] == [5, 9007199254740993]


def test_numbers_of_a_workbook_alone_stay_as_they_are():
    day = datetime.date(2021, 5, 17)

    assert read([5, True])[0].tolist() == [5, True]
    assert read(["5", day])[0].tolist() == ["5", day]


def test_columns_that_are_left_out_stay_text():
    frame = pd.DataFrame({"group": ["1", "2"], "x": ["1", "2"]}, dtype=object)

    frame, _ = read_numbers(frame, {"group"})

    assert frame["group"].tolist() == ["1", "2"]
    assert frame["x"].tolist() == [1, 2]


def test_a_cell_of_many_digits_is_no_number():
    cells = ["1" * 500_000 + "x", "5"]

    assert read(cells)[0].tolist() == cells
    assert read(["9" * 200_000, "5"])[0].tolist() == ["9" * 200_000, "5"]


def test_large_integers_beside_fractions_stay_exact_and_are_named():
    rows = [{"text": "one text", "n": 2**53 + 1}, {"text": "two texts", "n": 0.5}]

    corpus = Corpus(rows, text="text")

    assert corpus.metadata["n"].tolist() == [2**53 + 1, 0.5]
    assert [note.value for note in corpus.decisions if note.name == "inexact_integers"] == [["n"]]


def test_integers_that_a_float_holds_become_floats_beside_fractions():
    column = infer_type(pd.Series([2**53, 0.5, None], dtype=object))

    assert column.dtype == "float64"
    assert not has_inexact_integers([2**60, 0.5])
    assert has_inexact_integers([10**400, 0.5])


@pytest.mark.parametrize("library", ["polars", "pyarrow", "datasets", "parquet"])
def test_integers_with_gaps_of_other_tables_stay_exact(library, tmp_path):
    polars = pytest.importorskip("polars")
    columns = {"text": ["a b", "c d", "e f"], "n": [2**60 + 1, None, 7]}
    frame = polars.DataFrame(columns)
    data = {"polars": frame, "pyarrow": frame.to_arrow()}.get(library)
    if library == "datasets":
        data = pytest.importorskip("datasets").Dataset.from_dict(columns)
    if library == "parquet":
        data = tmp_path / "table.parquet"
        frame.write_parquet(data)

    numbers = Corpus(data, text="text").metadata["n"]

    assert numbers.dtype == "Int64"
    assert numbers[0] == 2**60 + 1
