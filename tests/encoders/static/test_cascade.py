"""A cascade: the student where it is sure, its teacher where it is not, in one space."""

from zlib import crc32

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import embedtopics as et
from embedtopics.corpus.results import Encoding
from embedtopics.encoders import _composed, _registry
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._composed import CascadeEncoder, in_space_of
from embedtopics.encoders._registry import encoder_from_settings, resolve_encoder
from embedtopics.training import fit_static_student
from tests.encoders.static.conftest import FormulaTeacher
from tests.factories import refuses


class Counting(FormulaTeacher):
    """The teacher by formula, for whom the first word counts as no bag of words can know."""

    settings = property(lambda self: {"kind": "formula"})

    def __init__(self):
        super().__init__()
        self.read = []

    def encode(self, texts, *, show_progress=None):
        self.read += texts
        vectors = super().encode(texts)
        for row, words in enumerate(map(str.split, texts)):
            if len(words) > 1:
                first = self.vectors[int(words[0].strip(",")[1:])]
                vectors[row] += 0.3 * np.roll(first, 3) / np.linalg.norm(first)
        return unit_vectors(vectors)

    def encode_with_report(self, texts, *, show_progress=None):
        counts = np.full((3, len(texts)), 7, np.int32)
        return Encoding(self.encode(texts), *counts, n_cached=len(texts))


@pytest.fixture(scope="module")
def cascade(corpus_texts):
    return CascadeEncoder(Counting(), n_learned=1000).fit(corpus_texts)


def test_texts_near_a_border_have_the_teachers_vectors_and_the_others_the_students(
    cascade, new_texts
):
    learned = cascade._learned
    by_student = cascade.student.encode(new_texts)
    # By hand: the nearest and the second nearest centroid of each text.
    ordered = np.sort(by_student.astype(np.float64) @ learned.centroids.T.astype(np.float64))
    unsure = ordered[:, -1] - ordered[:, -2] <= learned.margin
    assert 0.02 < unsure.mean() < 0.8
    cascade.teacher.read.clear()
    report = cascade.encode_with_report(new_texts)
    assert cascade.teacher.read == [new_texts[row] for row in np.flatnonzero(unsure)]
    expected = cascade.teacher.encode(new_texts)
    np.testing.assert_allclose(report.embeddings[unsure], expected[unsure], atol=1e-6)
    np.testing.assert_array_equal(report.embeddings[~unsure], by_student[~unsure])
    assert report.n_cached == unsure.sum() and (report.n_seen[unsure] == 7).all()
    # Whoever a vector is from, it lies in the teacher's space, and nearly where the teacher's lies.
    assert np.einsum("ij,ij->i", by_student, expected).mean() > 0.85
    for row in (0, int(np.argmax(unsure))):
        alone = cascade.encode([new_texts[row]])[0]
        np.testing.assert_array_equal(alone, report.embeddings[row])


def test_as_few_are_read_again_as_bring_the_agreement(cascade, corpus_texts, monkeypatch):
    learned = cascade._learned
    drawn = sorted(set(corpus_texts), key=lambda text: (crc32(text.encode()), text))[:1000]
    held = et.Corpus.of(drawn).document_texts()[::20]
    near = [
        (vectors @ learned.centroids.T).argmax(axis=1)
        for vectors in (learned.student.encode(held), Counting().encode(held))
    ]
    assert learned.before == np.mean(near[0] == near[1])
    assert learned.n_texts == 950 and learned.after >= 0.9 > learned.before
    # Held-out texts are not learned from, so none more than is needed: one less is too few.
    margins = np.sort(learned.student.encode(held) @ learned.centroids.T)
    margins = margins[:, -1] - margins[:, -2]
    again = margins <= learned.margin + 1e-6
    assert learned.share == again.mean()
    assert np.mean((near[0] == near[1]) | again) == learned.after
    fewer = margins < margins[again].max() - 1e-6
    assert np.mean((near[0] == near[1]) | fewer) < 0.9
    # Where the student alone is good enough, the teacher is not asked at all.
    monkeypatch.setattr(_composed, "N_CENTROIDS", 2)
    monkeypatch.setattr(_composed, "AGREEMENT", 0.5)
    easy = CascadeEncoder(Counting(), n_learned=1000).fit(corpus_texts)
    easy.teacher.read.clear()
    easy.encode(corpus_texts)
    assert easy._learned.share == 0 and easy.teacher.read == []


