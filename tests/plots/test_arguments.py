"""Every figure takes a title, a width and a height, and names the call that makes its input."""

import inspect

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import embedtopics as et
from embedtopics import plots, probing
from embedtopics.inference.results import MeasuredShares
from embedtopics.plots._scale import _names_shown
from tests.factories import make_comparison, make_result, refuses, with_stability
from tests.plots.test_learning_curves import CHANGES
from tests.probing.made import random_states

FIGURES = sorted(plots.__all__)

CALLS = {
    "axis": ("scale", "et.probing.Scale(positive, negative).fit(texts)"),
    "by_group": ("groups", "et.topics.by_group(model)"),
    "comparison": ("comparison", "et.comparison.compare_encoders(encoders, corpus)"),
    "confusion": ("report", "et.classification.evaluate(classifier, test, train)"),
    "contextualization": ("contextualization", "et.probing.contextualization(states)"),
    "hierarchy": ("hierarchy", "et.topics.hierarchy(model)"),
    "keyness": ("frame", "et.topics.keyness(model, target)"),
    "layers": ("scores", "et.probing.probe(states, labels)"),
    "learning_curves": ("report", "et.training.fit(encoder, examples, out=folder)"),
    "mixture": ("mixture", "et.topics.mixture(model, row)"),
    "over_time": ("trends", "et.topics.over_time(model)"),
    "reliability": ("report", "et.classification.evaluate(classifier, test, train)"),
    "risk_coverage": ("report", "et.classification.evaluate(classifier, test, train)"),
    "shares": ("shares", "et.inference.shares(measurement, by)"),
    "specifications": ("answers", "et.topics.specifications(corpus)"),
    "tokens": ("report", "et.pretraining.tokenizer_report(encoder, corpus)"),
    "word_map": ("uses", 'et.probing.word_map(states, "word")'),
}
"""The parameter of each figure, and the call of the remedy if it gets another object."""


@pytest.fixture(scope="module")
def drawn():
    """Figures by name, as functions of the title, the width and the height."""
    result = with_stability(make_result(120, 3), [0.9, 0.5, 0.2])
    source = ["a", "b", "c", "d", "e", "f", "g"] * len(result.corpus)
    words = pd.DataFrame({"word": ["a", "b"], "position": [-1.0, 1.0], "n_uses": [10, 100]})
    scale = probing.Scale("all-MiniLM-L6-v2")
    scale.words_ = words.assign(is_seed=[True, False])
    inputs = {
        "axis": scale,
        "before_after": CHANGES,
        "by_group": et.topics.by_group(result, source[: len(result.corpus)]),
        "comparison": make_comparison(120),
        "hierarchy": et.topics.hierarchy(result),
        "map": result,
        "over_time": et.topics.over_time(result, "month"),
        "sizes": result,
        "stability": result,
        "terms": result,
        "word_map": probing.word_map(random_states(("a bat", "bat", "my bat")), "bat"),
    }
    return {name: (getattr(plots, name), value) for name, value in inputs.items()}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_one_object_and_ends_with_title_width_and_height(name):
    parameters = list(inspect.signature(getattr(plots, name)).parameters.values())

    assert [one.name for one in parameters[-3:]] == ["title", "width", "height"]
    assert [one.default for one in parameters[-3:]] == [None, None, None]
    kinds = [one.kind for one in parameters]
    assert kinds[-3:] == [inspect.Parameter.KEYWORD_ONLY] * 3
    positional = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert len(positional) == 1


@pytest.mark.parametrize("name", [*CALLS])
def test_the_wrong_object_is_named_with_the_call_that_makes_the_right_one(name):
    parameter, call = CALLS[name]
    with refuses(parameter) as caught:
        getattr(plots, name)(et.TopicModel())

    message = str(caught.value)
    assert message.startswith(f"{parameter} must be ")
    assert message.endswith(f"; got TopicModel; call {call} first")


def test_the_sentence_of_a_wrong_object():
    with refuses("trends") as caught:
        plots.over_time(et.TopicModel())
    assert str(caught.value) == (
        "trends must be a TopicTrends; got TopicModel; call et.topics.over_time(model) first"
    )


@pytest.mark.parametrize("name", ["map", "sizes", "terms", "stability"])
def test_figures_of_a_result_take_a_fitted_model(name):
    result = with_stability(make_result(60, 3), [0.9, 0.5, 0.2])
    model = et.TopicModel()
    with pytest.raises(NotFittedError):
        getattr(plots, name)(model)

    model.result_ = result
    assert getattr(plots, name)(model) == getattr(plots, name)(result)


