"""Static students: nearer to their teacher than a distilled table, the same bits, bad input."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model2vec import StaticModel
from scipy.sparse import csr_matrix

from embedtopics.encoders import StaticEncoder
from embedtopics.encoders.static import _student, _student_table
from embedtopics.encoders.static._student import frequent_phrases, plain_vocabulary
from embedtopics.encoders.static._student_table import RATE_OF_LOGS, Bagged, StudentSettings, learn
from embedtopics.plots import learning_curves
from embedtopics.training import distill, fit_static_student, read_report
from embedtopics.training._curves import read_curves
from embedtopics.training._report import model_card
from tests.factories import refuses
from tests.training.reports import same

OPTIONS = {"dimensions": 12, "show_progress": False}


@pytest.fixture(scope="module")
def student(teacher, corpus_texts):
    return fit_static_student(teacher, corpus_texts, **OPTIONS)


def agreement(teacher, encoder, texts):
    """Correlate the cosines of all pairs: the student's axes are turned, cosines are not."""
    pairs = np.triu_indices(len(texts), 1)
    both = [each.encode(texts).astype(np.float64) for each in (teacher, encoder)]
    return np.corrcoef(*((vectors @ vectors.T)[pairs] for vectors in both))[0, 1]


def test_the_student_is_nearer_to_the_teacher_than_a_distilled_table(
    teacher, student, corpus_texts, new_texts
):
    plain = distill(teacher, vocabulary_from=corpus_texts, dimensions=12, show_progress=False)
    assert agreement(teacher, plain, new_texts) < 0.9
    assert agreement(teacher, student, new_texts) > 0.97
    report = student.report
    assert report.agreement.verdict == report.finding.verdict == "better"
    assert report.agreement.before < 0.9 < 0.97 < report.agreement.after
    # A text of one phrase alone: its own meaning, not that of its words.
    whole, first, second = student.encode(["w0 w1", "w0", "w1"])
    expected = teacher.encode(["w0 w1", "w0", "w1"])
    assert report.phrases == ("w0 w1",) and report.n_words == 0
    assert abs(whole @ first - expected[0] @ expected[1]) < 0.25
    assert abs(whole @ second - expected[0] @ expected[2]) < 0.25


def test_the_report_tells_of_the_curves_and_the_counts(student, corpus_texts):
    report, curves = student.report, student.report.curves
    assert curves.metric[0] == pytest.approx(report.agreement.before, abs=1e-6)
    assert curves.metric.max() == pytest.approx(report.agreement.after, abs=1e-6)
    assert curves.validation_steps[curves.metric.argmax()] == report.best_step
    assert curves.validation_steps[0] == 0 and curves.training_steps[-1] == report.n_steps
    assert report.n_texts + report.n_validation == len(set(corpus_texts))
    assert report.n_general == 0 and report.explained_variance == 1
    made_from = student.encoder.made_from
    assert made_from["method"] == "static student"
    assert made_from["encoder_fingerprint"] == "formula-1"
    assert made_from["settings"]["seed"] == 42
    assert student.encoder.table.shape == (report.n_tokens, 12)


def test_the_same_bits_whatever_the_order_the_threads_and_the_repeats(
    teacher, student, corpus_texts, monkeypatch
):
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        again = fit_static_student(teacher, [*corpus_texts[::-1], corpus_texts[0], ""], **OPTIONS)
    assert again.encoder.fingerprint == student.encoder.fingerprint
    np.testing.assert_array_equal(again.report.curves.metric, student.report.curves.metric)
    monkeypatch.setattr(_student_table, "MIN_STEPS", 3)
    other = fit_static_student(teacher, corpus_texts, **OPTIONS, random_state=7)
    assert other.encoder.fingerprint != student.encoder.fingerprint


