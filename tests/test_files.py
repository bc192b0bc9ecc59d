"""Folders and files written whole or not at all; tables for other programs."""

import csv
import io
import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils.folders import (
    MANIFEST,
    check_output_folder,
    is_kind,
    read_manifest,
    replacing_file,
    replacing_folder,
    write_manifest,
)
from embedtopics.corpus import _table_files
from embedtopics.corpus._table_files import (
    FORMULA_STARTS,
    spreadsheet_safe,
    write_csv,
    write_table,
    write_tables,
)
from embedtopics.errors import CorruptFileError, InputError, MissingExtraError
from embedtopics.training._report import add_unchecked
from tests.factories import FULL_DISK, contents, full_disk, raising, refuses

KIND = "a test"


def save(folder, content):
    with replacing_folder(folder, KIND) as fresh:
        (fresh / "value.txt").write_text(content)
        write_manifest(fresh, KIND, 1)


def test_replaces_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "a" / "saved"
    save(folder, "one")
    save(folder, "two")
    with pytest.raises(InputError, match="no space"), replacing_folder(folder, KIND) as fresh:
        (fresh / "value.txt").write_text("thr")
        raise OSError(28, "no space")
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder, KIND):
        raise KeyboardInterrupt
    assert (folder / "value.txt").read_text() == "two"
    assert [p.name for p in folder.parent.iterdir()] == ["saved"]
    assert read_manifest(folder, KIND, 1).version == 1


def test_a_place_that_is_taken_or_cannot_be_is_refused_and_left_as_it_is(tmp_path, monkeypatch):
    save(tmp_path / "saved", "one")
    (tmp_path / "saved" / "my notes.txt").write_text("mine")
    (tmp_path / "file").write_text("x")
    (tmp_path / "mounted").mkdir()
    monkeypatch.setattr("embedtopics._utils.folders.os.path.ismount", lambda p: p.name == "mounted")
    before = contents(tmp_path)
    for place, message in {
        "saved": "holds other files", "file": "is a file", "file/below": "Not a directory",
        "mounted": "mount point", "x" * 300: "choose another path",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=message):
            save(tmp_path / place, "two")
    assert contents(tmp_path) == before


def test_manifests_of_others_are_not_deleted_and_those_of_folders_inside_are_ours(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    (folder / "inside").mkdir()
    (folder / "inside" / "part.json").write_text("{}")
    (folder / "inside" / MANIFEST).write_text("{}")
    add_unchecked(folder, ["inside/part.json"])
    save(folder, "two")
    (folder / "extra").mkdir()
    (folder / "extra" / MANIFEST).write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        save(folder, "three")
    assert (folder / "extra" / MANIFEST).read_text() == "mine"


def test_files_that_were_added_may_be_edited_and_are_replaced_with_the_folder(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    (folder / "README.md").write_text("about")
    add_unchecked(folder, ["README.md"])
    (folder / "README.md").write_text("about, edited")
    assert read_manifest(folder, KIND, 1).unchecked == ["README.md"]
    save(folder, "two")
    assert sorted(p.name for p in folder.iterdir()) == ["manifest.json", "value.txt"]
    bare = tmp_path / "bare"
    bare.mkdir()
    add_unchecked(bare, ["README.md"])
    assert not list(bare.iterdir())


@pytest.mark.parametrize(
    ("change", "kind", "version", "message"),
    [
        (lambda f: (f / "value.txt").write_text("onf"), KIND, 1, "checksum"),
        (lambda f: (f / "value.txt").unlink(), KIND, 1, "missing"),
        (lambda f: (f / "manifest.json").write_text("{"), KIND, 1, "damaged"),
        (lambda f: (f / "manifest.json").unlink(), KIND, 1, "not saved by"),
        (lambda f: None, KIND, 0, "newer"),
        (lambda f: None, "another", 1, "it holds 'a test'"),
    ],
)
def test_damage_newer_formats_and_other_kinds_are_named(tmp_path, change, kind, version, message):
    save(tmp_path / "saved", "one")
    change(tmp_path / "saved")
    with pytest.raises(CorruptFileError, match=message):
        read_manifest(tmp_path / "saved", kind, version)
    with pytest.raises(InputError, match="does not exist"):
        read_manifest(tmp_path / "nowhere", kind, version)


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "manifest.json is damaged: .*recursion"),
        ('{"kind": "a test", "version": Infinity, "files": {}}', "manifest.json is damaged"),
        (json.dumps({"kind": "k" * 10**6, "version": 1, "files": {}}), "must hold a saved a test"),
        (
            json.dumps({"kind": KIND, "version": 1, "files": {
                "n" * 10**6: {"bytes": 1, "sha256": ""}
            }}),
            "manifest.json is damaged: files",
        ),
    ],
)  # fmt: skip
def test_a_forged_manifest_is_refused_in_one_sentence(tmp_path, text, message):
    save(tmp_path / "saved", "one")
    (tmp_path / "saved" / "manifest.json").write_text(text)
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_manifest(tmp_path / "saved", KIND, 1)
    assert len(str(caught.value)) < 1000
    with pytest.raises(InputError, match="holds other files"):
        save(tmp_path / "saved", "two")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
