"""What a word is, in many scripts, and that no text breaks the tokeniser."""

import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedtopics.corpus._classes import read_class
from embedtopics.corpus._texts import normalize_text
from embedtopics.terms import _tokens
from embedtopics.terms._counts import count_terms
from embedtopics.terms._spans import word_spans
from embedtopics.terms._tokens import join_tokens, tokenize, usual_letters, words_of
from embedtopics.terms.results import WordRules


@given(
    st.lists(st.text(st.sampled_from("ab é.'-北京 @#x😀"), max_size=12), max_size=8),
    st.booleans(),
    st.integers(1, 9),
    st.sampled_from([0, 9]),
)
@example(["L'EAU, caf&eacute; a@b.org <b>long-term</b> 3.11 \ud800 日本語 bank's"], False, 9, 9)
@example(["a\u0000b\u0085c\u2028d\u0345e \u0130stanbul na\u0308ive"], False, 9, 9)
def test_texts_may_be_split_some_at_a_time(texts, social, n_characters, few):
    rules = WordRules(social=social)
    whole = tokenize(texts, rules=rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tokens, "_BLOCK_CHARACTERS", n_characters)
        patch.setattr(_tokens, "FEW_BYTES", few)  # more are numbered by compiled code
        parts = tokenize(texts, rules=rules)
    assert parts.words == whole.words == tuple(sorted(whole.words))
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()
    for text, (begin, end) in zip(texts, pairwise(whole.offsets), strict=True):
        assert [whole.words[i] for i in whole.ids[begin:end]] == words_of(text, rules)


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
        ("İzmir I\u0307ZMİR İ", ["izmir", "izmir", "i"]),
        ("oﬃce ﬁn ﬂow ﬅ ſong", ["office", "fin", "flow", "st", "song"]),
        ("ＡＢＣ１２ ｆｕｌｌ－ｗｉｄｔｈ", ["abc12", "full", "width"]),
        ("ｶﾞｽ ﾎﾟｽﾄ", ["ガス", "ポス", "スト"]),
        ("𝐁𝐨𝐥𝐝 𝓼𝓬𝓻𝓲𝓹𝓽 ℝ", ["bold", "script", "r"]),
        ("ﻣﺮﺣﺒﺎ ﻻ", ["مرحبا", "لا"]),
        ("ⅩⅣ ǅ ĳs 5µm", ["xiv", "dž", "ijs", "5μm"]),
        ("x² H₂O ½ ① 1º ㎞", ["x²", "h₂o", "½", "①", "1º"]),
        ("ırmak IRMAK", ["ırmak", "irmak"]),
        ("և ارزش กำ ຫຳ ㄱ", ["և", "ارزش", "กำ", "ຫຳ", "ㄱ"]),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd", "Zs", "Po"]), max_size=80))
def test_words_are_their_own_words(text):
    for word in words(text):
        if "." not in word and "," not in word:
            assert words(word) == [word]


