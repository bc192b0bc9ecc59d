"""What packed files unpack to is counted, whatever their headers state."""

import gzip
import io
import random
import struct
import zipfile

import pytest

from embedtopics.corpus import _files
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.readers import _opening
from embedtopics.errors import InputError

LIMIT = 100_000


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    """A limit that small files pass."""
    monkeypatch.setattr(_opening, "MOST_UNPACKED", LIMIT)


def archive(members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return stream.getvalue()


def with_stated_size(content, stated):
    """Return an archive of one member whose headers state another size."""
    real = struct.pack("<I", zipfile.ZipFile(io.BytesIO(content)).infolist()[0].file_size)
    assert content.count(real) == 2  # in the local header and in the directory
    return content.replace(real, struct.pack("<I", stated))


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=str
)
def test_a_member_is_refused_above_the_limit(tmp_path, method):
    (tmp_path / "a.zip").write_bytes(archive({"a.txt": "word " * 30_000}, method))

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.zip")

    assert caught.value.parameter == "path"
    assert "at most 100,000 bytes together; got more from a.txt in a.zip" in str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_is_counted_whatever_size_it_states(tmp_path, method):
    content = with_stated_size(archive({"a.txt": "word " * 30_000}, method), 10)
    (tmp_path / "a.zip").write_bytes(content)

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.zip")

    assert caught.value.parameter == "path"


def test_a_small_member_that_states_less_is_read_whole(tmp_path):
    content = with_stated_size(archive({"a.txt": "word " * 300}), 10)
    (tmp_path / "a.zip").write_bytes(content)

    corpus = Corpus(tmp_path / "a.zip")

    assert corpus.texts == ("word " * 300,)


def test_all_members_share_the_limit(tmp_path):
    members = {f"{n}.txt": "word " * 6_000 for n in range(4)}  # 30,000 bytes each
    (tmp_path / "a.zip").write_bytes(archive(members))

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.zip")

    assert "3.txt in a.zip" in str(caught.value)
    del members["3.txt"]
    (tmp_path / "b.zip").write_bytes(archive(members))
    assert len(Corpus(tmp_path / "b.zip")) == 3


def test_all_packed_files_of_a_folder_share_the_limit(tmp_path):
    for n in range(4):
        (tmp_path / f"{n}.txt.gz").write_bytes(gzip.compress(b"word " * 6_000))

    with pytest.raises(InputError, match=r"got more from 3\.txt\.gz in "):
        Corpus(tmp_path)


def test_files_that_are_not_packed_have_no_limit(tmp_path):
    for n in range(4):
        (tmp_path / f"{n}.txt").write_text("word " * 30_000)

    assert len(Corpus(tmp_path)) == 4


def test_texts_that_pack_as_texts_do_have_a_higher_limit(tmp_path):
    # Random letters unpack to about twice their size.
    letters = "".join(random.Random(0).choices("aeioulnrst ", k=3 * LIMIT))
    (tmp_path / "a.zip").write_bytes(archive({"a.txt": letters}))

    assert Corpus(tmp_path / "a.zip").texts == (letters,)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", b"text\n" + b"word " * 30_000),
        ("a.tsv.gz", b"id\ttext\n1\t" + b"word " * 30_000),
        ("a.jsonl.gz", b'{"text": "' + b"word " * 30_000 + b'"}'),
        ("a.json.gz", b'[{"text": "' + b"word " * 30_000 + b'"}]'),
        ("a.txt.gz", b"word " * 30_000),
        ("a.html.gz", b"<p>" + b"word " * 30_000),
        ("a.xml.gz", b"<p>" + b"word " * 30_000 + b"</p>"),
    ],
)
@pytest.mark.parametrize("is_in_archive", [False, True], ids=["alone", "in an archive"])
def test_gzip_files_are_refused_above_the_limit(tmp_path, name, content, is_in_archive):
    pytest.importorskip("lxml")
    content = gzip.compress(content)
    path = tmp_path / name
    if is_in_archive:
        path = tmp_path / "a.zip"
        content = archive({name: content})
    path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        Corpus(path)

    assert caught.value.parameter == "path"
    assert name in str(caught.value)


