"""Languages, from a sample that does not depend on the order of the texts."""

import pytest

from embedtopics.corpus.results import LanguageShares
from embedtopics.terms._languages import CODES, checked_languages, detect_languages, main_languages
from embedtopics.terms._stop_words import stop_words_for
from tests.factories import refuses

ENGLISH = [
    "The committee will meet again on Thursday to discuss the new budget.",
    "She walked along the river until the lights of the town disappeared.",
    "Our results show that the second method is faster on small inputs.",
]
FRENCH = [
    "Le conseil municipal se réunira jeudi pour examiner le nouveau budget.",
    "Elle marchait le long de la rivière en regardant les lumières de la ville.",
]
GERMAN = ["Der Ausschuss trifft sich am Donnerstag, um den Haushalt zu besprechen."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, "en") for text in ENGLISH),
        *((text, "fr") for text in FRENCH),
        *((text, "de") for text in GERMAN),
        ("Комитет снова соберётся в четверг, чтобы обсудить бюджет.", "ru"),
        ("委员会将于星期四再次开会讨论新的预算案，并且邀请专家参加。", "zh"),
        ("ستجتمع اللجنة مرة أخرى يوم الخميس لمناقشة الميزانية الجديدة.", "ar"),
        ("銀行は金利を上げた", "ja"),
        ("은행이 금리를 올렸다", "ko"),
        ("银行提高了", "zh"),
        ("ธนาคาร", "th"),
        ("The word 银行 means bank in Chinese, and nothing else.", "en"),
        ("Superior colliculus visual receptive fields of the cat", "en"),
        ("Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae.", "la"),
        ("Predsjednik je rekao da će vlada sutra raspravljati o proračunu.", "hr"),
        ("ལྷ་སའི་སློབ་གྲྭ", "bo"),
        ("Too short, nineteen", None),
        ("", None),
        ("1234567890 " * 10, None),
        ("xyzzy qwrtp sdfgh jklmn bvcxz wrtpq", None),
    ],
)
def test_one_text(text, expected):
    assert detect_languages([text]).main == expected


@pytest.mark.parametrize(
    ("texts", "shares", "n_sampled"),
    [
        ([*ENGLISH, *FRENCH, *GERMAN, "hm", ""], {"en": 3 / 6, "fr": 2 / 6, "de": 1 / 6}, 6),
        ([FRENCH[0], "xyzzy qwrtp sdfgh jklmn bvcxz wrtpq"], {"fr": 0.5}, 2),
        (["", "a", "42"], {}, 0),
        (["ポケモン", "ひらがなだけ"], {"ja": 1}, 2),
        (["안녕하세요", "한국어 문장"], {"ko": 1}, 2),
        (
            ["ポケモン", "東京へ行きました", "안녕하세요", "银行提高了"],
            {"ja": 0.5, "ko": 0.25, "zh": 0.25},
            4,
        ),
    ],
)
def test_shares_are_of_the_texts_that_were_looked_at(texts, shares, n_sampled):
    found = detect_languages(texts)
    assert (list(found.shares.items()), found.n_sampled) == (list(shares.items()), n_sampled)
    assert found.main == next(iter(shares), None)


def test_the_other_texts_decide_on_titles_of_latin_terms():
    titles = [
        f"organization visually responsive neurons superior colliculus cat {n}" for n in range(5)
    ]
    assert detect_languages(titles).main is None
    assert detect_languages(ENGLISH * 3 + [*map("{} Again.".format, ENGLISH)] + titles).shares == {
        "en": 1.0
    }


@pytest.mark.parametrize("sample", [1, 3, 5])
def test_the_sample_depends_on_content_only(sample):
    texts = [*ENGLISH, *FRENCH, *GERMAN]
    expected = detect_languages(texts, sample)
    assert expected.n_sampled == sample
    assert detect_languages(texts[::-1], sample) == expected
    assert detect_languages([f"  {t}\n" for t in texts] + texts * 50, sample) == expected


def test_codes_that_do_not_exist_are_refused():
    assert checked_languages("fr") == ("fr",)
    assert checked_languages(["en", "sw"]) == ("en", "sw")
    with refuses("languages", row=1):
        checked_languages(["en", "zz"])
    with refuses("languages", row=0):
        checked_languages([1])
    assert checked_languages(["ltg", "nso"]) == ("ltg", "nso")


def test_at_least_55_languages_have_stop_words():
    assert sum(bool(stop_words_for([code])) for code in CODES) >= 55
    assert {"na", "ya"} <= set(stop_words_for(["sw"]))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"en": 0.9, "fr": 0.1}, ("en", "fr")),
        ({"en": 0.9, "fr": 0.09}, ("en",)),
        ({"am": 0.08, "ar": 0.08, "zh": 0.04, "de": 0.01}, ("am", "ar", "zh")),
        ({}, ()),
    ],
)
def test_languages_of_a_corpus_have_a_tenth_or_half_of_the_largest(shares, expected):
    assert main_languages(LanguageShares(shares, 100)) == expected
