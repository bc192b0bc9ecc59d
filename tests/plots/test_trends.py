import numpy as np
import pytest

from embedtopics import plots, topics
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    return make_result(n_documents=600, n_topics=6)


@pytest.fixture(scope="module")
def trends(result):
    dates = np.where(np.arange(len(result.corpus)) % 2, "2020-01-15", "2020-05-02").astype(object)
    dates[:80] = "2020-02-03"
    return topics.over_time(result, "month", time=dates)


@pytest.fixture(scope="module")
def source(result):
    return np.random.default_rng(0).choice(["a", "b", "<i>c"], len(result.corpus))


def lines_of(figure):
    return [trace for trace in figure.data if trace.fill != "toself"]


def test_panels_draw_shares_with_gaps_and_bands(trends):
    figure = plots.over_time(trends)
    lines = lines_of(figure)
    assert len(lines) == 6
    for topic, line in enumerate(lines):
        drawn = [np.nan if y is None else y for y in line.y]
        assert drawn == pytest.approx(trends.shares[topic], nan_ok=True)
        assert line.y[2] is None and line.connectgaps is False
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert len(bands) == 12  # each topic has two stretches, with nothing between
    first = trends.high[0, :2].tolist() + trends.low[0, 1::-1].tolist()
    assert list(bands[0].y) == pytest.approx(first)


@pytest.mark.parametrize("n_topics", [6, 16])
def test_panels_name_the_first_and_the_last_period_inside_their_ends(n_topics):
    result = make_result(n_documents=600, n_topics=n_topics)
    trends = topics.over_time(result, "week", n_terms=0)
    layout = plots.over_time(trends).layout
    named = [a for a in layout.annotations if a.text in (trends.names[0], trends.names[-1])]
    n_columns = 2
    assert [a.text for a in named] == [trends.names[0], trends.names[-1]] * n_columns
    rest = [a.text for a in layout.annotations if "smaller" in a.text]
    assert rest == ([] if n_topics == 6 else ["and 1 smaller topic"])
    assert [a.xanchor for a in named] == ["left", "right"] * n_columns
    places = [a.x for a in named]
    assert (min(places), max(places)) == pytest.approx((0, 1))
    assert not layout.xaxis.showticklabels
    figure = plots.over_time(topics.over_time(result, "decade"), topics=[0])
    (only,) = [note for note in figure.layout.annotations if note.text.startswith("2020")]
    assert (only.x, only.xanchor) == (pytest.approx(0.5), "center")


def test_verdicts_stand_in_the_headings_and_come_first(result):
    rng = np.random.default_rng(1)
    dates = rng.integers(2000, 2012, len(result.corpus))
    dates = np.where(result.labels == 4, rng.integers(2009, 2012, len(dates)), dates)
    trends = topics.over_time(result, "year", time=dates)
    changes = topics.changes(trends)
    assert changes["verdict"][4] == "rises"
    headings = [a.text for a in plots.over_time(trends, changes=changes).layout.annotations]
    assert (
        trends.topic_names[4].split(",")[0] in headings[0] and changes["verdict"][4] in headings[0]
    )


def test_points_of_few_groups_and_tiles_of_many(result, source):
    groups = topics.by_group(result, source)
    figure = plots.by_group(groups)
    assert [trace.type for trace in figure.data] == ["scatter"] * 3
    for place, trace in enumerate(figure.data):
        assert list(trace.x) == pytest.approx(groups.shares[:6, place])
        ends = np.array(trace.x) + np.array(trace.error_x.array)
        assert ends == pytest.approx(groups.high[:6, place])
    many = topics.by_group(result, [f"s{i % 9}" for i in range(len(result.corpus))])
    (tiles,) = plots.by_group(many, topics=[3, -1]).data
    assert tiles.type == "heatmap" and np.shape(tiles.z) == (2, 9)
    shares = many.counts[3] / many.totals
    high = np.array(tiles.z)[0] > 0.3
    assert (shares[high] > many.counts[3].sum() / many.totals.sum()).all()


def test_periods_with_few_rows_are_hollow_and_set_no_scale(result):
    dates = np.where(np.arange(len(result.corpus)) < 3, "2020-01-15", "2020-02-02").astype(object)
    dates[300:] = "2020-03-02"
    trends = topics.over_time(result, "month", time=dates)
    figure = plots.over_time(trends, topics=[0])
    line, hollow = lines_of(figure)
    assert line.y[0] is None and list(line.y[1:]) == pytest.approx(trends.shares[0, 1:])
    assert hollow.marker.symbol == "circle-open" and len(hollow.x) == 1
    assert hollow.y[0] <= figure.layout.yaxis.range[1] <= 1.6 * trends.shares[0, 1:].max()
    assert any("fewer than" in note.text for note in figure.layout.annotations)
