"""Encoders that learn from the corpus, from its inspection through fit, predict, save and load."""

import math

import numpy as np
import pytest

import embedtopics as et
from embedtopics.corpus._corpus import as_corpus
from embedtopics.encoders import FastTextEncoder, RandomProjectionEncoder, TfidfEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.topics import inspect, recluster
from embedtopics.topics.results import Reason
from tests.factories import refuses

NEW = ["ripe apple and pear juice", "the station and the platform", "rook, pawn and bishop"]


@pytest.mark.parametrize(
    "encoder",
    ["tfidf", "lsa", "random", FastTextEncoder(dimensions=10, epochs=2), TfidfEncoder(20)],
    ids=["tfidf", "lsa", "random", "FastTextEncoder", "TfidfEncoder"],
)
def test_they_go_through_fit_predict_save_and_load(toy, tmp_path, encoder):
    texts, _, _ = toy
    model = et.TopicModel(encoder, languages=["en"], min_cluster_size=5).fit(texts)
    result = model.result_
    assert (model.predict(texts) == model.labels_).all()
    expected = model.predict(NEW)
    model.save(tmp_path / "model")
    loaded = et.TopicModel.load(tmp_path / "model")
    assert (loaded.predict(NEW) == expected).all()
    found = et.topics.assign(loaded.result_, NEW)
    assert (found.novelty == et.topics.assign(result, NEW).novelty).all()
    assert (et.topics.assign(loaded.result_, NEW, encoder=encoder).labels == expected).all()
    assert not getattr(encoder, "is_fitted", False)  # the caller's own stays as it was


def test_themes_of_words_are_found(toy):
    texts, _, themes = toy
    for encoder in ("tfidf", "lsa"):
        model = et.TopicModel(encoder, languages=["en"], n_topics=3).fit(texts)
        labels = model.labels_
        inside = labels >= 0
        assert inside.mean() > 0.9
        for topic in range(3):
            assert len(set(themes[labels == topic])) == 1
        words = [
            "The fruit number 9: apple pear plum cherry orchard harvest",
            "The train number 9: station rail platform ticket track signal",
            "The chess number 9: bishop rook pawn queen castle knight",
        ]
        by_theme = [labels[themes == theme].max() for theme in range(3)]
        assert model.predict(words).tolist() == by_theme


ODD = ["...", "123 456", "!!", "\ud800", "7"]


@pytest.mark.parametrize("encoder", ["tfidf", "lsa"])
@pytest.mark.parametrize("coverage", ["auto", 1.0])
@pytest.mark.parametrize("n_odd", [1, 60])
def test_texts_without_a_known_word_are_in_no_topic(toy, encoder, coverage, n_odd):
    texts, _, _ = toy
    odd = [f"{i} ..." for i in range(n_odd)]
    model = et.TopicModel(encoder, languages=["en"], coverage=coverage).fit([*texts, *odd, odd[0]])
    result = model.result_
    last = slice(len(texts), None)
    assert (result.labels[last] == -1).all()
    assert set(result.reasons[last].tolist()) <= {Reason.ISOLATED, Reason.UNINFORMATIVE}
    assert result.n_topics >= 2 and all(topic.size > 0 for topic in result.topics)
    note = next(d for d in result.decisions if d.name == "without_vector")
    assert note.value == n_odd + 1 and "in no topic" in note.message
    found = et.topics.assign(result, [*odd, "98765 !", "unheardof"])
    assert (found.labels == -1).all() and found.memberships.nnz == 0
    assert (result.memberships.toarray()[result.distinct.of_row[last]] == 0).all()
    for n_topics in ("fine", "coarse", 2):
        again = recluster(result, n_topics)
        assert (again.labels[last] == -1).all()
        assert all(topic.size > 0 for topic in again.topics)


def test_texts_of_which_an_encoder_makes_nothing_at_all_are_refused():
    with pytest.raises(InputError):
        et.TopicModel("random", languages=["en"]).fit([*["?" * i for i in range(1, 21)], "?"])
    with pytest.raises(InputError):
        et.TopicModel("tfidf", languages=["en"]).fit(ODD * 3)


