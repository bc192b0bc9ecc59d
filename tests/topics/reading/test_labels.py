from dataclasses import replace

import pytest

from embedtopics.topics import make_labels
from tests.factories import make_result, refuses


def with_keywords(keywords, **flags):
    result = make_result(60, len(keywords))
    topics = tuple(
        replace(topic, keywords=tuple(words), weights=(1.0,) * len(words), label=f"old {i}",
                is_named=i in flags.get("named", ()), is_seeded=i in flags.get("anchors", ()))
        for i, (topic, words) in enumerate(zip(result.topics, keywords, strict=True))
    )  # fmt: skip
    return replace(result, topics=topics)


def labels(result):
    return [topic.label for topic in result.topics]


def test_names_are_made_of_keywords():
    result = with_keywords([["tax", "cut", "vote"], ["river", "flood"], []])
    assert labels(make_labels(result, 2)) == ["tax, cut", "river, flood", "no terms"]
    long = make_labels(result, 9, separator="_", prefix="{topic}_", word_length=3)
    assert labels(long) == ["0_tax_cut_vot", "1_riv_flo", "2_no terms"]
    other = make_labels(result, 1, prefix="{x} ")
    assert labels(other) == ["{x} tax", "{x} river", "{x} no terms"]
    assert labels(result) == ["old 0", "old 1", "old 2"]


def test_no_two_topics_have_one_name():
    result = with_keywords([["tax", "cut"], ["tax", "rise"], ["tax"], ["tax"], ["tax", "cut"]])
    made = make_labels(result, 1)
    assert labels(made) == ["tax", "tax, rise", "tax (2)", "tax (3)", "tax, cut"]


def test_given_names_stay_and_are_not_taken_again():
    result = with_keywords([["a1"], ["b1"], ["old 0"]], named=[0], anchors=[1])
    made = make_labels(result, 1)
    assert labels(made) == ["old 0", "old 1", "old 0 (2)"]
    assert [topic.is_named for topic in made.topics] == [True, False, False]


@pytest.mark.parametrize(
    "change", [{"n_terms": 0}, {"word_length": 0}, {"separator": None}, {"prefix": 3}]
)
def test_bad_arguments(change):
    with refuses(next(iter(change))):
        make_labels(make_result(30, 1), **change)
