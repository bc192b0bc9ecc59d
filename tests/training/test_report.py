"""Reports on disk: every value comes back, and damage is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from embedtopics._utils.folders import replacing_folder, write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.training import TrainingReport
from embedtopics.training._report import (
    _plain,
    _restored,
    escaped,
    model_card,
    one_line,
    write_report,
)
from tests.factories import refuses
from tests.training.reports import HOSTILE, NO_CHANGES, make_report, same


def test_all_values_come_back(tmp_path):
    report = make_report()
    place = write_report(report, tmp_path)
    assert place == tmp_path / "training-report"
    assert same(report, TrainingReport.load(tmp_path))
    content = (place / "training.json").read_text()
    json.loads(content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (tmp_path / "README.md").read_text("utf-8").startswith("---\n")
    later = make_report(best_step=4)
    write_report(later, tmp_path)
    assert same(later, TrainingReport.load(tmp_path))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("$number"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_a_setting_holds_comes_back(value):
    text = json.dumps(_plain(value, "value"), allow_nan=False)
    assert same(value, _restored(json.loads(text)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool", "uint8"])
def test_arrays_keep_their_type_shape_and_bits(dtype):
    values = np.random.default_rng(0).normal(size=(3, 4)) * 3
    array = np.abs(values).astype(dtype)
    assert same(array, _restored(json.loads(json.dumps(_plain(array, "a")))))
    empty = np.zeros((0, 3), dtype=dtype)
    back = _restored(_plain(empty, "a"))
    assert back.shape == (0, 3) and back.dtype == dtype


def test_what_json_cannot_hold_is_named(tmp_path):
    with refuses("report.settings['loss']"):
        write_report(make_report(settings={"loss": same}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_damage_is_told(tmp_path):
    with refuses("folder"):
        write_report(make_report(), tmp_path / "nowhere")
    with refuses("folder"):
        TrainingReport.load(tmp_path)
    place = write_report(make_report(), tmp_path)
    text = (place / "training.json").read_text()
    (place / "training.json").write_text(text.replace("0.81", "0.91"))
    with pytest.raises(CorruptFileError, match="checksum"):
        TrainingReport.load(tmp_path)
    # Written by somebody with checksums that fit.
    for edit in (
        lambda t: "[1]",
        lambda t: t.replace('"Curves"', '"Surprise"'),
        lambda t: t.replace('"best_step"', '"worst_step"'),
        lambda t: t.replace('"float64"', '"object"'),
        lambda t: t.replace('"$tuple"', '"$eval"'),
        lambda t: "[" * 100_000,
    ):
        (place / "training.json").write_text(edit(text))
        write_manifest(place, "embedtopics training report", 1)
        with pytest.raises(CorruptFileError, match=r"damaged|no report"):
            TrainingReport.load(tmp_path)
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "version": 2}))
    with pytest.raises(CorruptFileError, match="format 2"):
        TrainingReport.load(tmp_path)


def test_a_saved_encoder_with_a_report_can_be_saved_again(tmp_path):
    def save():
        with replacing_folder(tmp_path / "encoder", "an encoder") as fresh:
            (fresh / "weights").write_text("1")
            write_manifest(fresh, "an encoder", 1)

    save()
    write_report(make_report(), tmp_path / "encoder")
    (tmp_path / "encoder" / "README.md").write_text("edited")
    save()
    assert sorted(p.name for p in (tmp_path / "encoder").iterdir()) == ["manifest.json", "weights"]


PARSER = MarkdownIt("commonmark").enable("table")


def inline_tokens(text):
    return [
        token
        for block in PARSER.parse(text)
        for token in (block.children if block.type == "inline" else [block])
    ]


def body_of(card):
    return card.split("\n---\n", 1)[1]


def test_front_matter_is_what_hubs_read():
    card = model_card(make_report())
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["library_name"] == "sentence-transformers"
    assert front["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert "sentence-similarity" in front["tags"] and set(front) == {
        "library_name", "pipeline_tag", "base_model", "tags",
    }  # fmt: skip
    from huggingface_hub import ModelCard

    read = ModelCard(card)
    assert read.data.base_model == front["base_model"]
    assert read.data.library_name == "sentence-transformers"
    assert read.text.strip().startswith("# my-encoder")
    assert "from embedtopics import SentenceEncoder" in card


@pytest.mark.parametrize(
    "base", ["/home/x/models/e5", "tfidf", "a/b/c", "../up", HOSTILE, 'x"\nlicense: evil', "a/..b"]
)
def test_only_names_of_repositories_become_base_models(base):
    card = model_card(make_report(base=base))
    front = yaml.safe_load(card.split("---\n")[1])
    assert "base_model" not in front and "license" not in front
    assert "/home/x" not in card


def test_figures_are_those_of_the_report():
    card = model_card(make_report())
    assert "| +0.036 (+0.012 to +0.050) | 1,379 | 3 | better (1) |" in card
    assert "| -0.070 (-0.090 to -0.050) | 1,379 | 1 | worse |" in card
    assert "| 0.800 | n/a | n/a | 20 | n/a | no difference shown |" in card
    assert card.count("1. These examples were scored 3 times.") == 1
    assert "**overlearning** (confidence 90%)" in card
    assert "| `learning_rate` | 2e-05 |" in card
    assert "- n train: 5,749" in card and "- shares: 0.5, n/a" in card
    assert "/home/somebody" not in card and "- train: train.csv" in card
    assert "was not compared" in model_card(make_report(before_after=NO_CHANGES))


def test_unchanged_weights_are_said_first():
    report = make_report(best_step=0)
    assert repr(report).startswith("TrainingReport(UNCHANGED WEIGHTS, ")
    beginning = model_card(report).partition("# my-encoder\n\n")[2]
    assert beginning.startswith("**Unchanged: the weights are those of ")
    assert "UNCHANGED" not in repr(make_report()) and "Unchanged" not in model_card(make_report())


def test_text_of_anybody_is_text():
    card = model_card(make_report(folder=HOSTILE, objective=HOSTILE, stopped=HOSTILE))
    tokens = inline_tokens(body_of(card))
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr", "code_block"}
    headings = [t for t in PARSER.parse(body_of(card)) if t.type == "heading_open"]
    plain = [
        t for t in PARSER.parse(body_of(model_card(make_report()))) if t.type == "heading_open"
    ]
    assert len(headings) == len(plain)
    text = " ".join(token.content for token in tokens if token.type == "text")
    assert "<script>alert(1)</script> [link](javascript:alert(1))" in text
    assert "\x00" not in card and "\u202e" not in card and "\ud800" not in card
    card.encode("utf-8")


@given(st.text())
def test_escaped_text_is_shown_as_it_is(text):
    for before, after in (("", ""), ("- ", ""), ("1. ", ""), ("# ", "")):
        blocks = [t for t in PARSER.parse(before + escaped(text) + after) if t.type == "inline"]
        shown = "".join(child.content for block in blocks for child in block.children)
        assert shown.strip() == one_line(text).strip()
        assert {c.type for b in blocks for c in b.children} <= {"text", "text_special"}
    head = "| a |\n| --- |\n"
    cells = [t for t in PARSER.parse(f"{head}| {escaped(text)} |") if t.type == "inline"]
    assert len(cells) == 2
    assert "".join(c.content for c in cells[1].children).strip() == one_line(text).strip()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/home/ann/data/train.csv: 3 rows", "train.csv: 3 rows"),
        ("read ~/data/a.csv, then C:\\Users\\ann\\b.csv.", "read a.csv, then b.csv."),
        ("kept in (/tmp/x/looks-1).", "kept in (looks-1)."),
        ("precision and/or recall of 1/2", "precision and/or recall of 1/2"),
    ],
)
def test_paths_of_the_author_become_names(said, shown):
    card = model_card(make_report(stopped=said))
    assert f"ended: {shown}; the weights" in card


@pytest.mark.parametrize("name", ["somebody/some-model", "all-MiniLM-L6-v2", "tfidf", "auto"])
def test_a_report_loads_no_encoder_but_from_a_folder(name):
    report = make_report(folder=name)
    with refuses("folder"):
        report.encoder  # noqa: B018


def test_tables_have_the_columns_of_their_rows():
    report = make_report()
    changes = report.before_after
    assert changes.columns.tolist() == [
        "task", "metric", "before", "after", "difference", "low", "high", "n", "verdict",
        "n_test_evaluations", "note",
    ]  # fmt: skip
    assert changes["n"].tolist() == [1379, 1379, 20, 500]
    assert changes["n_test_evaluations"].tolist() == [3, 1, 0, 0]
    assert report.to_frame() is changes

    evidence = report.diagnosis.evidence
    assert evidence.columns.tolist() == ["name", "value", "low", "high", "threshold", "says"]
    assert evidence["low"].tolist() == [0.1] and np.isnan(evidence["threshold"][0])
    assert report.diagnosis.to_frame() is evidence


def test_nothing_compared_is_a_table_without_rows(tmp_path):
    report = make_report(before_after=NO_CHANGES)
    write_report(report, tmp_path)
    loaded = TrainingReport.load(tmp_path).before_after
    assert loaded.empty and same(loaded, report.before_after)
    assert same(make_report().before_after.iloc[:0], NO_CHANGES)


def test_a_row_in_a_file_is_a_record(tmp_path):
    """Reports of earlier versions, which held tuples of records, are read in this form."""
    content = json.loads((write_report(make_report(), tmp_path) / "training.json").read_text())
    changes = content["fields"]["before_after"]["$tuple"]
    assert [row["$record"] for row in changes] == ["Change"] * 4
    assert changes[1]["fields"] == {
        "task": "stsb", "metric": "Spearman correlation", "before": 0.82, "after": 0.75,
        "difference": -0.07, "low": -0.09, "high": -0.05, "n": 1379, "verdict": "worse",
        "n_test_evaluations": 1, "note": "",
    }  # fmt: skip
    (found,) = content["fields"]["diagnosis"]["fields"]["evidence"]["$tuple"]
    assert found["$record"] == "Evidence" and found["fields"]["threshold"] == {"$number": "nan"}