@pytest.mark.parametrize("name", ["manifest.json", "value.txt"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, name):
    save(tmp_path / "saved", "one")
    (tmp_path / "saved" / name).unlink()
    os.mkfifo(tmp_path / "saved" / name)
    with pytest.raises(CorruptFileError, match="is not a regular file"):
        read_manifest(tmp_path / "saved", KIND, 1)
    assert not is_kind(tmp_path / "saved", KIND) or name != "manifest.json"


def test_only_one_writes_a_folder_and_what_was_left_goes(tmp_path, monkeypatch):
    monkeypatch.setattr("embedtopics._utils.folders._PATIENCE", 0.0)
    save(tmp_path / "saved", "one")
    others = {".saved.new", ".saved.notes.embedtopics-new", ".other.embedtopics-new"}
    for name in (".saved.embedtopics-new", ".saved.embedtopics-old", *others):
        (tmp_path / name).mkdir()
    with replacing_folder(tmp_path / "saved", KIND) as fresh:
        (fresh / "value.txt").write_text("two")
        write_manifest(fresh, KIND, 1)
        with pytest.raises(InputError, match="another process is writing"):
            save(tmp_path / "saved", "three")
    assert (tmp_path / "saved" / "value.txt").read_text() == "two"
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"saved", *others}


def test_a_file_of_the_user_that_comes_during_a_save_stays(tmp_path):
    save(tmp_path / "saved", "one")
    with pytest.raises(InputError, match="holds other files"):
        with replacing_folder(tmp_path / "saved", KIND) as fresh:
            write_manifest(fresh, KIND, 1)
            (tmp_path / "saved" / "notes.txt").write_text("mine")
    assert sorted(contents(tmp_path / "saved")) == ["manifest.json", "notes.txt", "value.txt"]


