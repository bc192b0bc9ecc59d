"""What a class and a prediction rest on, against calculations by hand."""

import numpy as np
import pytest

from embedtopics import ManualLabels
from embedtopics.classification import TextClassifier, class_terms, nearest_labelled, occlusion
from tests.classification.conftest import themed_texts
from tests.conftest import WORDS
from tests.factories import refuses


@pytest.fixture(scope="module")
def model(counted):
    return TextClassifier(counted).fit(*themed_texts(200, noise=0.3))


def test_terms_of_classes_are_their_words():
    texts, themes = themed_texts(200, noise=0.3)
    table = class_terms(texts, themes, n_terms=5)
    assert table.groupby("class").size().tolist() == [5, 5, 5]
    assert all(row.term in WORDS[row["class"]] for _, row in table.iterrows())
    first = table.iloc[0]
    holds = [first.term in text.split() for text in texts]
    assert first.n_class == sum(
        h and t == first["class"] for h, t in zip(holds, themes, strict=True)
    )


def test_log_odds_by_hand():
    found = class_terms(["a b", "a", "b c", "c"], ["x", "x", "y", "y"], min_texts=1).set_index(
        ["class", "term"]
    )
    prior = 500 * 2 / 6
    of_class, others = 2 + prior, 0 + prior
    odds = np.log(of_class / (3 + 500 - of_class)) - np.log(others / (3 + 500 - others))
    assert np.isclose(found.loc[("x", "a"), "z"], odds / np.sqrt(1 / of_class + 1 / others))


def test_neighbours_are_those_by_cosine(model, counted):
    train = themed_texts(200, noise=0.3)
    table = nearest_labelled(model, ["apple apple pear"], train, k=2)
    vectors = counted.encode(train[0])
    query = counted.encode(["apple apple pear"])[0]
    cosines = vectors @ query / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
    cosines /= np.linalg.norm(query)
    assert np.isclose(table["similarity"].iloc[0], cosines.max())
    assert table["rank"].tolist() == [1, 2] and set(table["predicted"]) == {"fruit"}


def test_words_that_matter_are_left_out(model):
    text = "The apple, an apple-tree and a bishop"
    table = occlusion(model, text)
    assert table["word"].tolist()[0] in ("apple", "bishop") and len(table) == 7
    whole = model.predict_proba([text])[0]
    row = table[table["word"] == "bishop"].iloc[0]
    without = model.predict_proba(["The apple, an apple-tree and a "])[0]
    place = whole.argmax()
    assert np.isclose(row.change, whole[place] - without[place]) and row.begin == 31
    assert occlusion(model, text, target="chess").iloc[0]["word"] == "bishop"


def test_predictions_become_topics_and_topics_labels(model):
    texts, _ = themed_texts(20, seed=3)
    assert ManualLabels(model.predict(texts).tolist()).describe()["classes"]


def test_bad_input_is_refused(model):
    with refuses("text"):
        occlusion(model, " ")
    with refuses("target"):
        occlusion(model, "apple", target="music")
    with refuses("n_terms"):
        class_terms(["a"], ["b"], n_terms=0)
    with refuses("y"):
        class_terms(["a"], ["b", "c"])
    with refuses("k"):
        nearest_labelled(model, ["a"], themed_texts(20), k=0)
