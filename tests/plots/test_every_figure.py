"""What holds of every figure: arguments at fault are named, nothing is drawn of no topics."""

import numpy as np
import pytest

from embedtopics import plots, topics
from tests.factories import make_comparison, make_result, refuses, with_stability

HOSTILE = "<b onclick=x>$x$</b> %{x} <script>alert(1)</script>"


@pytest.fixture(scope="module")
def given():
    """What each figure is drawn of, by its name."""
    result = make_result(120, 3, texts=[HOSTILE], topic_labels=[HOSTILE])
    source = np.random.default_rng(0).choice(["a", HOSTILE], len(result.corpus))
    tree = topics.hierarchy(result)
    own = dict.fromkeys(("map", "sizes", "terms"), (result,))
    return own | {
        "comparison": (make_comparison(120, texts=[HOSTILE]),),
        "mixture": (topics.mixture(result, 0),),
        "over_time": (topics.over_time(result, "month"),),
        "by_group": (topics.by_group(result, source),),
        "stability": (result,),
        "hierarchy": (tree,),
    }


@pytest.mark.parametrize(
    ("figure", "parameter", "value"),
    [
        ("comparison", "width", 200),
        ("terms", "topics", [0, 9]),
        ("over_time", "topics", [9]),
        ("by_group", "topics", [9]),
        ("stability", "result", None),
    ],
)
def test_an_argument_at_fault_is_named(given, figure, parameter, value):
    options = {} if parameter == "result" else {parameter: value}
    with refuses(parameter):
        getattr(plots, figure)(*given[figure], **options)


def test_text_of_a_corpus_is_shown_and_never_markup(given):
    measured = {"stability": (with_stability(given["map"][0]),)}
    drawn = {name: getattr(plots, name)(*found) for name, found in (given | measured).items()}
    for name, figure in drawn.items():
        page = figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")
        assert "<b onclick" not in page and "<script" not in page and "$x$" not in page, name
        assert "&lt;b onclick" in page or name in ("terms", "mixture"), name


def test_of_no_topics_there_is_a_note():
    result = make_result(n_documents=40, n_topics=0)
    source = ["a", "b"] * 20 + ["b"] * (len(result.corpus) - 40)
    figures = [
        plots.terms(result),
        plots.stability(result),
        plots.over_time(topics.over_time(result, "week")),
        plots.by_group(topics.by_group(result, source)),
    ]
    for figure in figures:
        assert figure.layout.annotations[0].text == "No topics were found"


@pytest.mark.parametrize("make", [make_result, make_comparison])
def test_the_same_input_gives_the_same_figure_and_is_left_alone(make):
    draw = plots.map if make is make_result else plots.comparison
    given = make()
    assert draw(given).to_json() == draw(make()).to_json()
    positions = given.map if make is make_result else given.encoders[1].map
    untouched = make().map if make is make_result else make().encoders[1].map
    np.testing.assert_array_equal(positions, untouched)