def test_general_texts_teach_words_that_the_corpus_lacks(teacher, corpus_texts, new_texts):
    corpus = [text for text in corpus_texts if not {"w40", "w41", "w42"} & set(text.split())]
    unseen = [text for text in new_texts if {"w40", "w41", "w42"} & set(text.split())]
    alone = fit_static_student(teacher, corpus, **OPTIONS)
    both = fit_static_student(teacher, corpus, general=corpus_texts, **OPTIONS)
    report = both.report
    assert report.n_texts + report.n_general + report.n_validation == len(set(corpus_texts))
    assert alone.report.n_texts > report.n_general > 0
    assert agreement(teacher, both, unseen) > agreement(teacher, alone, unseen)


def test_fewer_dimensions_are_the_principal_axes(teacher, corpus_texts, few_steps):
    made = fit_static_student(teacher, corpus_texts, dimensions=5, epochs=0.1)
    report = made.report
    assert made.encode(["w3 w4"]).shape == (1, 5)
    values = np.linalg.svd(teacher.encode(sorted(set(corpus_texts))), compute_uv=False) ** 2
    # The axes are those of the texts that are learned from, 95 in 100 of these.
    assert report.explained_variance == pytest.approx(values[:5].sum() / values.sum(), abs=0.01)
    wide = fit_static_student(teacher, corpus_texts, dimensions=400, epochs=0.1)
    assert wide.report.decisions[0].name == "dimensions"


def test_the_folder_holds_the_report_and_a_card(teacher, student, corpus_texts, tmp_path):
    made = fit_static_student(teacher, corpus_texts, out=tmp_path / "student", **OPTIONS)
    assert same(read_report(tmp_path / "student"), made.report)
    assert same(made.report.diagnosis, read_curves(made.report.curves))
    assert made.report.before_after == (made.report.agreement, made.report.finding)
    card = (tmp_path / "student" / "README.md").read_text("utf-8")
    assert card == model_card(made.report)
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["library_name"] == "model2vec" and "base_model" not in front
    text = card.split("\n---\n", 1)[1]
    report = made.report
    for said in (
        "# Static student of formula", "StaticModel.from_pretrained",
        f"- n texts: {report.n_texts:,}", f"- n validation: {report.n_validation}",
        f"Training took {report.n_steps:,} steps", "| `dimensions` | 12 |",
        f"{report.agreement.before:.3f}", f"{report.agreement.after:.3f}",
        "test texts were left out",
        report.diagnosis.verdict,
    ):  # fmt: skip
        assert said in text
    # It is read by model2vec as by us.
    texts = [*corpus_texts[:200], "W0  w1, w2!", "nothing known", "w0 w1w2 w0 w1"]
    ours = StaticEncoder(tmp_path / "student").encode(texts)
    np.testing.assert_array_equal(ours, student.encode(texts))
    theirs = StaticModel.from_pretrained(tmp_path / "student").encode(texts)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    # The folder may be written again, and by what was returned.
    made.save(tmp_path / "student")
    made.save(tmp_path / "other")
    assert same(read_report(tmp_path / "other"), made.report)
    figure = learning_curves(made.report)
    rings = [each for each in figure.data if each.name == "kept: best validation"]
    assert [ring.customdata[0] for ring in rings] == [report.best_step] * 2


def test_a_card_names_the_checkpoint_of_the_hub_and_no_path(student):
    def front(teacher):
        card = model_card(replace(student.report, teacher=teacher))
        return yaml.safe_load(card.split("---\n")[1]).get("base_model"), card

    assert front("BAAI/bge-small-en")[0] == "BAAI/bge-small-en"
    assert front("all-MiniLM-L6-v2")[0] == "sentence-transformers/all-MiniLM-L6-v2"
    named, card = front("/home/somebody/e5\n# evil")
    assert named is None and "/home" not in card and "\n# evil" not in card


def test_few_held_out_texts_have_the_interval_of_few(teacher, corpus_texts, few_steps):
    made = fit_static_student(teacher, corpus_texts[:60], **OPTIONS, epochs=0.1)
    assert made.report.n_validation == 10
    assert "rough" in made.report.agreement.note