def test_of_a_large_collection_no_more_than_a_share_is_read_again(
    cascade, corpus_texts, monkeypatch
):
    n_texts = len(et.Corpus.of(corpus_texts).distinct())
    monkeypatch.setattr(_composed, "AGAIN_TEXTS", 0.1 * n_texts)
    cut = CascadeEncoder(Counting(), n_learned=1000).fit(corpus_texts)
    assert cascade._learned.share > cut._learned.share == 0.1
    assert cascade._learned.after >= 0.9 > cut._learned.after > cut._learned.before
    monkeypatch.setattr(_composed, "AGAIN_TEXTS", 0)
    fewest = CascadeEncoder(Counting(), n_learned=1000).fit(corpus_texts)
    assert fewest._learned.share == 0.04  # of 50 texts, a twentieth is two and a half


def test_the_decision_names_the_way_back(cascade):
    decision = cascade.decisions[-1]
    assert decision.value == round(cascade._learned.after, 4)
    assert 'TopicModel(encoder="formula")' in decision.message
    assert "950 of the texts" in decision.message


def test_order_and_repeats_do_not_count_and_settings_make_it_again(
    cascade, corpus_texts, new_texts, monkeypatch
):
    again = CascadeEncoder(Counting(), 1000).fit([*corpus_texts[::-1], corpus_texts[0]])
    assert again.fingerprint == cascade.fingerprint
    np.testing.assert_array_equal(again.encode(new_texts), cascade.encode(new_texts))
    assert cascade.learns and cascade.is_fitted
    monkeypatch.setattr(_registry, "CachedEncoder", lambda encoder: encoder)
    monkeypatch.setitem(_registry._BY_KIND, "formula", Counting)
    made = encoder_from_settings(cascade.settings)
    assert made.settings == cascade.settings and not made.is_fitted
    with pytest.raises(NotFittedError):
        made.encode(["w1"])
    assert made.fit(corpus_texts).fingerprint == cascade.fingerprint


def test_a_turned_student_is_nearest_to_the_vectors(teacher, corpus_texts):
    made = fit_static_student(teacher, corpus_texts, dimensions=8, show_progress=False).encoder
    turned = in_space_of(made, corpus_texts, teacher.encode(corpus_texts))
    assert turned.dimensions == 12
    own, after = made.encode(corpus_texts), turned.encode(corpus_texts)
    np.testing.assert_allclose(own @ own.T, after @ after.T, atol=1e-4)  # a rotation

    def near(vectors):
        return np.einsum("ij,ij->i", vectors, teacher.encode(corpus_texts)).mean()

    rng = np.random.default_rng(0)
    for _ in range(5):  # another one is further away
        small = np.linalg.qr(np.eye(12) + 0.1 * rng.normal(size=(12, 12)))[0]
        assert near(after @ (small * np.sign(np.diag(small)))) < near(after)


def test_a_student_of_too_few_texts_is_refused():
    with refuses("n_learned"):
        CascadeEncoder(Counting(), n_learned=10)


def test_auto_takes_it_for_large_collections(monkeypatch, corpus_texts):
    texts = corpus_texts
    real = resolve_encoder
    monkeypatch.setattr(
        _registry, "resolve_encoder",
        lambda spec, **options: real(Counting() if spec == _registry.DEFAULT_MODEL else spec),
    )  # fmt: skip
    monkeypatch.setattr(_registry, "language_warning", lambda encoder, shares: None)
    monkeypatch.setattr(_registry, "CASCADE_FROM", len(texts) - 1)
    monkeypatch.setattr(_registry, "CASCADE_CHARACTERS", sum(map(len, texts)))
    automatic = _registry.AutomaticEncoder(cached=False)
    assert automatic.fit(texts[1:]).name == "formula"  # of too few characters
    made = automatic.fit(texts)
    assert isinstance(made, CascadeEncoder) and made.is_fitted
    model = et.TopicModel(made, languages=["en"], show_progress=False).fit(texts)
    assert [d.name for d in model.result_.decisions if d.name == "cascade"] == ["cascade"]
    labels = model.labels_
    np.testing.assert_array_equal(model.predict(texts[:50]), labels[:50])
