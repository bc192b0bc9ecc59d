"""Sheets for people, and what their answers are worth."""

import math

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from embedtopics.errors import InputError
from embedtopics.evaluation import (
    coding_sample,
    document_intrusion,
    read_sheet,
    score_coding,
    score_intrusion,
    topic_intrusion,
    word_intrusion,
)
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.evaluation._sheet_scores import krippendorff_alpha
from tests.factories import refuses

TOPICS = [[f"{stem}{i}" for i in range(12)] for stem in ("apple", "train", "chess", "tax")]
OPTIONS = [f"option_{i}" for i in range(1, 7)]


def answered(sheet, answers):
    return sheet.questions.assign(answer=answers)


def share(n_hits, n):
    """Wilson's interval."""
    return tuple(map(float, wilson(n_hits, n)))


def records(sheet):
    return zip(*(t.to_dict("records") for t in (sheet.questions, sheet.key)), strict=True)


def solutions(sheet):
    return sheet.key["intruder"].tolist()


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(1, 14), st.integers(2, 6))
def test_six_words_of_which_one_comes_from_elsewhere(seed, n_questions, n_words):
    sheet = word_intrusion(TOPICS, n_questions=n_questions, n_terms=n_words, random_state=seed)
    assert len(sheet) == n_questions
    for shown, key in records(sheet):
        options = [shown[f"option_{i}"] for i in range(1, n_words + 2)]
        intruder = options.pop(key["intruder"] - 1)
        assert shown["question"] == key["question"] and shown["answer"] == ""
        assert set(options) <= set(TOPICS[key["topic"]][: 2 * n_words])
        assert intruder in TOPICS[key["intruder_topic"]][:n_words]
        assert key["intruder_topic"] != key["topic"]
        assert not set(shown) & {"topic", "intruder", "intruder_topic"}
    if n_questions <= len(TOPICS):
        assert sheet.key["topic"].is_unique  # in turn
    again = word_intrusion(TOPICS, n_questions=n_questions, n_terms=n_words, random_state=seed)
    pd.testing.assert_frame_equal(sheet.questions, again.questions)
    pd.testing.assert_frame_equal(sheet.key, again.key)


def test_places_and_questions_do_not_tell():
    found = [word_intrusion(TOPICS, random_state=seed) for seed in range(60)]
    places = np.bincount([place for sheet in found for place in solutions(sheet)], minlength=7)[1:]
    assert places.min() > 20  # of 240, 40 in each place on average
    first = [sheet.key["topic"].iloc[0] for sheet in found]
    assert set(first) == {0, 1, 2, 3}


def test_intruders_weigh_little_in_the_topic():
    topics = [["a", "b", "common"], ["c", "common", "d"], ["e", "f", "g"]]
    terms = [*"abcdefg", "common"]
    weights = np.full((3, 8), 0.01)
    for topic, words in enumerate(topics):
        weights[topic, [terms.index(word) for word in words]] = 1.0
    weights[0, [terms.index(w) for w in "cd"]] = 0.5  # not low, in the first topic
    for seed in range(20):
        sheet = word_intrusion(topics, weights, terms, n_terms=3, random_state=seed)
        key = sheet.key.set_index("topic")
        assert key.loc[0, "intruder_topic"] == 2
        assert key.loc[0, f"option_{key.loc[0, 'intruder']}"] in ("e", "f", "g")


def test_a_word_that_gives_itself_away_is_no_intruder():
    topics = [["tax", "cut", "vote"], ["taxes", "goal", "match"]]
    for seed in range(10):
        key = word_intrusion(topics, n_terms=3, random_state=seed).key.set_index("topic")
        assert key.loc[0, f"option_{key.loc[0, 'intruder']}"] in ("goal", "match")


