"""Long runs of marks and spaces between elements, and how they are joined."""

import pytest

from embedtopics import Corpus

pytest.importorskip("lxml")

HEAD = '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader/><text><body><p>one '
TAIL = " end</p></body></text></TEI>"


@pytest.mark.parametrize("element", ["<seg/>", "<hi> </hi>", "<w/>", '<pb break="no"/>'])
def test_a_hundred_thousand_empty_elements_end(tmp_path, element):
    """A pattern of quadratic time would take several minutes."""
    path = tmp_path / "many.xml"
    path.write_text(HEAD + element * 100_000 + TAIL)

    assert " ".join(" ".join(Corpus(path).texts).split()) in ("one end", "oneend")


def test_a_word_over_a_page_break_is_joined_and_units_are_apart(tmp_path):
    path = tmp_path / "page.xml"
    path.write_text(HEAD + '<seg>bro  <pb break="no"/>\n ken</seg><seg>next</seg>' + TAIL)

    assert Corpus(path).texts == ("one broken next end",)
