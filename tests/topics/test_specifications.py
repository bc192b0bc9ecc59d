"""One question over all choices: what is fitted, matched and counted, and which choice matters."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics._utils.folders import demo_path
from embedtopics.clustering.results import Clustering
from embedtopics.topics import by_group, effects, recluster, specifications
from embedtopics.topics._resolution import clusters_of
from embedtopics.topics._specifications import Match, variance_by_choice
from tests.factories import refuses


@pytest.fixture(scope="module")
def corpus():
    corpus = et.Corpus(demo_path(), text="text", id="id", time="date", group="source")
    return corpus[corpus.metadata["language"] == "en"][:240]


@pytest.fixture(scope="module")
def main(corpus):
    return et.TopicModel("tfidf", n_topics=6).fit(corpus).result_


@pytest.fixture(scope="module")
def shares(corpus, main):
    return specifications(corpus, ["tfidf", "lsa"], [6, 9], words=["auto", "lemmas"], main=main)


def relabeled(result, labels):
    labels = np.asarray(labels, dtype=np.int32)
    persistence = np.full(labels.max() + 1, np.nan)
    clustering = Clustering(labels, np.ones(len(labels), np.float32), persistence)
    topics = tuple(
        replace(result.topics[0], topic_id=i, name=f"t{i}") for i in range(len(persistence))
    )
    return replace(result, clustering=clustering, topics=topics)


def test_topics_match_by_documents_and_parts_join(main):
    n = len(main.distinct)
    one = relabeled(main, np.repeat([0, 1, 2, -1], [40, 40, 40, n - 120]))
    #                     two parts of 0; half of 1; 2 within a new topic that is mostly no topic
    other = relabeled(main, np.repeat([0, 3, 1, -1, 2, 2], [25, 15, 40, 20, 20, n - 120]))
    weights = main.distinct.weights
    match = Match.of(one, other)
    assert match.first.tolist() == [0, 1, -1, -1] and match.topic.tolist() == [0, 1, -1, 0, -1]
    assert match.unmatched(other) == ("t2",)
    both = weights[40:80].sum() / weights[40:80].sum()
    assert match.overlap.tolist() == [1.0, both, 0.0]
    assert np.bincount(match.renumbered(other).clustering.labels + 1).tolist() == [n - 80, 40, 40]


def test_every_combination_is_answered_as_the_functions_answer_it(shares, corpus, main):
    assert len(shares.choices) == 8 and shares.choices["n_fitted"].tolist() == [6, 9] * 4
    frame = shares.to_frame()
    assert len(frame) == 8 * 6
    first = frame[frame["specification"] == 0]
    assert first["estimate"].tolist() == pytest.approx([topic.share for topic in main.topics])
    assert (first["overlap"] == 1).all() and first["agrees"].all()
    cut = recluster(main, 9)
    match = Match.of(main, cut)
    sizes = [
        sum(cut.topics[i].share for i in np.flatnonzero(match.topic[:-1] == t)) for t in range(6)
    ]
    second = frame[frame["specification"] == 1]["estimate"].fillna(0)
    assert second.tolist() == pytest.approx(sizes)
    assert "6 specifications" not in repr(shares) and "8 specifications" in repr(shares)
    assert all("%" in sentence for sentence in shares.verdict) and len(shares.verdict) == 6


def test_effects_and_trends_are_those_of_the_main_study(corpus, main):
    label = main.topics[1].name
    answer = specifications(
        corpus, ["tfidf"], [6, 4], question="effects(source)", main=main, topics=[label]
    )
    expected = effects(main, ["source"], topics=[1], n_replicates=0).to_frame()
    assert answer.summary["topic"].unique().tolist() == [1]
    for name, theirs in (("estimate", "effect"), ("low", "low"), ("high", "high")):
        np.testing.assert_allclose(answer.summary[name], expected[theirs])
    assert answer.summary["quantity"].iloc[0].startswith("source: ")
    trend = specifications(corpus, ["tfidf"], [6], question="trends(quarter)", main=main)
    periods = pd.PeriodIndex(corpus.time, freq="Q")
    order = sorted(set(periods))
    third = -(-len(order) // 3)
    early, late = periods.isin(order[:third]), periods.isin(order[-third:])
    change = [np.mean(main.labels[late] == t) - np.mean(main.labels[early] == t) for t in range(6)]
    np.testing.assert_allclose(trend.summary["estimate"], change)
    assert ((trend.summary["low"] < change) & (change < trend.summary["high"])).all()


def test_a_function_answers_for_all_texts_and_by_topic(corpus, main):
    def largest(result):
        return {"coverage": result.coverage, 0: (1.0, 0.5, 2.0), 1: -1}

    answer = specifications(corpus, ["tfidf"], [6, 5], question=largest, main=main)
    assert answer.summary["quantity"].tolist() == ["coverage", "value", "value"]
    assert answer.summary["conclusion"].tolist() == ["above 0", "above 0", "below 0"]
    assert answer.verdict[0].startswith("(all texts), coverage: 0.")
    series = specifications(corpus, ["tfidf"], [6], question=lambda r: pd.Series([1.0, 2.0]))
    assert series.summary["estimate"].tolist() == [1, 2]
    groups = by_group(main, "source")
    assert groups.shares.shape[0] == 7


def test_variance_by_choice_by_hand():
    # Full factorial: means of a are 1 and 5, of b 2 and 4; squares 16 + 4 of 20 in all.
    frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [7] * 4})
    values = np.array([0.0, 2.0, 4.0, 6.0])
    assert variance_by_choice(values, frame) == pytest.approx({"a": 0.8, "b": 0.2, "c": 0})
    # With a missing value: R² of a alone 0.75, of b 0.25 (y -2, 0, 2; a 0,0,1; b 0,1,0), both 1.
    values[3] = np.nan
    assert variance_by_choice(values, frame) == pytest.approx({"a": 0.875, "b": 0.125, "c": 0})
    assert set(variance_by_choice(np.ones(4), frame).values()) == {0}


@pytest.mark.parametrize(
    ("options", "parameter", "message"),
    [
        ({"encoders": []}, "encoders", "at least one choice"),
        ({"n_topics": [0]}, "n_topics", "an integer from 1 up"),
        ({"long_texts": ["never"]}, "long_texts", "'truncate'"),
        (
            {"encoders": [et.encoders.TfidfEncoder()], "long_texts": ["chunk"]},
            "long_texts",
            "objects",
        ),
        ({"words": ["verbs"]}, "words", ""),
        ({"question": "mood"}, "question", "effects(COLUMNS)"),
        ({"question": "effects"}, "question", "effects(COLUMNS)"),
        ({"question": "effects(mood)"}, "mood", "a column of the corpus"),
        ({"question": lambda _: None}, "question", "returns a number"),
        ({"question": lambda _: {}}, "question", "an answer"),
        ({"topics": ["weather"]}, "topics", "a name or an id"),
    ],
)
def test_bad_choices_and_questions_are_refused(corpus, options, parameter, message):
    with refuses(parameter) as caught:
        specifications(corpus, **{"encoders": ["tfidf"], "n_topics": [5], **options})
    assert message in str(caught.value)


def test_the_main_study_has_the_same_texts(corpus, main):
    with refuses("main"):
        specifications(corpus[:200], ["tfidf"], [5], main=main)


def test_the_curve_shows_each_estimate_above_its_choices(shares):
    figure = et.plots.specifications(shares, topic=2)
    frame = shares.estimates.query("topic == 2").dropna()
    curves = [trace for trace in figure.data if trace.error_y.array is not None]
    drawn = sorted((x, y) for trace in curves for x, y in zip(trace.x, trace.y, strict=True))
    assert [y for _, y in drawn] == pytest.approx(sorted(frame["estimate"]))
    assert [len(trace.x) for trace in curves] == [frame["agrees"].sum(), (~frame["agrees"]).sum()]
    dots = sum(len(trace.x) for trace in figure.data) - len(frame)
    assert dots == 3 * len(frame)  # encoder, n_topics and words of each
    assert list(figure.layout.yaxis2.ticktext)[:2] == ["encoder: tfidf  ", "encoder: lsa  "]
    with refuses("topic"):
        et.plots.specifications(shares, topic=9)


def test_trees_that_start_from_the_same_groups_share_their_partitions(corpus):
    fits = [
        et.TopicModel("tfidf", n_topics=6, words=words).fit(corpus).result_
        for words in ("auto", "lemmas")
    ]
    one, two, alone = (clusters_of(fits[i]) for i in (0, 1, 1))
    two = two.sharing(one)
    assert two.partitions is one.partitions
    np.testing.assert_array_equal(two.partition(9), alone.partition(9))
    other = clusters_of(et.TopicModel("lsa", n_topics=6).fit(corpus).result_)
    assert other.sharing(one) is other
