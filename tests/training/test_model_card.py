"""The model card: read by the tools of model hubs, and text of anybody stays text."""

from __future__ import annotations

import re

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.training._report import escaped, model_card, one_line, yaml_text
from tests.training.reports import HOSTILE, make_report

markdown_it = pytest.importorskip("markdown_it")
PARSER = markdown_it.MarkdownIt("commonmark").enable("table")


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


@pytest.mark.parametrize(
    "base", ["/home/x/models/e5", "tfidf", "a/b/c", "../up", HOSTILE, 'x"\nlicense: evil', "a/..b"]
)
def test_only_names_of_repositories_become_base_models(base):
    card = model_card(make_report(base=base))
    front = yaml.safe_load(card.split("---\n")[1])
    assert "base_model" not in front and "license" not in front
    assert "/home/x" not in card


def test_a_base_model_with_an_owner_is_named():
    front = yaml.safe_load(model_card(make_report(base="BAAI/bge-small-en")).split("---\n")[1])
    assert front["base_model"] == "BAAI/bge-small-en"


def test_figures_are_those_of_the_report():
    card = model_card(make_report())
    assert "| +0.036 (+0.012 to +0.050) | 1,379 | 3 | better (1) |" in card
    assert "| -0.070 (-0.090 to -0.050) | 1,379 | 1 | worse |" in card
    assert "| 0.800 | n/a | n/a | 20 | n/a | no difference shown |" in card
    assert card.count("1. These examples were scored 3 times.") == 1
    assert "**overlearning** (confidence 90%)" in card
    assert "| 2 (kept) | 0.5 | 0.25 | 0.75 |" in card
    assert "| 0 | 1 | n/a | 0.5 |" in card
    assert "| `learning_rate` | 2e-05 |" in card
    assert "- n: 5,749" in card and "- overlap: 0" in card
    assert "/home/somebody" not in card and "- source: train.csv" in card
    bare = model_card(make_report(before_after=(), versions={}))
    assert "was not compared" in bare and "## Versions" not in bare


def test_long_curves_are_thinned_and_keep_the_step_whose_weights_were_kept():
    curves = make_report().curves
    steps = np.arange(0, 1000, 10)
    long = type(curves)(
        **{**vars(curves), "validation_steps": steps, "validation_loss": steps / 7,
           "sample_loss": steps / 7, "metric": steps / 7}
    )  # fmt: skip
    card = model_card(make_report(curves=long, best_step=130))
    shown = re.findall(r"^\| (\d+)(?: \(kept\))? \|", card, re.MULTILINE)
    assert 20 <= len(shown) <= 21 and {"0", "130", "990"} <= set(shown)
    assert f"{len(shown)} of 100 validations" in card


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


@given(st.text())
def test_yaml_text_comes_back(text):
    assert yaml.safe_load(f"key: {yaml_text(text)}") == {"key": one_line(text)}


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
