"""Concepts coded in and around topics, and the four ways to the same estimate."""

import json

import numpy as np
import pandas as pd
import pytest

from embedtopics.annotation import (
    LanguageModelCoder,
    ask,
    code_topic,
    score_sheet,
    serve,
    validation_sheets,
)
from embedtopics.inference import Measurement, shares
from embedtopics.topics import merge, table
from tests.chat_server import said, serving
from tests.factories import each, make_result, refuses, rows_of

result = make_result(n_documents=400)
concept = np.isin(result.labels, [1, 2])  # in two topics
by_text = dict(zip(result.corpus.texts, concept.tolist(), strict=True))


def code(study):
    while (text := study.next()) is not None:
        study.label(text.key, "yes" if by_text[text.text] else "no")


@pytest.fixture
def study(tmp_path):
    with code_topic(result, 1, tmp_path / "coding", concept="heat", n_texts=80) as study:
        code(study)
        yield study


def test_a_study_a_frame_a_language_model_and_a_topic_give_the_same_estimate(study):
    measured = study.measurement()
    (share,) = rows_of(shares(measured), name="yes")
    assert share.low < concept.mean() < share.high
    rows = result.distinct.of_row >= 0
    assert share.naive == pytest.approx((result.labels[rows] == 1).mean())
    assert share.naive < share.low
    document = result.distinct.of_row[rows]
    coded = dict(zip(study.corpus.texts, study.labels(), strict=True))
    gold = pd.Series([coded.get(text) for text in result.corpus.texts])
    frame = pd.DataFrame({"gold": gold[rows].tolist(), "stratum": study.strata[document]})
    frame["topic"] = (result.labels[rows] == 1).astype(float)
    frame["part"] = result.memberships[:, 1].toarray().ravel()[document]
    frame["text"] = document
    columns = {"strata": "stratum", "units": "text"}
    of_frame = Measurement.from_frame(frame, "gold", ["topic", "part"], **columns)
    strata = np.where(rows, study.strata[result.distinct.of_row], 0)
    of_topic = Measurement.from_topics(result, 1, gold, strata=strata)
    for other in (of_frame, of_topic):
        assert rows_of(shares(other), name="yes")[0] == share
    assert rows_of(shares(study), name="yes")[0] == share
    member = dict(zip(map(json.dumps, result.corpus.texts), result.labels == 1, strict=True))

    def answer(body, number):
        quoted = body["messages"][1]["content"].split("\n")[1]
        return said("yes" if member[quoted] else "no")

    with serving(answer) as server:
        coder = LanguageModelCoder(["yes", "no"], endpoint=server.url, model="m", journal=None)
        frame["coder"] = coder.code(result.corpus).labels[rows].tolist()
    of_model = Measurement.from_frame(frame, "gold", ["coder", "part"], **columns)
    assert rows_of(shares(of_model), name="yes")[0].estimate == pytest.approx(share.estimate)
    assert rows_of(shares(of_model), name="yes")[0].naive == share.naive
    assert "date" in measured.data  # for trends and regressions


def test_texts_are_drawn_from_the_topic_its_border_and_the_rest(study, tmp_path):
    places = {text: row for row, text in enumerate(result.corpus.texts)}
    documents = [result.distinct.of_row[places[text]] for text in study.corpus.texts]
    n_drawn = np.bincount(study.strata[documents])
    assert n_drawn.sum() == 80 and n_drawn.min() >= 10
    is_inside = result.clustering.labels == 1
    assert (study.strata == 0).tolist() == is_inside.tolist()
    share = result.memberships[:, 1].toarray().ravel()
    assert share[study.strata == 1].min() >= share[study.strata == 2].max()
    study.close()
    with code_topic(result, 1, tmp_path / "coding", concept="heat", n_texts=100) as more:
        assert set(study.keys) < set(more.keys) and more.progress()["answered"] == 80


@pytest.mark.parametrize(("parameter", "value"), each(topics=(99, -1, []), n_texts=(5, 10_000)))
def test_topics_that_do_not_exist_are_refused(tmp_path, parameter, value):
    arguments = {"topics": 1, "n_texts": 80} | {parameter: value}
    with refuses(parameter):
        code_topic(result, arguments["topics"], tmp_path, n_texts=arguments["n_texts"])
    with refuses(parameter if parameter == "topics" else "gold"):
        topics = arguments["topics"] if parameter == "topics" else 1
        Measurement.from_topics(result, topics, [True, False], sampling="random")


def test_nothing_is_measured_before_somebody_answers(tmp_path):
    with code_topic(result, 1, tmp_path / "coding", n_texts=80) as study, refuses("gold"):
        study.measurement()


def test_questions_on_topics_are_answered_on_the_page(tmp_path):
    sheets = validation_sheets(result)
    keys = pd.concat([sheet.key for sheet in sheets]).set_index("question")
    with ask(sheets, tmp_path / "answers") as study:
        assert study.scores() == ()
        with serve(study, annotator="ana") as server:
            assert server.state({})["is_sheet"] and server.state({})["estimates"] == {}
        for by in ("ana", "bo"):  # both get every question
            for _ in range(len(keys)):
                text = study.next(by=by)
                key = keys.loc[text.id]
                is_fit = key["intruder"] == 0
                fits = "5" if key["topic"] == key["intruder_topic"] else "1"
                study.label(text.key, fits if is_fit else str(key["intruder"]), by=by)
        assert study.next(by="ana") is None
        scores = {score.task: score for score in study.scores()}
        assert set(scores) == {sheet.task for sheet in sheets}
        assert all(s.precision == 1 and s.alpha == 1 and s.n_coders == 2 for s in scores.values())
        assert scores["topic_fit"].chance == 0
        few = next(key for key, id in study.question_of.items() if keys.loc[id, "n_options"] == 5)
        with refuses("labels"):
            study.label(few, "6")
    # Answers to questions that an edit changed no longer count.
    edited = validation_sheets(merge(result, [0, 1]))
    with ask(edited, tmp_path / "answers") as study:
        assert sum(score.n_answers for score in study.scores()) < 2 * len(keys)
        assert all(score.precision == 1 for score in study.scores())
    frame = table(result, scores=tuple(scores.values()))
    assert frame["word_intrusion"].dropna().tolist() == [1.0] * len(
        scores["word_intrusion"].by_topic
    )


def test_a_language_model_answers_apart_from_people(tmp_path):
    sheet = validation_sheets(result)[0]
    with serving(lambda body, number: said('{"label": "2"}')) as server:
        options = {"endpoint": server.url, "model": "m", "journal": None}
        coder = LanguageModelCoder(list("123456"), **options)
        answers = coder.code(sheet.prompts).labels.rename_axis("question").rename("answer")
    score = score_sheet(answers.reset_index(), sheet.key)
    assert score.precision == (sheet.key["intruder"] == 2).mean()
