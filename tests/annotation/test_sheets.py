"""Sheets for people, and the scores of their answers."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binomtest

from embedtopics.annotation import score_sheet
from embedtopics.annotation._sheets import (
    document_intrusion,
    optimal_label,
    read_sheet,
    topic_fit,
    word_intrusion,
)
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import krippendorff_alpha
from embedtopics.evaluation._bootstrap import wilson
from tests.factories import refuses

TOPICS = [[f"{stem}{i}" for i in range(12)] for stem in ("apple", "train", "chess", "tax")]


def word_sheet(topics=TOPICS, seed=0):
    """Make a sheet of words that weigh nothing in other topics."""
    terms = sorted({word for words in topics for word in words})
    weights = np.array([[float(term in words) for term in terms] for words in topics])
    return word_intrusion(topics, csr_matrix(weights), terms, seed)


def answered(sheet, answers):
    return sheet.questions.assign(answer=answers)


def share(n_hits, n):
    """Wilson's interval."""
    return tuple(map(float, wilson(n_hits, n)))


def solutions(sheet):
    return sheet.key["intruder"].tolist()


def records(sheet):
    return zip(*(t.to_dict("records") for t in (sheet.questions, sheet.key)), strict=True)


@pytest.mark.parametrize("seed", range(10))
def test_six_words_one_of_which_comes_from_elsewhere(seed):
    sheet = word_sheet(seed=seed)
    for shown, key in records(sheet):
        options = [shown[f"option_{i}"] for i in range(1, 7)]
        intruder = options.pop(key["intruder"] - 1)
        assert shown["question"] == key["question"] and shown["answer"] == ""
        assert set(options) == set(TOPICS[key["topic"]][:5])
        assert intruder in TOPICS[key["intruder_topic"]][:5]
        assert key["intruder_topic"] != key["topic"]
        assert not set(shown) & {"topic", "intruder", "intruder_topic"}
    assert sorted(sheet.key["topic"]) == [0, 1, 2, 3]
    again = word_sheet(seed=seed)
    pd.testing.assert_frame_equal(sheet.questions, again.questions)
    pd.testing.assert_frame_equal(sheet.key, again.key)


def test_places_and_questions_do_not_tell():
    sheets = [word_sheet(seed=seed) for seed in range(60)]
    places = np.bincount([i for sheet in sheets for i in solutions(sheet)], minlength=7)[1:]
    assert places.min() > 20  # of 240, 40 in each place on average
    assert {sheet.key["topic"].iloc[0] for sheet in sheets} == {0, 1, 2, 3}


def test_intruders_weigh_little_in_the_topic_and_share_no_letters():
    topics = [list("abxyz"), list("cdxyz"), list("efghi")]
    terms = list("abcdefghixyz")
    weights = np.full((3, 12), 0.01)
    for topic, words in enumerate(topics):
        weights[topic, [terms.index(word) for word in words]] = 1.0
    weights[0, [terms.index(word) for word in "cd"]] = 0.5  # not low, in the first topic
    for seed in range(10):
        key = word_intrusion(topics, csr_matrix(weights), terms, seed).key.set_index("topic")
        assert key.loc[0, "intruder_topic"] == 2
        assert key.loc[0, f"option_{key.loc[0, 'intruder']}"] in set("efghi")
        taxes = [["tax", *"bcde"], ["taxes", "goal", "TAX", "xtax", "bed"]]
        key = word_sheet(taxes, seed).key.set_index("topic")
        assert key.loc[0, f"option_{key.loc[0, 'intruder']}"] == "goal"


def test_texts_of_the_more_probable_half():
    labels = np.repeat([0, 1, 2, -1], 8)
    texts = [f"text {i} of {label}\nbelow" for i, label in enumerate(labels.tolist())]
    sheet = document_intrusion(texts, labels, np.tile(np.arange(8.0), 4))
    assert len(sheet) == 3
    for shown, key in records(sheet):
        of_options = [int(shown[f"option_{i}"].split()[3]) for i in range(1, 6)]
        assert of_options.pop(key["intruder"] - 1) == key["intruder_topic"] >= 0
        assert set(of_options) == {key["topic"]}
        numbers = {int(shown[f"option_{i}"].split()[1]) % 8 for i in range(1, 6)}
        assert numbers <= {4, 5, 6, 7}
    equal = document_intrusion(["same"] * 32, labels, np.ones(32))
    alone = document_intrusion(texts, np.zeros(32, dtype=int), np.ones(32))
    assert len(equal) == len(alone) == len(word_sheet(TOPICS[:1])) == 0