def test_an_encoder_that_cannot_learn_the_same_again_is_refused(toy, tmp_path):
    texts, _, _ = toy
    elsewhere = TfidfEncoder(10).fit([*texts, *NEW, "words of other texts", "words of these texts"])
    model = et.TopicModel(elsewhere, languages=["en"]).fit(texts)
    labels = model.predict(NEW)
    model.save(tmp_path / "model")
    with refuses("encoder"):
        et.TopicModel.load(tmp_path / "model").predict(NEW)
    # The encoder itself is still the right one.
    assert (et.TopicModel.load(tmp_path / "model", encoder=elsewhere).predict(NEW) == labels).all()
    with refuses("encoder"):
        et.TopicModel.load(tmp_path / "model", encoder="tfidf").predict(NEW)
    other = RandomProjectionEncoder(10)
    with refuses("encoder"):
        et.topics.assign(model.result_, NEW, encoder=other)


def test_one_that_learns_the_same_but_for_rounding_is_accepted(toy, tmp_path, monkeypatch):
    texts, _, _ = toy
    model = et.TopicModel("lsa", languages=["en"]).fit(texts)
    model.save(tmp_path / "model")

    def other(self):
        fingerprint = vars(self).get("fingerprint")
        return fingerprint and f"other {fingerprint}"

    def keep(self, fingerprint):
        vars(self)["fingerprint"] = fingerprint

    monkeypatch.setattr(TfidfEncoder, "fingerprint", property(other, keep))
    loaded = et.TopicModel.load(tmp_path / "model")
    assert (loaded.predict(NEW) == model.predict(NEW)).all()


@pytest.mark.parametrize("encoder", ["tfidf", "lsa", "random", "fasttext"])
def test_inspection_lets_a_copy_learn_and_counts_words(toy, encoder):
    texts, _, _ = toy
    made = resolve_encoder(encoder)
    found = inspect(as_corpus(texts), made)
    assert found.mean_tokens == pytest.approx(np.mean([len(t.split()) for t in texts]), rel=1e-6)
    assert found.truncated_share == found.unseen_share == 0 and found.tokens_per_second > 0
    assert getattr(made, "is_fitted", False) == (encoder == "random")


ENGLISH = "The committee discussed the winter repairs of the old bridge in the market town"


class WordCounter:
    """An encoder that reads ten words of a text."""

    name, dimensions, max_length, languages = "counter", 4, 10, ("en",)

    def count_tokens(self, texts):
        n = np.array([len(t.split()) for t in texts], np.int32)
        none = np.empty((len(texts), 0), np.float32)
        return Encoding(none, n, np.minimum(n, 10), np.zeros_like(n))

    def encode(self, texts):
        return np.ones((len(texts), 4), np.float32)


def test_counts_rows_and_lengths():
    texts = [f"{ENGLISH} {i}" for i in range(20)] + [f"{ENGLISH} 3", None, " "]
    seen = inspect(as_corpus(texts), WordCounter())
    assert (seen.n_rows, seen.n_documents, seen.n_repeated) == (23, 20, 1)
    assert (seen.n_missing, seen.n_empty) == (1, 1)
    assert seen.mean_tokens == 15 and seen.truncated_share == 1.0
    assert seen.unseen_share == pytest.approx(1 / 3)
    assert seen.languages.main == "en" and seen.warnings == ()
    assert seen.seconds_to_encode == pytest.approx(200 / seen.tokens_per_second)
    assert seen.memory > 0.5e9


def test_a_fit_takes_the_vectors_that_the_estimate_needed(tmp_path):
    rng = np.random.default_rng(0)
    words = ["river", "bank", "trade", "vote", "match", "goal", "bread", "loaf", "piano", "song"]
    texts = [" ".join(rng.choice(words, 40)) for _ in range(400)]
    encoder = et.encoders.CachedEncoder(RandomProjectionEncoder(), folder=tmp_path)
    first = inspect(as_corpus(texts), encoder)
    n_cached = encoder.encode_with_report(texts).n_cached
    assert 0 < n_cached < 400 and first.tokens_per_second > 0
    again = inspect(as_corpus(texts), encoder)  # all are cached
    assert 0 < again.tokens_per_second < math.inf and again.seconds_to_encode > 0


def test_warns_of_a_language_that_the_encoder_does_not_read():
    french = "Le conseil municipal a discuté de la réparation du vieux pont de la ville"
    seen = inspect(as_corpus([f"{french} numéro {i}" for i in range(30)]), WordCounter())
    assert "multilingual" in seen.warnings[0]


def test_without_an_encoder_only_the_rest_is_estimated():
    seen = inspect(as_corpus([f"{ENGLISH} {i}" for i in range(5)]))
    assert math.isnan(seen.mean_tokens) and math.isnan(seen.tokens_per_second)
    assert seen.seconds_after > 0
