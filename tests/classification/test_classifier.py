"""The classifier as a scikit-learn estimator, with frozen vectors; saved and read again."""

import json
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.utils import estimator_checks

from embedtopics import SentenceEncoder, TextClassifier
from embedtopics._utils.folders import write_manifest
from embedtopics.encoders import FastTextEncoder, TfidfEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import CorruptFileError, EmbedTopicsError
from tests.classification.conftest import themed_texts
from tests.factories import contents, refuses

# Those that need no table of numbers, which scikit-learn has for its own estimators alone.
CHECKS = """
    estimator_cloneable estimator_repr
    estimator_tags_renamed get_params_invariance mixin_order no_attributes_set_in_init
    parameters_default_constructible set_params valid_tag_types
""".split()


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn(name):
    check = getattr(estimator_checks, f"check_{name}")
    check("TextClassifier", TextClassifier("tfidf"))


def test_classes_are_found_again_whatever_their_names(counted, labelled):
    texts, themes = labelled
    model = TextClassifier(counted).fit(texts[:160], themes[:160])
    assert model.score(texts[160:], themes[160:]) > 0.7
    assert model.classes_.tolist() == ["chess", "fruit", "train"]
    # Integers in another order are the same model with other names.
    number = {"fruit": 7, "train": -2, "chess": 30}
    numbered = TextClassifier(counted).fit(texts[:160], [number[t] for t in themes[:160]])
    columns = [model.classes_.tolist().index(name) for name in ("train", "fruit", "chess")]
    assert numbered.classes_.tolist() == [-2, 7, 30]
    wanted = model.predict_proba(texts)[:, columns]
    assert np.allclose(numbered.predict_proba(texts), wanted, atol=1e-2)
    assert np.allclose(wanted.sum(axis=1), 1)


def test_texts_without_label_change_nothing(counted, labelled):
    texts, themes = labelled
    model = TextClassifier(counted).fit(texts, themes)
    more = TextClassifier(counted).fit(["nothing", *texts, ""], [None, *themes, float("nan")])
    assert np.array_equal(model.predict_proba(texts), more.predict_proba(texts))
    assert model.predict([]).shape == (0,) and model.predict_proba([]).shape == (0, 3)
    np.testing.assert_array_equal(model.predict_proba("chess"), model.predict_proba(["chess"])[0])


def test_it_works_in_grids_and_folds(counted, labelled):
    texts, themes = map(np.array, labelled)
    model = TextClassifier(counted)
    assert cross_val_score(model, texts, themes, cv=3).mean() > 0.75
    grid = {"calibration": [None, "temperature"]}
    found = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(texts, themes)
    assert set(found.best_params_) == set(grid) and found.best_score_ < 0
    shares = cross_val_predict(model, texts, themes, cv=2, method="predict_proba")
    assert shares.shape == (len(texts), 3)
    assert repr(clone(model)).split("Counted")[0] == repr(model).split("Counted")[0]


def test_ordered_classes_are_predicted_by_the_middle_of_what_is_known(counted):
    texts, themes = themed_texts(200, noise=0.6)
    order = ["fruit", "train", "chess"]
    model = TextClassifier(counted, head="ordinal", classes=order).fit(texts, themes)
    assert model.classes_.tolist() == order
    assert model.decision_function(texts).shape == (200, 3)
    assert model.predict_proba(texts).shape == (200, 3)
    assert model.score(texts, themes) > 0.5


@pytest.mark.parametrize("head", ["softmax", "ordinal"])
def test_two_classes_have_one_score_which_is_the_log_odds(counted, labelled, head):
    texts, themes = labelled
    y = np.array([int(theme == "chess") for theme in themes])
    model = TextClassifier(counted, head=head, calibration=None).fit(texts, y)

    scores = model.decision_function(texts)

    chances = model.predict_proba(texts)
    assert scores.shape == (len(texts),) and chances.shape == (len(texts), 2)
    assert scores == pytest.approx(np.log(chances[:, 1] / chances[:, 0]), abs=1e-6)
    assert ((scores > 0) == (model.predict(texts) == 1)).all()
    assert model.decision_function([]).shape == (0,)