def test_files_hold_no_formulas_and_no_key(tmp_path):
    sheet = word_sheet([["=cmd()", "+b", *"cmn"], ["@d", 'e,"x"', *"fgh"]])
    path, key = sheet.write(tmp_path / "new")
    assert (path.name, key.parent.name) == ("word_intrusion.csv", "keys")
    assert not any(cell.startswith(("=", "+", "@")) for cell in read_sheet(path).to_numpy().ravel())
    filled = read_sheet(path)
    rows = zip(filled.to_dict("records"), solutions(sheet), strict=True)
    filled["answer"] = [row[f"option_{place}"] for row, place in rows]
    filled.to_csv(tmp_path / "answers.csv", sep=";", index=False)
    assert score_sheet(tmp_path / "answers.csv", key).precision == 1.0
    plain = filled["answer"].str.removeprefix("'")  # as it is read by people
    assert score_sheet(filled.assign(answer=plain), sheet.key).precision == 1.0
    for folder in (tmp_path / "new", tmp_path / "answers.csv"):  # answers are there; no folder
        with refuses("folder"):
            sheet.write(folder)
    assert repr(sheet) == "Sheet('word_intrusion', 2 questions)"


def test_model_precision_by_hand():
    sheet = word_sheet(seed=3)
    right = solutions(sheet)
    score = score_sheet(answered(sheet, [*right[:3], right[3] % 6 + 1]), sheet.key)
    assert (score.precision, score.n_answers, score.n_coders) == (3 / 4, 4, 1)
    assert (score.low, score.high) == share(3, 4)
    assert score.chance == pytest.approx(1 / 6) and math.isnan(score.alpha)
    table = score.by_topic.set_index("topic")
    hits = pd.Series([1, 1, 1, 0], index=sheet.key["topic"])
    assert table["hits"].to_dict() == hits.to_dict() and (table["n"] == 1).all()
    for topic, row in table.iterrows():
        p_value = binomtest(int(hits[topic]), 1, 1 / 6, alternative="greater").pvalue
        assert row["p_value"] == pytest.approx(p_value)
        assert (row["low"], row["high"]) == pytest.approx(share(int(hits[topic]), 1))


def test_several_coders():
    sheet = word_sheet([[f"{stem}{i}" for i in range(9)] for stem in "stuvwxyz"])
    right = solutions(sheet)
    other = [place % 6 + 1 for place in right[:4]] + right[4:]
    both = [answered(sheet, right).assign(coder="ann"), answered(sheet, other).assign(coder="bo")]
    together = score_sheet(pd.concat(both), sheet.key)
    assert (together.n_coders, together.n_answers, together.n_questions) == (2, 16, 8)
    assert together.precision == 12 / 16
    assert together.alpha == krippendorff_alpha(np.array([right, other], dtype=object)).value
    # half the questions have a mean of a half: the mean of eight varies by a binomial
    assert 0.45 < together.low < 0.75 < together.high < 0.95
    apart = score_sheet([one.drop(columns="coder") for one in both], sheet.key)
    assert apart.alpha == together.alpha and apart.n_coders == 2
    # three who answer alike are no more certain than one
    thrice = score_sheet([answered(sheet, other)] * 3, sheet.key)
    assert thrice.high - thrice.low > 0.9 * (share(4, 8)[1] - share(4, 8)[0])


@pytest.mark.parametrize("answer", ["", None, "7", "0", "2, 3", "zebra"])
def test_bad_answers_are_named_by_their_row(answer):
    sheet = word_sheet(seed=1)
    with refuses("answers", row=1):
        score_sheet(answered(sheet, [1, answer, 1, 1]), sheet.key)