@pytest.mark.parametrize(
    "unit", ["<a ", "<a =x", "a.b@", "a@b.", "'a", "d'é", "-a", "www.", "北", "1,", "&#", "_"]
)
def test_endless_repeats_are_read_in_one_pass(unit):
    # What went back over them would be at it for hours.
    assert len(tokenize([unit * (400_000 // len(unit))])) == 1


def tokenize_text_by_text(texts):
    """Return the words of each text, by the rules run over whole texts, nothing numbered."""
    from embedtopics.terms import _tokens as tokens

    for text in texts:
        cleaned = tokens.clean(text)
        if cleaned.isascii():
            chunks = tokens._ASCII_CHUNK.findall(cleaned)
        else:
            for form, plain in tokens._LETTER_FORMS.items():
                cleaned = cleaned.replace(form, plain)
            cleaned = tokens.usual_letters(cleaned).replace("_", " ")
            chunks = tokens._unicode_chunk().findall(cleaned)
        yield [word for chunk in chunks for word, _, _ in tokens._split(chunk)]


TRICKY = st.text(
    "aBσΣé1.,'’-_: =<>&;@#\u0301\u0338\u00ad\u200d\u037e\u2126ก漢の\ud800", max_size=30
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TRICKY | st.text(max_size=20), max_size=4))
def test_equals_the_rules_run_over_whole_texts(texts):
    stream = tokenize(texts)
    found = [
        [stream.words[i] for i in stream.ids[begin:end]]
        for begin, end in pairwise(stream.offsets.tolist())
    ]
    assert found == list(tokenize_text_by_text(texts))


def test_more_different_words_than_the_first_table_holds():
    texts = [f"w{i} w{i // 2} w{i % 7}" for i in range(20_000)]
    stream = tokenize(texts)
    assert [stream.words[i] for i in stream.ids] == " ".join(texts).split()


def test_scripts_and_styles_of_html_are_no_words():
    text = "One<script type='a'>let x = '<b>'</SCRIPT> two <style>p {color: red}</style >three"
    assert words_of(text) == ["one", "two", "three"]
    assert [text[begin:end] for _, begin, end in word_spans(text)] == ["One", "two", "three"]
    unclosed = "<script>" * 50_000 + "a <style>b</script> c"  # in linear time
    assert words_of(unclosed) == ["c"]


TEXTS = st.lists(st.text("ab cé", max_size=12), max_size=6)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_a_joint_stream_is_that_of_all_texts(first, second, random):
    order = list(range(len(first) + len(second)))
    random.shuffle(order)
    order = order[: len(order) - random.randint(0, len(order)) // 3]
    joint = join_tokens(tokenize(first), tokenize(second), np.array(order, dtype=np.int64))
    whole = tokenize([(first + second)[place] for place in order])
    assert joint.words == whole.words
    np.testing.assert_array_equal(joint.ids, whole.ids)
    np.testing.assert_array_equal(joint.offsets, whole.offsets)
    assert joint.ids.dtype == np.int32 and joint.offsets.dtype == np.int64


SEARCH = WordRules(addresses=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "write to Desk@Paper.example, today",
            ["write", "to", "desk@paper.example", "desk", "paper", "example", "today"],
        ),
        (
            "at https://www.Paper.example/old_news?id=7.",
            ["at", "paper.example/old_news?id=7", "paper", "example", "old", "news", "id", "7"],
        ),
        ("www.paper.example/", ["paper.example", "paper", "example"]),
        ("http://localhost:80/", ["localhost:80", "localhost", "80"]),
        ("ftp://localhost", ["localhost"]),
        ("(see http://a.example)", ["see", "a.example", "a", "example"]),
        ("<b@c.example>", ["b@c.example", "b", "c", "example"]),
        ("köln@bücher.example", ["köln@bücher.example", "köln", "bücher", "example"]),
        ("http://x-ray.example", ["x-ray.example", "x-ray", "example"]),
        ("http:// www. a@b @c", ["http", "www", "a", "b", "c"]),
        ("\ufdd06162 a@b.example", ["6162", "a@b.example", "a", "b", "example"]),
        ("http://" + "a/" * 300, ["a"] * 300),
    ],
)
def test_an_address_is_a_word_for_search_and_so_are_its_parts(text, expected):
    assert words_of(text, SEARCH) == expected
    assert [word for word, _, _ in word_spans(text, SEARCH)] == expected


def test_a_long_corpus_holds_the_same_addresses_as_a_short_one(monkeypatch):
    texts = ["write to desk@paper.example now", "see www.paper.example/ü"] * 3
    short = tokenize(texts, rules=SEARCH)
    monkeypatch.setattr(_tokens, "FEW_BYTES", 0)
    long = tokenize(texts, rules=SEARCH)
    assert short.words == long.words
    assert short.ids.tolist() == long.ids.tolist()


def test_addresses_are_no_words_of_topics():
    assert words("a@b.example www.c.example https://d.example") == []


def test_rules_that_were_stored_without_a_version_keep_the_letters_of_that_time():
    earlier = WordRules.from_json({"social": "split"})
    assert words_of("İzmir oﬃce ＢＢＣ", earlier) == ["i\u0307zmir", "oﬃce", "ｂｂｃ"]
    assert WordRules.from_json(None).version == 1


def test_new_rules_are_stored_with_their_version():
    rules = WordRules(addresses=True, social="split")
    assert WordRules.from_json(rules.to_json()) == rules
    assert WordRules().to_json() == {"version": 2}


@given(st.text(max_size=20))
def test_usual_letters_are_their_own_usual_letters(text):
    word = usual_letters(text.lower())
    assert usual_letters(word) == word


@pytest.mark.parametrize("word", ["İzmir", "ＩＺＭＩＲ", "I\u0307zmir"])
def test_stop_words_of_the_caller_are_read_as_texts_are(word):
    counts = count_terms(tokenize(["İzmir limanı"] * 9), extra_stop_words=[word])
    assert counts.terms == ("limanı",)


@pytest.mark.parametrize("marks", ["\u0301", "\u0301\u0323", "\u0323" * 1000 + "\u0301" * 1000])
def test_endless_marks_on_a_letter_are_read_in_one_pass(marks):
    # Composing them at once would take an hour.
    text = "ab e" + marks * (1_000_000 // len(marks)) + " c"
    normal = normalize_text(text)
    assert normalize_text(normal) == normal
    assert words(normal)[0] == words(text)[0] == "ab"
    assert words(normal)[-1] == words(text)[-1] == "c"
    assert read_class(text) == normal


def test_marks_of_every_language_are_composed_as_the_library_does():
    text = "e\u0323\u0301 \u05e9\u05bc\u05c1\u05b8 " * 200 + "e" + "\u0323" * 30
    assert normalize_text(text) == unicodedata.normalize("NFC", text)
