"""Whole fits of a tiny encoder: what comes out, what is refused before anything is learned."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sentence_transformers.sentence_transformer import losses

import embedtopics as et
from embedtopics.training import _fit as runs
from tests.factories import each, exact_encoder, raising, refuses
from tests.training.reports import same
from tests.training.trainer.conftest import CONTENT, graded_pairs, partner_pairs

FAST = {"epochs": 2, "batch_size": 16, "learning_rate": 1e-3, "device": "cpu",
        "show_progress": False, "random_state": 3}  # fmt: skip


LEARNS = {"objective": "cosent", "allow_overlap": True,
          "settings": {**FAST, "epochs": 4, "learning_rate": 5e-3}}  # fmt: skip
"""A run whose weights get better, measured on what it learns from: those of step 0 are not kept."""


@pytest.fixture()
def sets():
    return graded_pairs(60, seed=1), graded_pairs(30, seed=2), graded_pairs(40, seed=5)


@pytest.fixture()
def never_trained(monkeypatch):
    monkeypatch.setattr(runs, "train_measured", raising(AssertionError("training began")))


def test_a_fit_leaves_an_encoder_its_report_and_a_card(tiny_bert, tmp_path, sets):
    train, _, test = sets
    corpus = [f"{a} {b} {c}" for a in CONTENT for b in CONTENT[:3] for c in CONTENT[3:5]]
    report = et.training.fit(
        tiny_bert, train, validation=train, test=test, general={"other": test},
        corpus=corpus, out=tmp_path / "tuned", **LEARNS,
    )  # fmt: skip
    folder = tmp_path / "tuned"
    tuned = exact_encoder(folder)
    assert not np.allclose(tuned.encode(corpus), exact_encoder(tiny_bert).encode(corpus))
    assert report.n_steps == 16 and report.best_step > 0 and report.stopped == "finished"
    assert len(report.curves.validation_steps) == 17
    again = et.training.TrainingReport.load(folder)
    # A run that finds no topics has no figure for them, and a threshold may be NaN.
    assert same(again.before_after, report.before_after)
    assert same(again.diagnosis, report.diagnosis)
    np.testing.assert_array_equal(again.curves.training_loss, report.curves.training_loss)
    card = (folder / "README.md").read_text("utf-8")
    assert "Training took 16 steps" in card and str(tmp_path) not in card
    assert not (tmp_path / "tuned.training").exists()
    tasks = report.before_after["task"].tolist()
    assert "test" in tasks and "other" in tasks and any("corpus" in task for task in tasks)
    (spearman,) = (
        change for change in report.before_after.itertuples()
        if change.task == "test" and "spearman" in change.metric.lower()
    )  # fmt: skip
    first, second = (tuned.encode(list(column)).astype(float) for column in test.columns)
    cosines = (first * second).sum(axis=1)
    assert spearman.n == 40 and spearman.n_test_evaluations == 1
    assert spearman.after == pytest.approx(spearmanr(cosines, test.labels).statistic, abs=1e-6)


@pytest.mark.slow
def test_the_order_of_the_rows_does_not_matter(tiny_bert, tmp_path, sets):
    train, _, _ = sets
    shuffled = np.random.default_rng(0).permutation(len(train))
    found = []
    for name, examples in (("one", train), ("two", train.take(shuffled))):
        et.training.fit(tiny_bert, examples, validation=train, out=tmp_path / name, **LEARNS)
        found.append(exact_encoder(tmp_path / name).encode(CONTENT))
    np.testing.assert_array_equal(*found)
    assert not np.allclose(found[0], exact_encoder(tiny_bert).encode(CONTENT))


@pytest.mark.slow
def test_without_validation_examples_a_part_is_held_out(tiny_bert, tmp_path):
    train = graded_pairs(400, seed=1)
    words = tuple(f"{word} {number}" for number, word in enumerate(train.columns[0]))
    others = tuple(f"{word} {number} x" for number, word in enumerate(train.columns[1]))
    train = et.training.Examples("graded", (words, others), train.labels, train.rows)
    report = et.training.fit(
        tiny_bert, train, out=tmp_path / "tuned", settings={**FAST, "epochs": 0.5}
    )
    assert report.data["n_train"] == 360 and report.data["n_validation"] == 40
    assert "held_out" in [decision.name for decision in report.decisions]


WRONG = each(
    corpus=[["one text"]], validation=[graded_pairs(3)], kind=["scored"], learning_rate=[0],
    objective=["hinge", losses.CachedMultipleNegativesRankingLoss], max_seq_length=[64],
    settings=[{"epoch": 1}, 3], objective_params=[{"both_ways": True}],
    precision=["float16"],
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
@pytest.mark.usefixtures("never_trained")
def test_bad_input_is_refused_before_training(tiny_bert, tmp_path, sets, name, value):
    train, validation, _ = sets
    named = {"validation": validation, "out": tmp_path / "tuned", "settings": FAST}
    if name in FAST or name in ("max_seq_length", "precision"):
        named["settings"] = {**FAST, name: value}
    else:
        named[name] = value
    with refuses(name):
        et.training.fit(tiny_bert, train, named.pop("objective", None), **named)
    assert not (tmp_path / "tuned").exists()


def test_examples_in_both_sets_are_refused_unless_that_is_meant(tiny_bert, tmp_path, sets):
    train, validation, _ = sets
    with refuses("test"):
        et.training.fit(
            tiny_bert,
            train,
            validation=validation,
            test=train,
            out=tmp_path / "tuned",
            settings=FAST,
        )


def test_examples_that_choose_the_weights_are_not_measured_on(tiny_bert, tmp_path, sets):
    train, validation, test = sets
    both = et.training.Examples(
        "graded",
        tuple((*v[:4], *t) for v, t in zip(validation.columns, test.columns, strict=True)),
        np.concatenate([validation.labels[:4], test.labels]), np.arange(44), source="both.csv",
    )  # fmt: skip
    fit = et.training.fit
    named = {"validation": validation, "out": tmp_path / "tuned",
             "settings": {**FAST, "epochs": 1}}  # fmt: skip
    with refuses("test"):
        fit(tiny_bert, train, test=both, **named)
    with refuses("other"):
        fit(tiny_bert, train, general={"other": both}, **named)
    report = fit(tiny_bert, train, test=both, allow_overlap=True, **named)
    (allowed,) = (d for d in report.decisions if d.name == "overlap_allowed")
    assert allowed.value == 4 and "4 (9.1%) occur in the validation set" in allowed.message


def test_a_run_of_another_direction_is_not_gone_on_with(tiny_bert, tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(
        "embedtopics.training.trainer._running.train",
        lambda *arguments: begun.append(arguments[4]) or 1 / 0,
    )
    for both_ways in (True, False):
        with pytest.raises(ZeroDivisionError):
            et.training.fit(
                tiny_bert, partner_pairs(), validation=partner_pairs(), allow_overlap=True,
                objective_params={"both_ways": both_ways}, out=tmp_path / "tuned", settings=FAST,
            )  # fmt: skip
    assert begun[0] != begun[1] and begun[0]["settings"] == begun[1]["settings"]


@pytest.mark.parametrize("encoder", ["tfidf", "lsa", "fasttext", "random"])
def test_encoders_without_gradients_are_refused(encoder, tmp_path, sets):
    train, validation, _ = sets
    with refuses("encoder"):
        et.training.fit(encoder, train, validation=validation, out=tmp_path / "t", settings=FAST)


def test_before_and_after_are_read_alike_so_that_nothing_learned_is_no_difference(
    tiny_bert, tmp_path
):
    short = graded_pairs(60, seed=1)
    long = tuple(" ".join([text] * 9) for text in short.columns[0])
    train = et.training.Examples("graded", (long, short.columns[1]), short.labels, short.rows)
    encoder = et.SentenceEncoder(tiny_bert, precision="int8", long_texts="chunk")
    report = et.training.fit(
        encoder, train, validation=train, test=train, allow_overlap=True, out=tmp_path / "same",
        settings={**FAST, "epochs": 0.3, "learning_rate": 1e-12},
    )  # fmt: skip
    assert report.best_step == 0 and len(report.before_after) == 2
    for change in report.before_after.itertuples():
        assert change.difference == 0 and change.note.count("int8") == 0
    said = [one.message for one in report.decisions if one.name == "equal_conditions"]
    assert len(said) == 1 and "int8" in said[0] and "chunk" in said[0]


def test_a_number_of_steps_and_a_loss_of_the_library(tiny_bert, tmp_path, sets):
    train, validation, _ = sets
    rows = list(zip(*train.columns, train.labels.tolist(), strict=True))
    report = et.training.fit(
        tiny_bert, rows, losses.CoSENTLoss, kind="graded", validation=validation,
        out=tmp_path / "tuned", settings={**FAST, "max_steps": 3},
    )  # fmt: skip
    assert report.n_steps == 3 and report.objective == "graded: CoSENTLoss"
    assert report.curves.metric_name == "Spearman"
    assert report.encoder.encode(["stone"]).shape == (1, 16)


@pytest.mark.slow
def test_test_sets_are_counted_in_the_report_of_the_folder(tiny_bert, tmp_path, sets):
    train, validation, test = sets
    quick = {"settings": {**FAST, "max_steps": 1}, "out": tmp_path / "tuned",
             "validation": validation}  # fmt: skip
    quick["overwrite"] = True
    counts = []
    for measured in (test, test, test.take(range(30))):
        report = et.training.fit(tiny_bert, train, test=measured, **quick)
        counts.append(set(report.before_after["n_test_evaluations"]))
    assert counts == [{1}, {2}, {1}]
    assert not any("looks" in path.name for path in tmp_path.rglob("*"))


def test_a_finished_encoder_is_not_replaced_unasked(tiny_bert, tmp_path, sets, monkeypatch):
    train, validation, _ = sets
    quick = {"settings": {**FAST, "max_steps": 1}, "out": tmp_path / "tuned",
             "validation": validation}  # fmt: skip
    et.training.fit(tiny_bert, train, **quick)
    weights = (tmp_path / "tuned" / "model.safetensors").read_bytes()
    for resume in (True, False):
        with refuses("out") as caught:
            et.training.fit(tiny_bert, train, resume=resume, **quick)
    assert "overwrite=True" in str(caught.value)
    assert (tmp_path / "tuned" / "model.safetensors").read_bytes() == weights
    assert et.training.fit(tiny_bert, train, overwrite=True, **quick).stopped == "finished"

    # Killed after the encoder was written: the same run goes on to its report, unasked.
    monkeypatch.setattr("embedtopics.training._report.write_report", raising(OSError("full")))
    with pytest.raises(OSError, match="full"):
        et.training.fit(tiny_bert, train, overwrite=True, **quick)
    monkeypatch.undo()
    report = et.training.fit(tiny_bert, train, **quick)
    assert "resumed" in [decision.name for decision in report.decisions]


def test_a_warning_says_when_few_examples_can_be_used(tiny_bert, tmp_path):
    labels = np.array([0] * 5 + [1] * 55)
    names = ("entailment", "neutral", "contradiction")
    columns = tuple(tuple(f"{side} {i}" for i in range(60)) for side in ("stone", "tree"))
    train = et.training.Examples("nli", columns, labels, np.arange(60), names)
    with pytest.warns(UserWarning, match="10 of 60"):
        report = et.training.fit(
            tiny_bert,
            train,
            validation=train,
            allow_overlap=True,
            out=tmp_path / "tuned",
            settings=FAST,
        )
    assert {"few_examples_used", "few_validation_examples"} <= {d.name for d in report.decisions}


def test_a_file_or_a_list_needs_its_kind_and_swapped_arguments_are_named(tmp_path, sets):
    train, *_ = sets
    with refuses("kind"):
        et.training.fit("all-MiniLM-L6-v2", "pairs.csv", out=tmp_path / "o")
    with refuses("encoder") as caught:
        et.training.fit(train, "all-MiniLM-L6-v2", out=tmp_path / "o")
    assert "et.training.fit(encoder, examples, out=...)" in str(caught.value)


def test_former_functions_name_the_call_to_make():
    with pytest.raises(AttributeError, match=r"et\.training\.fit\(.*graded"):
        _ = et.training.fit_sts
