"""Spans, texts that are asked for, and what two people label on two machines."""

import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics import TextClassifier
from embedtopics.annotation._codebook import checked_spans
from embedtopics.errors import InputError
from embedtopics.inference import shares
from embedtopics.report._documents import Section, html_sections
from tests.annotation.conftest import NAMES, code, small
from tests.factories import refuses

SPANS = [["fruit", 0, 4], ["train", 5, 9]]


def mark(study, n=3):
    """Mark the beginnings of some texts."""
    for _ in range(n):
        text = study.next()
        study.label(text.key, spans=SPANS if len(text.text) > 9 else [])
    return text


def test_spans_come_back_and_give_a_text_its_labels(begin):
    study = begin(kind="spans")
    last = mark(study)
    study.close()
    again = begin(codebook=None)
    frame = again.to_frame()
    assert frame["spans"].tolist() == [SPANS] * 3
    assert frame["label"].tolist() == [["fruit", "train"]] * 3
    assert again.undo().key == last.key and len(again.to_frame()) == 2


@pytest.mark.parametrize(
    ("spans", "row"),
    [
        ([("fruit", 0, 4), ("train", 3, 6)], 1),
        ([("fruit", 4, 4)], 0),
        ([("fruit", 0, 10_000)], 0),
        ([("fruit", 0, 4), ("train", 5)], 1),
        ([("pear", 0, 4)], None),
    ],
)
def test_spans_that_make_no_sense_are_refused(begin, spans, row):
    study = begin(kind="spans")
    key = study.next().key
    with refuses("spans", row=row):
        study.label(key, spans=spans)
    with refuses("labels"):
        study.label(key, "fruit")
    with refuses("spans"):
        begin(folder="single").label(key, "fruit", spans=[("fruit", 0, 4)])
    assert study.to_frame().empty


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 9), st.integers(1, 10)), max_size=4)
)
def test_spans_are_taken_where_no_two_share_a_character(spans):
    covered = [set(range(begin, end)) for _, begin, end in spans]
    fits = all(covered) and sum(map(len, covered)) == len(set().union(*covered))
    try:
        found = checked_spans(spans, "ten chars.", NAMES)
    except InputError:
        assert not fits
    else:
        assert fits and sorted(found) == sorted(spans)
        assert [span[1] for span in found] == sorted(span[1] for span in spans)


def test_texts_that_are_asked_for_come_next(begin, truth):
    study = begin(**small)
    done = code(study, truth, 4)
    ids = [study.state.texts.documents.ids[place] for place in (50, 60)]
    assert study.queue([ids[0], study.keys[60], done[0].key]) == 3
    asked = code(study, truth, 3)
    assert [text.key for text in asked] == [study.keys[50], study.keys[60], done[0].key]
    assert [text.stream for text in asked] == ["teach", "teach", done[0].stream]
    assert code(study, truth, 1)[0].key not in {text.key for text in asked}
    with refuses("keys", row=1):
        study.queue([ids[0], "nowhere"])


def test_answers_of_another_machine_are_taken_in_once(begin, truth, tmp_path):
    mine, theirs = begin(**small), begin(folder="theirs", **small)
    code(mine, truth, 6, by="ann")
    given = code(theirs, truth, 9, by="bea")
    theirs.label(given[0].key, "chess", by="bea")
    theirs.undo(by="bea")
    theirs.label(given[1].key, "chess", by="ann")
    mine_first = mine.to_frame()
    assert mine.merge(tmp_path / "theirs") == 10
    assert mine.merge(tmp_path / "theirs") == 0
    frame = mine.to_frame()
    of_bea = frame[frame["annotator"] == "bea"].set_index("key")
    expected = theirs.to_frame().query("annotator == 'bea'").set_index("key")
    columns = ["text", "label", "stream", "time"]
    pd.testing.assert_frame_equal(of_bea[columns], expected.loc[of_bea.index, columns])
    # Of two answers of one annotator the later holds, whichever machine it is of.
    held = frame[(frame["annotator"] == "ann") & (frame["key"] == given[1].key)]
    assert held["label"].tolist() == ["chess"]
    others = mine_first[mine_first["key"] != given[1].key]
    assert set(others["key"]) <= set(frame[frame["annotator"] == "ann"]["key"])
    mine.label(given[1].key, "fruit", by="ann")
    assert mine.merge(tmp_path / "theirs") == 0
    mine.close()
    assert len(begin(codebook=None).to_frame()) == len(frame)


def test_what_cannot_be_merged_is_named(begin, truth, tmp_path):
    study = begin()
    begin(["fruit", "train"], folder="labels")
    begin(folder="kind", kind="several")
    for folder in ("labels", "kind", "nowhere"):
        with refuses("folder"):
            study.merge(tmp_path / folder)


def test_the_classifier_of_a_study_has_learned_from_all_but_the_test(begin, truth):
    study = begin(**small)
    with refuses("labels"):
        study.classifier(TextClassifier(method="frozen"))
    code(study, truth, 40)
    model = study.classifier(TextClassifier("lsa", method="auto"))
    assert model.method_ == "frozen"  # nothing else is tried with an encoder that has no layers
    n_test = sum(study.to_frame()["test"])
    assert n_test and len(model.training_keys_) == 40 - n_test
    texts = list(truth)
    assert (model.predict(texts) == [truth[text] for text in texts]).mean() > 0.9


def test_tables_of_pages_leave_out_what_is_empty():
    frame = pd.DataFrame({"a": [1.5, float("nan")], "b": [None, None], "c": ["x < y", ["p", "q"]]})
    cells = re.findall("<t[dh](?: [^>]*)?>(.*?)</t[dh]>", html_sections([Section("Name", [frame])]))
    cells = [cell.removeprefix("<bdi>").removesuffix("</bdi>") for cell in cells]
    assert cells == ["a", "c", "1.5", "x &lt; y", "", "p, q"]


def test_labels_of_one_text_are_left_out_of_the_classifier_of_a_study(begin, truth):
    study = begin([*NAMES, "rugby"], **small)
    last = code(study, truth, 40)[-1]
    study.label(last.key, "rugby")
    model = study.classifier(TextClassifier("lsa", method="auto"))
    is_test = study.to_frame().set_index("key")["test"]
    assert "rugby" not in model.classes_ and len(model.classes_) == 3
    assert len(model.training_keys_) == 40 - is_test.sum() - (not is_test[last.key])
    assert "rugby" in model.decisions_[-1].message


def test_the_page_of_a_study_says_what_was_found(begin, truth, tmp_path):
    from embedtopics.report import write_report

    attack = "<script>alert(1)</script>"
    study = begin([{"name": name, "definition": attack} for name in NAMES], **small)
    page = write_report(study.report(), tmp_path / "new.html").read_text("utf-8")
    assert "0 of" in page and attack not in page and "Codebook" in page
    given = code(study, truth, 40, by="ann")
    study.label(given[0].key, "chess", by="bea")
    study.label(given[1].key, truth[given[1].text], by="bea")
    found = study.report()
    assert found.shares is not None and found.progress["labelled"] in (39, 40)
    pd.testing.assert_frame_equal(found.to_frame(), shares(study).to_frame())
    differing = found.tables["Texts on which annotators differ"]
    assert len(differing) == (truth[given[0].text] != "chess")
    examples = found.tables["Examples"]
    assert examples.groupby("label").size().max() <= 3
    assert examples["label"].tolist() == sorted(examples["label"])
    page = write_report(found, tmp_path / "study.html").read_text("utf-8")
    assert "Krippendorff" in page and attack not in page
    assert 'id="place-figure-0"' in page and "default-src" in page
