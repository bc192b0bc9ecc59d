"""Windows of whole sentences, and the passages made of them."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics import Corpus
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._windows import sentence_starts, windows
from embedtopics.errors import InputError
from tests.factories import refuses


def cut(text, most, overlap):
    starts = [match.start() for match in re.finditer(r"\w+", text)]
    return [text[a:b] for a, b in windows(text, starts, most, overlap)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("Mr. J. Doe paid 3.50 euros. He left.", ["Mr. J. Doe paid 3.50 euros. ", "He left."]),
        ('He said "Stop!" Then silence.  Done', ['He said "Stop!" ', "Then silence.  ", "Done"]),
        ("e.g. this one. and here", ["e.g. this one. ", "and here"]),
        ("A title\n\nIts text", ["A title\n\n", "Its text"]),
        ("一つ目。二つ目。", ["一つ目。", "二つ目。"]),
        ("« Ah. » Puis rien. École fermée.", ["« Ah. » ", "Puis rien. ", "École fermée."]),
        ("\n\nA half \ud800. Done", ["\n\nA half \ud800. ", "Done"]),
        ("One. " * 9000, ["One. "] * 9000),
        ("« Ah " * 9000 + ". Done", ["« Ah " * 9000 + ". ", "Done"]),
        ("So ... what", ["So ... what"]),
        ("So ...  What", ["So ...  ", "What"]),
        ("", [""]),
        ("No end", ["No end"]),
    ],
)
def test_sentences(text, sentences):
    starts = [*sentence_starts(text), len(text)]
    assert [text[a:b] for a, b in pairwise(starts)] == sentences


def test_windows_by_hand():
    text = "Aa bb cc. Dd ee. Ff gg hh. Ii jj."
    assert cut(text, 5, 0) == ["Aa bb cc. Dd ee.", "Ff gg hh. Ii jj."]
    assert cut(text, 5, 2) == ["Aa bb cc. Dd ee.", "Dd ee. Ff gg hh.", "Ii jj."]
    assert cut(text, 100, 10) == [text]
    # A sentence longer than a window is cut between words, into pieces as long as the overlap.
    assert cut("a b c d e f gg. Hh.", 4, 2) == ["a b c d", "c d e f", "e f gg. Hh."]
    assert cut("a b c d e f gg. Hh.", 4, 0) == ["a b c d", "e f gg. Hh."]


@given(
    text=st.text(st.sampled_from("ab .!?\n。é"), max_size=80),
    most=st.integers(1, 9),
    overlap=st.integers(0, 5),
)
def test_windows_hold_everything_in_order_and_are_short_enough(text, most, overlap):
    overlap = min(overlap, most - 1)
    starts = [match.start() for match in re.finditer(r"\w+", text)]
    spans = windows(text, starts, most, overlap)
    covered = np.zeros(len(text), dtype=bool)
    for begin, end in spans:
        covered[begin:end] = True
        assert sum(begin <= start < end for start in starts) <= most
    assert all(covered[place] or text[place].isspace() for place in range(len(text)))
    assert spans == sorted(spans)
    shared = [
        sum(second <= start < end for start in starts) for (_, end), (second, _) in pairwise(spans)
    ]
    assert all(count <= overlap for count in shared)


def test_passages_keep_their_rows_ids_and_metadata():
    long = "The first part is here. " * 3 + "The second part is there. " * 3
    frame = pd.DataFrame(
        {"text": [long, None, "Short."], "year": [1, 2, 3], "key": ["x", "y", "z"]}, index=[7, 8, 9]
    )
    corpus = Corpus(frame, text="text", id="key", group="year")
    made = corpus.passages(max_words=18, max_overlap=6)
    assert made.ids == ("x#1", "x#2", "x#3", "y#1", "z#1")
    assert made.metadata["passage_of"].tolist() == ["x", "x", "x", "y", "z"]
    assert made.metadata["passage"].tolist() == [1, 2, 3, 1, 1]
    assert made.group.tolist() == [1, 1, 1, 2, 3]
    assert made.status.tolist() == [0, 0, 0, 2, 0]
    for text, row in zip(made.texts, made.metadata.itertuples(), strict=True):
        source = {"x": long, "y": "", "z": "Short."}[row.passage_of]
        assert source[row.passage_start : row.passage_stop] == text
    assert made.texts[0] == ("The first part is here. " * 3).strip()
    assert "3 rows were cut into 5 passages" in made.decisions[-1].message
    assert list(frame.columns) == ["text", "year", "key"]


def test_passages_as_long_as_an_encoder_reads():
    class Reader:
        def windows(self, texts):
            return [[(0, 3), (4, len(text))] for text in texts]

    assert as_corpus(["One two."]).passages(Reader()).texts == ("One", "two.")


def test_bad_passages():
    corpus = Corpus({"text": ["One."], "passage": [3]}, text="text")
    with pytest.raises(InputError, match="'passage'"):  # the column is not lost
        corpus.passages()
    for parameter, sizes in {
        "max_words": {"max_words": 0},
        "max_overlap": {"max_words": 4, "max_overlap": 4},
    }.items():
        with refuses(parameter):
            Corpus(["One two."]).passages(**sizes)
    for name in ("max_words", "max_overlap"):
        with refuses(name):
            Corpus(["One two."]).passages(object(), **{name: 5})


@pytest.mark.parametrize("part", [".", "!?", ".)", ". ", "\n", "\n ", 'a."', "« a ", "。", "x"])
def test_a_megabyte_of_anything_is_read_in_one_pass(part):
    # What went back over a row of marks would be at it for hours.
    text = (part * 1_000_000)[:1_000_000]
    starts = sentence_starts(text)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