def test_texts_without_a_known_token_are_left_out_and_counted(teacher, corpus_texts, few_steps):
    texts = [*corpus_texts, *(f"?!{number}" for number in range(40))]
    made = fit_static_student(teacher, texts, **OPTIONS, epochs=0.1)
    (decision,) = made.report.decisions
    assert (decision.name, decision.value) == ("unread", 40)


def test_learning_stops_where_nothing_is_gained(teacher, corpus_texts, monkeypatch):
    monkeypatch.setattr(_student_table, "LEARNING_RATE", 1e-9)
    made = fit_static_student(teacher, corpus_texts, **OPTIONS, epochs=40)
    assert made.report.stopped == "no improvement"
    assert made.report.n_steps < made.report.curves.n_steps_planned


class Teacher:
    def __init__(self, base, encode):
        self.tokenizer_json, self.encode = base.tokenizer_json, encode


def test_bad_input_is_refused(teacher, corpus_texts, tmp_path):
    with refuses("texts"):
        fit_static_student(teacher, ["w1 w2", "w3 w4"] * 50)
    with refuses("teacher"):
        fit_static_student("tfidf", corpus_texts)
    with refuses("texts"):
        fit_static_student(teacher, [f"?{number}!" for number in range(60)], **OPTIONS)
    nan = Teacher(teacher, lambda texts, show_progress=None: np.full((len(texts), 3), np.nan))
    with refuses("teacher"):
        fit_static_student(nan, corpus_texts, **OPTIONS)
    (tmp_path / "notes.txt").write_text("mine")
    with refuses(""):
        fit_static_student(teacher, corpus_texts, out=tmp_path, **OPTIONS)


def test_steps_are_those_of_torch(monkeypatch):
    import torch

    rng = np.random.default_rng(0)
    bags = rng.integers(1, 4, (6, 5)).astype(np.float32)  # every text holds every token
    targets = rng.normal(size=(6, 4))
    targets = (targets / np.linalg.norm(targets, axis=1, keepdims=True)).astype(np.float32)
    table = rng.normal(size=(5, 4)).astype(np.float32)
    weights = rng.uniform(0.2, 2, 5).astype(np.float32)
    chosen, contrast = StudentSettings(epochs=3), 0.7
    for name, value in {
        "MIN_STEPS": 0, "BATCH_SIZE": 96, "LEARNING_RATE": 0.01, "CONTRAST": contrast,
        "TEMPERATURE": 0.3, "VALIDATIONS_AN_EPOCH": 1,
    }.items():  # fmt: skip
        monkeypatch.setattr(_student_table, name, value)
    everything = Bagged(csr_matrix(np.repeat(bags, 16, axis=0)), np.repeat(targets, 16, axis=0))
    learned = learn(table, weights, everything, everything, chosen)

    rows = torch.tensor(table, dtype=torch.float64, requires_grad=True)
    logs = torch.tensor(np.log(weights), dtype=torch.float64, requires_grad=True)
    rates = [
        {"params": [rows], "lr": 1.0, "base": float(np.sqrt((table**2).mean()))},
        {"params": [logs], "lr": RATE_OF_LOGS, "base": RATE_OF_LOGS},
    ]
    optimiser = torch.optim.Adam(rates, eps=1e-10)
    batches = np.random.default_rng(chosen.random_state)
    batches.permutation(96)  # that of the sample
    losses, step, n_batches, n_steps = [], 0, 16, 48
    counts, wanted = everything.bags.toarray(), everything.targets
    while step < n_steps:
        for part in np.array_split(batches.permutation(96), n_batches):
            step += 1
            rise = min(1.0, step / max(1.0, 0.05 * n_steps))
            for group in optimiser.param_groups:
                group["lr"] = group["base"] * 0.01 * rise * (1 - (step - 1) / n_steps)
            t = torch.tensor(wanted[part], dtype=torch.float64)
            sums = torch.tensor(counts[part], dtype=torch.float64) @ (rows * logs.exp()[:, None])
            s = torch.nn.functional.normalize(sums)
            loss = (1 - (s * t).sum(1)).mean()
            ranking = torch.nn.functional.cross_entropy(s @ t.T / 0.3, torch.arange(len(part)))
            loss = loss + contrast * ranking
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    assert learned.n_steps == n_steps == learned.best_step
    np.testing.assert_allclose(learned.table, rows.detach().numpy(), atol=2e-5)
    np.testing.assert_allclose(learned.weights, logs.exp().detach().numpy(), atol=2e-5)
    epochs = np.array(losses).reshape(3, n_batches).mean(axis=1)
    np.testing.assert_allclose(learned.curves.training_loss, epochs, atol=1e-5)
    assert learned.curves.training_steps.tolist() == [16, 32, 48]


