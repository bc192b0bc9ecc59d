"""Documents of one file each, folders and archives of them, and files that would do harm."""

import io
import re
import sys
import zipfile
from types import SimpleNamespace

import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError, MissingExtraError

docx, lxml, openpyxl, pypdf = map(pytest.importorskip, ("docx", "lxml", "openpyxl", "pypdf"))

TEI = """<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt>
<title>Bills</title><author>A. Dupont</author></titleStmt><sourceDesc><bibl><date
when="1912-05-01"/></bibl></sourceDesc></fileDesc></teiHeader><text><body><p>A pla<lb
break="no"/>ce<note>?</note> of <hi>trade</hi>.</p><p>Its end.</p></body></text></TEI>"""
HTML = """<html><head><title>News &amp; views</title></head><body><nav>Home</nav><p>One <b>bold</b>
word.</p><script>run()</script><ul><li>A<li>B</ul><footer>Legal</footer></body></html>"""
LINES = [
    ["A river and its banks.", "The govern-", "ment met pre-", "and post-", "Brexit.", "It left."],
    ["One more", "page with other", "words that a", "district -", "or two -", "holds."],
]
BODY = [
    "A river and its banks. The government met pre- and post-Brexit. It left.",
    "One more page with other words that a district - or two - holds.",
]