def test_an_interrupt_while_taking_the_place_leaves_the_old_one(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    save(folder, "one")
    rename = type(folder).rename

    def interrupted(self, target):
        if self.name.endswith("-new"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(type(folder), "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(folder, "two")
    assert (folder / "value.txt").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    save(tmp_path / "link", "one")
    save(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target" / "value.txt").read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing_file(path) as fresh:
        fresh.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    with replacing_file(path) as fresh:
        assert fresh.suffix == ".csv"
        fresh.write_text("new")
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    for bad, message in ((tmp_path, "is a folder"), (tmp_path / "a" / "b.csv", "No such file")):
        with pytest.raises(InputError, match=message), replacing_file(bad):
            pass


def test_a_full_disk_that_safetensors_meets_is_named_like_any_other(tmp_path, monkeypatch):
    from safetensors.numpy import save_file

    content = {"a": np.zeros(10_000)}
    with full_disk():
        with pytest.raises(InputError, match=r"could not write .*File too large.*free disk space"):
            with replacing_folder(tmp_path / "new", "thing") as fresh:
                save_file(content, fresh / "a.safetensors")
        with pytest.raises(InputError, match=r"could not write .*File too large"):
            with replacing_file(tmp_path / "b.safetensors") as fresh:
                save_file(content, fresh)
    assert not list(tmp_path.iterdir())


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


def test_values_of_numpy_are_what_they_mean_in_a_workbook(tmp_path):
    frame = pd.DataFrame(
        {"odd": pd.Series([np.int8(3), np.timedelta64(90, "s"), 1.5], dtype=object)}
    )
    frame["least"] = np.array([-(2**63), 1, 2])
    write_table(frame, tmp_path / "r.xlsx")
    read = pd.read_excel(tmp_path / "r.xlsx", dtype=object)
    assert read["odd"].tolist() == [3, "0:01:30", 1.5]
    assert read["least"].tolist() == [str(-(2**63)), 1, 2]  # a number would lose its last digits


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.Index(["a", "b"]), ["index_2"]),
        (pd.Index(["a", "b"], name="key"), ["key_2"]),
        (pd.MultiIndex.from_tuples([(1, "p"), (2, "q")], names=["n", None]), ["n", "index_2"]),
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

    monkeypatch.setattr(pd.DataFrame, "to_csv", raising(FULL_DISK))
    with pytest.raises(InputError, match="No space left on device; any previous content is intact"):
        write_table(FRAME, path)
    assert path.read_text() == "mine" and [p.name for p in tmp_path.iterdir()] == ["r.csv"]


def test_a_sheet_that_is_too_small_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(_table_files, "MOST_ROWS", 8)
    with pytest.raises(InputError, match=r"table big has 8 rows.*holds 7.*\.csv"):
        write_tables({"big": FRAME}, tmp_path / "r.xlsx")
    monkeypatch.setattr(_table_files, "MOST_ROWS", 9)
    write_tables({"big": FRAME}, tmp_path / "r.xlsx")
    assert len(pd.read_excel(tmp_path / "r.xlsx", sheet_name="big")) == 8


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"embedtopics\[files\]"):
        write_table(FRAME, tmp_path / "r.xlsx")
    assert list(tmp_path.iterdir()) == []
    with refuses("path"):
        write_table(FRAME, tmp_path)


@pytest.mark.parametrize("name", ["x" * 245, "x" * 300, "a\udcffb", "a\0b", "loop/x"])
def test_names_that_cannot_be_written_are_refused_before_the_work(tmp_path, name):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError, match="could not write"):
        check_output_folder(tmp_path / name, "model")
    assert check_output_folder(tmp_path / "new" / "folder", "model").name == "folder"
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.parametrize(
    "change",
    [
        {"version": -5},
        {"version": 0},
        {"version": 1.9},
        {"version": 1.0},
        {"version": True},
        {"version": "1"},
        {"version": None},
        {"kind": [KIND]},
        {"files": []},
        {"files": {"../value.txt": {"bytes": 3, "sha256": "0" * 64}}},
        {"files": {"/etc/passwd": {"bytes": 3, "sha256": "0" * 64}}},
        {"files": {"value.txt": {"bytes": -1, "sha256": "0" * 64}}},
        {"files": {"value.txt": {"bytes": 3, "sha256": "0" * 63}}},
        {"files": {"value.txt": {"bytes": 3}}},
        {"files": {"value.txt": "0" * 64}},
        {"unchecked": "README.md"},
        {"unchecked": ["../README.md"]},
        {"code": "import os"},
    ],
    ids=str,
)
def test_a_manifest_of_another_form_is_refused(tmp_path, change):
    folder = tmp_path / "saved"
    save(folder, "one")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(CorruptFileError, match=r"manifest\.json is damaged"):
        read_manifest(folder, KIND, 1)
    assert not is_kind(folder, KIND)


def test_a_newer_format_with_new_fields_asks_for_an_upgrade(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "version": 2, "new": 1}))
    with pytest.raises(CorruptFileError, match="upgrade embedtopics"):
        read_manifest(folder, KIND, 1)


def test_a_link_out_of_a_saved_folder_is_refused(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    (folder / "value.txt").rename(tmp_path / "value.txt")
    (folder / "value.txt").symlink_to(tmp_path / "value.txt")
    with pytest.raises(CorruptFileError, match="link to a file outside"):
        read_manifest(folder, KIND, 1)
