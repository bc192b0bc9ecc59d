"""What a class and a prediction rest on, against calculations by hand."""

import numpy as np

from embedtopics.classification import class_terms
from tests.classification.conftest import themed_texts
from tests.conftest import WORDS
from tests.factories import refuses


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


def test_bad_input_is_refused():
    with refuses("y"):
        class_terms(["a"], ["b", "c"])
