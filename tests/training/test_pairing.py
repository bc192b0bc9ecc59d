"""Pairs out of a corpus, against what is counted by hand; and their laws."""

import random as random_module
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.training import make_pairs
from embedtopics.training._pairs import _drawn
from tests.factories import refuses
from tests.training.rows import told


def corpus(columns, **roles):
    return Corpus(pd.DataFrame(columns), text="text", **roles)


def found(examples):
    assert examples.kind == "pairs" and examples.labels is None
    return list(zip(*examples.columns, strict=True))


# Titles


def test_rows_that_give_no_pair_are_counted():
    rows = [
        ("Rain", "Rain - it is wet."),  # cut
        ("Snow", "snow"),  # the text is the title
        ("Snow and ice", "Ice"),  # the title holds the text
        ("Snowy", "Snowyish days."),  # no whole word: left alone
        (None, "Text."),
        ("Wind", "  "),
        ("Sun", "!!!"),
        ("Fog", "All day fog."),  # further on
        ("FOG ", "all  day fog."),  # the same pair again
        *[("Letters", f"Letter number {i}.") for i in range(4)],
    ]
    titles, texts = zip(*rows, strict=True)
    made = make_pairs(corpus({"title": titles, "text": texts}), "title", "title")
    assert set(found(made)) == {
        ("Rain", "it is wet."), ("Snowy", "Snowyish days."), ("FOG", "all day fog."),
    }  # fmt: skip
    assert told(made) == {
        "rows_without_pair": 2, "titles_cut": 2, "title_is_text": 3, "titles_in_text": 2,
        "common_titles": 4, "repeated_pairs": 1, "pairs_made": 3,
    }  # fmt: skip
    more = make_pairs(corpus({"title": titles, "text": texts}), "title", "title", most_bodies=4)
    assert told(more)["pairs_made"] == 7


def test_another_column_can_be_the_body():
    table = {"title": ["Rain"], "abstract": ["It is wet."], "text": ["Long."]}
    assert found(make_pairs(corpus(table), "title", "title", body="abstract")) == [
        ("Rain", "It is wet.")
    ]
    assert found(make_pairs(corpus(table), "title", "title", body="text")) == [("Rain", "Long.")]


# Sentences

LONG = "One two three four five."


def test_sentences_that_follow_one_another_are_paired():
    text = "The first has five words. The second has five words. Short one. The last has five too."
    made = make_pairs([text, LONG, ""], least_words=5)
    assert found(made) == [("The first has five words.", "The second has five words.")]
    assert told(made) == {"documents_without_pair": 1, "pairs_made": 1}
    short = make_pairs([text], least_words=2)
    assert len(short) == 3


def test_long_documents_do_not_drown_the_others():
    text = " ".join(f"Sentence number {word} is here." for word in "abcdefghijklmnop".upper())
    every = make_pairs([text], most_per_document=99)
    assert len(every) == 15 and "pairs_beyond_limit" not in told(every)
    some = make_pairs([text], most_per_document=4)
    assert len(some) == 4 and told(some)["pairs_beyond_limit"] == 11
    assert set(found(some)) < set(found(every))
    draws = {
        frozenset(found(make_pairs([text], most_per_document=4, random_state=s))) for s in range(9)
    }
    assert len(draws) == 9


# Near-duplicates


def test_documents_as_near_as_asked_are_paired():
    angles = {"a": 0, "b": 10, "c": 25, "d": 90}
    made = Corpus.of(["a", "b", "c", "d", "a "])
    radians = np.radians([angles[text] for text in made.document_texts()])
    graph = build_graph(unit_rows(np.stack([np.cos(radians), np.sin(radians)], axis=1)), 3)
    # cos 10 = 0.985, cos 15 = 0.966, cos 25 = 0.906.
    for least, expected in [(0.98, {"ab"}), (0.95, {"ab", "bc"}), (0.9, {"ab", "bc", "ac"})]:
        pairs = make_pairs(made, "duplicates", graph=graph, least=least)
        assert {"".join(sorted(pair)) for pair in found(pairs)} == expected
        assert told(pairs)["documents_without_pair"] == 4 - len(set("".join(expected)))
    nearest = make_pairs(made, "duplicates", graph=graph, least=0.9, most_per_document=1)
    assert {"".join(sorted(pair)) for pair in found(nearest)} == {"ab", "bc"}
    assert told(nearest)["pairs_beyond_limit"] == 3


