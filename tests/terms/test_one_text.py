from hypothesis import example, given
from hypothesis import strategies as st

from embedtopics.terms._spans import words_of
from embedtopics.terms._tokens import tokenize


@given(st.text(max_size=80))
@example("L'EAU, caf&eacute; &amp; x-ray a@b.org <b>long-term</b> 3.11 \ud800 日本語 bank's")
@example("a\u0000b\u0085c\u2028d\u0345e \u0130stanbul na\u0308ive")
def test_one_text_has_the_words_that_it_has_in_a_corpus(text):
    stream = tokenize([text])
    assert words_of(text) == [stream.words[i] for i in stream.ids]
