"""TEI and pages: of alternatives one is read, and words that markup separates stay apart."""

import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError

pytest.importorskip("lxml")


@pytest.fixture
def read_tei(tmp_path):
    """Return a function that reads the paragraph of an edition."""

    def read(body, before=""):
        path = tmp_path / "edition.xml"
        path.write_text(
            f'{before}<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body><p>{body}</p></body>'
            "</text></TEI>",
            "utf-8",
        )
        return Corpus(path)

    return read


@pytest.fixture
def read_page(tmp_path):
    """Return a function that reads the body of a page."""

    def read(body):
        path = tmp_path / "page.html"
        path.write_text(
            f'<html><head><meta charset="utf-8"></head><body>{body}</body></html>', "utf-8"
        )
        return Corpus(path)

    return read


def messages(corpus):
    return " ".join(note.message for note in corpus.decisions)


ALTERNATIVES = {
    "a regularized form": (
        "gone <choice><orig>vnto</orig><reg>unto</reg></choice> him",
        "gone unto him",
    ),
    "choices within choices": (
        "the <choice><orig>ye <choice><abbr>K.</abbr><expan>K<ex>ing</ex></expan></choice></orig>"
        "</choice> slept",
        "the ye King slept",
    ),
    "nothing in place of an error": ("on <choice><sic>the</sic><corr/></choice> time", "on time"),
    "the first of equal ones": (
        "<choice><unclear>ten</unclear><unclear>tin</unclear></choice> men",
        "ten men",
    ),
    "an abbreviation mark": ("<choice><am>q</am><ex>quod</ex></choice> erat", "quod erat"),
    "the first witness": (
        '<app><rdg wit="#A">red</rdg><rdg wit="#B">rod</rdg></app> wine',
        "red wine",
    ),
    "a lemma in a group": (
        "<app><rdgGrp><rdg>rod</rdg><lem>red</lem></rdgGrp><rdg>raw</rdg></app> wine",
        "red wine",
    ),
    "a lemma with its own apparatus": (
        "<app><lem>fine <app><lem>red</lem><rdg>rod</rdg></app></lem><rdg>raw</rdg>"
        "<witDetail>faint</witDetail></app> wine",
        "fine red wine",
    ),
    "an apparatus in another place": (
        'red wine<app from="#w1"><lem>red</lem><rdg>rod</rdg></app>',
        "red wine",
    ),
}


@pytest.mark.parametrize(("body", "text"), ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_one_of_several_readings_is_read(read_tei, body, text):
    corpus = read_tei(body)

    assert corpus.texts == (text,)
    assert "Of alternative readings, one is read" in messages(corpus)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("in <subst><add>May</add><del>June</del></subst> then", "in May then"),
        ("a <del>very</del> long day", "a long day"),
        ("a <add>very</add> long day", "a very long day"),
    ],
)
def test_additions_are_read_and_deletions_left_out(read_tei, body, text):
    corpus = read_tei(body)

    assert corpus.texts == (text,)
    assert ("Deleted passages were left out" in messages(corpus)) == ("<del>" in body)


def test_what_was_deleted_and_restored_is_read(read_tei):
    assert read_tei("a <restore><del>long</del></restore> day").texts == ("a long day",)


SEPARATE = {
    "page": ("one<pb/>two", "one two"),
    "column after a full stop": ("One.<cb/>Two", "One. Two"),
    "page in Chinese": ("東<pb/>京", "東京"),
    "segments": ("<seg>one</seg><seg>two</seg>", "one two"),
    "segments in different elements": ("<hi><seg>one</seg></hi><seg>two</seg>", "one two"),
    "quotations": ("<q>Yes.</q><q>No</q>", "Yes. No"),
    "a quotation in a sentence": ("said<q>Yes</q>and left", "said Yes and left"),
    "a quotation in brackets": ("(<q>Yes</q>)", "(Yes)"),
    "references": ("<bibl>Kant 1781</bibl><bibl>Hume 1748</bibl>", "Kant 1781 Hume 1748"),
    "names": (
        "<persName><forename>Ada</forename><surname>King</surname></persName>'s",
        "Ada King's",
    ),
    "words and marks": (
        "<w>We</w><w>do</w><w join='left'>n't</w><pc>,</pc><w>sir</w><pc>.</pc>",
        "We don't, sir.",
    ),
    "words in Japanese": ("<w>東京</w><w>へ</w>", "東京へ"),
}