def test_tokens_that_no_text_holds_stay_as_they_are():
    rng = np.random.default_rng(1)
    bags = csr_matrix(np.hstack([rng.integers(0, 3, (80, 6)), np.zeros((80, 2))]), dtype=np.float32)
    targets = rng.normal(size=(80, 3)).astype(np.float32)
    texts = Bagged(bags, targets / np.linalg.norm(targets, axis=1, keepdims=True))
    table = rng.normal(size=(8, 3)).astype(np.float32)
    learned = learn(table, np.ones(8, np.float32), texts, texts, StudentSettings())
    np.testing.assert_array_equal(learned.table[6:], table[6:])
    assert (learned.table[:6] != table[:6]).all() and (learned.weights[6:] == 1).all()


def brute_force(texts, min_count, min_npmi):
    runs = [run for text in texts for run in " ".join(text.split()).split(",")]
    words = Counter(word for run in runs for word in run.split())
    frequent = {word for word, n in words.items() if n >= min_count}
    total = sum(words[word] for word in frequent)
    found = {}
    for n in (2, 3):
        counts = Counter()
        for run in runs:
            split = run.split()
            counts.update(
                tuple(split[i : i + n])
                for i in range(len(split) - n + 1)
                if set(split[i : i + n]) <= frequent
            )
        for phrase, count in counts.items():
            by_chance = math.prod(words[word] / total for word in phrase)
            score = math.log(count / total / by_chance)
            score /= (1 - n) * math.log(count / total) or math.nan
            if count >= min_count and score >= min_npmi - 1e-12:
                found[" ".join(phrase)] = count
    return sorted(found, key=lambda phrase: (-found[phrase], phrase))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["w1", "w2", "w3", "w4", ","]), max_size=9).map(" ".join),
        min_size=1, max_size=12,
    ),
    min_count=st.integers(1, 3),
    min_npmi=st.sampled_from([-0.7431, 0.0123, 0.4217]),
)  # fmt: skip
def test_phrases_are_those_of_brute_force(teacher, texts, min_count, min_npmi):
    vocabulary = plain_vocabulary(teacher.tokenizer_json)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_student, "MIN_PHRASE_COUNT", min_count)
        patch.setattr(_student, "MIN_NPMI", min_npmi)
        expected = brute_force(texts, min_count, min_npmi)
        assert frequent_phrases(vocabulary, texts) == expected
        patch.setattr(_student, "MOST_PHRASES", 2)
        assert frequent_phrases(vocabulary, texts) == expected[:2]


def test_phrases_do_not_reach_across_texts_or_marks(teacher, monkeypatch):
    monkeypatch.setattr(_student, "MIN_PHRASE_COUNT", 5)
    monkeypatch.setattr(_student, "MIN_NPMI", 0.05)
    vocabulary = plain_vocabulary(teacher.tokenizer_json)
    phrases = frequent_phrases(vocabulary, ["New york", "new  YORK, city", "york new-york x"] * 5)
    assert phrases[0] == "new york" and "york city" not in phrases
    assert frequent_phrases(vocabulary, ["", "?"]) == []