def test_typos_strangers_and_repetitions(tmp_path):
    sheet = word_sheet(seed=1)
    shown = sheet.questions.loc[0, "option_1"]
    with pytest.raises(InputError, match=f"such as '{shown}'"):
        score_sheet(answered(sheet, [shown + "x", 1, 1, 1]), sheet.key)
    with refuses("answers", row=0):
        score_sheet(answered(sheet, 1), word_sheet(seed=2).key)
    twice = pd.concat([answered(sheet, 1), answered(sheet, 2)[:1]])
    with refuses("answers", row=4):
        score_sheet(twice, sheet.key)
    with refuses("answers"):
        score_sheet(sheet.questions.drop(columns="answer"), sheet.key)
    with refuses("key"):
        score_sheet(answered(sheet, 1), sheet.questions)
    with refuses("answers"):
        score_sheet(sheet.questions[:0], sheet.key)
    (tmp_path / "latin.csv").write_bytes("question,answer\nq,café\n".encode("latin-1"))
    (tmp_path / "empty.csv").write_text("")
    for name in ("nowhere.csv", "latin.csv", "empty.csv"):
        with pytest.raises(InputError, match=name):
            score_sheet(tmp_path / name, sheet.key)
    score = score_sheet(answered(sheet, [1.0, 2.0, 3.0, 4.0]), sheet.key)
    assert score.n_answers == 4 and "word_intrusion" in score._repr_html_()
    part = answered(sheet, solutions(sheet))[:2]
    assert score_sheet(part, sheet.key).n_answers == 2


def shares_of(n_texts=40):
    """Return shares of five topics: three present in each text, the fourth by rotation absent."""
    shares = np.zeros((n_texts, 5))
    for text in range(n_texts):
        for place, weight in enumerate((0.5, 0.3, 0.2)):
            shares[text, (text + place) % 5] = weight
    return csr_matrix(shares)


def test_the_right_name_has_the_largest_share_and_stands_beside_the_next():
    names, texts = [f"topic {i}" for i in range(5)], [f"text {i}" for i in range(40)]
    sheet = optimal_label(texts, shares_of(), names, 3)
    assert sorted(sheet.key["topic"]) == [0, 1, 2, 3, 4]
    for shown, key in records(sheet):
        weights = shares_of()[int(shown["text"].split()[1])].toarray().ravel()
        options = [int(shown[f"option_{i}"].split()[1]) for i in range(1, 5)]
        assert options[key["intruder"] - 1] == key["topic"] == weights.argmax()
        assert sorted(weights[options]) == [0.0, 0.2, 0.3, 0.5]
    assert "Which name fits the text best?\n\ntext " in sheet.prompts.iloc[0]
    assert len(optimal_label(texts, shares_of()[:, :3], names[:3])) == 0


def test_texts_of_a_topic_are_judged_beside_those_of_others():
    labels = np.repeat(np.arange(4), 10).astype(np.int32)
    sheet = topic_fit([f"text {i}" for i in range(40)], labels, list("abcd"), 1)
    inside = sheet.key["topic"] == sheet.key["intruder_topic"]
    assert sheet.key["topic"].value_counts().tolist() == [3] * 4 and inside.sum() == 8
    for shown, key in records(sheet):
        row = int(shown["text"].rsplit(" ", 1)[1])
        assert labels[row] == key["intruder_topic"]
        assert shown["text"].startswith(f"Topic: {'abcd'[key['topic']]}\n")
    # One coder finds that texts inside fit well or fully, but for topic 0, and one outside does.
    answers = np.where(inside, np.where(sheet.key["topic"] == 0, 3, 4), 1)
    answers[np.flatnonzero(~inside)[0]] = 5
    score = score_sheet(answered(sheet, answers), sheet.key)
    assert score.precision == 6 / 8 and score.chance == 1 / 4 and score.n_answers == 8
    assert score.by_topic["precision"].tolist() == [0, 1, 1, 1]
    assert score.by_topic["p_value"].tolist()[1] == binomtest(2, 2, 0.25, "greater").pvalue
    two = score_sheet([answered(sheet, answers), answered(sheet, answers)], sheet.key)
    ratings = np.vstack([answers, answers]).astype(float)
    assert two.alpha == krippendorff_alpha(ratings, "ordinal").value == 1.0
    with refuses("answers"):
        score_sheet(answered(sheet, answers)[~inside], sheet.key)
