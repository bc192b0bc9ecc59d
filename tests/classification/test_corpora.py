"""The classes of whole corpora."""

import numpy as np
import pandas as pd

from embedtopics import Corpus, TextClassifier
from embedtopics.classification import classify
from tests.classification.conftest import themed_texts


def test_a_corpus_has_the_classes_of_its_texts(counted):
    model = TextClassifier(counted).fit(*themed_texts(240, noise=0.4))
    texts = themed_texts(50, noise=0.4, seed=1)[0]
    texts[7] = ""
    frame = pd.DataFrame({"name": [f"d{i}" for i in range(50)], "body": texts})
    table = classify(model, Corpus(frame, text="body", id="name"))
    assert table["row"].tolist() == list(range(50))
    assert table["id"].tolist() == frame["name"].tolist()
    has_text = frame["body"] != ""
    expected = model.predict(frame["body"][has_text].tolist())
    assert table["label"][has_text].tolist() == expected.tolist() and pd.isna(table["label"][7])
    chances = table[[f"p_{name}" for name in model.classes_]]
    assert np.allclose(chances[has_text], model.predict_proba(frame["body"][has_text].tolist()))
    assert np.isnan(table["confidence"][7])


def test_predictions_are_held_back_and_labels_may_be_several(counted):
    texts, themes = themed_texts(600, noise=0.5)
    new = themed_texts(50, noise=0.4, seed=1)[0]
    sure = TextClassifier(counted).fit(texts, themes)
    assert 0 < classify(sure, new, max_error=0.2)["label"].isna().sum() < 50
    several = TextClassifier(counted, head="multilabel").fit(texts, [[t] for t in themes])
    assert classify(several, new)["label"][0] == [
        name for name, p in zip(several.classes_, several.predict_proba(new[:1])[0], strict=True)
        if p >= 0.5
    ]  # fmt: skip
