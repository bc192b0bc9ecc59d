"""Any encoder goes through one door: ours, a SentenceTransformer, scikit-learn's, and a user's."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import embedtopics as et
from embedtopics import SentenceEncoder, TextClassifier
from embedtopics.comparison import compare_encoders
from embedtopics.encoders import (
    CachedEncoder,
    FastTextEncoder,
    RandomProjectionEncoder,
    TfidfEncoder,
    _registry,
)
from embedtopics.encoders._contract import EncoderInfo
from embedtopics.encoders._foreign import as_encoder, info_of
from embedtopics.encoders._registry import (
    check_encoder,
    describe_encoder,
    encoder_from_settings,
    resolve_encoder,
)
from embedtopics.errors import ModelLoadError
from embedtopics.probing import hidden_states
from tests.factories import refuses

KINDS = ("object", "scikit-learn", "sentence-transformers")


class Own:
    """Encodes, and knows nothing else."""

    def encode(self, texts):
        return RandomProjectionEncoder(32).encode(list(texts))


@pytest.fixture
def encoder(request, make_sentence_folder):
    if request.param == "object":
        return Own()
    if request.param == "scikit-learn":
        return make_pipeline(TfidfVectorizer(), TruncatedSVD(16, random_state=0))
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(make_sentence_folder(legacy=False)), device="cpu")


every = pytest.mark.parametrize("encoder", KINDS, indirect=True)


@every
def test_info(encoder, toy):
    info = info_of(encoder)
    assert isinstance(info, EncoderInfo) and info.name and not info.languages
    vectors = as_encoder(encoder).fitted_to(toy[0]).encode(toy[0][:3])
    assert info.dimensions in (None, vectors.shape[1])
    assert info == info_of(as_encoder(encoder))


def test_a_sentence_transformer_describes_itself(make_sentence_folder):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(make_sentence_folder(legacy=False)),
        device="cpu",
        prompts={"query": "find ", "document": "the "},
    )
    adapted = as_encoder(model)
    assert (adapted.dimensions, adapted.max_seq_length) == (16, 12)
    assert adapted.prompts == {"query": "find ", "document": "the "}
    document, query = (adapted.reading(kind) for kind in ("document", "query"))
    np.testing.assert_array_equal(document.encode(["cat"]), model.encode(["the cat"]))
    np.testing.assert_array_equal(query.encode(["cat"]), model.encode(["find cat"]))


@every
def test_topics(encoder, toy, tmp_path):
    texts, _, _ = toy
    model = et.TopicModel(encoder, languages=["en"], min_cluster_size=5).fit(texts)
    np.testing.assert_array_equal(model.predict(texts), model.labels_)
    model.save(tmp_path / "model")
    again = et.TopicModel.load(tmp_path / "model", encoder=encoder)
    np.testing.assert_array_equal(again.predict(["new text"]), model.predict(["new text"]))


@every
def test_search(encoder, toy, tmp_path):
    fitted = as_encoder(encoder).fitted_to(toy[0])
    index = et.SearchIndex.build(toy[0], tmp_path / "index", encoder=fitted, show_progress=False)
    hits = index.search(toy[0][0], 3).hits[0]
    loaded = et.SearchIndex.load(tmp_path / "index", encoder=fitted)
    assert hits[0].text == toy[0][0] == loaded.search(toy[0][0], 3).hits[0][0].text


@every
def test_comparison(encoder, toy):
    comparison = compare_encoders({"it": encoder, "random": "random"}, toy[0], show_progress=False)
    assert [view.name for view in comparison.encoders] == ["it", "random"]


@every
def test_classification(encoder, toy, tmp_path):
    texts, _, labels = toy
    classifier = TextClassifier(encoder).fit(texts, labels)
    assert np.mean(classifier.predict(texts) == labels) > 0.5
    classifier.save(tmp_path / "classifier")
    given = as_encoder(encoder).fitted_to(texts)
    again = TextClassifier.load(tmp_path / "classifier", encoder=given)
    np.testing.assert_array_equal(again.predict(texts), classifier.predict(texts))


@every
def test_probing_takes_transformers_alone(encoder):
    with refuses("encoder"):
        hidden_states(encoder, ["a text"])


@pytest.mark.parametrize(
    ("examples", "call"),
    [
        ([("a", "b"), ("c", "d")], 'et.training.fit(encoder, pairs, kind="pairs", out=...)'),
        ([["a", "b", "c"]], 'et.training.fit(encoder, triplets, kind="triplets", out=...)'),
        ([("a", "b", 0.5, 1)], "et.training.fit(encoder, examples, kind=..., out=...)"),
        ([1.5], "et.training.fit(encoder, examples, kind=..., out=...)"),
    ],
)
def test_examples_are_refused_by_the_call_that_learns_from_them(tiny_bert, examples, call):
    encoder = SentenceEncoder(tiny_bert)
    with refuses("X", row=0) as caught:
        encoder.fit(examples)
    assert call in str(caught.value)
    with refuses("y") as caught:
        encoder.fit(["a"], [1])
    assert "et.training.fit(encoder, " in str(caught.value)


@every
def test_fit_returns_the_encoder_itself(encoder, toy):
    adapted = as_encoder(encoder)
    assert adapted.fit(toy[0]) is adapted
    assert adapted.is_fitted
    assert adapted.encode(toy[0][:3]).shape[0] == 3


def test_the_automatic_encoder_is_fitted_in_place(tiny_bert, monkeypatch):
    monkeypatch.setattr(_registry, "resolve_encoder", lambda name, **_: SentenceEncoder(tiny_bert))
    encoder = _registry.AutomaticEncoder()
    with pytest.raises(NotFittedError):
        encoder.encode(["a text"])

    assert encoder.fit(["a text"]) is encoder
    assert encoder.is_fitted
    expected = SentenceEncoder(tiny_bert).encode(["a text"])
    np.testing.assert_array_equal(encoder.encode(["a text"]), expected)
    with refuses("X"):
        encoder.fit([("a", "b")])


def test_what_an_encoder_does_not_use_is_refused():
    encoder = RandomProjectionEncoder(8)
    for name in ("prompt", "prompt_name", "device"):
        with refuses(name):
            encoder.encode(["a text"], **{name: "x"})
        with refuses(name):
            encoder.encode_query(["a text"], **{name: "x"})
    with refuses("output_value"):
        encoder.encode(["a text"], output_value=None)
    with pytest.raises(TypeError):
        encoder.encode(["a text"], unknown=1)


@pytest.mark.parametrize("name", ["encode", "encode_query", "encode_document"])
def test_the_keywords_of_encode_are_written_out(name):
    parameters = inspect.signature(getattr(SentenceEncoder, name)).parameters
    assert not [p for p in parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    assert [*parameters][1:5] == ["texts", "prompt_name", "prompt", "batch_size"]


@pytest.fixture
def encoders(tiny_bert, tmp_path, toy):
    return [
        SentenceEncoder(tiny_bert),
        CachedEncoder(SentenceEncoder(tiny_bert), folder=tmp_path),
        TfidfEncoder(n_components=3).fit(toy[0]),
        FastTextEncoder(dimensions=4, epochs=1).fit(toy[0]),
        RandomProjectionEncoder(8),
    ]


def test_one_text_gives_one_vector_and_arguments_change_nothing_else(encoders, toy):
    texts = toy[0][:20]
    for encoder in encoders:
        whole = encoder.encode(texts)
        np.testing.assert_allclose(encoder.encode(texts[0]), whole[0], atol=1e-6)
        options = {"batch_size": 2, "show_progress": False, "normalize_embeddings": True}
        lengths = np.linalg.norm(whole, axis=1, keepdims=True)
        np.testing.assert_allclose(encoder.encode(texts, **options) * lengths, whole, atol=1e-5)


def test_encoders_are_cloned_and_changed_by_their_parameters(encoders):
    for encoder in encoders:
        again = clone(encoder)
        assert repr(again.get_params()) == repr(encoder.get_params())
        assert type(again) is type(encoder) and again is not encoder
        with pytest.raises(TypeError):
            again.set_params(nothing=1)
    changed = encoders[2].set_params(n_components=2)
    assert changed.get_params()["n_components"] == 2 and not changed.is_fitted


def test_encoders_work_in_a_pipeline_and_a_grid_search(toy):
    texts, _, labels = toy
    search = GridSearchCV(
        make_pipeline(TfidfEncoder(), LogisticRegression()),
        {"tfidfencoder__n_components": [None, 8]}, cv=2,
    ).fit(texts, labels)  # fmt: skip
    assert search.best_score_ > 0.5
    fixed = make_pipeline(RandomProjectionEncoder(), LogisticRegression()).fit(texts, labels)
    assert fixed.score(texts, labels) > 0.9


@pytest.mark.parametrize("value", [len, Own, 3, object(), ""])
def test_what_cannot_encode_is_refused(value):
    with refuses("name" if value == "" else "encoder"):
        resolve_encoder(value)


def stored(made_by, texts, **changes):
    vectors = made_by.encode(texts)
    settings = describe_encoder(made_by) | changes
    return settings, lambda n: (texts[:n], vectors[:n])


def check(encoder, of_fit):
    check_encoder(encoder, *of_fit, owner="the fit", redo="fit again")


def test_which_encoder_made_stored_vectors():
    texts = ["a cat", "two dogs", "the river and the stone"]
    mine, other = RandomProjectionEncoder(32), RandomProjectionEncoder(32, random_state=1)
    check(mine, stored(mine, texts))
    with refuses("encoder"):
        check(other, stored(mine, texts))
    # An object without a fingerprint passes where its vectors are those that are stored.
    check(as_encoder(Own()), stored(mine, texts))
    with refuses("encoder"):
        check(as_encoder(Own()), stored(other, texts))
    # Two objects of the user's own are taken at their word; vectors of unknown origin are not.
    check(as_encoder(Own()), stored(as_encoder(Own()), texts))
    with refuses("encoder"):
        check(as_encoder(Own()), stored(other, texts, encoder="given", encoder_fingerprint=None))


def test_a_learner_passes_where_it_learned_the_same(toy):
    texts = toy[0]
    encoder = TfidfEncoder(8).fit(texts)
    # On another machine the last bits differ, and the fingerprint with them.
    vectors = stored(encoder, texts[:9], encoder_fingerprint="of another machine")
    check(encoder, vectors)
    with refuses("encoder"):
        check(TfidfEncoder(8).fit(texts[:20]), vectors)


@pytest.mark.parametrize(
    ("name", "kind", "n_components"),
    [
        ("tfidf", TfidfEncoder, None), ("lsa", TfidfEncoder, 300),
        ("fasttext", FastTextEncoder, None), ("random", RandomProjectionEncoder, None),
    ],
)  # fmt: skip
def test_names_stand_for_baselines_and_paths_for_folders(name, kind, n_components):
    encoder = resolve_encoder(name)
    assert type(encoder) is kind and encoder.name == name and encoder.languages is None
    assert encoder_from_settings(encoder.settings).settings == encoder.settings
    assert encoder.settings.get("n_components") == n_components
    with pytest.raises(ModelLoadError):
        resolve_encoder(f"./{name}")


def test_the_callers_encoder_stays_unfitted():
    mine = TfidfEncoder()
    made = mine.fitted_to(["warm water", "cold water"])
    assert made.is_fitted and not mine.is_fitted
    assert made.fitted_to(["other texts"]) is made
    same = RandomProjectionEncoder()
    assert same.fitted_to(["any"]) is same

    class Learner:
        """Learns without being one of ours."""

        is_fitted = False

        def fit(self, texts):
            self.is_fitted = True
            return self

        def encode(self, texts):
            raise AssertionError

    learner = Learner()
    assert as_encoder(learner).fitted_to(["a"]).is_fitted and not learner.is_fitted


PAIRS = [("a cat", "a dog"), ("red light", "blue river")]


def learners_of_nothing(folder):
    """Return encoders whose fit learns nothing from texts."""
    sentence = SentenceEncoder(folder, precision="float32")
    return [sentence, RandomProjectionEncoder(8), as_encoder(Own()), resolve_encoder("auto")]


@pytest.mark.parametrize("kind", range(4))
def test_fit_refuses_scores_that_it_would_ignore(tiny_bert, kind):
    encoder = learners_of_nothing(tiny_bert)[kind]
    with refuses("y") as caught:
        encoder.fit(["a cat", "a dog"], [1.0, 0.0])
    assert "et.training.fit(encoder, " in str(caught.value)


@pytest.mark.parametrize("kind", [0, 2, 3])
def test_fit_refuses_pairs_and_names_the_training(tiny_bert, kind):
    encoder = learners_of_nothing(tiny_bert)[kind]
    with refuses("X", row=0) as caught:
        encoder.fit(PAIRS)
    assert "et.training.fit(encoder, " in str(caught.value)


def test_fit_of_texts_alone_and_steps_of_pipelines_stay(tiny_bert, toy):
    texts, _, labels = toy
    encoder = SentenceEncoder(tiny_bert, precision="float32")
    assert encoder.fit(texts[:3]) is encoder
    pipeline = make_pipeline(encoder, LogisticRegression()).fit(texts[::6], labels[::6])
    assert pipeline.predict(texts[:2]).shape == (2,)


def test_the_labels_of_a_pipeline_reach_a_transformer_that_learns_from_them(toy):
    texts, _, labels = toy
    selection = make_pipeline(TfidfVectorizer(), SelectKBest(k=3))
    encoder = as_encoder(selection)

    vectors = encoder.fit_transform(texts, labels)

    assert vectors.shape == (len(texts), 3)