def test_texts_and_topics():
    labels = np.repeat([0, 1, 2, -1], 8)
    texts = [f"text {i} of {label}\nbelow" for i, label in enumerate(labels.tolist())]
    sheet = document_intrusion(texts, labels, np.tile(np.arange(8), 4), n_questions=9)
    for shown, key in zip(
        *(t.to_dict("records") for t in (sheet.questions, sheet.key)), strict=True
    ):
        of_options = [int(shown[f"option_{i}"].split()[3]) for i in range(1, 6)]
        assert of_options.pop(key["intruder"] - 1) == key["intruder_topic"] >= 0
        assert set(of_options) == {key["topic"]}
        numbers = {int(shown[f"option_{i}"].split()[1]) % 8 for i in range(1, 6)}
        assert numbers <= {4, 5, 6, 7}  # the deeper half
    shares = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.01, 0.9, 0.0], [0.1, 0.6, 0.1, 0.15]])
    sheet = topic_intrusion(["one", "two", "three"], shares, TOPICS)
    assert set(sheet.questions["text"]) == {"one", "two"}  # the third has much of every topic
    names = [", ".join(topic[:8]) for topic in TOPICS]
    key = sheet.key.set_index("topic")
    asked = sheet.questions.set_index("text")
    assert set(asked.loc["one", OPTIONS[:4]]) == set(names)
    assert key.loc[0, "intruder_topic"] == 3
    assert key.loc[2, "n_options"] == 2 and asked.loc["two", "option_3"] == ""
    own = names.index(asked.loc["two", f"option_{3 - key.loc[2, 'intruder']}"])
    assert own == 2


def test_files_hold_no_formulas_and_no_key(tmp_path):
    topics = [["=cmd()", "+b", "c"], ["@d", 'e,"x"', "f"]]
    sheet = word_intrusion(topics, n_terms=3)
    path, key = sheet.write(tmp_path / "new")
    assert (path.name, key.parent.name) == ("word_intrusion.csv", "keys")
    assert not any(cell.startswith(("=", "+", "@")) for cell in read_sheet(path).to_numpy().ravel())
    filled = read_sheet(path)
    places = solutions(sheet)
    rows = zip(filled.to_dict("records"), places, strict=True)
    filled["answer"] = [row[f"option_{place}"] for row, place in rows]
    filled.to_csv(tmp_path / "answers.csv", sep=";", index=False)
    assert score_intrusion(tmp_path / "answers.csv", key).precision == 1.0
    plain = filled["answer"].str.removeprefix("'")  # as it is read by people
    assert score_intrusion(filled.assign(answer=plain), sheet.key).precision == 1.0
    for folder in (tmp_path / "new", tmp_path / "answers.csv"):  # answers are there; no folder
        with refuses("folder"):
            sheet.write(folder)
    assert repr(sheet) == "Sheet('word_intrusion', 2 questions)"


def test_model_precision_by_hand():
    sheet = word_intrusion(TOPICS, n_questions=8, random_state=3)
    right = solutions(sheet)
    wrong = [place % 6 + 1 for place in right]
    answers = [*right[:5], *wrong[5:]]
    found = score_intrusion(answered(sheet, answers), sheet.key)
    assert (found.precision, found.n_answers, found.n_coders) == (5 / 8, 8, 1)
    assert (found.low, found.high) == share(5, 8)
    assert found.chance == pytest.approx(1 / 6)
    assert math.isnan(found.log_odds) and math.isnan(found.alpha)
    hits = pd.Series([True] * 5 + [False] * 3).groupby(sheet.key["topic"]).sum()
    table = found.by_topic.set_index("topic")
    assert table["hits"].to_dict() == hits.to_dict() and (table["n"] == 2).all()
    for topic, row in table.iterrows():
        p_value = binomtest(int(hits[topic]), 2, 1 / 6, alternative="greater").pvalue
        assert row["p_value"] == pytest.approx(p_value)
        assert (row["low"], row["high"]) == pytest.approx(share(int(hits[topic]), 2))


def test_several_coders():
    sheet = word_intrusion(TOPICS, n_questions=8, random_state=3)
    right = solutions(sheet)
    other = [place % 6 + 1 for place in right[:4]] + right[4:]
    both = [answered(sheet, right).assign(coder="ann"), answered(sheet, other).assign(coder="bo")]
    together = score_intrusion(pd.concat(both), sheet.key)
    assert (together.n_coders, together.n_answers, together.n_questions) == (2, 16, 8)
    assert together.precision == 12 / 16
    assert together.alpha == krippendorff_alpha(np.array([right, other], dtype=object))
    # half the questions have a mean of a half: the mean of eight varies by a binomial
    assert 0.45 < together.low < 0.75 < together.high < 0.95
    apart = score_intrusion([one.drop(columns="coder") for one in both], sheet.key)
    assert apart.alpha == together.alpha and apart.n_coders == 2
    # three who answer alike are no more certain than one
    thrice = score_intrusion([answered(sheet, other)] * 3, sheet.key)
    assert thrice.high - thrice.low > 0.9 * (share(4, 8)[1] - share(4, 8)[0])