@pytest.mark.parametrize("head", ["softmax", "ordinal"])
def test_more_classes_have_one_score_each(counted, labelled, head):
    texts, themes = labelled
    order = ["fruit", "train", "chess"]
    model = TextClassifier(counted, head=head, classes=order, calibration=None).fit(texts, themes)

    scores = model.decision_function(texts)

    chances = model.predict_proba(texts)
    assert scores.shape == (len(texts), 3)
    log_ratios = np.log(chances[:, 1:] / chances[:, :1])
    assert scores[:, 1:] - scores[:, :1] == pytest.approx(log_ratios, abs=1e-6)


@pytest.mark.parametrize("head", ["softmax", "ordinal"])
def test_areas_and_thresholds_of_scikit_learn_are_those_of_the_probabilities(
    counted, labelled, head
):
    texts, themes = np.array(labelled[0], dtype=object), labelled[1]
    y = np.array([int(theme == "train") for theme in themes])
    model = TextClassifier(counted, head=head, calibration=None)

    areas = cross_val_score(model, texts, y, cv=3, scoring="roc_auc")
    precisions = cross_val_score(model, texts, y, cv=3, scoring="average_precision")

    chances = cross_val_predict(model, texts, y, cv=3, method="predict_proba")[:, 1]
    folds = list(StratifiedKFold(3).split(texts, y))
    assert areas == pytest.approx([roc_auc_score(y[test], chances[test]) for _, test in folds])
    expected = [average_precision_score(y[test], chances[test]) for _, test in folds]
    assert precisions == pytest.approx(expected)


def test_scikit_learn_calibrates_two_classes_and_more(counted, labelled):
    texts, themes = np.array(labelled[0], dtype=object), np.array(labelled[1])
    for y in (themes == "train", themes):
        model = CalibratedClassifierCV(TextClassifier(counted, calibration=None), cv=2)
        accuracy = (model.fit(texts, y).predict(texts) == y).mean()
        assert accuracy > 0.8


def test_several_labels_a_text(counted):
    first, themes = themed_texts(150)
    second, others = themed_texts(150, seed=1)
    both = [f"{a} {b}" for a, b in zip(first, second, strict=True)]
    y = [{a, b} for a, b in zip(themes, others, strict=True)]
    model = TextClassifier(counted, head="multilabel", class_weight="balanced").fit(both, y)
    assert model.predict(["apple bishop"]).tolist() == [[1, 1, 0]]
    assert model.decision_function(both).shape == (len(both), 3)
    with refuses("head"):
        model.predict(both, max_error=0.1)


def test_weights_of_classes_move_the_border(counted):
    texts, themes = themed_texts(300, noise=0.7)
    rows = [row for row, theme in enumerate(themes) if theme != "chess" or row % 4 == 0]
    texts, themes = [texts[row] for row in rows], [themes[row] for row in rows]
    usual, balanced = (
        TextClassifier(counted, calibration=None, class_weight=weight).fit(texts, themes)
        for weight in (None, "balanced")
    )
    assert (balanced.predict(texts) == "chess").sum() > (usual.predict(texts) == "chess").sum()


def test_an_unfitted_model_says_so(labelled):
    for ask in (TextClassifier("tfidf").predict, TextClassifier("tfidf").predict_proba):
        with pytest.raises(NotFittedError):
            ask(labelled[0])


@pytest.mark.parametrize("calibration", [None, "temperature"])
@pytest.mark.parametrize("head", ["softmax", "ordinal"])
def test_a_saved_model_is_the_same(tmp_path, tiny_bert, labelled, head, calibration):
    texts, themes = labelled
    encoder = SentenceEncoder(tiny_bert, precision="float32")
    order = ["fruit", "train", "chess"]
    model = TextClassifier(encoder, head=head, classes=order, calibration=calibration)
    model.fit(texts[:60], themes[:60]).save(tmp_path / "model")
    again = TextClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(texts), model.predict_proba(texts))
    assert again.classes_.tolist() == order and again.decisions_ == model.decisions_
    again.save(tmp_path / "again")
    before, after = contents(tmp_path / "model"), contents(tmp_path / "again")
    assert before["arrays.safetensors"] == after["arrays.safetensors"]