@pytest.mark.parametrize(
    "name",
    [
        "axis", "before_after", "by_group", "comparison", "hierarchy", "map", "over_time",
        "sizes", "stability", "terms", "word_map",
    ],
)  # fmt: skip
def test_a_title_and_a_size_are_those_of_the_figure(drawn, name):
    draw, value = drawn[name]
    plain = draw(value)
    assert plain.layout.title.text is None

    titled = draw(value, title="<Rivers>")
    assert titled.layout.title.text == "&lt;Rivers&gt;"
    assert len(titled.data) == len(plain.data)

    sized = draw(value, title="Rivers", width=900, height=1200)
    assert (sized.layout.width, sized.layout.height) == (900, 1200)
    with refuses("height"):
        draw(value, height=40)
    with refuses("width"):
        draw(value, width=20)
    with refuses("height"):
        draw(value, height="tall")
    with refuses("title"):
        draw(value, title=7)


def test_panels_stretch_and_the_space_for_their_headings_stays(drawn):
    draw, trends = drawn["over_time"]

    def gap_between_rows(figure):
        margin = figure.layout.margin
        inner = figure.layout.height - margin.t - margin.b
        return (figure.layout.yaxis.domain[0] - figure.layout.yaxis3.domain[1]) * inner

    assert gap_between_rows(draw(trends, height=900)) == pytest.approx(60)
    assert gap_between_rows(draw(trends)) == pytest.approx(60)


def test_names_along_an_axis_do_not_cover_each_other():
    words = pd.DataFrame({"word": ["reportmembers", "publishednovels", "far"], "is_seed": False})
    x = pd.Series([0.0, 0.05, 1.0]).to_numpy()
    y = pd.Series([1.0, 1.0, 1.0]).to_numpy()
    assert sorted(_names_shown(words, x, y, (700, 400))) == [0, 2]


def test_a_scale_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        plots.axis(probing.Scale("all-MiniLM-L6-v2"))


@pytest.fixture
def means():
    """Return shares as `inference.shares` makes them of numbers, by columns."""

    def made(groups, by, classes=None):
        n = len(groups)
        frame = pd.DataFrame(
            {
                "group": groups,
                "class": classes or [None] * n,
                "n": [10] * n,
                "n_gold": [10] * n,
                "estimate": [0.5 - 0.1 * i for i in range(n)],
            }
        )
        frame["low"], frame["high"] = frame["estimate"] - 0.1, frame["estimate"] + 0.1
        return MeasuredShares(table=frame, name="position", by=by)

    return made


def test_means_of_numbers_are_positions_in_descending_order(means):
    figure = plots.shares(means(["left", "right"], ("party",)))
    (dots,) = figure.data
    assert list(dots.x) == [0.5, 0.4]
    assert [name.strip() for name in figure.layout.yaxis.ticktext] == ["left", "right"]
    assert "standard deviations" in figure.layout.xaxis.title.text
    with refuses("classes"):
        plots.shares(means(["left"], ("party",)), classes=["x"])


def test_means_over_time_are_lines(means):
    groups = [("2020-01-01", "left"), ("2021-01-01", "left"), ("2020-01-01", "right")]
    lines = plots.shares(means(groups, ("date", "party"))).data[2:]
    assert [list(line.y) for line in lines] == [[0.5, 0.4], [0.3]]

    (_, line) = plots.shares(means(["2020-01-01", "2021-01-01"], ("date",))).data
    assert list(line.x) == ["2020-01-01", "2021-01-01"]


def test_classes_of_one_group_are_the_lines_of_one_panel(means):
    names = [f"class {i}" for i in range(14)]
    shares = means([None] * 14, (), names)
    figure = plots.shares(shares)

    (dots,) = figure.data
    assert list(dots.x) == pytest.approx([0.5 - 0.1 * i for i in range(12)])
    assert [name.strip() for name in figure.layout.yaxis.ticktext] == names[:12]
    notes = [note.text for note in figure.layout.annotations]
    assert "all texts" in notes[0] and "10 texts, 10 labelled" in notes[0]
    assert notes[1].endswith("and 2 more classes")
    assert list(plots.shares(shares, classes=["class 3", "class 1"]).data[0].x) == (
        pytest.approx([0.2, 0.4])
    )
