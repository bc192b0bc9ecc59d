"""What all encoders share: one text, sentence-transformers' arguments, scikit-learn's methods."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from embedtopics.encoders import (
    CachedEncoder,
    FastTextEncoder,
    RandomProjectionEncoder,
    SentenceEncoder,
    TfidfEncoder,
)

TEXTS = ["cold water and ice", "ice and snow", "hot coffee", "hot tea"] * 5
CLASSES = [0, 0, 1, 1] * 5


@pytest.fixture
def encoders(tiny_bert, tmp_path):
    return [
        SentenceEncoder(tiny_bert),
        CachedEncoder(SentenceEncoder(tiny_bert), folder=tmp_path),
        TfidfEncoder(n_components=3, stop_words=[]).fit(TEXTS),
        FastTextEncoder(dimensions=4, epochs=1).fit(TEXTS),
        RandomProjectionEncoder(8),
    ]


def test_one_text_gives_one_vector_and_arguments_change_nothing_else(encoders):
    for encoder in encoders:
        whole = encoder.encode(TEXTS)
        np.testing.assert_allclose(encoder.encode(TEXTS[0]), whole[0], atol=1e-6)
        options = {"batch_size": 2, "show_progress": False, "normalize_embeddings": True}
        scaled = encoder.encode(TEXTS, **options)
        lengths = np.linalg.norm(whole, axis=1, keepdims=True)
        np.testing.assert_allclose(scaled * lengths, whole, atol=1e-5)


def test_encoders_are_cloned_and_changed_by_their_parameters(encoders):
    for encoder in encoders:
        again = clone(encoder)
        assert repr(again.get_params()) == repr(encoder.get_params())
        assert type(again) is type(encoder) and again is not encoder
        with pytest.raises(TypeError):
            again.set_params(nothing=1)
    changed = clone(TfidfEncoder()).set_params(n_components=2)
    assert changed.name == "lsa" and changed.get_params()["n_components"] == 2


def test_encoders_work_in_a_pipeline_and_a_grid_search():
    steps = [
        ("encoder", TfidfEncoder(stop_words=[])),
        ("classifier", LogisticRegression()),
    ]
    search = GridSearchCV(Pipeline(steps), {"encoder__n_components": [None, 2]}, cv=2)
    search.fit(TEXTS, CLASSES)
    assert search.best_score_ == 1.0 and search.predict(["ice water"]).tolist() == [0]
    fixed = Pipeline([("encoder", RandomProjectionEncoder()), ("classifier", LogisticRegression())])
    assert fixed.fit(TEXTS, CLASSES).score(TEXTS, CLASSES) == 1.0
