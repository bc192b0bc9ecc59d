"""The report card against the functions and the result that its figures come from."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from embedtopics import evaluation
from embedtopics.annotation import validation_sheets
from embedtopics.corpus._corpus import corpus_of_fields
from embedtopics.errors import InputError
from embedtopics.evaluation._coherence import topic_uniqueness
from embedtopics.topics import evaluate
from embedtopics.topics._describe import top_words
from tests.factories import make_result, with_stability


@pytest.fixture(scope="module")
def card(branched):
    return evaluate(branched, n_resamples=50).set_index("measure")


def test_words_are_measured_as_the_functions_do(branched, card):
    words = top_words(branched, 10)
    for name in ("npmi", "c_v", "u_mass"):
        values = evaluation.coherence(words, branched.tokens, name)
        assert card.loc[name, "value"] == pytest.approx(values.mean())
        assert card.loc[name, "low"] <= values.mean() <= card.loc[name, "high"]
        assert card.loc[name, "n"] == branched.n_topics
    assert card.loc["diversity", "value"] == evaluation.diversity(words)
    assert math.isnan(card.loc["diversity", "low"])
    assert card.loc["uniqueness", "value"] == pytest.approx(topic_uniqueness(words).mean())


def test_the_result_s_own_figures(branched, card):
    assert card.loc["coverage", "value"] == branched.coverage
    assert card.loc["topics", "value"] == branched.n_topics
    rows = len(branched.corpus)
    repeated = rows - len(branched.distinct)
    assert card.loc["duplicate_share", "value"] == pytest.approx(repeated / rows)
    assert repeated == 25
    assert card.loc["neighbor_recall", "value"] == branched.graph.recall
    assert "recurrence" not in card.index and "nmi" not in card.index
    assert card["meaning"].str.len().between(10, 120).all()


def test_labels_by_column_and_by_row():
    base = make_result()
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(base.labels)) < 0.7, base.labels, 9).astype(object)
    noisy[::10] = None
    noisy[1] = " "
    given = evaluate(base, labels=noisy, n_resamples=50).set_index("measure")
    used = [i for i, v in enumerate(noisy) if v is not None and v != " " and base.corpus.texts[i]]
    true, found = [str(noisy[i]) for i in used], base.labels[used]
    assert given.loc["ari", "value"] == pytest.approx(adjusted_rand_score(true, found))
    inside = found >= 0
    expected = adjusted_rand_score(np.array(true)[inside], found[inside])
    assert given.loc["ari_covered", "value"] == pytest.approx(expected)
    assert given.loc["label_coverage", "value"] == pytest.approx(inside.mean())
    assert (given.loc["ari", "n"], given.loc["ari_covered", "n"]) == (len(used), inside.sum())
    assert given.loc["ari_covered", "meaning"].endswith("on the texts in a topic")
    metadata = base.corpus.metadata.assign(party=noisy)
    corpus = corpus_of_fields(**{**vars(base.corpus), "metadata": metadata})
    named = evaluate(dataclasses.replace(base, corpus=corpus), labels="party", n_resamples=50)
    pd.testing.assert_frame_equal(named.set_index("measure"), given)


def test_stability_where_it_was_measured(branched):
    chance = np.full(branched.n_topics, 0.05)
    measured = with_stability(branched, np.linspace(0.9, 0.2, branched.n_topics), chance)
    card = evaluate(measured, n_resamples=20).set_index("measure")
    assert card.loc["recurrence", "value"] == pytest.approx(0.55)
    assert card.loc["recurrence_by_chance", "value"] == pytest.approx(0.05)
    assert card.loc["replicate_ari", "value"] == pytest.approx(0.5)


@pytest.mark.parametrize(("n_documents", "n_topics"), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1)])
def test_next_to_nothing(n_documents, n_topics):
    result = make_result(n_documents=n_documents, n_topics=n_topics)
    card = evaluate(result, labels=["x"] * len(result.corpus) if n_documents else None)
    values = card.set_index("measure")["value"]
    assert values["topics"] == n_topics
    assert math.isnan(values["npmi"]) == (n_topics == 0)


@pytest.mark.parametrize(
    "wrong", [{"labels": "party"}, {"labels": ["a", "b"]}, {"labels": [None] * 595}]
)
def test_bad_input(branched, wrong):
    with pytest.raises(InputError):
        evaluate(branched, **wrong)


def test_sheets_of_a_result(branched):
    words_sheet, texts_sheet, *_ = validation_sheets(branched, random_state=1)
    assert (words_sheet.task, texts_sheet.task) == ("word_intrusion", "document_intrusion")
    assert set(words_sheet.key["topic"]) == set(range(branched.n_topics))
    words = [topic[:5] for topic in top_words(branched, 20)]
    for row in words_sheet.key.to_dict("records"):
        options = {row[f"option_{i}"] for i in range(1, 7)}
        assert options - {row[f"option_{row['intruder']}"]} == set(words[row["topic"]])
    with pytest.raises(InputError):
        validation_sheets(make_result(n_topics=1))
    tiny = validation_sheets(make_result(n_documents=8, n_topics=2))
    assert "document_intrusion" in {sheet.task for sheet in tiny}