def test_places_without_a_neighbour_are_passed_over():
    graph = NeighborGraph(np.array([[1, -1], [0, -1]]), np.array([[0.95, 0.99], [0.95, 0.99]]))
    assert len(make_pairs(["a", "b"], "duplicates", graph=graph)) == 1


# Groups


def test_documents_of_one_group_are_paired():
    table = {"text": [*"abcdefg", None, "a"], "by": ["x", "x", "x", "y", "y", "z", None, "x", "x"]}
    made = make_pairs(corpus(table), "group", "by")
    expected = {*combinations("abc", 2), ("d", "e")}
    assert {tuple(sorted(pair)) for pair in found(made)} == expected
    # Of 4 * 3 ordered couples of pairs, those of the three pairs of one group.
    expected = {"rows_without_group": 2, "groups_without_pair": 1, "pairs_made": 4}
    assert told(made) == {**expected, "other_pairs_of_own_group": 0.5}
    assert made.fingerprint == make_pairs(corpus(table, group="by"), "group").fingerprint


def test_a_group_gives_only_so_many_pairs():
    table = {"text": [f"text {i}" for i in range(40)], "by": ["x"] * 38 + ["y"] * 2}
    made = make_pairs(corpus(table), "group", "by", most_per_group=10)
    assert len(made) == 11 and told(made)["pairs_beyond_limit"] == 38 * 37 // 2 - 10
    assert (
        made.fingerprint == make_pairs(corpus(table), "group", "by", most_per_group=10).fingerprint
    )
    other = make_pairs(corpus(table), "group", "by", most_per_group=10, random_state=1)
    assert made.fingerprint != other.fingerprint


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 100])
def test_every_pair_of_a_group_is_drawn_once(n):
    firsts, seconds = _drawn(n, n * (n - 1) // 2, 0, "x")
    assert sorted(zip(firsts.tolist(), seconds.tolist(), strict=True)) == list(
        combinations(range(n), 2)
    )


def test_pairs_of_a_huge_group_are_pairs():
    n = 90_000_000
    firsts, seconds = _drawn(n, 1000, 0, "x")
    assert (firsts >= 0).all() and (firsts < seconds).all() and (seconds < n).all()
    numbers = seconds.astype(object) * (seconds.astype(object) - 1) // 2 + firsts.astype(object)
    assert len(set(numbers.tolist())) == 1000


def test_pairs_of_a_group_are_drawn_evenly():
    counts = np.zeros((6, 6))
    for seed in range(600):
        firsts, seconds = _drawn(6, 5, seed, "x")
        counts[firsts, seconds] += 1
    drawn = counts[np.triu_indices(6, 1)]
    # 200 expected of each of the 15 pairs, standard deviation 11.5.
    assert drawn.sum() == 3000 and abs(drawn - 200).max() < 50


# Citations


@pytest.mark.parametrize(
    "cites",
    [
        ["b; c", "c", None, "x;d;d"],
        ["b|c", "c", "", "x| d"],
        ["b,c", "c", " ", "x, d"],
        [["b", "c"], ["c"], [], ["x", "d", "d"]],
        [np.array(["b", "c"]), ("c",), None, ["d", "x"]],
        ["['b', 'c']", '["c"]', "[]", '["x", "d"]'],
    ],
)
def test_documents_are_paired_with_those_that_they_name(cites):
    made = make_pairs(
        corpus({"text": ["A", "B", "C", "D"], "id": list("abcd"), "cites": cites}, id="id"),
        "citations",
        "cites",
    )
    assert set(found(made)) == {("A", "B"), ("A", "C"), ("B", "C")}
    assert told(made) == {
        "rows_without_pair": 1, "unknown_ids": 1, "self_citations": 1, "pairs_made": 3,
    }  # fmt: skip
    assert "such as 'x'" in " ".join(decision.message for decision in made.decisions)


def test_numbers_and_ids_with_separators_are_ids():
    table = {"text": ["A", "B", "C"], "id": [1, 2, 3], "cites": [2.0, float("nan"), 1.0]}
    made = make_pairs(corpus(table, id="id"), "citations", "cites")
    assert set(found(made)) == {("A", "B"), ("C", "A")}
    table = {"text": ["A", "B"], "id": ["10.1/a;b", "c"], "cites": ["c", "10.1/a;b"]}
    assert told(make_pairs(corpus(table, id="id"), "citations", "cites"))["repeated_pairs"] == 1


def test_texts_that_are_missing_or_equal_give_no_pair():
    table = {
        "text": ["A", None, " a", "D"],
        "id": list("abcd"),
        "cites": ["b;c;d", "a", None, None],
    }
    made = make_pairs(corpus(table, id="id"), "citations", "cites")
    assert found(made) == [("A", "D")]
    assert told(made)["pairs_without_text"] == 2 and told(made)["identical_sides"] == 1


PLAIN = {"title": [1, 2], "none": [None, None], "text": ["a b", "c d"], "cites": ["b", "a;c"]}
GRAPH = NeighborGraph(np.array([[1], [0], [0], [0]]), np.full((4, 1), 0.5))


@pytest.mark.parametrize(
    ("by", "column", "options", "parameter"),
    [
        ("titles", None, {}, "by"),
        ("title", "headline", {}, "column"),
        ("title", "none", {}, "column"),
        ("title", "text", {}, "corpus"),
        ("sentences", None, {}, "corpus"),
        ("sentences", "text", {}, "column"),
        ("sentences", None, {"most_per_document": 0}, "most_per_document"),
        ("sentences", None, {"random_state": -1}, "random_state"),
        ("sentences", None, {"separators": ";"}, "options"),
        ("duplicates", None, {}, "options"),
        ("duplicates", None, {"graph": GRAPH}, "graph"),
        ("duplicates", None, {"graph": GRAPH, "least": 2}, "least"),
        ("group", None, {}, "column"),
        ("group", "bye", {}, "column"),
        ("group", "cites", {}, "corpus"),
        ("citations", "cites", {}, "column"),
    ],
)
def test_what_gives_no_pairs_is_refused(by, column, options, parameter):
    with refuses(parameter):
        make_pairs(corpus(PLAIN), by, column, **options)


# Laws


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.randoms())
def test_pairs_do_not_depend_on_the_order_of_the_rows(number, random):
    draw = random_module.Random(number)
    words = "alpha beta gamma delta epsilon zeta".split()

    def text():
        sentences = (draw.choices(words, k=3) for _ in range(draw.randint(1, 5)))
        joined = " ".join(" ".join(chosen).capitalize() + "." for chosen in sentences)
        return joined + draw.choice(["", " ", "\n\n"])

    rows = [
        {
            "text": text(),
            "title": draw.choice([*words, None, "Alpha"]),
            "by": draw.choice(["x", "y", None]),
            "id": str(place),
            "cites": ";".join(map(str, draw.choices(range(12), k=2))),
        }
        for place in range(12)
    ]
    shuffled = list(rows)
    random.shuffle(shuffled)
    makers = (
        lambda made: make_pairs(made, "title", "title"),
        lambda made: make_pairs(made, least_words=2, most_per_document=2),
        lambda made: make_pairs(made, "group", "by", most_per_group=3),
        lambda made: make_pairs(made, "citations", "cites"),
    )
    for make in makers:
        results = []
        for given_rows in (rows, shuffled):
            made = corpus(pd.DataFrame(given_rows), id="id")
            try:
                results.append(make(made))
            except InputError:
                results.append(None)
        one, other = results
        assert (one is None) == (other is None)
        if one is not None:
            # The same pairs in the same order: training goes the same way.
            assert one.columns == other.columns and told(one) == told(other)
            for anchor, row in zip(one.columns[0], one.rows.tolist(), strict=True):
                assert (
                    anchor.casefold()
                    in " ".join(f"{rows[row]['title']} {rows[row]['text']}".split()).casefold()
                )
