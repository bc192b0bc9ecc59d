"""Bad input to the functions that take hidden states: each names the parameter at fault."""

import pytest

from embedtopics import probing
from tests.factories import refuses
from tests.probing.made import random_states

STATES = random_states(
    ["w one match begins", "w w two", "three w match", "w four", "five w ball", "six w"],
    missing=[14],
)
SENSES = list("abababa")
TAGS = ["XY"[row % 2] for row in range(len(STATES))]
OTHERS = random_states(["a b"])


def each(name, *values):
    return [{name: value} for value in values]


# Of each function what is good, and by the parameter at fault what is not.
CASES = {
    probing.neighbors: ({"word": "one"}, {
        "word": each("word", "plya", "ball", "zebra", "match begins"),
        "occurrence": [{"word": "w", "in_text": text, "occurrence": nth}
                       for text, nth in ((None, None), (1, None), (1, 2))],
        "in_text": each("in_text", 1, 9),
        "k": [{"k": 0}], "layer": [{"layer": 3}], "among": [{"among": "none"}],
    }),
    probing.sense_separation: ({"word": "w", "labels": SENSES}, {
        "labels": each("labels", ["a"], ["a"] * 7), "word": [{"word": "wv"}],
    }),
    probing.word_map: ({"word": "w"}, {
        "word": each("word", "bta", "", [], "ball"),
    }),
    probing.contextualization: ({}, {
        "min_uses": each("min_uses", 1, 50),
    }),
    probing.probe: ({"tags": TAGS}, {
        "probe": [{"probe": "svm"}], "layers": [{"layers": 7}],
        "baselines": each("baselines", "majority", ["random model"]),
        "n_seeds": [{"n_seeds": 0}],
        "mix": [{"mix": True, "layers": 2}],
        "vectors": [{"vectors": STATES.layer(0)[:-1]}],
        "random_states": [{"random_states": OTHERS}],
    }),
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "parameter", "asked"),
    [
        pytest.param(function, parameter, {**good, **bad}, id=f"{function.__name__} {parameter}")
        for function, (good, cases) in CASES.items()
        for parameter, several in cases.items()
        for bad in several
    ],
)
def test_the_parameter_at_fault_is_named(function, parameter, asked):
    with refuses(parameter):
        function(STATES, **asked)


@pytest.mark.parametrize(
    ("function", "good"), [(f, good) for f, (good, _) in CASES.items() if f is not probing.probe]
)
def test_states_of_whole_texts_have_no_words(function, good):
    with refuses("states"):
        function(random_states(["w"], unit="text"), **good)


def test_too_few_units_are_refused():
    with refuses("states"):
        probing.cka(random_states(["a b", "c"]))
