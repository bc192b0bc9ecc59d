"""Word files: all text of the body is read, whatever surrounds it, and nothing twice."""

import io
import zipfile

import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError

docx = pytest.importorskip("docx")
pytest.importorskip("lxml")

NAMESPACES = " ".join(
    f'xmlns:{prefix}="{address}"'
    for prefix, address in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def field(kind):
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def instruction(text):
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


def equation(content):
    return f"<m:oMath>{content}</m:oMath>"


def part(name, text):
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a document with some paragraphs."""

    def read_paragraphs(*blocks):
        document = docx.Document()
        for position, block in enumerate(blocks):
            element = docx.oxml.parse_xml(block.replace("<w:p>", f"<w:p {NAMESPACES}>", 1))
            document.element.body.insert(position, element)
        path = tmp_path / "letter.docx"
        document.save(path)
        return Corpus(path)

    return read_paragraphs


def paragraph(inside):
    return f"<w:p>{inside}</w:p>"


def messages(corpus):
    return " ".join(note.message for note in corpus.decisions)


WRAPPED = {
    "a control": f"<w:sdt><w:sdtPr/><w:sdtContent>{run('Ulm')}</w:sdtContent></w:sdt>",
    "a tag": f'<w:smartTag w:element="town">{run("Ulm")}</w:smartTag>',
    "a link": f"<w:hyperlink>{run('Ulm')}</w:hyperlink>",
    "an insertion": f'<w:ins w:id="1">{run("Ulm")}</w:ins>',
    "what was moved here": f'<w:moveTo w:id="1">{run("Ulm")}</w:moveTo>',
    "several": '<w:customXml w:element="a"><w:bdo w:val="ltr"><w:fldSimple w:instr="X">'
    f"{run('Ulm')}</w:fldSimple></w:bdo></w:customXml>",
    "an equation": f"<m:oMathPara>{equation('<m:r><m:t>Ulm</m:t></m:r>')}</m:oMathPara>",
    "a reading": f"<w:r><w:ruby><w:rt>{run('oolm')}</w:rt><w:rubyBase>{run('Ulm')}</w:rubyBase>"
    "</w:ruby></w:r>",
    "a field": field("begin")
    + instruction(" DOCPROPERTY town ")
    + field("separate")
    + run("Ulm")
    + field("end"),
    "a field within the instruction of a field": field("begin")
    + instruction("IF ")
    + field("begin")
    + instruction("MERGEFIELD n")
    + field("separate")
    + run("7")
    + field("end")
    + instruction(" = 7")
    + field("separate")
    + run("Ulm")
    + field("end"),
}


@pytest.mark.parametrize("inside", WRAPPED.values(), ids=WRAPPED)
def test_text_is_read_whatever_surrounds_it(read, inside):
    corpus = read(paragraph(run("from ") + inside + run(" by rail")))

    assert corpus.texts == ("from Ulm by rail",)


@pytest.mark.parametrize(
    "inside",
    [
        '<w:del w:id="1"><w:r><w:delText>Ulm</w:delText></w:r></w:del>',
        f'<w:del w:id="1"><w:ins w:id="2">{run("Ulm")}</w:ins></w:del>',
        f'<w:moveFrom w:id="1">{run("Ulm")}</w:moveFrom>',
    ],
    ids=["deleted", "inserted and deleted", "moved away"],
)
def test_what_was_deleted_or_moved_away_is_left_out(read, inside):
    assert read(paragraph(run("from ") + inside + run("by rail"))).texts == ("from by rail",)


def test_the_text_after_a_field_without_an_end_is_read(read):
    corpus = read(paragraph(field("begin") + instruction("TOC")), paragraph(run("by rail")))

    assert corpus.texts == ("by rail",)


def test_the_result_of_a_field_may_have_several_paragraphs(read):
    corpus = read(
        paragraph(field("begin") + instruction("TOC") + field("separate") + run("One")),
        paragraph(run("Two") + field("end")),
    )

    assert corpus.texts == ("One", "Two")


def test_a_paragraph_whose_end_was_deleted_continues_in_the_next(read):
    deleted_end = "<w:pPr><w:rPr><w:del w:id='1'/></w:rPr></w:pPr>"
    corpus = read(paragraph(deleted_end + run("from Ulm ")), paragraph(run("by rail")))

    assert corpus.texts == ("from Ulm by rail",)


def test_a_text_box_is_read_once(read):
    box = f"<w:txbxContent><w:p>{run('a box')}</w:p></w:txbxContent>"
    both = (
        f'<w:r><mc:AlternateContent><mc:Choice Requires="wps"><wps:txbx>{box}</wps:txbx>'
        f"</mc:Choice><mc:Fallback><v:textbox>{box}</v:textbox></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )
    corpus = read(paragraph(run("from Ulm") + both + run(" by rail")))

    assert corpus.texts == ("from Ulm by rail", "a box")


def test_a_text_box_with_text_in_its_old_form_alone_is_read(read):
    box = f"<w:txbxContent><w:p>{run('a box')}</w:p></w:txbxContent>"
    old = (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"/>'
        f"<mc:Fallback><v:textbox>{box}</v:textbox></mc:Fallback></mc:AlternateContent></w:r>"
    )

    assert read(paragraph(old)).texts == ("a box",)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"<m:f>{part('num', 1)}{part('den', 2)}</m:f>", "1/2"),
        (f"<m:sSup>{part('e', 10)}{part('sup', 6)}</m:sSup>", "10^6"),
        (f"<m:sSub>{part('e', 'x')}{part('sub', 1)}</m:sSub>", "x_1"),
        (f"<m:d>{part('e', 'x')}</m:d>", "(x)"),
        (f'<m:d><m:dPr><m:begChr m:val="["/></m:dPr>{part("e", "x")}</m:d>', "[x)"),
        (f"<m:rad><m:deg/>{part('e', 'x')}</m:rad>", "\u221ax"),
        (f"<m:m><m:mr>{part('e', 1)}{part('e', 2)}</m:mr></m:m>", "1 2"),
        (f"<m:nary>{part('sub', 0)}<m:sup/>{part('e', 'x')}</m:nary>", "\u222b_0x"),
    ],
)
def test_an_equation_keeps_what_the_places_of_its_parts_say(read, content, text):
    assert read(paragraph(run("so ") + equation(content))).texts == (f"so {text}",)


@pytest.mark.parametrize(
    ("font", "code", "character"),
    [
        ("Symbol", "F062", "β"),
        ("Symbol", "0057", "Ω"),
        ("Symbol", "F0A3", "\u2264"),
        ("Arial", "2713", "\u2713"),
    ],
)
def test_a_symbol_is_the_character_that_is_shown(read, font, code, character):
    symbol = f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

    assert read(paragraph(run("a ") + symbol)).texts == (f"a {character}",)


def test_symbols_without_a_letter_are_reported(read):
    corpus = read(paragraph(run("done ") + '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>'))

    assert corpus.texts == ("done \uf0fc",)
    assert "no letter: letter.docx (Wingdings: 1)" in messages(corpus)


def test_signs_that_are_no_letters_are_read_as_typed(read):
    corpus = read(
        paragraph(
            "<w:pPr><w:tabs><w:tab w:val='left' w:pos='9'/></w:tabs></w:pPr>"
            "<w:r><w:t>re</w:t><w:noBreakHyphen/><w:t>en</w:t><w:softHyphen/><w:t>ter</w:t><w:tab/>"
            '<w:t>now</w:t><w:br w:type="page"/><w:t>here</w:t></w:r>'
        )
    )

    assert corpus.texts == ("re-enter\tnow\nhere",)


def test_notes_that_are_not_read_are_reported(read):
    corpus = read(paragraph(run("a claim") + '<w:r><w:footnoteReference w:id="2"/></w:r>'))

    assert corpus.texts == ("a claim",)
    assert "Notes are not read: letter.docx." in messages(corpus)


def changed(path, change):
    """Change the bytes of the body of a document."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members["word/document.xml"] = change(members["word/document.xml"])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(stream.getvalue())


def test_a_document_that_declares_entities_is_refused(tmp_path):
    path = tmp_path / "a.docx"
    document = docx.Document()
    document.add_paragraph("a claim")
    document.save(path)
    changed(path, lambda content: content.replace(b"<w:document", b"<!DOCTYPE x []><w:document", 1))

    with pytest.raises(InputError, match=r"a\.docx: declares entities of its own"):
        Corpus(path)
