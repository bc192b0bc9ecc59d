"""Weights of texts and of classes: oracles of repeated rows, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import TextClassifier
from embedtopics.classification._heads import fit_head
from tests.classification.conftest import CountedWords, themed_texts
from tests.factories import refuses

ORDER = ["fruit", "train", "chess"]


@pytest.fixture(scope="module")
def weighted():
    """Texts whose vectors all differ, their themes, and how often each counts."""
    encoder = CountedWords()
    texts, themes = themed_texts(150, noise=0.5, seed=3, n_words=5)
    _, first = np.unique(encoder.encode(texts), axis=0, return_index=True)
    texts = [texts[row] for row in sorted(first)]
    themes = [themes[row] for row in sorted(first)]
    counts = np.random.default_rng(0).integers(0, 4, len(texts))
    return texts, themes, counts


@pytest.mark.parametrize("class_weight", [None, "balanced", {"chess": 3.0}])
@pytest.mark.parametrize("head", ["softmax", "ordinal"])
def test_a_weight_counts_as_repeated_rows(weighted, head, class_weight):
    texts, themes, counts = weighted
    make = {"head": head, "classes": ORDER, "class_weight": class_weight}
    by_weight = TextClassifier(CountedWords(), **make).fit(texts, themes, sample_weight=counts)
    repeated = TextClassifier(CountedWords(), **make)
    repeated.fit(np.repeat(texts, counts).tolist(), np.repeat(themes, counts).tolist())
    plain = TextClassifier(CountedWords(), **make).fit(texts, themes)

    assert by_weight.decisions_[-1].value == repeated.decisions_[-1].value  # the strength
    temperature = by_weight.calibration_.temperature
    assert temperature == pytest.approx(repeated.calibration_.temperature, abs=2e-5)
    found = by_weight.predict_proba(texts)
    np.testing.assert_allclose(found, repeated.predict_proba(texts), atol=2e-5)
    assert abs(found - plain.predict_proba(texts)).max() > 0.02  # the weights matter


def test_several_labels_a_text_have_weights(weighted):
    texts, themes, counts = weighted
    y = [[theme] if row % 3 else ORDER[:2] for row, theme in enumerate(themes)]
    by_weight = TextClassifier(CountedWords(), head="multilabel")
    by_weight.fit(texts, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(texts)), counts)
    repeated = TextClassifier(CountedWords(), head="multilabel")
    repeated.fit([texts[row] for row in rows], [y[row] for row in rows])
    np.testing.assert_allclose(
        by_weight.predict_proba(texts), repeated.predict_proba(texts), atol=2e-5
    )


def test_weights_of_pandas_go_by_the_index(weighted):
    texts, themes, counts = weighted
    frame = pd.DataFrame({"text": texts, "theme": themes, "n": counts + 1})
    rows = frame["text"], frame["theme"]
    ordered = TextClassifier(CountedWords()).fit(*rows, sample_weight=frame["n"])
    shuffled = frame["n"].sample(frac=1, random_state=0)
    model = TextClassifier(CountedWords()).fit(*rows, sample_weight=shuffled)
    assert np.array_equal(model.predict_proba(texts), ordered.predict_proba(texts))


@pytest.mark.parametrize("method", ["few_shot", "fine_tune", "auto"])
def test_methods_that_train_an_encoder_refuse_weights(weighted, method):
    texts, themes, counts = weighted
    with refuses("sample_weight"):
        TextClassifier(method=method).fit(texts, themes, sample_weight=counts)


@pytest.mark.parametrize(
    ("weights", "row"), [([1.0], None), ([1, 1, -1, 1], 2), ([1, None, 1, 1], 1), ("abcd", None)]
)
def test_weights_that_are_none_are_refused(weights, row):
    with refuses("sample_weight", row=row):
        TextClassifier("tfidf").fit(["a", "b", "c", "d"], [0, 1, 0, 1], sample_weight=weights)


def test_a_mapping_weighs_the_texts_of_each_class_in_the_loss(weighted):
    texts, themes, _ = weighted
    weights = {"chess": 3.0, "train": 0.5}
    by_class = TextClassifier(CountedWords(), class_weight=weights).fit(texts, themes)

    in_loss = [weights.get(theme, 1.0) for theme in themes]
    codes = np.searchsorted(by_class.classes_, themes)
    strength = by_class.decisions_[-1].value
    vectors = CountedWords().encode(texts)
    expected = fit_head("softmax", vectors, codes, strength, np.array(in_loss))
    np.testing.assert_allclose(by_class.head_.weights, expected.weights, atol=1e-6)


def test_a_mapping_of_weights_is_saved(tmp_path):
    texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    model = TextClassifier("tfidf", class_weight={1: 2, 0: 1.5}).fit(texts, [0, 1, 0, 1])
    model.save(tmp_path / "model")
    assert TextClassifier.load(tmp_path / "model").class_weight == {1: 2.0, 0: 1.5}


@pytest.mark.parametrize("weights", [{"music": 1.0}, {"chess": 0}, {"chess": "much"}, "equal"])
def test_weights_of_classes_that_are_none_are_refused(weighted, weights):
    texts, themes, _ = weighted
    with refuses("class_weight"):
        TextClassifier(CountedWords(), class_weight=weights).fit(texts, themes)
