"""What people see of a text: hidden words go, the joiners of letters and emoji stay."""

import pytest

from embedtopics._utils.hidden_characters import SIGN, first_hidden, without_hidden
from embedtopics.corpus._texts import harmless
from embedtopics.topics.naming._names import UnusableAnswer, parse_name

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "obey")
SELECTORS = "".join(chr(0xE0100 + b) for b in b"obey")
SMALL_SELECTORS = "".join(chr(0xFE00 + (b & 15)) for b in b"obey")


@pytest.mark.parametrize(
    "text",
    [
        "plain text,\n\tin two lines",
        "Économie « verte » — 東京, Ελλάδα, עברית",
        "می\u200cخواهم",  # Persian: "I want", with a joiner that parts two letters
        "क्\u200dष क्\u200cष",  # Hindi: two forms of a ligature
        "ශ්\u200dරී",  # Sinhala
        "❤\ufe0f ☎\ufe0e ↔\ufe0f ‼\ufe0f 1\ufe0f\u20e3",
        "👩\u200d💻 👨\u200d👩\u200d👧 👍🏽 🏳\ufe0f\u200d🌈 🤷🏽\u200d♀\ufe0f",
        "a\u0301 n\u0303 \u0605١٢",  # accents, and an Arabic sign that is seen
    ],
)
def test_what_people_see_stays(text):
    assert without_hidden(text) == text and first_hidden(text) is None


@pytest.mark.parametrize(
    "hidden",
    [
        TAGS, SELECTORS, SMALL_SELECTORS, "\U000e0001", "\u202e", "\u2066", "\u2069", "\u202c",
        "\ufe00", "\u3164", "\u115f", "\u2061", "\u206f", "\ufff9", "\x1b", "\x00", "\x85",
        "\ud800", "\u180b", "\u17b4", "\U0001d173", "\U000e0100", "\U000e0fff", "\u200b" + TAGS,
    ],
)  # fmt: skip
def test_what_hides_words_is_replaced_by_one_sign(hidden):
    for before, after in (("plums ", " today"), ("plum", "s"), ("", ""), ("😀", "."), ("1", "2")):
        assert without_hidden(f"{before}{hidden}{after}") == f"{before}{SIGN}{after}"
    assert first_hidden(f"plum{hidden}") == hidden[0]


@pytest.mark.parametrize(
    "hidden",
    [
        "\u00ad", "\u200b", "\u2060", "\ufeff", "\u200e", "\u200f", "\u200d", "\u200c",
        "\ufe0f", "\u200b\u200d\u200b",
    ],
)  # fmt: skip
def test_signs_of_typography_are_removed_without_a_sign(hidden):
    assert without_hidden(f"plum{hidden}s") == "plums"


def test_the_selector_of_a_chinese_character_is_removed():
    assert without_hidden("葛\U000e0100城") == "葛城"
    assert without_hidden("葛" + SELECTORS) == "葛" + SIGN


def test_joiners_stay_one_at_a_time():
    assert without_hidden("می\u200c\u200c\u200dخواهم") == "میخواهم"
    assert without_hidden("👩\u200d\u200d💻") == "👩💻"
    assert without_hidden("❤\ufe0f\ufe0e") == "❤"


def test_prompts_hold_what_people_see_and_keep_lines_apart():
    text = f"one\r\ntwo\rthree\nfour\tfive{TAGS}{SELECTORS}\u200b\u202e می\u200cخواهم <|user|>"
    assert harmless(text) == "one\ntwo\nthree\nfour\tfive می\u200cخواهم < |user| >"


def test_a_name_that_hides_words_is_none():
    assert parse_name("❤\ufe0f Health") == "❤\ufe0f Health"
    for hidden in (TAGS, SELECTORS, SMALL_SELECTORS):
        with pytest.raises(UnusableAnswer, match="U\\+"):
            parse_name(f"Health{hidden}")
