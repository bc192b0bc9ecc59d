"""Spans, texts that are asked for, and what two people label on two machines."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.annotation._codebook import checked_spans
from embedtopics.errors import InputError
from tests.annotation.conftest import NAMES, code, small
from tests.factories import refuses

SPANS = [["fruit", 0, 4], ["train", 5, 9]]


def mark(study, n=3):
    """Mark the beginnings of some texts."""
    for _ in range(n):
        text = study.next()
        study.label(text.key, spans=SPANS if len(text.text) > 9 else [])
    return text


def test_spans_come_back_and_give_a_text_its_labels(begin, tmp_path):
    study = begin(kind="spans")
    last = mark(study)
    study.close()
    again = begin(labels=None)
    frame = again.to_frame()
    assert frame["spans"].tolist() == [SPANS] * 3
    assert frame["label"].tolist() == [["fruit", "train"]] * 3
    again.edit_codebook(["plum", "train", "chess"], {"fruit": "plum"})
    assert again.to_frame()["spans"][0] == [["plum", 0, 4], SPANS[1]]
    assert again.undo().key == last.key and len(again.to_frame()) == 2


def test_spans_are_written_and_read(begin, tmp_path):
    study = begin(kind="spans")
    mark(study)
    for name in ("labels.csv", "labels.jsonl", "labels.parquet"):
        study.export(tmp_path / name)
        other = begin(kind="spans", folder=f"from {name}")
        assert other.add_labels(tmp_path / name) == 3
        assert other.to_frame()["spans"].tolist() == [SPANS] * 3
    study.export(tmp_path / "labels.conll")
    lines = (tmp_path / "labels.conll").read_text().splitlines()
    text = study.to_frame()["text"][0]
    sentence = lines[1 : lines.index("")]
    words = [line.split("\t")[0] for line in sentence]
    assert "".join(words) == "".join(text.split())
    covered = {"B-fruit", "I-fruit", "B-train", "I-train"}
    begins, at = [], 0
    for word in words:
        begins.append(text.index(word, at))
        at = begins[-1] + len(word)
    for line, begin_, word in zip(sentence, begins, words, strict=True):
        inside = any(begin_ < end and start < begin_ + len(word) for _, start, end in SPANS)
        assert (line.split("\t")[1] in covered) == inside
    assert sum("B-fruit" in line for line in sentence) == 1
    with refuses("path"):
        begin(folder="other").export(tmp_path / "other.conll")


@pytest.mark.parametrize(
    ("spans", "row"),
    [
        ([("fruit", 0, 4), ("train", 3, 6)], 1),
        ([("fruit", 4, 4)], 0),
        ([("fruit", -1, 4)], 0),
        ([("fruit", 0, 10_000)], 0),
        ([("fruit", 0, 4), ("train", 5)], 1),
        ([("fruit", 0.0, 4)], 0),
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
    study = begin(design=small)
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
    mine, theirs = begin(design=small), begin(folder="theirs", design=small)
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
    # Two people there labelled one text: the later answer is the one of that name.
    assert mine.merge(tmp_path / "theirs", by="cem") == 10
    mine.close()
    assert len(begin(labels=None, design=None).to_frame()) == len(frame) + 9


def test_what_cannot_be_merged_is_named(begin, truth, tmp_path):
    study = begin()
    begin(["fruit", "train"], folder="labels")
    begin(folder="kind", kind="several")
    for folder in ("labels", "kind", "nowhere"):
        with refuses("folder"):
            study.merge(tmp_path / folder)


def test_labels_that_look_wrong_come_back(begin, truth):
    study = begin(design=small)
    given = code(study, truth, 40)
    wrong = given[5].key
    right = truth[given[5].text]
    study.label(wrong, next(name for name in NAMES if name != right))
    found = study.suspicious_labels()
    assert found["key"][0] == wrong and found["suggested"][0] == right
    study.queue(found["key"])
    assert study.next().key == wrong


def test_the_classifier_of_a_study_has_learned_from_all_but_the_test(begin, truth):
    study = begin(design=small)
    code(study, truth, 40)
    model = study.classifier("frozen", encoder="lsa")
    n_test = sum(study.to_frame()["test"])
    assert n_test and len(model.training_keys_) == 40 - n_test
    texts = list(truth)
    assert (model.predict(texts) == [truth[text] for text in texts]).mean() > 0.9


def test_several_labels_have_no_suspicious_ones(begin):
    with refuses("kind"):
        begin(kind="several").suspicious_labels()
    with refuses("labels"):
        begin(folder="new").classifier("frozen")


def test_the_page_of_a_study_says_what_was_found(begin, truth, tmp_path):
    from embedtopics.report import write_report

    attack = "<script>alert(1)</script>"
    study = begin([{"name": name, "definition": attack} for name in NAMES], design=small)
    page = write_report(study.report(), tmp_path / "new.html").read_text("utf-8")
    assert "0 of" in page and attack not in page and "Codebook" in page
    given = code(study, truth, 40, by="ann")
    study.label(given[0].key, "chess", by="bea")
    study.label(given[1].key, truth[given[1].text], by="bea")
    found = study.report()
    assert found.shares is not None and found.progress["labelled"] in (39, 40)
    pd.testing.assert_frame_equal(found.to_frame(), study.prevalence().to_frame())
    differing = found.tables["Texts on which annotators differ"]
    assert len(differing) == (truth[given[0].text] != "chess")
    examples = found.tables["Examples"]
    assert examples.groupby("label").size().max() <= 3
    assert examples["label"].tolist() == sorted(examples["label"])
    page = write_report(found, tmp_path / "study.html").read_text("utf-8")
    assert "Krippendorff" in page and attack not in page
    assert 'id="place-figure-shares"' in page and "default-src" in page


def test_several_schemes_are_asked_in_one_pass(begin, tmp_path):
    schemes = {"theme": NAMES, "tone": ["kind", {"name": "harsh", "definition": "Blames."}]}
    study = begin(schemes)
    assert study.kind == "several"
    assert [label.scheme for label in study.codebook] == ["theme"] * 3 + ["tone"] * 2
    assert [label.key for label in study.codebook] == ["1", "2", "3", "4", "5"]
    text = study.next()
    study.label(text.key, ["fruit", "harsh"])
    with refuses("labels"):
        study.label(text.key, ["kind", "harsh"])
    with refuses("labels", row=1):
        study.add_labels(pd.DataFrame({
            "key": study.keys[:2], "label": [["chess", "kind"], ["fruit", "train"]],
        }))  # fmt: skip
    assert study.to_frame()["label"].tolist() == [["fruit", "harsh"]]
    study.close()
    assert begin(labels=None).codebook == study.codebook
    with refuses("kind"):
        begin(schemes, folder="one", kind="single")
