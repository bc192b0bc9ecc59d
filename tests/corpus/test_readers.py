"""Files that are read: every format, plain and gzipped, gives the same corpus."""

import csv
import gzip
import io
import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import Corpus
from embedtopics.corpus.readers._delimited import sniff_delimiter
from embedtopics.terms._languages import detect_languages

ROWS = [
    {"id": "a1", "body": 'He said "yes", twice; été | שלום', "year": "2020"},
    {"id": "007", "body": "two\nlines, \u2028 one document", "year": "2021"},
    {"id": "c3", "body": "", "year": "2021"},
    {"id": "d4", "body": "👩\u200d🔬 in a lab", "year": "2022"},
]


def delimited(rows, delimiter):
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def parquet(rows):
    stream = io.BytesIO()
    pd.DataFrame(rows).to_parquet(stream)
    return stream.getvalue()


def json_lines(rows):
    return "\n\n".join(json.dumps(row) for row in rows).encode()


CONTENTS = {
    "comma.csv": delimited(ROWS, ","),
    "semicolon.csv": delimited(ROWS, ";"),
    "tab.csv": delimited(ROWS, "\t"),
    "bar.csv": delimited(ROWS, "|"),
    "quoted.tsv": delimited(ROWS, "\t"),
    "lines.jsonl": json_lines(ROWS),
    "lines.ndjson": json_lines(ROWS),
    "array.json": json.dumps(ROWS, indent=1).encode(),
    "lines.json": json_lines(ROWS),
    "table.parquet": parquet(ROWS),
    "UPPER.CSV": delimited(ROWS, ","),
}


@pytest.mark.parametrize("gzipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_gives_the_same_corpus(tmp_path, name, gzipped):
    content = CONTENTS[name]
    path = tmp_path / (name + ".gz" * gzipped)
    path.write_bytes(gzip.compress(content) if gzipped else content)
    corpus = Corpus(path, id="id", time="year", group="year")
    assert corpus.texts == tuple(row["body"] for row in ROWS)
    assert corpus.ids == ("a1", "007", "c3", "d4")
    assert corpus.status.tolist() == [0, 0, 1, 0]
    assert corpus.time.dt.year.tolist() == [2020, 2021, 2021, 2022]
    assert list(corpus.metadata.columns) == ["year"]
    assert list(corpus.index) == [0, 1, 2, 3]
    assert corpus.source == path.name
    assert corpus.text_column == "body"

    first = Corpus(path, limit=2)
    assert first.texts == corpus.texts[:2]
    assert list(first.metadata.columns) == ["id", "year"]
    assert first.metadata["id"].tolist() == ["a1", "007"]


cells = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=5), mark=st.sampled_from(",;\t|")
)
def test_what_the_csv_writer_writes_is_read_back(tmp_path_factory, rows, mark):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    records = [{"left": left, "text": f"x{text}"} for left, text in rows]
    # A file that has its delimiter in the header alone can be split by nothing else.
    path.write_bytes(delimited(records, mark))
    corpus = Corpus(path, text="text")
    assert corpus.texts == tuple(row["text"] for row in records)
    assert corpus.metadata["left"].fillna("").tolist() == [left for left, _ in rows]


def test_one_document_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\r\n\r\n  \nthree \u2028 four\rfive\x00".encode())
    corpus = Corpus(path)
    assert corpus.texts == ("one", "", "  ", "three \u2028 four", "five\x00")
    assert corpus.status.tolist() == [0, 1, 1, 0, 0]
    assert Corpus(path, limit=1).texts == ("one",)


