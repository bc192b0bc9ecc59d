"""Static students: nearer to their teacher than a distilled table, the same bits, bad input."""

import numpy as np
import pytest
from model2vec import StaticModel
from scipy.sparse import csr_matrix

from embedtopics.encoders import StaticEncoder
from embedtopics.training import _student, distill
from tests.factories import refuses

OPTIONS = {"method": "texts", "dimensions": 12, "show_progress": False}


@pytest.fixture(scope="module")
def student(teacher, corpus_texts):
    return distill(teacher, corpus_texts, **OPTIONS)


def agreement(teacher, encoder, texts):
    """Correlate the cosines of all pairs: the student's axes are turned, cosines are not."""
    pairs = np.triu_indices(len(texts), 1)
    both = [each.encode(texts).astype(np.float64) for each in (teacher, encoder)]
    return np.corrcoef(*((vectors @ vectors.T)[pairs] for vectors in both))[0, 1]


def test_the_student_is_nearer_to_the_teacher_than_a_distilled_table(
    teacher, student, corpus_texts, new_texts
):
    plain = distill(teacher, corpus_texts, dimensions=12, show_progress=False)
    assert agreement(teacher, plain, new_texts) < 0.5 < 0.9 < agreement(teacher, student, new_texts)
    made_from = student.made_from
    assert made_from["agreement_distilled"] < 0.8 < 0.9 < made_from["agreement"]
    assert made_from["n_texts"] == pytest.approx(0.95 * len(set(corpus_texts)), abs=1)
    assert made_from["n_general"] == made_from["n_words"] == made_from["n_unread"] == 0
    assert made_from["explained_variance"] == 1 and student.table.shape[1] == 12
    (decision,) = student.decisions
    assert decision.value == made_from["agreement"]


def test_the_same_bits_whatever_the_order_the_threads_and_the_repeats(
    teacher, student, corpus_texts
):
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        again = distill(teacher, [*corpus_texts[::-1], corpus_texts[0], ""], **OPTIONS)
    assert again.fingerprint == student.fingerprint


def test_general_texts_teach_words_that_the_corpus_lacks(teacher, corpus_texts, new_texts):
    corpus = [text for text in corpus_texts if not {"w40", "w41", "w42"} & set(text.split())]
    unseen = [text for text in new_texts if {"w40", "w41", "w42"} & set(text.split())]
    alone = distill(teacher, corpus, **OPTIONS)
    both = distill(teacher, corpus, general=corpus_texts, **OPTIONS)
    assert alone.made_from["n_texts"] == both.made_from["n_texts"]
    assert both.made_from["n_general"] > 0
    assert agreement(teacher, both, unseen) > agreement(teacher, alone, unseen)


def test_fewer_dimensions_are_the_principal_axes(teacher, corpus_texts):
    made = distill(teacher, corpus_texts, method="texts", dimensions=5)
    assert made.encode(["w3 w4"]).shape == (1, 5)
    values = np.linalg.svd(teacher.encode(sorted(set(corpus_texts))), compute_uv=False) ** 2
    # The axes are those of the texts that are learned from, 95 in 100 of these.
    expected = values[:5].sum() / values.sum()
    assert made.made_from["explained_variance"] == pytest.approx(expected, abs=0.01)


def test_model2vec_reads_its_folder_as_we_do(student, corpus_texts, tmp_path):
    student.save(tmp_path / "student")
    texts = [*corpus_texts[:200], "W0  w1, w2!", "nothing known", "w0 w1w2 w0 w1"]
    again = StaticEncoder(tmp_path / "student")
    np.testing.assert_array_equal(again.encode(texts), student.encode(texts))
    assert again.made_from == student.made_from
    theirs = StaticModel.from_pretrained(tmp_path / "student").encode(texts)
    np.testing.assert_allclose(theirs, student.encode(texts), atol=1e-6)


def test_texts_without_a_known_token_are_left_out_and_counted(teacher, corpus_texts):
    texts = [*corpus_texts, *(f"?!{number}" for number in range(40))]
    assert distill(teacher, texts, **OPTIONS).made_from["n_unread"] == 40


class Teacher:
    def __init__(self, base, encode):
        self.tokenizer_json, self.encode = base.tokenizer_json, encode


def test_bad_input_is_refused(teacher, corpus_texts):
    with refuses("texts"):
        distill(teacher, ["w1 w2", "w3 w4"] * 50, method="texts")
    with refuses("encoder"):
        distill("tfidf", corpus_texts, method="texts")
    with refuses("texts"):
        distill(teacher, [f"?{number}!" for number in range(60)], **OPTIONS)
    nan = Teacher(teacher, lambda texts, show_progress=None: np.full((len(texts), 3), np.nan))
    with refuses("encoder"):
        distill(nan, corpus_texts, **OPTIONS)


def test_a_method_takes_its_own_arguments(teacher, corpus_texts):
    with refuses("method"):
        distill(teacher, corpus_texts, method="words")
    with refuses("texts"):
        distill(teacher, method="texts")
    with refuses("general"):
        distill(teacher, corpus_texts, general=corpus_texts)


def test_the_table_is_the_solution_of_the_normal_equations(monkeypatch):
    rng = np.random.default_rng(1)
    bags = np.hstack([rng.integers(0, 3, (80, 6)), np.zeros((80, 2))]).astype(np.float32)
    bags[:, 0] += 1  # every text has a token
    start = rng.normal(size=(8, 3)).astype(np.float32)
    targets = rng.normal(size=(80, 3))
    targets = (targets / np.linalg.norm(targets, axis=1, keepdims=True)).astype(np.float32)
    table = _student.fit_table(start, csr_matrix(bags), targets)
    scaled = bags / np.linalg.norm(bags @ start, axis=1, keepdims=True)
    gram = scaled.T @ scaled
    gram_ridge = gram + _student.RIDGE * np.diag(gram).mean() * np.eye(8)
    expected = start + np.linalg.solve(gram_ridge, scaled.T @ (targets - scaled @ start))
    np.testing.assert_allclose(table, expected, atol=1e-4)
    np.testing.assert_array_equal(table[6:], start[6:])  # those of tokens that no text holds
