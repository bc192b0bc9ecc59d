"""Bad input to the functions that take hidden states: each names the parameter at fault."""

import pytest

from embedtopics import SentenceEncoder, probing
from tests.factories import each, refuses
from tests.probing.made import random_states

STATES = random_states(
    ["w one match begins", "w w two", "three w match", "w four", "five w ball", "six w"],
    missing=[14],
)
SENSES = list("abababa")
TAGS = ["XY"[row % 2] for row in range(len(STATES))]
OTHERS = random_states(["a b"])


# Of each function what is good, and by the parameter at fault what is not.
CASES = {
    probing.word_neighbors: ({"word": "one"}, {
        "word": ["plya", "ball", "zebra", "match begins"], "in_text": [1, 9], "k": [0],
        "layer": [3], "candidates": ["none"],
    }),
    probing.sense_separation: (
        {"word": "w", "labels": SENSES}, {"labels": [["a"], ["a"] * 7], "word": ["wv"]},
    ),
    probing.word_map: ({"word": "w"}, {"word": ["bta", "", [], "ball"]}),
    probing.contextualization: ({}, {"min_uses": [1, 50]}),
    probing.probe: ({"labels": TAGS}, {
        "layers": [7], "vectors": [STATES.layer(0)[:-1]], "baseline": [OTHERS, TAGS],
    }),
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "parameter", "value"),
    [(function, *one) for function, (_, wrong) in CASES.items() for one in each(**wrong)],
)
def test_the_parameter_at_fault_is_named(function, parameter, value):
    with refuses(parameter):
        function(STATES, **{**CASES[function][0], parameter: value})


def test_parameters_that_do_not_go_together_are_refused():
    for text, nth in ((None, None), (1, None), (1, 2)):
        with refuses("occurrence"):
            probing.word_neighbors(STATES, "w", in_text=text, occurrence=nth)
    with refuses("mix"):
        probing.probe(STATES, TAGS, mix=True, layers=2)


@pytest.mark.parametrize(
    ("function", "good"), [(f, good) for f, (good, _) in CASES.items() if f is not probing.probe]
)
def test_states_of_whole_texts_have_no_words(function, good):
    with refuses("states"):
        function(random_states(["w"], unit="text"), **good)


def test_swapped_arguments_are_named_with_the_call(tiny_bert):
    call = "call et.probing.hidden_states(encoder, texts)"
    with refuses("encoder") as caught:
        probing.hidden_states(["the cat"], tiny_bert)
    assert call in str(caught.value)
    with refuses("texts") as caught:
        probing.hidden_states(tiny_bert, SentenceEncoder(tiny_bert))
    assert call in str(caught.value)


@pytest.mark.parametrize(("function", "good"), [(f, good) for f, (good, _) in CASES.items()])
def test_what_is_no_hidden_states_is_refused_with_the_call_that_makes_them(function, good):
    with refuses("states") as caught:
        function(["w one match"], **good)
    assert "call et.probing.hidden_states(encoder, texts) first" in str(caught.value)