def test_a_folder_of_text_files(tmp_path):
    folder = tmp_path / "letters"
    (folder / "b" / "c").mkdir(parents=True)
    (folder / "b" / "c" / "3.txt").write_text("third\nfile")
    (folder / "b" / "2.TXT").write_text("second")
    (folder / "a.txt").write_text("")
    (folder / "z.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbflast"))
    (folder / "notes.md").write_text("not a document")
    (folder / ".hidden.txt").write_text("not a document either")
    corpus = Corpus(folder)
    assert corpus.ids == ("a.txt", "b/2.TXT", "b/c/3.txt", "z.txt.gz")
    assert corpus.texts == ("", "second", "third\nfile", "last")
    assert corpus.metadata["file"].tolist() == list(corpus.ids)
    assert corpus.metadata["folder"].tolist() == [".", "b", "b/c", "."]
    assert corpus.source == "letters"
    assert Corpus(folder, group="folder", limit=2).group.tolist() == [".", "b"]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("\ufefftext\nété\n".encode(), "utf-8"),
        ("text\nété\n".encode("utf-16"), "utf-8"),
        ("text\nété\n".encode("utf-32"), "utf-8"),
        ("text\nété\n".encode("latin-1"), "latin-1"),
        ("text\nété\n".encode("cp1252"), "CP1252"),
    ],
)
def test_encodings(tmp_path, content, encoding):
    (tmp_path / "a.csv").write_bytes(content)
    corpus = Corpus(tmp_path / "a.csv", encoding=encoding)
    assert (corpus.text_column, corpus.texts) == ("text", ("été",))


def test_a_field_of_two_megabytes(tmp_path):
    text = 'a "long" text\n' * 150_000
    (tmp_path / "a.csv").write_bytes(delimited([{"id": "1", "text": text}], ","))
    assert Corpus(tmp_path / "a.csv").texts == (text,)
    (tmp_path / "a.txt").write_text("word " * 400_000)
    assert len(Corpus(tmp_path / "a.txt").texts[0]) == 2_000_000


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("a|b,c\nx|y,z\nu|v\n", "|"),  # the comma is not in every row
        ("a,b;c\n1,2;3\n", ","),  # nothing decides: the more common one
        ("a;b;c,d\n1;2;3,4\n", ";"),  # more fields
        ("text\nHello, world; yes\n", None),
        ('"a,b";c\n"1,2";3\n', ";"),
        ("", None),
    ],
)
def test_sniff_delimiter(head, expected):
    assert sniff_delimiter(head) == expected


@pytest.mark.parametrize(
    ("content", "texts", "noted"),
    [
        ('id\ttext\n1\t"quoted"\n2\tplain "inside"\n', ["quoted", 'plain "inside"'], []),
        ('id\ttext\n1\t"One" and two\n2\t"whole"\n', ['"One" and two', '"whole"'], ["none"]),
        ('id\ttext\n1\t"never closed\n2\tb\n', ['"never closed', "b"], ["none"]),
        ('id\ttext\n1\t"two\nlines"\n2\tb\n', ["two\nlines", "b"], []),
        ("id\ttext\n1\tno quotes\n", ["no quotes"], []),
    ],
)
def test_quotes_in_tsv_files(tmp_path, content, texts, noted):
    (tmp_path / "a.tsv").write_text(content)
    corpus = Corpus(tmp_path / "a.tsv")
    assert list(corpus.texts) == texts
    assert [note.value for note in corpus.decisions if note.name == "quoting"] == noted


def test_header_names_are_made_different(tmp_path):
    (tmp_path / "a.csv").write_text(",text, text ,n\n0,a,b,1\n1,c,d,\n")
    corpus = Corpus(tmp_path / "a.csv")
    assert list(corpus.metadata.columns) == ["column 1", "text_2", "n"]
    assert corpus.texts == ("a", "c")
    assert corpus.metadata["n"].isna().tolist() == [False, True]
    (renamed,) = [note for note in corpus.decisions if note.name == "named_columns"]
    assert renamed.value == ["column 1", "text_2"]