def test_an_encoder_that_no_folder_holds_has_to_be_given(tmp_path, counted, labelled):
    model = TextClassifier(counted).fit(*labelled)
    model.save(tmp_path / "model")
    with refuses("encoder"):
        TextClassifier.load(tmp_path / "model")
    again = TextClassifier.load(tmp_path / "model", encoder=counted)
    assert np.array_equal(again.predict_proba(labelled[0]), model.predict_proba(labelled[0]))


def test_damaged_folders_are_refused(tmp_path, counted, labelled):
    folder = tmp_path / "model"
    TextClassifier(counted).fit(*labelled).save(folder)
    content = json.loads((folder / "classifier.json").read_text())
    (folder / "classifier.json").write_text(json.dumps(content | {"classes": ["a"]}))
    with pytest.raises(CorruptFileError, match=r"bytes|checksum"):
        TextClassifier.load(folder, encoder=counted)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"kind": "search index"}))
    with pytest.raises(CorruptFileError, match=r"search index"):
        TextClassifier.load(folder, encoder=counted)


LEARNERS = {
    "tfidf": lambda: "tfidf",
    "lsa": lambda: "lsa",
    "topics": lambda: TfidfEncoder(stop_words=["auto", "apple"], ngram_range=(1, 2)),
    "fasttext": lambda: FastTextEncoder(8, epochs=2),
}


@pytest.mark.parametrize("head", ["softmax", "multilabel"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_saved_model_holds_the_words_that_its_encoder_learned(tmp_path, labelled, name, head):
    texts, themes = labelled
    y = [[theme] for theme in themes] if head == "multilabel" else themes
    model = TextClassifier(LEARNERS[name](), head=head).fit(texts, y)
    model.save(tmp_path / "model")

    again = TextClassifier.load(tmp_path / "model")

    new = ["apple bishop", "unheardof words", "", "Apples and BISHOPS n12"]
    assert np.array_equal(again.predict_proba(texts + new), model.predict_proba(texts + new))
    assert again.encoder_.fingerprint == model.encoder_.fingerprint
    again.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "model")


def test_saved_pairs_hold_the_words_too(tmp_path, labelled):
    texts, themes = labelled
    pairs = list(pairwise(texts))
    model = TextClassifier("tfidf", pairs=True).fit(pairs, themes[1:])
    model.save(tmp_path / "pairs")

    again = TextClassifier.load(tmp_path / "pairs")

    assert np.array_equal(again.predict_proba(pairs), model.predict_proba(pairs))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(words=about["words"][1:]),
        lambda about: about.update(words=["zzz", *about["words"][1:]]),
        lambda about: about.update(fingerprint="0" * 64),
        lambda about: about.update(settings={"kind": "tfidf", "n_components": 4}),
        lambda about: about.update(settings={"kind": "random"}),
        lambda about: about.update(settings={"name": "someone/model"}),
        lambda about: about.update(trust_remote_code=True),
    ],
)
def test_a_changed_encoder_of_words_is_damage(tmp_path, labelled, change):
    folder = tmp_path / "model"
    TextClassifier("tfidf").fit(*labelled).save(folder)
    about = json.loads((folder / "encoder.json").read_text())
    change(about)
    (folder / "encoder.json").write_text(json.dumps(about))
    (folder / "manifest.json").unlink()
    write_manifest(folder, "text classifier", 1)

    with pytest.raises(EmbedTopicsError):
        TextClassifier.load(folder)


def test_named_word_counts_read_all_words_in_classifiers_and_none_less_in_topics(labelled):
    texts = ["who was 7 for a day", "where is b now", "who is it", "where was it"] * 5
    model = TextClassifier("tfidf").fit(texts, ["person", "place"] * 10)
    assert {"who", "where", "7", "a", "b"} <= set(model.encoder_._column_of)
    assert model.score(texts, ["person", "place"] * 10) == 1
    of_topics = resolve_encoder("tfidf").fit(texts + labelled[0])
    assert not {"who", "where", "7", "a", "b"} & set(of_topics._column_of)


def test_a_classifier_says_what_a_given_encoder_leaves_out(labelled):
    model = TextClassifier(TfidfEncoder()).fit(*labelled)
    assert any("stop words" in decision.message for decision in model.decisions_)
    named = TextClassifier("tfidf").fit(*labelled)
    assert not any("stop words" in decision.message for decision in named.decisions_)
