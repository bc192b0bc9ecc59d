import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedtopics.corpus._texts import normalize_text
from embedtopics.terms._spans import word_spans
from embedtopics.terms._tokens import tokenize

SNIPPETS = [
    "l'eau", "qu'un", "aujourd’hui", "bank's", "it's-s", "x-ray", "long-term", "e\u0301te\u0301",
    "caf&eacute;", "&amp;", "&lt;b&gt;", "&notit;", "&#233;", "&#x41;B", "&#0;", "<b>", "</b>",
    "<a href='x'>", "a < b", "www.example.org/x", "mail@example.org", "http://x.y/z", "İstanbul",
    "ΟΔΟΣ", "STRASSE", "ẞ", "日本語", "日日", "日", "日本-日本", "กำแพง", "ກໍາ", "한국어",
    "\u1112\u1161\u11ab", "soft\u00adhyphen", "1,000.5", "v3.11", "\u00a0", "\n", "\x00", "\u3000",
    "\u200d", "क्षि", "\u0f73", "a\u0323\u0307", "a\u0307\u0323", "Ω", "ﬁ", "don't", "'", "-", ".",
    "😀", "\u09c7\u09be", "dell'arte", "s's-s", "aba-ba", "Ｆｕｌｌ", "ｶﾞ",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=4)), max_size=12).flatmap(
    lambda parts: st.sampled_from(["", " "]).map(lambda glue: glue.join(parts))
)


@settings(max_examples=400, deadline=None)
@given(texts)
@example("qu'un qu'u")
@example("日日日日 日日a日日")
@example("e\u0301\u0327a\u0300 \u1112\u1161\u11ab\u1112")
def test_the_words_are_those_of_the_tokeniser(text):
    text = text.encode("utf-8", "replace").decode()  # a corpus holds no lone surrogates
    stream = tokenize([normalize_text(text)])
    found = word_spans(text)
    assert [word for word, _, _ in found] == [stream.words[i] for i in stream.ids]
    places = [(begin, end) for _, begin, end in found]
    assert all(0 <= begin < end <= len(text) for begin, end in places)
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The BANK, bank's bankers", ["The", "BANK", "bank", "bankers"]),
        ("  L’Eau &amp; caf&eacute;!", ["L", "Eau", "caf&eacute;"]),
        ("x-ray long-term qu'un", ["x-ray", "long", "term", "qu", "un"]),
        ("<b>bold</b> www.x.org a@b.org end", ["bold", "end"]),
        ("E\u0301te\u0301 soft\u00adhyphen", ["E\u0301te\u0301", "soft\u00adhyphen"]),
        ("日本語 1,000.5 İs", ["日本", "本語", "1,000.5", "İs"]),
        ("it's-s", ["it", "s"]),
        ("Gro\u00dfe ΟΔΟΣ", ["Gro\u00dfe", "ΟΔΟΣ"]),
    ],
)  # fmt: skip
def test_spans_hold_the_text_as_it_was_written(text, expected):
    assert [text[begin:end] for _, begin, end in word_spans(text)] == expected


def test_the_place_is_that_of_the_word_and_not_of_another_like_it():
    assert word_spans("it's-s")[1][1:] == (5, 6)
    assert word_spans("qu'un u")[1][1:] == (3, 5)
    assert [w[1:] for w in word_spans("日日日")] == [(0, 2), (1, 3)]
    assert [w[1:] for w in word_spans("日日-日日")] == [(0, 2), (3, 5)]
