"""A study: its codebook, annotators, tables and undo; for its journal see test_journal.py."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from embedtopics import AnnotationProject, Corpus, TextClassifier
from embedtopics.annotation import Label
from embedtopics.annotation._codebook import permanent_numbers
from tests.annotation.conftest import NAMES, code, full_disk
from tests.factories import each, refuses


def test_answers_are_there_when_the_study_is_opened_again(begin, truth):
    study = begin()
    given = code(study, truth, 12)
    study.skip(given[0].key)
    study.label(given[1].key, "chess", unsure=True, note="or fruit? <b>")
    frame = study.to_frame()
    study.close()
    again = begin(codebook=None)
    pd.testing.assert_frame_equal(again.to_frame(), frame)
    assert frame["label"].isna().sum() == 1 and frame.loc[1, "note"] == "or fruit? <b>"
    assert [label.key for label in again.codebook] == ["1", "2", "3"]


def test_one_process_at_a_time_has_a_study(begin):
    study = begin()
    with refuses(""):
        begin()
    study.close()
    begin()


def test_a_full_disk_loses_only_what_it_refused(begin, truth):
    study = begin()
    code(study, truth, 2)
    text = study.next()
    with full_disk(study), refuses("") as caught:
        study.label(text.key, "fruit", note="x" * 10_000)
    assert "is full" in str(caught.value)
    assert len(study.to_frame()) == 2
    study.label(text.key, "fruit", note="x" * 10_000)
    study.close()
    assert len(begin(codebook=None).to_frame()) == 3


def test_undo_brings_back_the_text_and_what_was_said_before(begin, truth):
    study = begin()
    first, second = code(study, truth, 2)
    study.label(first.key, "chess")
    other = study.next(by="other")
    study.label(other.key, truth[other.text], by="other")
    assert study.undo().key == first.key
    labels = study.labels().dropna()
    assert len(labels) == 3 and all(
        truth[study.corpus.texts[row]] == labels[row] for row in labels.index
    )
    assert study.undo() == second and study.next() != first
    assert study.undo().key == first.key and study.undo() is None
    study.close()
    assert begin(codebook=None).to_frame()["annotator"].tolist() == ["other"]


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        (["a", "b", "a"], 2), ([Label("a", "x"), Label("b", "X")], 1), (["a", " "], 1),
        ([Label("a", "?"), "b"], 0), (["a", {"name": "b", "colour": "red"}], 1),
        ([Label("a", examples="text"), "b"], 0), (["a", 3], 1), ("ab", None), (["a"], None),
        ([f"label {i}" for i in range(40)], None), (["a", {"name": "b", "examples": 5}], 1),
        ([{"name": "a", "definition": None}, "b"], 0), (["a", "None"], 1), (["n/a", "b"], 0),
        (["caf\u00e9", "cafe\u0301"], 1), (["a  b", "a b"], 1),
    ],
)  # fmt: skip
def test_codebooks_that_cannot_be_worked_with(begin, labels, row, tmp_path):
    with refuses("codebook", row=row):
        begin(labels)
    assert not (tmp_path / "study").exists()


def test_a_label_has_one_spelling(begin):
    study = begin(["cafe\u0301 noir", "tea"])
    assert study.codebook[0].name == "caf\u00e9 noir"
    study.label(study.next().key, "cafe\u0301 noir ")
    study.label(study.next().key, ["caf\u00e9\u00a0noir"])
    study.close()
    again = begin(codebook=["caf\u00e9 noir", "tea"])
    assert again.labels().dropna().unique().tolist() == ["caf\u00e9 noir"]


def test_a_study_whose_codebook_was_spelled_otherwise_goes_on(tmp_path, toy):
    label = {"key": "1", "definition": "", "examples": []}
    names = ["cafe\u0301", "None"]
    header = {"n": 0, "time": "", "event": "study", "kind": "embedtopics annotation", "version": 1,
              "labels_kind": "single", "pairs": False, "test": [], "n_texts": 2,
              "labels": [{**label, "name": name, "key": name[0].lower()} for name in names],
              "design": {"teach": 0.5, "n_test": 0, "overlap": 0.0, "random_state": 0}}  # fmt: skip
    answers = [
        {"n": n, "time": "", "event": "answer", "text": str(n), "id": "0", "by": "a",
         "stream": "count", "n_texts": 2, "labels": [name], "unsure": False, "note": ""}
        for n, name in enumerate(names, 1)
    ]  # fmt: skip
    (tmp_path / "study").mkdir()
    lines = "".join(json.dumps(line) + "\n" for line in [header, *answers])
    (tmp_path / "study" / "journal.jsonl").write_text(lines)
    with AnnotationProject.load(tmp_path / "study", toy[0], encoder=toy[1]) as study:
        assert study.to_frame()["label"].tolist() == ["caf\u00e9", "None"]


def test_labels_get_keys_that_are_free(begin):
    study = begin([Label("b", "2"), "a", {"name": "c", "definition": "third"}, Label("d", "Q")])
    assert [label.key for label in study.codebook] == ["2", "1", "3", "q"]
    assert begin({"x": "defined", "y": ""}, folder="other").codebook[0].definition == "defined"


@pytest.mark.parametrize(
    ("parameter", "value"),
    each(
        kind=["pairs", "several"],
        teach=[0.2],
        n_test=[3],
        overlap=[0.5],
        random_state=[8],
        codebook=[["a", "b"]],
    ),
)
def test_a_study_stays_what_it_was(begin, parameter, value):
    begin().close()
    with refuses(parameter):
        begin(**{parameter: value})


@pytest.mark.parametrize(
    ("parameter", "value"),
    each(teach=[1.5, "half"], n_test=[-1, 2.5], overlap=[None], random_state=["x"]),
)
def test_designs_that_are_refused(begin, parameter, value):
    with refuses(parameter):
        begin(**{parameter: value})


def test_answers_that_are_refused_leave_no_trace(begin):
    study = begin()
    key = study.next().key
    for parameter, arguments in [
        ("key", {"key": "0" * 32}), ("labels", {"labels": "pear"}), ("labels", {"labels": []}),
        ("labels", {"labels": ["fruit", "chess"]}), ("by", {"by": "two\nlines"}),
        ("note", {"note": "x" * 10_001}), ("note", {"note": "\ud800"}),
        ("key", {"key": [key]}), ("labels", {"labels": {"fruit": 1}}), ("labels", {"labels": 5}),
        ("labels", {"labels": b"fruit"}), ("spans", {"labels": (), "spans": 5}),
        ("spans", {"labels": (), "spans": {"fruit": 1}}), ("stream", {"stream": "other"}),
    ]:  # fmt: skip
        with refuses(parameter):
            study.label(**{"key": key, "labels": "fruit", **arguments})
    for keys in (5, key, [[key]]):
        with refuses("keys", row=0 if isinstance(keys, list) else None):
            study.queue(keys)
    assert study.to_frame().empty
    for corpus in (["one text"], ["same", "same"], ["", None]):
        with refuses("corpus"):
            begin(corpus=corpus, folder="other")
    with refuses("encoder"):
        begin(encoder=np.ones((3, 2)), folder="other")
    with refuses("encoder"):
        begin(encoder="tfidf", folder="other")
    with refuses("strategy"):
        begin(strategy="best", folder="other")


def test_labels_stay_with_their_texts_when_the_corpus_changes(begin, toy, truth):
    texts, vectors, _ = toy
    study = begin()
    code(study, truth, 20)
    before = study.labels().dropna()
    study.close()
    gone = before.index[0]
    kept = np.flatnonzero(np.arange(len(texts)) != gone)[::-1]
    changed = [texts[row] for row in kept] + ["A new text."]
    again = begin(codebook=None, corpus=changed, encoder=np.vstack([vectors[kept], vectors[:1]]))
    after = again.labels().dropna()
    assert {changed[row]: label for row, label in after.items()} == {
        texts[row]: label for row, label in before.items() if row != gone
    }
    assert [(one.name, one.value) for one in again.decisions] == [("gone", 1)]
    assert len(again.to_frame()) == 20 and again.to_frame()["text"].isna().sum() == 1


def test_rows_of_one_text_have_one_label(begin, toy):
    texts, vectors, _ = toy
    study = begin(
        corpus=[*texts, texts[0], ""], encoder=np.vstack([vectors, vectors[:1], vectors[:1]])
    )
    key = next(key for key in study.keys if study.state.texts.text(key) == texts[0])
    study.label(key, "chess")
    assert study.labels().dropna().index.tolist() == [0, len(texts)]
    assert study.labels().iloc[-1] is None


@pytest.mark.parametrize("kind", ["single", "several", "spans"])
def test_labels_are_exported(begin, tmp_path, kind):
    study = begin(kind=kind)
    answer = {"spans": [("fruit", 0, 4)]} if kind == "spans" else {"labels": "fruit"}
    if kind == "several":
        answer = {"labels": ["fruit", "chess"]}
    study.label(study.next().key, **answer)
    for suffix, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        study.export(tmp_path / f"labels.{suffix}")
        table = read(tmp_path / f"labels.{suffix}")
        assert table["id"].astype(str).tolist() == study.to_frame()["id"].tolist()
        if suffix == "csv":
            assert table["label"][0] == ("fruit|chess" if kind == "several" else "fruit")


def test_permanent_numbers_are_uniform_and_do_not_depend_on_other_texts():
    keys = [f"{i:032x}" for i in range(4000)]
    numbers = permanent_numbers(keys, 3, "count")
    assert np.array_equal(permanent_numbers(keys[::-1], 3, "count")[::-1], numbers)
    assert abs(np.sort(numbers) - np.linspace(0, 1, 4000)).max() < 1.63 / 4000**0.5  # KS, 1 %
    assert abs(np.corrcoef(numbers, permanent_numbers(keys, 3, "overlap"))[0, 1]) < 0.05


def test_a_study_of_pairs_stays_one(begin, toy, tmp_path):
    texts, vectors, themes = toy
    corpus = Corpus(pd.DataFrame({"a": texts[:-1], "b": texts[1:]}), ["a", "b"])
    encoder = SimpleNamespace(encode=lambda found: vectors[[texts.index(one) for one in found]])
    with begin(["same", "other"], corpus=corpus, encoder=encoder, pairs=True) as study:
        rows = study.state.texts.first_rows
        a, b = vectors[rows], vectors[rows + 1]
        expected = np.hstack([a, b, abs(a - b), a * b])
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(study.state.vectors.matrix, expected, atol=1e-6)
        for key, row in list(zip(study.keys, rows, strict=True))[:40]:
            study.label(key, "same" if themes[row] else "other")
    with AnnotationProject.load(tmp_path / "study", corpus, encoder=encoder) as study:
        np.testing.assert_allclose(study.state.vectors.matrix, expected, atol=1e-6)
        model = study.classifier(TextClassifier(encoder))
        assert model.pairs and model.method_ == "frozen"
        assert model.predict([(texts[0], texts[1])]) == model.predict([corpus.texts[0]])
    with begin(folder="single"):
        pass
    with refuses("pairs"):
        begin(folder="single", pairs=True)
    wrong = [text if row != 3 else f"{text}\n\n{text}" for row, text in enumerate(texts)]
    corpus = Corpus(pd.DataFrame({"a": wrong[:-1], "b": texts[1:]}), ["a", "b"])
    with refuses("corpus", row=3):
        begin(folder="new", corpus=corpus, encoder=encoder, pairs=True)
    assert not (tmp_path / "new").exists()


def test_a_study_is_loaded_from_its_folder(begin, truth, tmp_path, toy):
    with begin() as study:
        code(study, truth, 3)
    with AnnotationProject.load(tmp_path / "study", toy[0], encoder=toy[1]) as again:
        assert again.progress()["answered"] == 3
    with refuses("folder"):
        AnnotationProject.load(tmp_path / "nowhere", toy[0])


def test_a_default_stands_for_the_design_that_the_study_has(begin):
    begin(teach=0.2, n_test=3, overlap=0.5, random_state=8).close()
    again = begin(codebook=None)
    design = {"teach": 0.2, "n_test": 3, "overlap": 0.5, "random_state": 8}
    assert vars(again.design) == design
    again.close()

    assert vars(begin(**design).design) == design  # the same values are accepted


def test_a_study_shows_its_numbers_in_a_line(begin, truth):
    study = begin(teach=0.0)
    code(study, truth, 6)
    shown = "fruit, train, chess; 6 of 135 texts labelled, 6 of them in the random sample"
    assert repr(study) == f"AnnotationProject({shown})"
    assert shown in study._repr_html_()


def test_a_study_takes_an_unfitted_classifier(begin, truth):
    study = begin(teach=0.0, n_test=0)
    texts = code(study, truth, 30)
    estimator = TextClassifier("lsa", class_weight="balanced")
    model = study.classifier(estimator)

    same = TextClassifier("lsa", classes=NAMES, class_weight="balanced")
    same.fit([text.text for text in texts], [truth[text.text] for text in texts])
    assert not hasattr(estimator, "head_")  # it stays as it is
    np.testing.assert_allclose(
        model.predict_proba([text.text for text in texts]),
        same.predict_proba([text.text for text in texts]),
        atol=1e-6,
    )
    with refuses("estimator") as refused:
        study.classifier("frozen")
    assert "pass et.TextClassifier(" in str(refused.value)
