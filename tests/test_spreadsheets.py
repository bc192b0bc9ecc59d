from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._spreadsheets import FORMULA_STARTS, spreadsheet_safe, write_csv


def read_back(path, separator=","):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter=separator))


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_lone_carriage_return_ends_no_line(tmp_path, separator):
    table = pd.DataFrame({"a\rb": ["one\r=1+1", "two", ""], "n": [1, 2, 3]})
    assert write_csv(tmp_path / "t.csv", table, separator=separator) == 0
    assert read_back(tmp_path / "t.csv", separator) == [
        ["a\rb", "n"], ["one\r=1+1", "1"], ["two", "2"], ["", "3"],
    ]  # fmt: skip
    again = pd.read_csv(tmp_path / "t.csv", sep=separator, keep_default_na=False)
    assert again["n"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_what_could_be_run_is_marked_in_cells_and_names(tmp_path, start):
    table = pd.DataFrame({f"{start}x": [f"{start}1", "plain", None], "n": [-1, 2, 3]})
    given = table.copy()
    assert write_csv(tmp_path / "t.csv", table) == 1
    rows = read_back(tmp_path / "t.csv")
    assert rows[0] == [f"'{start}x", "n"]
    assert [row[0] for row in rows[1:]] == [f"'{start}1", "plain", ""]
    assert rows[1][1] == "-1"  # a number is no text
    pd.testing.assert_frame_equal(table, given)
    assert write_csv(tmp_path / "t.csv", table, safe=False) == 0
    assert read_back(tmp_path / "t.csv")[1][0] == f"{start}1"


@given(st.lists(st.lists(st.text("ab=+\r\n\t\"',; \uff1d", max_size=6), min_size=2, max_size=2)))
def test_every_cell_comes_back(rows):
    table = pd.DataFrame(rows, columns=["one", "two"], dtype=object)
    stream = io.StringIO(newline="")
    n_marked = write_csv(stream, table)
    found = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert found == [["one", "two"], *([spreadsheet_safe(cell) for cell in row] for row in rows)]
    assert n_marked == sum(cell.startswith(FORMULA_STARTS) for row in rows for cell in row)