def alpha_of(*ratings):
    return krippendorff_alpha(np.array([list(row) for row in ratings], dtype=object))


def test_published_alphas():
    # Krippendorff 2011, "Computing Krippendorff's alpha-reliability": examples A, B and C.
    assert alpha_of("0100000010", "1110010000") == pytest.approx(0.095, abs=5e-4)
    assert alpha_of("aabbdcccedda", "babbbccceddd") == pytest.approx(0.692, abs=5e-4)
    four = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    rows = [[None if value == "." else value for value in row] for row in four]
    assert alpha_of(*rows) == pytest.approx(0.743, abs=5e-4)
    assert math.isnan(alpha_of("11", "11")) and alpha_of("xy", "xy") == 1.0
    assert math.isnan(alpha_of(["1", None], [None, "2"]))


@given(st.integers(0, 1000))
def test_alpha_equals_that_of_the_package_krippendorff(seed):
    ratings = np.random.default_rng(seed).choice([0.0, 1, 2, 5, np.nan], (4, 12))
    ratings[:2, 0] = 0, 1
    theirs = krippendorff.alpha(reliability_data=ratings, level_of_measurement="nominal")
    named = [[None if math.isnan(value) else str(value) for value in row] for row in ratings]
    assert alpha_of(*named) == pytest.approx(theirs, abs=1e-9)


def test_topic_log_odds_by_hand():
    shares = np.array([[0.7, 0.2, 0.1, 0.0], [0.2, 0.7, 0.0, 0.05]])
    sheet = topic_intrusion(["one", "two"], shares, TOPICS)
    assert score_intrusion(answered(sheet, solutions(sheet)), sheet.key).log_odds == 0.0
    rows = sheet.key.to_dict("records")
    wrong = [int(np.nanargmax([row[f"share_{i}"] for i in (1, 2, 3, 4)])) + 1 for row in rows]
    intruders = [max(row[f"share_{row['intruder']}"], 1e-3) for row in rows]
    expected = np.mean(np.log(intruders) - np.log(0.7))
    assert score_intrusion(answered(sheet, wrong), sheet.key).log_odds == pytest.approx(expected)


@pytest.mark.parametrize("answer", ["", None, "7", "0", "2, 3", "zebra"])
def test_bad_answers_are_named_by_their_row(answer):
    sheet = word_intrusion(TOPICS, random_state=1)
    with refuses("answers", row=1):
        score_intrusion(answered(sheet, [1, answer, 1, 1]), sheet.key)


