"""Any encoder goes through one door: ours, a SentenceTransformer, scikit-learn's, and a user's."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import embedtopics as et
from embedtopics.classification import TextClassifier
from embedtopics.comparison import compare
from embedtopics.encoders import RandomProjectionEncoder, TfidfEncoder
from embedtopics.encoders._contract import EncoderInfo, as_encoder, info_of
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders._space import StoredVectors, check_encoder, describe_encoder
from embedtopics.probing import hidden_states
from tests.factories import refuses

KINDS = ("ours", "object", "scikit-learn", "sentence-transformers")


class Own:
    """Encodes, and knows nothing else."""

    def encode(self, texts):
        return RandomProjectionEncoder(32).encode(list(texts))


@pytest.fixture
def encoder(request, make_sentence_folder):
    if request.param == "ours":
        return RandomProjectionEncoder(32)
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
    info = info_of(model)
    assert (info.dimensions, info.max_length) == (16, 12)
    assert info.prompts == {"query": "find ", "document": "the "}
    document, query = (as_encoder(model).reading(kind) for kind in ("document", "query"))
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
    comparison = compare(toy[0], {"it": encoder, "random": "random"}, show_progress=False)
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
        hidden_states(["a text"], encoder)


def test_encoders_are_transformers_of_scikit_learn(toy):
    texts, _, labels = toy
    search = GridSearchCV(
        make_pipeline(TfidfEncoder(), LogisticRegression()),
        {"tfidfencoder__n_components": [2, 8]}, cv=2,
    ).fit(texts, labels)  # fmt: skip
    assert search.best_score_ > 0.5
    encoder = clone(RandomProjectionEncoder(16)).set_params(dimensions=8)
    assert encoder.fit(texts).transform(texts).shape == (len(texts), 8)


@pytest.mark.parametrize("value", [len, Own, 3, object(), ""])
def test_what_cannot_encode_is_refused(value):
    with refuses("name" if value == "" else "encoder"):
        resolve_encoder(value)


def stored(made_by, texts, **changes):
    vectors = made_by.encode(texts)
    settings = describe_encoder(made_by) | changes
    return StoredVectors(settings, "the fit", lambda: (texts, vectors), "fit again")


def test_which_encoder_made_stored_vectors():
    texts = ["a cat", "two dogs", "the river and the stone"]
    mine, other = RandomProjectionEncoder(32), RandomProjectionEncoder(32, random_state=1)
    check_encoder(mine, stored(mine, texts))
    with refuses("encoder"):
        check_encoder(other, stored(mine, texts))
    # An object without a fingerprint passes where its vectors are those that are stored.
    check_encoder(as_encoder(Own()), stored(mine, texts))
    with refuses("encoder"):
        check_encoder(as_encoder(Own()), stored(other, texts))
    # Two objects of the user's own are taken at their word; vectors of unknown origin are not.
    check_encoder(as_encoder(Own()), stored(as_encoder(Own()), texts))
    with refuses("encoder"):
        check_encoder(
            as_encoder(Own()), stored(other, texts, encoder="given", encoder_fingerprint=None)
        )


def test_a_learner_passes_where_it_learned_the_same(toy):
    texts = toy[0]
    encoder = TfidfEncoder(8).fit(texts)
    # On another machine the last bits differ, and the fingerprint with them.
    vectors = stored(encoder, texts[:9], encoder_fingerprint="of another machine")
    check_encoder(encoder, vectors)
    with refuses("encoder"):
        check_encoder(TfidfEncoder(8).fit(texts[:20]), vectors)