def pdf(pages, password=None):
    """Return a PDF with lines at these heights on each page; see `typed`."""
    writer = pypdf.PdfWriter()
    name = pypdf.generic.NameObject
    font = pypdf.generic.DictionaryObject()
    for key, value in (("Type", "Font"), ("Subtype", "Type1"), ("BaseFont", "Helvetica")):
        font[name(f"/{key}")] = name(f"/{value}")
    fonts = pypdf.generic.DictionaryObject({name("/F1"): font})
    for lines in pages:
        page = writer.add_blank_page(595, 842)
        page[name("/Resources")] = pypdf.generic.DictionaryObject({name("/Font"): fonts})
        stream = pypdf.generic.DecodedStreamObject()
        shown = (f"BT /F1 11 Tf 72 {y} Td ({text}) Tj ET" for y, text in lines)
        stream.set_data("\n".join(shown).encode())
        page[name("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    return written(writer.write)


def typed(page):
    """Return the lines of a page with a running title and its number."""
    body = [(700 - 14 * n, line) for n, line in enumerate(LINES[page - 1])]
    body.append((20, f"https://example.org/a {page}/9"))
    return [(800, f"Report {page}"), *body, (40, f"{page} / 9")]


def written(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def word(*paragraphs):
    document = docx.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    document.add_table(1, 1).cell(0, 0).text = "a cell"
    document.sections[0].header.paragraphs[0].text = "running title"
    return written(document.save)


def book(*rows):
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    workbook.create_sheet("notes")
    return written(workbook.save)


def packed(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


FILES = {
    "a.docx": word("First.", "Second."), "b.pdf": pdf([typed(n) for n in (1, 2)]),
    "c.html": HTML, "d.xml": TEI, "e.txt": "plain\ntext", "f/g.xlsx": book(
        ["Body", "year", "Author"], ["long enough to be a text", 1998, "B. C."],
        ["another text here", 2001, None],
    ),
}  # fmt: skip
TEXTS = [
    "First.\n\nSecond.\n\na cell", "\n\n".join(BODY), "One bold word.\n\nA\n\nB",
    "A place of trade.\n\nIts end.", "plain\ntext", "long enough to be a text", "another text here",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_mixed_files_are_read_alike(tmp_path, kind):
    (tmp_path / "f").mkdir()
    for name, content in FILES.items():
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(data)
    (tmp_path / "all.zip").write_bytes(packed(FILES))
    if kind == "archive":
        for name in FILES:
            (tmp_path / name).unlink()
        corpus = Corpus(tmp_path / "all.zip", time="year")
    else:
        (tmp_path / "all.zip").unlink()
        corpus = Corpus(str(tmp_path), time="year")
    assert list(corpus.texts) == TEXTS
    assert [*corpus.ids] == [*list(FILES)[:5], "f/g.xlsx#1", "f/g.xlsx#2"]
    about = corpus.metadata
    assert about["title"].tolist()[2:4] == ["News & views", "Bills"]
    assert about.loc[3, "date"] == "1912-05-01"
    assert about["author"][3] == "A. Dupont" and about["Author"][5] == "B. C."
    assert corpus.time.dt.year.tolist()[5:] == [1998, 2001] and corpus.time[:5].isna().all()
    notes = " ".join(note.message for note in corpus.decisions)
    assert (
        "Running headers and footers were left out: " in notes
        and "only the first sheet is read; others are notes" in notes
    )


def test_a_document_alone_has_a_row_for_each_paragraph(tmp_path):
    (tmp_path / "a.docx").write_bytes(FILES["a.docx"])
    assert Corpus(tmp_path / "a.docx").texts == ("First.", "Second.", "a cell")


def test_names_of_files_hold_metadata(tmp_path):
    for name in ("Ada_2001-02.txt", "Mary Ann_1999.txt", "readme.txt"):
        (tmp_path / name).write_text("a text")
    corpus = Corpus(f"{tmp_path}/{{speaker}}_{{date}}.txt", time="date", group="speaker")
    assert corpus.group.tolist() == ["Ada", "Mary Ann"]
    assert [f"{day:%Y-%m}" for day in corpus.time] == ["2001-02", "1999-01"]
    assert "readme.txt" in " ".join(note.message for note in corpus.decisions)
    for pattern in ("{a}_{a}.txt", "{text}.txt", "{0}.txt"):
        with pytest.raises(InputError, match="names in braces"):
            Corpus(tmp_path / pattern)


def test_several_columns_are_joined():
    frame = pd.DataFrame({"title": ["A", None, None], "body": ["b", "c", None], "n": [1, 2, 3]})
    corpus = Corpus(frame, text=["title", "body"])
    assert corpus.texts == ("A\n\nb", "c", "") and corpus.status.tolist() == [0, 0, 2]
    assert corpus.metadata.columns.tolist() == ["title", "n"]
    with pytest.raises(InputError, match="different"):
        Corpus(frame, text=["body", "body"])


BOMB = '<!DOCTYPE d [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 99}">' for a, b in ("ab", "bc", "cd", "de", "ef", "fg")
) + "]><d><p>before &g; after</p></d>"  # fmt: skip
OUTSIDE = '<!DOCTYPE d SYSTEM "{0}" [<!ENTITY x SYSTEM "{0}">]><d>before &x; after</d>'


def test_entities_are_neither_expanded_nor_fetched(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    for name, content in (
        ("bomb.xml", BOMB), ("file.xml", OUTSIDE.format((tmp_path / "secret.txt").as_uri())),
        ("net.xml", OUTSIDE.format("http://127.0.0.1:9/x.dtd")), ("page.html", BOMB),
    ):  # fmt: skip
        (tmp_path / name).write_text(content)
        try:
            text = " ".join(Corpus(tmp_path / name).texts)
        except InputError as error:
            text = str(error)
        assert "secret" not in text.replace("secret.txt", "") and "haha" not in text, name
        assert len(text) < 500


def part_of(package, name, change):
    """Return an office file with one part changed."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    return packed({**members, name: change(members[name].decode())})


@pytest.mark.parametrize("entity", ["x", "y"])
@pytest.mark.parametrize("kind", ["docx", "xlsx"])
def test_entities_in_office_files(tmp_path, kind, entity):
    (tmp_path / "secret.txt").write_text("secret")
    head = f'<!DOCTYPE d [<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">'
    head += f'<!ENTITY y "{"ha" * 9}">]>'
    part, content = "word/document.xml", word("before XX")
    if kind == "xlsx":
        part, content = "xl/worksheets/sheet1.xml", book(["text"], ["before XX"])
    change = re.compile(r"^(<\?.*?\?>)?", re.DOTALL)
    data = part_of(content, part, lambda xml: change.sub(head, xml).replace("XX", f"&{entity};"))
    (tmp_path / f"a.{kind}").write_bytes(data)
    try:
        text = " ".join(Corpus(tmp_path / f"a.{kind}").texts)
    except InputError as error:
        text = str(error)
    assert "secret" not in text and len(text) < 300


def test_names_in_archives_write_nothing(tmp_path):
    desk = tmp_path / "desk"
    desk.mkdir()
    names = [
        "../up.txt",
        "/root.txt",
        "a/../../b.txt",
        "__MACOSX/._a.txt",
        ".hidden.txt",
        "nul\x01.txt",
    ]
    (desk / "a.zip").write_bytes(packed({name: "a text" for name in names}))
    corpus = Corpus(desk / "a.zip")
    assert len(corpus) == 4 and len({*corpus.ids}) == 4
    assert [path.name for path in tmp_path.rglob("*")] == ["desk", "a.zip"]


LOCKED = pdf([typed(1)], password="x")
DAMAGED = {
    "locked.pdf": (LOCKED, "is encrypted; save a copy without a password"),
    "scan.pdf": (pdf([[], []]), r"has no text, only images; recognize its text \(OCR\) first"),
    "cut.pdf": (FILES["b.pdf"][:300], "is damaged|has no text"), "none.pdf": (b"", "is damaged"),
    "cut.docx": (FILES["a.docx"][:-99], "is damaged, encrypted"),
    "old.xlsx": (b"\xd0\xcf\x11\xe0" * 99, "is damaged, encrypted or in the format of old Office"),
    "no.xlsx": (packed({"a": "b"}), "is damaged"), "cut.xml": (TEI[:-9], "is damaged"),
    "none.html": (b"", "is damaged"), "cut.zip": (packed({"a.txt": "b"})[:-9], "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_without_text_is_named_and_the_others_are_read(tmp_path, name):
    content, reason = DAMAGED[name]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=f"^{name}: ({reason})") as caught:
        Corpus(tmp_path / name)
    assert "\n" not in str(caught.value)
    (tmp_path / "z.txt").write_text("fine")
    corpus = Corpus(tmp_path)
    assert corpus.texts[-1] == "fine"
    assert name in " ".join(note.message for note in corpus.decisions)
    assert corpus.status.tolist() == ([0] if name.endswith("zip") else [2, 0])


def test_pages_without_text_are_noted(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf([typed(1), [], typed(2)]))
    corpus = Corpus(tmp_path)
    assert corpus.texts == ("\n\n".join(BODY),)
    assert "Some pages have no text: a.pdf (pages 2)." in [
        note.message for note in corpus.decisions
    ]


def test_datasets_of_the_hub_are_fetched_when_named(monkeypatch):
    asked = []

    def load_dataset(name, split):
        asked.append((name, split))
        if name == "no/where":
            raise ConnectionError("no network\nhere")
        return pd.DataFrame({"text": ["one", "two"]})

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    corpus = Corpus("hub:org/set/test", limit=2)
    assert corpus.texts == ("one", "two") and corpus.source == "hub:org/set/test"
    assert len(Corpus("hub:org/set")) == 2
    assert asked == [("org/set", "test[:2]"), ("org/set", "train[:]")]
    with pytest.raises(InputError, match=r"hub:no/where: expected .* \(no network here\)"):
        Corpus("hub:no/where")


@pytest.mark.parametrize(
    ("suffix", "module"),
    [
        ("docx", "lxml.etree"),
        ("html", "lxml.html"),
        ("xml", "lxml.etree"),
        ("xlsx", "openpyxl"),
        ("pdf", "pypdf"),
    ],
)
def test_the_extra_is_named(tmp_path, monkeypatch, suffix, module):
    monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"embedtopics\[files\]"):
        Corpus(path)
