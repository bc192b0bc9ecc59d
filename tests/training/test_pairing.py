"""Neighbouring sentences as pairs, against what is counted by hand; and their laws."""

import random as random_module

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import Corpus
from embedtopics.errors import InputError
from embedtopics.training import make_pairs
from tests.factories import refuses
from tests.training.rows import told


def found(examples):
    assert examples.kind == "pairs" and examples.labels is None
    return list(zip(*examples.columns, strict=True))


LONG = "One two three four five."


def test_sentences_that_follow_one_another_are_paired():
    text = "The first has five words. The second has five words. Short one. The last has five too."
    made = make_pairs([text, LONG, ""], min_words=5)
    assert found(made) == [("The first has five words.", "The second has five words.")]
    assert told(made) == {"documents_without_pair": 1, "pairs_made": 1}
    assert len(make_pairs([text], min_words=2)) == 3


def test_long_documents_do_not_drown_the_others():
    text = " ".join(f"Sentence number {word} is here." for word in "abcdefghijklmnop".upper())
    every = make_pairs([text], max_per_document=99)
    assert len(every) == 15 and "pairs_beyond_limit" not in told(every)
    some = make_pairs([text], max_per_document=4)
    assert len(some) == 4 and told(some)["pairs_beyond_limit"] == 11
    assert set(found(some)) < set(found(every))
    draws = {
        frozenset(found(make_pairs([text], max_per_document=4, random_state=s))) for s in range(9)
    }
    assert len(draws) == 9


def test_equal_sides_and_repeated_pairs_are_left_out_and_counted():
    first, second = "The rain falls on roofs.", "The roofs let it in."
    made = make_pairs([f"{first} {first.upper()} {second}", f"{second} {first}"])
    assert sorted(found(made)) == [(first.upper(), second)]
    assert told(made) == {"identical_sides": 1, "repeated_pairs": 1, "pairs_made": 1}


@pytest.mark.parametrize(
    ("texts", "options", "parameter"),
    [
        (["a b", "c d"], {}, "corpus"),
        ([f"{LONG} {LONG} More."], {"max_per_document": 0}, "max_per_document"),
        ([f"{LONG} {LONG} More."], {"random_state": -1}, "random_state"),
    ],
)
def test_what_gives_no_pairs_is_refused(texts, options, parameter):
    with refuses(parameter):
        make_pairs(texts, **options)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.randoms())
def test_pairs_do_not_depend_on_the_order_of_the_rows(number, random):
    draw = random_module.Random(number)
    words = "alpha beta gamma delta epsilon zeta".split()

    def text():
        sentences = (draw.choices(words, k=3) for _ in range(draw.randint(1, 5)))
        joined = " ".join(" ".join(chosen).capitalize() + "." for chosen in sentences)
        return joined + draw.choice(["", " ", "\n\n"])

    rows = [{"text": text(), "id": str(place)} for place in range(12)]
    shuffled = list(rows)
    random.shuffle(shuffled)
    results = []
    for given_rows in (rows, shuffled):
        corpus = Corpus(pd.DataFrame(given_rows), text="text", id="id")
        try:
            results.append(make_pairs(corpus, min_words=2, max_per_document=2))
        except InputError:
            results.append(None)
    one, other = results
    assert (one is None) == (other is None)
    if one is not None:
        # The same pairs in the same order: training goes the same way.
        assert one.columns == other.columns and told(one) == told(other)
        for anchor, row in zip(one.columns[0], one.rows.tolist(), strict=True):
            assert anchor in " ".join(rows[row]["text"].split())
