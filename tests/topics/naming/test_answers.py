"""What passes for a name, whatever a model answers."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.topics.naming._questions import Unusable, name_in, name_key

PIECES = st.sampled_from(
    ["Topic:", '"', "'", "**", "_", ".", "\n", "<b>", "\u202e", "\u201c", "\u201d", " ", "News",
     "été", "東京", "</think>", "<think>", "a", "\x00", "U.S.", "](", "http://", "12"]
)  # fmt: skip
ANSWERS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=8).map("".join))


@given(ANSWERS, st.integers(1, 60))
def test_a_name_is_one_line_of_plain_text(answer, longest):
    try:
        name = name_in(answer, longest)
    except Unusable as failure:
        assert str(failure)
        return
    assert 0 < len(name) <= longest and name == " ".join(name.split())
    assert all(unicodedata.category(c)[0] != "C" or c in "\u200c\u200d" for c in name)
    assert not set("<>`{}\\|") & set(name) and "://" not in name and "](" not in name
    assert any(map(str.isalpha, name))
    assert name_in(name, longest) == name


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Climate Change", "climate-change.", True),
        ("Straße", "STRASSE", True),
        ("Ｎews", "News", True),
        ("Sport", "Sports", False),
        ("C", "C#", True),
    ],
)
def test_names_that_a_reader_takes_for_one(first, second, alike):
    assert (name_key(first) == name_key(second)) is alike