def test_a_file_that_is_read_again_counts_once(tmp_path):
    # A tab-separated file is read for its encoding, its layout, with quotes and without them.
    rows = "".join(f'{n}\t"quoted" {n}\n' for n in range(5_000))
    assert LIMIT / 2 < len(rows) < LIMIT
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(f"id\ttext\n{rows}".encode()))

    assert len(Corpus(tmp_path / "a.tsv.gz", text="text")) == 5_000


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.json.gz", "a.txt.gz"])
def test_the_first_rows_of_a_file_above_the_limit_are_read(tmp_path, name):
    text = "word " * 100 + "end"
    row = {
        "a.csv.gz": f"{text}\n",
        "a.jsonl.gz": f'{{"text": "{text}"}}\n',
        "a.json.gz": f'{{"text": "{text}"}},\n',
        "a.txt.gz": f"{text}\n",
    }[name]
    head = {"a.csv.gz": "text\n", "a.json.gz": "["}.get(name, "")
    (tmp_path / name).write_bytes(gzip.compress((head + row * 400 + "no end").encode()))

    assert Corpus(tmp_path / name, limit=3).texts == (text,) * 3


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz", "a.jsonl.gz"])
def test_blank_lines_count_for_more_than_their_bytes(tmp_path, name):
    head = b'{"text": "a"}\n' if name == "a.jsonl.gz" else b"text\n"
    (tmp_path / name).write_bytes(gzip.compress(head + b"\n" * (LIMIT // 2)))

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / name)

    assert caught.value.parameter == "path"


def test_what_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    def read_too_much(*arguments):
        raise MemoryError

    monkeypatch.setitem(_files.TABLES, ".txt", read_too_much)
    (tmp_path / "a.txt").write_text("a text")

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.txt")

    assert caught.value.parameter == "path"


@pytest.mark.parametrize(
    ("method", "place"),
    [(zipfile.ZIP_DEFLATED, 40), (zipfile.ZIP_BZIP2, 40), (zipfile.ZIP_LZMA, 46)],
)
def test_damage_of_a_member_is_named(tmp_path, method, place):
    members = {"a.txt": "word " * 300, "b.txt": "another text"}
    content = bytearray(archive(members, method))
    content[place] ^= 0xFF  # in the packed bytes of the first member
    (tmp_path / "a.zip").write_bytes(content)

    corpus = Corpus(tmp_path / "a.zip")

    assert corpus.status.tolist() == [2, 0]
    assert "cannot be unpacked" in " ".join(note.message for note in corpus.decisions)


def office_file(kind):
    stream = io.BytesIO()
    if kind == "docx":
        document = pytest.importorskip("docx").Document()
        document.add_paragraph("a letter")
        document.save(stream)
    else:
        workbook = pytest.importorskip("openpyxl").Workbook()
        workbook.active.append(["text"])
        workbook.active.append(["an answer"])
        workbook.save(stream)
    return stream.getvalue()


PARTS = {"docx": "word/document.xml", "xlsx": "xl/worksheets/sheet1.xml"}


def with_long_part(content, name, stated=None):
    """Return an office file with many blanks at the end of a part, which may state another size."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        members = {info.filename: source.read(info) for info in source.infolist()}
    members[name] += b" " * (12 * LIMIT)
    packed = archive(members)
    if stated is None:
        return packed
    real = struct.pack("<I", len(members[name]))
    assert packed.count(real) == 2
    return packed.replace(real, struct.pack("<I", stated))


@pytest.mark.parametrize("stated", [None, 100], ids=["honest", "lying"])
@pytest.mark.parametrize("kind", PARTS)
def test_an_office_file_is_refused_above_the_limit(tmp_path, kind, stated):
    content = with_long_part(office_file(kind), PARTS[kind], stated)
    (tmp_path / f"a.{kind}").write_bytes(content)

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / f"a.{kind}")

    assert caught.value.parameter == "path"
    assert "got more from a." in str(caught.value)


def test_the_body_of_a_document_has_a_limit_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(_opening, "MOST_TAGS", 10)
    (tmp_path / "a.docx").write_bytes(office_file("docx"))

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / "a.docx")

    assert caught.value.parameter == "path"
    assert "10 tags of packed markup; got more from a.docx" in str(caught.value)


def test_a_workbook_with_a_part_of_another_size_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(_opening, "MOST_UNPACKED", 1 << 30)
    content = with_long_part(office_file("xlsx"), PARTS["xlsx"], 100)
    (tmp_path / "a.xlsx").write_bytes(content)

    with pytest.raises(InputError, match=r"a\.xlsx: is damaged \(a part has another size\)"):
        Corpus(tmp_path / "a.xlsx")


@pytest.mark.parametrize("limit", ["MOST_MARKUP", "MOST_TAGS"])
@pytest.mark.parametrize("name", ["a.html.gz", "a.xml.gz"])
def test_packed_markup_has_a_limit_of_its_own(tmp_path, monkeypatch, name, limit):
    pytest.importorskip("lxml")
    monkeypatch.setattr(_opening, limit, {"MOST_MARKUP": 1_000, "MOST_TAGS": 1}[limit])
    content = b"<p>" + b"word " * 300 + b"</p>"
    (tmp_path / name).write_bytes(gzip.compress(content))
    (tmp_path / name.removesuffix(".gz")).write_bytes(content)

    with pytest.raises(InputError) as caught:
        Corpus(tmp_path / name)

    assert caught.value.parameter == "path"
    assert len(Corpus(tmp_path / name.removesuffix(".gz"))) == 1