def test_typos_strangers_and_repetitions(tmp_path):
    sheet = word_intrusion(TOPICS, random_state=1)
    shown = sheet.questions.loc[0, "option_1"]
    with pytest.raises(InputError, match=f"such as '{shown}'"):
        score_intrusion(answered(sheet, [shown + "x", 1, 1, 1]), sheet.key)
    with refuses("answers", row=0):
        score_intrusion(answered(sheet, 1), word_intrusion(TOPICS, random_state=2).key)
    twice = pd.concat([answered(sheet, 1), answered(sheet, 2)[:1]])
    with refuses("answers", row=4):
        score_intrusion(twice, sheet.key)
    with refuses("answers"):
        score_intrusion(sheet.questions.drop(columns="answer"), sheet.key)
    with refuses("key"):
        score_intrusion(answered(sheet, 1), sheet.questions)
    with refuses("answers"):
        score_intrusion(sheet.questions[:0], sheet.key)
    (tmp_path / "latin.csv").write_bytes("question,answer\nq,café\n".encode("latin-1"))
    (tmp_path / "empty.csv").write_text("")
    for name in ("nowhere.csv", "latin.csv", "empty.csv"):
        with pytest.raises(InputError, match=name):
            score_intrusion(tmp_path / name, sheet.key)
    found = score_intrusion(answered(sheet, [1.0, 2.0, 3.0, 4.0]), sheet.key)
    assert found.n_answers == 4 and "word_intrusion" in found._repr_html_()
    part = answered(sheet, solutions(sheet))[:2]
    assert score_intrusion(part, sheet.key).n_answers == 2


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: word_intrusion([TOPICS[0], ["a", "b"]]), "topics"),
        (lambda: word_intrusion(TOPICS, n_questions=0), "n_questions"),
        (lambda: word_intrusion(TOPICS, n_terms=1), "n_terms"),
        (lambda: word_intrusion(TOPICS, np.ones((4, 2)), ["x"]), "weights"),
        (lambda: word_intrusion(["tax", "cut"]), "topics"),
        (lambda: document_intrusion(["a", "b"], [0, 1]), "labels"),
        (lambda: document_intrusion(["a", "b"], [0]), "labels"),
        (lambda: topic_intrusion(["a"], np.ones((2, 4)), TOPICS), "memberships"),
        (lambda: coding_sample(["a"], [0, 1], TOPICS), "labels"),
        (lambda: coding_sample(["a"], [-1], TOPICS), "labels"),
        (lambda: coding_sample(["a"], [0], TOPICS, n_per_topic=0), "n_per_topic"),
    ],
)
def test_sheets_need_topics_enough(call, parameter):
    with refuses(parameter):
        call()


def test_coding_by_hand():
    labels = np.array([0] * 30 + [1] * 10 + [-1] * 5)
    texts = [f"text {i}" for i in range(45)]
    sheet = coding_sample(texts, labels, TOPICS, n_per_topic=8, n_decoys=4, random_state=2)
    assert list(sheet.questions) == ["task", "question", "text", "topic", "answer"]
    key = sheet.key
    assert len(sheet) == 24 and (key.groupby(["topic", "in_topic"]).size() == [4, 8, 4, 8]).all()
    assert ((labels[key["row"]] == key["topic"]) == (key["in_topic"] == "yes")).all()
    assert (sheet.questions["text"] == [texts[row] for row in key["row"]]).all()
    # topic 0: six of eight are right and one decoy passes; topic 1: all right, no decoy
    wrong = key.index[(key["topic"] == 0) & (key["in_topic"] == "yes")][:2].tolist()
    passed = key.index[(key["topic"] == 0) & (key["in_topic"] == "no")][:1].tolist()
    answers = key["in_topic"].tolist()
    for row in wrong:
        answers[row] = "N"
    for row in passed:
        answers[row] = "Yes"
    found = score_coding(answered(sheet, answers), key)
    assert found.precision == pytest.approx(0.75 * 6 / 8 + 0.25 * 1)
    effective = 1 / (0.75**2 / 8 + 0.25**2 / 8)
    z = 1.959963984540054
    centre = (found.precision + z**2 / (2 * effective)) / (1 + z**2 / effective)
    assert (found.low + found.high) / 2 == pytest.approx(centre)
    assert found.decoys == 1 / 8
    table = found.by_topic.set_index("topic")
    assert table.loc[0, "precision"] == 6 / 8 and table.loc[0, "decoys"] == 1 / 4
    assert (table.loc[1, "low"], table.loc[1, "high"]) == pytest.approx(share(8, 8))
    both = [answered(sheet, answers), answered(sheet, key["in_topic"].tolist())]
    assert 0 < score_coding(both, key).alpha < 1
    thrice = score_coding([answered(sheet, answers)] * 3, key)  # as many texts as before
    assert (thrice.low, thrice.high) == pytest.approx((found.low, found.high))
    pd.testing.assert_frame_equal(thrice.by_topic, found.by_topic)
    assert (thrice.n_answers, thrice.n_coders) == (72, 3)
    answers[3] = "perhaps"
    assert "precision" in found._repr_html_()
    with refuses("answers", row=3):
        score_coding(answered(sheet, answers), key)
    with refuses("key"):
        score_intrusion(answered(sheet, answers), key.assign(intruder=1))