@pytest.mark.parametrize(("body", "text"), SEPARATE.values(), ids=SEPARATE)
def test_words_that_markup_separates_stay_apart(read_tei, body, text):
    assert read_tei(body).texts == (text,)


@pytest.mark.parametrize(
    "body",
    [
        "ri<lb break='no'/>ver",
        "ri\n  <lb break='no'/>\n  ver",
        "ri<pb break='no'/><lb/>ver",
        "<hi>ri</hi><hi>ver</hi>",
        "<seg part='I'>ri</seg><seg part='F'>ver</seg>",
        "<seg type='syllable'>ri</seg><seg type='syllable'>ver</seg>",
        "ri<note>?</note>ver",
    ],
)
def test_a_word_that_markup_divides_stays_whole(read_tei, body):
    assert read_tei(body).texts == ("river",)


def test_a_text_is_not_read_again_from_its_transcription_by_lines(tmp_path):
    path = tmp_path / "edition.xml"
    path.write_text(
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><sourceDoc><line>A riuer.</line></sourceDoc>'
        "<standOff><listPerson/>about it</standOff><text><p>A river.</p></text></TEI>"
    )

    assert Corpus(path).texts == ("A river.",)


@pytest.mark.parametrize(
    ("declared", "text"), [("&#8212;", "a \u2014 b"), ("Ulm", "a Ulm b"), ("", "a b")]
)
def test_an_entity_that_is_text_is_read(read_tei, declared, text):
    before = f'<!DOCTYPE TEI [<!ENTITY e "{declared}">]>'

    assert read_tei("a &e; b", before).texts == (text,)


@pytest.mark.parametrize(
    "declared",
    ['<!ENTITY e "<p>more</p>">', '<!ENTITY f "x"><!ENTITY e "&f;">', '<!ENTITY e SYSTEM "b.txt">'],
    ids=["markup", "nested", "elsewhere"],
)
def test_any_other_entity_is_refused(read_tei, declared):
    with pytest.raises(InputError, match="uses the entity 'e'"):
        read_tei("a &e; b", f"<!DOCTYPE TEI [{declared}]>")


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("<p>about <ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby></p>", ("about 漢字",)),
        ("<p><ruby><rb>漢<rt>かん<rb>字<rt>じ</ruby>です</p>", ("漢字です",)),
        ("<p>for <s>19</s>17 euros, <strike>not</strike>now</p>", ("for 19 17 euros, not now",)),
        ("<details><summary>Why?</summary>Because.</details>", ("Why?", "Because.")),
        ("<p>x<math><mi>y</mi><annotation>\\text{y}</annotation></math></p>", ("xy",)),
    ],
)
def test_words_of_a_page_are_read_as_they_are_shown(read_page, body, texts):
    assert read_page(body).texts == texts


def test_deletions_of_a_page_are_left_out_and_reported(read_page):
    corpus = read_page("<del><p>The old law.</p></del><ins><p>The new law.</p></ins>")

    assert corpus.texts == ("The new law.",)
    assert "Deleted passages were left out: page.html." in messages(corpus)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("<main><p>One.</p><main><p>Two.</p></main></main><p>Legal</p>", ("One.", "Two.")),
        ("<main>\n</main><main><p>Two.</p></main><p>Legal</p>", ("Two.",)),
        ("<main><nav>Menu</nav></main><article>The article.</article>", ("The article.",)),
        ("<main></main><main></main><p>All of it.</p>", ("All of it.",)),
    ],
)
def test_the_main_parts_of_a_page_are_read_each_once(read_page, body, texts):
    assert read_page(body).texts == texts


def test_a_page_of_many_levels_is_read_whole_or_refused(read_page):
    assert read_page("<div>" * 1000 + "deep" + "</div>" * 1000).texts == ("deep",)

    with pytest.raises(InputError, match=r"page\.html: has too many levels"):
        read_page("<p>first</p>" + "<div>" * 5000 + "deep" + "</div>" * 5000)