def test_markers_of_missing_values_in_cells(tmp_path):
    (tmp_path / "a.csv").write_text("text,day,n\nNA,2021-01-01,NA\nNAN bread,NULL,2\nnull,,3\n")
    corpus = Corpus(tmp_path / "a.csv", time="day")
    assert corpus.status.tolist() == [2, 0, 2]
    assert corpus.time.isna().tolist() == [False, True, True]
    assert corpus.metadata["n"].isna().tolist() == [True, False, False]
    assert {
        n.name: n.value for n in corpus.decisions if n.name.startswith(("missing", "dates_"))
    } == {
        "missing_markers": 2,
        "dates_missing": 2,
    }


def test_json_keeps_types_and_fills_gaps(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "a", "n": 1}\n{"n": 2, "tags": ["x"], "text": "NA"}\n{"text": null}\n'
    )
    corpus = Corpus(tmp_path / "a.jsonl")
    assert corpus.texts == ("a", "NA", "")
    assert corpus.status.tolist() == [0, 0, 2]
    assert list(corpus.metadata.columns) == ["n", "tags"]
    assert corpus.metadata["n"].fillna(-1).tolist() == [1, 2, -1]
    assert corpus.metadata["tags"].tolist() == [None, ["x"], None]


def test_surrogates_in_json(tmp_path):
    (tmp_path / "a.jsonl").write_text(r'{"text": "a\ud800", "m": "\udc00b"}' + "\n")
    corpus = Corpus(tmp_path / "a.jsonl")
    assert corpus.texts == ("a\ufffd",)
    assert corpus.metadata["m"].tolist() == ["\ufffdb"]
    (repaired,) = [note for note in corpus.decisions if note.name == "replaced_characters"]
    assert repaired.value == 2


def test_parquet_brings_its_index_and_reads_as_many_rows_as_asked(tmp_path):
    frame = pd.DataFrame(
        {"text": [f"t{n}" for n in range(100)]}, index=[f"r{n}" for n in range(100)]
    )
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=7)
    corpus = Corpus(tmp_path / "a.parquet", limit=30)
    assert corpus.texts == tuple(frame["text"][:30])
    assert list(corpus.index) == list(frame.index[:30])
    assert list(Corpus(tmp_path / "a.parquet").index) == list(frame.index)


@pytest.mark.benchmark_data
def test_news_articles(data_folder):
    corpus = Corpus(data_folder / "bbc_news" / "bbc_news.jsonl.gz", id="id", group="label")
    assert len(corpus) == 2225
    assert corpus.text_column == "text"
    assert corpus.group.nunique() == 5
    assert len(corpus.distinct()) == 2089
    assert detect_languages(corpus.document_texts()).shares["en"] > 0.99


@pytest.mark.benchmark_data
def test_titles_with_quotes_that_enclose_nothing(data_folder):
    path = data_folder / "arxiv_titles" / "arxiv_titles.tsv.gz"
    corpus = Corpus(path, text="title", id="arxiv_id", time="created", limit=50_000)
    assert len(corpus) == 50_000
    assert any(text.startswith('"') for text in corpus.texts)
    assert corpus.time.notna().all()
    assert corpus.time.dt.year.between(1986, 2019).all()


def test_integers_with_gaps_keep_their_digits(tmp_path):
    large = [2**53 + 1, None, 2**53 + 3]
    rows = [{"text": "a"} | ({} if n is None else {"user": n}) for n in large]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    pd.DataFrame({"text": list("abc"), "user": pd.array(large, "Int64")}).to_parquet(
        tmp_path / "a.parquet"
    )
    (tmp_path / "a.csv").write_text(
        "text,user\n" + "".join(f"x,{'' if n is None else n}\n" for n in large), "utf-8"
    )
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        users = Corpus(tmp_path / name, text="text").metadata["user"]
        assert users.dtype == "Int64" and users.dropna().tolist() == large[::2], name
    (tmp_path / "b.jsonl").write_text('{"text": "a", "user": 18446744073709551617}\n{"text": "b"}')
    assert Corpus(tmp_path / "b.jsonl", text="text").metadata["user"][0] == 2**64 + 1
