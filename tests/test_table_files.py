from __future__ import annotations

import builtins
import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils import table_files
from embedtopics._utils.table_files import (
    FORMULA_STARTS,
    spreadsheet_safe,
    write_csv,
    write_table,
    write_tables,
)
from embedtopics.errors import InputError, MissingExtraError
from tests.factories import refuses


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


FRAME = pd.DataFrame({"n": range(8)})


def test_lines_of_json_hold_what_frames_hold(tmp_path):
    first = [np.float32(0.1), pd.NA, np.array([1, 2])]
    frame = pd.DataFrame({"a": first, "b": [pd.NaT, {1: None}, (3,)]}, dtype=object)
    write_table(frame, tmp_path / "x.jsonl")
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()] == [
        {"a": pytest.approx(float(np.float32(0.1))), "b": None}, {"a": None, "b": {"1": None}},
        {"a": [1, 2], "b": [3]},
    ]  # fmt: skip


def test_values_of_numpy_are_what_they_mean_in_every_format(tmp_path):
    odd = [np.datetime64("2020-01-02T03:04:05", "ns"), np.longdouble(1.5), np.timedelta64(90, "s")]
    frame = pd.DataFrame({"odd": pd.Series(odd, dtype=object)})
    frame["least"] = np.array([-(2**63), 1, 2])
    write_table(frame, tmp_path / "r.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [line["odd"] for line in lines] == ["2020-01-02T03:04:05", 1.5, "0 days 00:01:30"]
    write_table(frame, tmp_path / "r.xlsx")
    read = pd.read_excel(tmp_path / "r.xlsx", dtype=object)
    assert read["odd"].tolist() == [pd.Timestamp("2020-01-02 03:04:05"), 1.5, "0 days 00:01:30"]
    assert read["least"].tolist() == [str(-(2**63)), 1, 2]  # a number would lose its last digits


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.Index(["a", "b"]), ["index (row label 1)"]),
        (pd.Index(["a", "b"], name="key"), ["key (row label 1)"]),
        (pd.MultiIndex.from_tuples([(1, "p"), (2, "q")], names=["n", None]),
         ["n", "index (row label 2)"]),
        (pd.RangeIndex(2), []),
    ],
)  # fmt: skip
def test_row_labels_keep_their_names_apart(tmp_path, index, expected):
    frame = pd.DataFrame({"index": [1, 2], "key": ["x", "y"]}, index=index)
    write_table(frame, tmp_path / "new" / "r.csv")
    columns = list(pd.read_csv(tmp_path / "new" / "r.csv").columns)
    assert columns == [*expected, "index", "key"]


def test_what_is_there_stays_until_all_is_written(tmp_path, monkeypatch):
    path = tmp_path / "r.csv"
    path.write_text("mine")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(InputError, match="No space left on device; what was there before is whole"):
        write_table(FRAME, path)
    assert path.read_text() == "mine" and [p.name for p in tmp_path.iterdir()] == ["r.csv"]
    with pytest.raises(InputError, match="cannot make the folder"):
        write_table(FRAME, path / "t.csv")


def test_a_sheet_that_is_too_small_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_ROWS", 8)
    with pytest.raises(InputError, match=r"table big has 8 rows.*holds 7.*\.csv"):
        write_tables({"big": FRAME}, tmp_path / "r.xlsx")
    monkeypatch.setattr(table_files, "MOST_ROWS", 9)
    write_tables({"big": FRAME}, tmp_path / "r.xlsx")
    assert len(pd.read_excel(tmp_path / "r.xlsx", sheet_name="big")) == 8


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *arguments, **keywords):
        if name.split(".")[0] == "openpyxl":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"embedtopics\[excel\]"):
        write_table(FRAME, tmp_path / "r.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_one_table_needs_a_file(tmp_path):
    with refuses("path"):
        write_table(FRAME, tmp_path)
