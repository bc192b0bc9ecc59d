"""Headers below titles, merged cells, formulas, and tables of many rows or columns."""

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedtopics import Corpus
from embedtopics.corpus._files import read_file
from embedtopics.corpus.readers import _opening, _workbook
from embedtopics.corpus.readers._headers import MOST_COLUMNS, header_position
from embedtopics.errors import InputError


def note_of(corpus, name):
    """Return the message of the decision of a name, "" if there is none."""
    return next((note.message for note in corpus.decisions if note.name == name), "")


@pytest.mark.parametrize(
    ("lines", "header_line"),
    [
        (["sep=|", "town|text"], 2),
        (['"sep=,"', "town,text"], 2),
        (["SEP=\t", "town\ttext"], 2),
        (["sep=;", "Answers", "", "town;text"], 4),
        (["Answers,", "town,text"], 2),
        (["Answers;;", ";;", "exported;2021-05-01;", "id;town;text"], 4),
        (["# made by hand", "# at, noon", "town,text"], 3),
        (["Answers of 12 towns, in May", "id,town,text"], 2),
    ],
)
def test_lines_above_the_header_are_left_out(tmp_path, lines, header_line):
    mark = next(mark for mark in "|;\t," if mark in lines[-1])
    names = lines[-1].split(mark)
    rows = [
        mark.join([str(row), town, "an answer"][-len(names) :])
        for row, town in enumerate(("Ulm", "Bonn"))
    ]
    (tmp_path / "a.csv").write_text("\n".join([*lines, *rows]) + "\n")

    table = read_file(tmp_path / "a.csv")

    assert list(table.frame.columns) == names
    assert table.frame["town"].tolist() == ["Ulm", "Bonn"]
    assert list(table.lines) == [header_line + 1, header_line + 2]


def test_what_was_above_the_header_is_reported(tmp_path):
    (tmp_path / "a.tsv").write_text("Answers of May\n\ntown\ttext\nUlm\tan answer\n")

    corpus = Corpus(tmp_path / "a.tsv")

    assert corpus.texts == ("an answer",)
    assert note_of(corpus, "above_header") == (
        "The header of a.tsv is in line 3. What stands above it was left out: 'Answers of May'."
    )


@pytest.mark.parametrize(
    "rows",
    [
        [["", "text", "n"], ["r1", "a", "b"], ["r2", "c", "d"]],
        [["", "2019", "2020"], ["Ulm", "few", "many"], ["Bonn", "some", "more"]],
        [["text", ""], ["an answer", "Ulm"], ["another", "Bonn"]],
        [["town", "answer"], ["Ulm", "long"], ["Ulm", "short"]],
        [["name", "comment", "", ""], ["Ulm", "nice", "", ""]],
        [["comment"], ["Good", " but dear"], ["Bad", " and dear"]],
        [["a", "b"]],
        [[]],
    ],
)
def test_the_first_row_is_the_header_unless_it_is_a_title(rows):
    assert header_position(rows) == 0


def test_a_row_that_recurs_as_a_category_is_no_header():
    assert header_position([["a"], ["Ulm", "good"], ["Bonn", "good"], ["Ulm", "bad"]]) == 0
    assert header_position([["a"], ["town", "answer"], ["Bonn", "good"], ["Ulm", "bad"]]) == 1


def test_a_broken_row_below_a_title_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("Answers\ntown,text\nUlm,a\nBonn,b\nKiel,c,d\n")

    with pytest.raises(InputError, match="line 5: expected 2 fields"):
        Corpus(tmp_path / "a.csv")


@pytest.fixture
def write_sheet(tmp_path):
    """Return a function that writes rows and merged cells to a workbook."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows, merged=()):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for cells in merged:
            book.active.merge_cells(cells)
        book.save(tmp_path / "a.xlsx")
        return tmp_path / "a.xlsx"

    return write


def test_titles_of_a_sheet_are_left_out(write_sheet):
    rows = [["Answers"], [], ["exported", 2021], ["id", "town", "text"], [1, "Ulm", "an answer"]]
    corpus = Corpus(write_sheet([*rows, [2, "Bonn", "another"]], ["A1:C1"]))

    assert corpus.texts == ("an answer", "another")
    assert corpus.metadata["town"].tolist() == ["Ulm", "Bonn"]
    assert "is in row 4" in note_of(corpus, "above_header")


@pytest.mark.parametrize("limit", [None, 3])
def test_merged_cells_have_their_value_in_each_row(write_sheet, limit):
    rows = [["text", "town", "year"], ["a", "Ulm", 1998], ["b", None, None], ["c", None, 2001]]
    path = write_sheet([*rows, ["d", "Kiel", 2002]], ["B2:B4", "C2:C3", "B5:C5"])

    corpus = Corpus(path, text="text", limit=limit)

    assert corpus.metadata["town"].tolist() == ["Ulm", "Ulm", "Ulm", "Kiel"][:limit]
    assert corpus.metadata["year"].tolist()[:3] == [1998, 1998, 2001]
    assert "(cells that were filled: 3, in town, year)" in note_of(corpus, "merged_cells")


def test_a_cell_beside_merged_ones_stays_missing(write_sheet):
    rows = [["text", "town"], ["a", "Ulm"], ["b", None], ["c", None]]
    corpus = Corpus(write_sheet(rows, ["B2:B3"]))

    assert corpus.metadata["town"].isna().tolist() == [False, False, True]


def test_cells_without_a_value_are_reported(write_sheet):
    rows = [["text", "n", "m"], ["=A1", 1, "#REF!"], ["an answer", "=B2", "x"], ["=A3", 3, "y"]]
    corpus = Corpus(write_sheet(rows), text="text")

    assert corpus.texts == ("", "an answer", "")
    assert corpus.status.tolist() == [2, 0, 2]
    assert "no stored value" in note_of(corpus, "formulas")
    assert "(cells: 3, in text, n)" in note_of(corpus, "formulas")
    assert "(cells: 1, in m)" in note_of(corpus, "errors")


def sheet_of(path, cells):
    """Replace the cells of a sheet by some, given by their names."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    rows = ""
    for name, text in cells.items():
        cell = f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>'
        rows += f'<row r="{name.lstrip("ABCDEFX")}">{cell}</row>'
    members["xl/worksheets/sheet1.xml"] = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        f"{rows}</sheetData></worksheet>"
    ).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(stream.getvalue())
    return path


