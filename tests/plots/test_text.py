from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.plots._theme import cut, escape, plain, wrap


@given(st.text(st.characters(codec=None), max_size=300), st.integers(1, 40))
def test_wrapped_lines_hold_every_character_in_order_and_none_is_too_long(text, width):
    line = plain(text)
    lines = wrap(line, width)
    assert all(0 < len(part) <= width for part in lines)
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")


@given(st.text(max_size=100), st.integers(2, 20), st.integers(1, 4))
def test_lines_that_are_left_out_leave_an_ellipsis(text, width, most):
    every = wrap(plain(text), width)
    some = wrap(plain(text), width, most)
    assert len(some) == min(len(every), most) and all(len(line) <= width for line in some)
    if len(every) <= most:
        assert some == every
    else:
        assert some[:-1] == every[: most - 1]
        assert some[-1].endswith("…") and every[most - 1].startswith(some[-1][:-1])


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_cut_text_is_a_prefix_that_fits(text, length):
    short = cut(text, length)
    assert len(short) <= length
    if short != plain(text):
        assert short.endswith("…")
        assert plain(text).startswith(short[:-1])


def test_words_stay_whole_where_they_fit():
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("ab " + "x" * 12, 5) == ["ab xx", "xxxxx", "xxxxx"]
    assert wrap("", 5) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("&lt;", "&amp;lt;"),
        ("$x^2$", "&#36;x^2&#36;"),
        ("\"quoted\" 'too' %{x}", "\"quoted\" 'too' %{x}"),
        ("🙂 שלום", "🙂 שלום"),
    ],
)
def test_escape(text, shown):
    assert escape(text) == shown


def test_plain_drops_what_has_no_glyph():
    assert plain("a\x00b\r\n\tc") == "a b c"
    assert plain("safe\u202etxt.exe") == "safetxt.exe"
    assert plain("lone \ud800 half").encode("utf-8") == b"lone ? half"


def test_cut_does_not_end_within_an_emoji_sequence():
    assert cut("ab👩\u200d💻cdef", 5) == "ab👩…"
