"""Given vectors of other rows or of another encoder are noticed; small changes are not."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics import SearchIndex
from embedtopics.encoders import TfidfEncoder
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders._order import check_order, share_in_place
from tests.conftest import WORDS
from tests.factories import refuses

N = 48


class Hashed:
    """Sums of random vectors of words, on top of a large common vector: all cosines are high."""

    name = "hashed"
    common = 0.0

    def __init__(self, dimensions=24, common=0.0, noise=0.0, start=""):
        self.dimensions, self.common, self.noise, self.start = dimensions, common, noise, start

    def encode(self, texts):
        rows = []
        for text in texts:
            seeds = [sum(map(ord, word)) * 31 + len(word) for word in (self.start + text).split()]
            words = [np.random.default_rng(s).normal(size=self.dimensions) for s in seeds]
            rows.append(np.sum(words, axis=0) if words else np.zeros(self.dimensions))
        vectors = np.array(rows).reshape(len(rows), -1) + self.common
        jitter = np.random.default_rng(5).normal(size=vectors.shape)
        return (vectors + self.noise * jitter).astype(np.float32)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(3)
    words = [word for theme in WORDS.values() for word in theme]
    return [f"{' '.join(rng.choice(words, 5))} w{row}" for row in range(N)]


def disorders(vectors):
    """Return vectors of other rows than their texts', by name."""
    rng = np.random.default_rng(0)
    return {
        "permuted": vectors[rng.permutation(len(vectors))],
        "shifted": np.roll(vectors, 1, axis=0),
        "half": np.concatenate([vectors[: N // 2], np.roll(vectors[N // 2 :], 1, axis=0)]),
        "reversed": vectors[::-1],
        "random": rng.normal(size=vectors.shape).astype(np.float32),
    }


@pytest.mark.parametrize("common", [0.0, 40.0])
@pytest.mark.parametrize("disorder", ["permuted", "shifted", "half", "reversed", "random"])
def test_vectors_of_other_rows_are_refused(texts, disorder, common):
    """With the large common vector, the cosine of any two vectors is above .99."""
    encoder = as_encoder(Hashed(common=common))
    vectors = encoder.encode(texts)

    with refuses("embeddings") as caught:
        check_order(encoder, texts, disorders(vectors)[disorder])

    assert "order" in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        Hashed(),
        Hashed(noise=0.3),
        Hashed(common=3.0),
        Hashed(start="query: "),
        Hashed(start="A title of some words: "),
    ],
    ids=["same", "noise", "common", "prompt", "title"],
)
def test_small_changes_of_vectors_pass(texts, given):
    encoder = as_encoder(Hashed())
    assert check_order(encoder, texts, given.encode(texts)) is None


def test_cut_vectors_pass_and_those_of_other_dimensions_are_noted(texts):
    encoder = as_encoder(Hashed())
    assert check_order(encoder, texts, encoder.encode(texts)[:, :16]) is None

    note = check_order(encoder, texts, np.random.default_rng(0).normal(size=(N, 8)))

    assert note.name == "other_dimensions" and "not those of" in note.message


def test_repeated_and_nearly_equal_texts_raise_no_alarm():
    texts = ["the same text"] * 30 + [f"delivery {row} arrived" for row in range(6)] + ["", " "]
    encoder = as_encoder(Hashed())
    assert check_order(encoder, texts, encoder.encode(texts)) is None
    few = encoder.encode(texts[-4:-1])
    assert share_in_place(encoder, texts[-4:-1], few) is None  # two texts with vectors


def test_an_encoder_that_cannot_encode_leaves_a_note(texts):
    class Broken:
        dimensions = 24

        def encode(self, texts):
            raise KeyError("no such text")

    note = check_order(as_encoder(Broken()), texts, np.ones((N, 24)))

    assert note.name == "not_compared" and "no such text" in note.message


def test_an_encoder_that_has_learned_nothing_has_made_no_vectors(texts):
    assert check_order(TfidfEncoder(), texts, np.eye(N)) is None


@pytest.mark.parametrize("disorder", ["permuted", "shifted"])
def test_a_fit_an_extension_and_an_assignment_refuse_other_rows(texts, disorder):
    encoder = Hashed()
    vectors = encoder.encode(texts)
    wrong = disorders(vectors)[disorder]
    model = et.TopicModel(encoder, languages=["en"])
    with refuses("embeddings"):
        model.fit(texts, embeddings=wrong)

    model.fit(texts)
    new = [f"{text} again" for text in texts]
    of_new = encoder.encode(new)
    right = et.topics.assign(model.result_, new, embeddings=of_new, encoder=encoder)

    assert len(right.labels) == N
    wrong = disorders(of_new)[disorder]
    with refuses("embeddings"):
        et.topics.assign(model.result_, new, embeddings=wrong, encoder=encoder)
    with refuses("embeddings"):
        et.topics.extend(model.result_, new, embeddings=wrong, encoder=encoder)
    with refuses("embeddings"):
        model.predict(new, embeddings=wrong)


def test_a_fit_without_an_encoder_takes_any_vectors(texts):
    vectors = np.random.default_rng(0).normal(size=(N, 24)).astype(np.float32)
    model = et.TopicModel(languages=["en"]).fit(texts, embeddings=vectors)
    assert len(model.labels_) == N


@pytest.mark.parametrize("disorder", ["permuted", "shifted", "random"])
def test_an_index_refuses_other_rows(texts, tmp_path, disorder):
    encoder = Hashed()
    vectors = encoder.encode(texts)
    options = {"encoder": encoder, "languages": ["en"], "show_progress": False}
    with refuses("embeddings"):
        SearchIndex.build(texts, embeddings=disorders(vectors)[disorder], **options)

    index = SearchIndex.build(texts, tmp_path / "index", embeddings=vectors, **options)
    new = [f"{text} again" for text in texts]
    of_new = disorders(encoder.encode(new))[disorder]
    frame = pd.DataFrame({"text": new, "id": [f"n{row}" for row in range(N)]})
    corpus = et.Corpus(frame, text="text", id="id")

    with refuses("embeddings"):
        index.add(corpus, embeddings=of_new, show_progress=False)