def test_rows_far_apart_are_read_as_they_follow(write_sheet):
    path = sheet_of(write_sheet([["text"]]), {"A1": "text", "A9": "one", "A1048576": "two"})

    assert Corpus(path).texts == ("one", "two")


@pytest.mark.parametrize("name", ["A1048577", "A9999999999999999999", "XFE2"])
def test_a_cell_outside_of_a_sheet_is_refused(write_sheet, name):
    path = sheet_of(write_sheet([["text"]]), {"A1": "text", "A2": "one", name: "two"})

    with pytest.raises(InputError) as caught:
        Corpus(path)

    assert caught.value.parameter == "path"


def test_a_sheet_of_few_cells_far_apart_takes_no_more_memory_than_the_limit(
    write_sheet, monkeypatch
):
    monkeypatch.setattr(_opening, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(_workbook, "_BYTES_OF_CELL", 10_000)
    path = write_sheet([["text"]])
    cells = {"A1": "text"} | {f"{column}{row}": "x" for row, column in enumerate("BCDEF" * 20, 2)}

    with pytest.raises(InputError) as caught:
        Corpus(sheet_of(path, cells))

    assert caught.value.parameter == "path"


def wide(name, n):
    """Return a file of two rows and n columns, as bytes."""
    names = ["text", *(f"c{i}" for i in range(n - 1))]
    if name == "a.csv":
        row = ",".join(["an answer", *("x" for _ in names[1:])])
        return "\n".join([",".join(names), row, row]).encode()
    if name == "a.jsonl":
        records = [{"text": "an answer", column: "x"} for column in names[1:]]
        return "\n".join(map(json.dumps, records)).encode()
    stream = io.BytesIO()
    pq.write_table(pa.table({column: ["x", "y"] for column in names}), stream)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_table_of_too_many_columns_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(wide(name, MOST_COLUMNS + 1))

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / name, text="text")

    assert caught.value.parameter == "path"
    assert f"10,001 in {name}" in str(caught.value)


def test_the_columns_of_a_wide_table_keep_their_values(tmp_path):
    (tmp_path / "a.csv").write_bytes(wide("a.csv", 300))

    metadata = Corpus(tmp_path / "a.csv", text="text").metadata

    assert metadata.shape == (2, 299)
    assert metadata.columns.tolist() == [f"c{i}" for i in range(299)]
    assert set(metadata.to_numpy().ravel()) == {"x"}


def test_rows_of_parquet_are_counted_as_they_are_unpacked(tmp_path, monkeypatch):
    # One long text, stored once, in many rows: a small file.
    monkeypatch.setattr(_opening, "MOST_UNPACKED", 1_000_000)
    table = pa.table({"text": ["a long text " * 100] * 20_000})
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 20_000

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.parquet")

    assert caught.value.parameter == "path"
    assert Corpus(tmp_path / "a.parquet", limit=3).texts == ("a long text " * 100,) * 3


@pytest.mark.parametrize("limit", [None, 1, 5_000, 9_000])
def test_batches_of_parquet_are_one_table(tmp_path, limit):
    n = 10_000
    table = pa.table(
        {
            "text": [f"text {i % 7}" for i in range(n)],
            "kind": pa.array([f"k{i % 3}" for i in range(n)]).dictionary_encode(),
            "n": pa.array([i if i % 2 else None for i in range(n)], pa.int64()),
            "tags": [[f"t{i}"] for i in range(n)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)

    frame = read_file(tmp_path / "a.parquet", limit=limit).frame

    expected = table.slice(0, limit).to_pandas()
    assert frame["text"].tolist() == expected["text"].tolist()
    assert frame["kind"].dtype == "category"
    assert frame["kind"].tolist() == expected["kind"].tolist()
    assert frame["n"].isna().tolist() == expected["n"].isna().tolist()
    assert [list(tags) for tags in frame["tags"]] == [list(tags) for tags in expected["tags"]]


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_the_first_elements_of_an_array_are_those_of_all(tmp_path, limit):
    long_text = "a long text " * 20_000
    rows = [{"text": "a"}, {"text": long_text, "n": [1, {"x": "]"}]}, "b", {"text": "c"}]
    (tmp_path / "a.json").write_text(f" \n[{','.join(map(json.dumps, rows))}]")

    assert (
        Corpus(tmp_path / "a.json", limit=limit).texts
        == (
            "a",
            long_text,
            "b",
            "c",
        )[:limit]
    )


def test_character_references_are_reported(tmp_path):
    (tmp_path / "a.csv").write_text(
        'text,firm\n"Tom &amp; Ann",x\nAT&T; &foo; 1 & 2,x\nx,"R&#38;D"\ncaf&eacute;,"A &lt; B"\n'
    )

    corpus = Corpus(tmp_path / "a.csv")

    assert corpus.texts[0] == "Tom &amp; Ann"
    assert "such as &amp;" in note_of(corpus, "character_references")
    assert "(rows: 3)" in note_of(corpus, "character_references")


def test_texts_without_references_have_no_note():
    assert note_of(Corpus(["Tom & Ann", "AT&T; &foo; a&b;"]), "character_references") == ""
