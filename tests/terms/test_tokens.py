"""What a word is, in many scripts, and that no text breaks the tokeniser."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.terms import tokenize


def words(text, **options):
    stream = tokenize([text], **options)
    return [stream.words[i] for i in stream.ids]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, the CAT.", ["the", "cat", "the", "cat"]),
        ("I don't know Google's plan", ["i", "don't", "know", "google", "plan"]),
        ("it’s rock'n'roll", ["it", "rock'n'roll"]),
        ("L'eau qu’il boit aujourd'hui", ["l", "eau", "qu", "il", "boit", "aujourd'hui"]),
        ("qu'est-ce qu'y a-t-il", ["qu", "est", "ce", "qu", "y", "a", "t", "il"]),
        ("dell'arte d’Israël", ["dell", "arte", "d", "israël"]),
        ("long-term state-of-the-art", ["long", "term", "state", "of", "the", "art"]),
        ("x-ray-based e-mail k-means", ["x-ray", "based", "e-mail", "k-means"]),
        ("f-16 covid-19 a-z", ["f", "16", "covid", "19", "a", "z"]),
        ("1,000m in 1999.Then 3.11, 5.", ["1,000m", "in", "1999", "then", "3.11", "5"]),
        ("snake_case 'quoted'", ["snake", "case", "quoted"]),
        ("cafe\u0301 = café", ["café", "café"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("می\u200cخواهم العَرَبِيَّة", ["می\u200cخواهم", "العَرَبِيَّة"]),
        ("北京大学 に", ["北京", "京大", "大学", "に"]),
        ("Python言語", ["python", "言語"]),
        ("ที่นี่", ["ที่นี่"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("see https://a.b/c?d=e, www.x.org or me.too@mail.x.org!", ["see", "or"]),
        ("<a href='x'>now</a><br/>then a<b", ["now", "then", "a", "b"]),
        ("R&amp;D &eacute;t&eacute;", ["r", "d", "été"]),
        ("🙂 1️⃣ ❤️ ©", ["1"]),
        ("\ud800 \x00 \u202eabc\u202c", ["abc"]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_case_can_be_kept():
    assert words("L'Eau Bank'S", lowercase=False) == ["L", "Eau", "Bank"]


def test_stream_is_aligned_and_sorted():
    stream = tokenize(["b a b", "", "c a"])
    assert stream.words == ("a", "b", "c")
    assert stream.ids.tolist() == [1, 0, 1, 2, 0]
    assert stream.offsets.tolist() == [0, 3, 3, 5]
    assert stream.ids.dtype == np.int32
    assert stream.offsets.dtype == np.int64
    assert len(tokenize([])) == 0


@given(st.lists(st.text(max_size=60), max_size=5))
def test_documents_do_not_depend_on_each_other(texts):
    stream = tokenize(texts)
    assert list(stream.words) == sorted(set(stream.words))
    together = [
        [stream.words[i] for i in stream.ids[a:b]]
        for a, b in zip(stream.offsets[:-1], stream.offsets[1:], strict=True)
    ]
    assert together == [words(text) for text in texts]


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd", "Zs", "Po"]), max_size=80))
def test_words_are_their_own_words(text):
    for word in words(text):
        if "." not in word and "," not in word:
            assert words(word) == [word]


@pytest.mark.parametrize(
    "unit", ["<a ", "<a =x", "a.b@", "a@b.", "'a", "d'é", "-a", "www.", "北", "1,", "&#", "_"]
)
def test_time_stays_linear(unit):
    start = time.perf_counter()
    tokenize([unit * (400_000 // len(unit))])
    assert time.perf_counter() - start < 5


def test_bad_input():
    with pytest.raises(InputError, match="got one string"):
        tokenize("a single text")
    with pytest.raises(InputError, match="row 2 is a float"):
        tokenize(["a", float("nan")])
