"""Files that cannot be read: one line that says what was expected, what came, and what to do."""

import gzip
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError

UTF8 = "text\nété\n".encode()
MANY = b"a,b\n" + b"1,2\n" * 300_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv: expected a header line and rows, got an empty file"),
        ("a.csv", b"id,text\n", "expected rows below the header, got only the header line"),
        ("a.tsv", b"id\ttext\n\n", "got only the header line"),
        ("a.jsonl", b"", "expected JSON objects, got an empty file"),
        ("a.json", b"[]", "got an empty file"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.parquet", b"", "a.parquet: is no Parquet file"),
        ("a.csv", b'id,text\n1,ok\n2,"two\nlines"\n3,a,b\n', r"line 5: .* 2 fields .* 3;"),
        ("a.csv", b"id,text,n\n1,ok,2\n2,b\n", r"line 3: expected 3 fields .* got 2"),
        ("a.csv", b'id,text\n1,"open\n2,b\n', r"line 2: .* a quote that is never closed"),
        ("a.csv", b'id,text\n1,a\n\n2,"b" c\n', r"line 4: .* write a quote .* twice"),
        ("a.tsv", b'id\ttext\n1\t"a\nb"\n2\tb\tc\n', r"line 4: .* 2 fields .* got 3"),
        (
            "a.jsonl",
            b'{"text": "a"}\n\n{"text": "b"\n',
            r"line 3: .* a fault \(Expecting ',' delimiter",
        ),
        ("a.jsonl", b'{"text": "a"}\n[1]\n', "line 2: expected a JSON object .* got a list"),
        ("a.json", b'[{"text": "a"},\n {"text": }]', "a.json: .* line 2 column 11"),
        ("a.json", b'[{"text": "a"}, 3]', "a.json, row 1: expected a JSON object .* got a int"),
        ("a.parquet", b"PAR1 and then nothing", "a.parquet: is no Parquet file"),
        ("a.parquet.gz", gzip.compress(b"text\n", mtime=0), "is no Parquet file"),
    ],
)
def test_empty_files_and_broken_rows(tmp_path, name, content, message):
    refuse(tmp_path, name, content, message)


@pytest.mark.parametrize(
    ("name", "content", "byte"),
    [
        ("a.csv", "text\nété\n".encode("latin-1"), "e9"),
        ("a.csv", b"\xef\xbb\xbftext\nab\xff\n", "ff"),
        ("a.txt", b"ab\xc3", "c3"),
        ("a.jsonl", b'{"text": "\xe9"}', "e9"),
        ("a.json", b'["\xc3("]', "c3"),
    ],
)
def test_bytes_that_are_not_utf8(tmp_path, name, content, byte):
    message = f"{name}: expected utf-8 text, got the byte 0x{byte}; pass encoding='cp1252'"
    refuse(tmp_path, name, content, message)
    refuse(tmp_path, name + ".gz", gzip.compress(content, 1), "expected utf-8 text")


@pytest.mark.parametrize(
    "content",
    [
        b"text\nnot compressed\n",
        gzip.compress(MANY, mtime=0)[:-100],
        gzip.compress(MANY, mtime=0)[:500] + bytes(200) + gzip.compress(MANY, mtime=0)[700:],
        gzip.compress(MANY, mtime=0)[:-8] + bytes(8),
        gzip.compress(MANY, mtime=0)[:5],
    ],
    ids=["plain", "cut", "damaged", "checksum", "header"],
)
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.txt.gz", "a.parquet.gz"])
def test_damaged_gzip(tmp_path, name, content):
    # Rows before the damage are not JSON; what is wrong first is said first.
    message = "expected (a gzip file, got damaged|valid JSON|a JSON object)"
    caught = refuse(tmp_path, name, content, message)
    if "jsonl" not in name:
        assert f"{name}: expected a gzip file, got damaged or incomplete data" in caught


@pytest.mark.parametrize("path", ["artcles.csv", "nowhere/x.csv", "a\0b.csv", "articles.csv/x.csv"])
def test_missing_files(tmp_path, path):
    (tmp_path / "articles.csv").write_bytes(UTF8)
    with pytest.raises(InputError, match="; check the path"):
        Corpus(tmp_path / path)


def test_folders_without_documents_and_rows_without_number(tmp_path):
    with pytest.raises(InputError, match="limit must be None or at least 1"):
        Corpus(tmp_path / "a.csv", limit=0)
    with pytest.raises(InputError, match=r"must hold files of .csv, .*; got no file$"):
        Corpus(tmp_path)
    (tmp_path / "a.md").write_bytes(UTF8)
    (tmp_path / ".a.txt").write_bytes(UTF8)
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(InputError, match=r"must hold files of .*; got a\.md$"):
        Corpus(tmp_path)
    (tmp_path / "c.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"c.txt: expected utf-8 text, got the byte 0xff"):
        Corpus(tmp_path)


@pytest.mark.parametrize("name", ["a.xls", "a.doc.gz", "README", ".csv", "a.gz"])
def test_unknown_suffixes(tmp_path, name):
    refuse(tmp_path, name, UTF8, "expected a file that ends in .csv, .* or a folder of them")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b"n,body\n1,a\n2.5,b\n,c\nNA,d\n-3e4,e\n"), ("a.tsv", b"n\tbody\n1\ta\n")],
)
def test_a_text_column_of_numbers(tmp_path, name, content):
    message = f"text must be .* among 'n', 'body'; got numbers or .* of column 'n' of {name}"
    refuse(tmp_path, name, content, message, text="n")


def test_ids_name_row_and_line(tmp_path):
    content = b'id,text\n1,"a\nb"\n2,c\n1,d\n'
    refuse(tmp_path, "a.csv", content, r"lines 2 and 5", id="id")


def refuse(folder, name, content, message, **options):
    """Check that a file is refused with a message of one line, and return the message."""
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        Corpus(folder / name, **options)
    text = str(caught.value)
    assert re.search(message, text), text
    assert "\n" not in text
    assert name in text or "encoding" in options
    return text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system here")
def test_a_pipe_is_refused_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InputError, match="pipe"):
        Corpus(tmp_path / "a.csv")


def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="more than once"):
        Corpus(tmp_path / "a.parquet", text="text")
