"""Reports as documents: every format holds the same, and nothing of a text becomes markup."""

import re

import docx
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from embedtopics import TextClassifier, TopicModel, report, topics
from embedtopics.annotation import score_sheet, validation_sheets
from embedtopics.report._documents import FORMATS
from tests.factories import make_comparison, make_result, refuses
from tests.report.test_page import NASTY
from tests.training.reports import make_report

EVIL = "*b* _i_ `c` [l](u) <i>x</i> | # 50 % of $5 & {a} \\end{document} ~ ^"
DOCUMENTS = (".md", ".docx", ".tex")


@pytest.fixture(scope="module")
def result():
    made = make_result(200, 4, texts=[NASTY, EVIL])
    return topics.rename(made, {0: EVIL})


@pytest.fixture(scope="module")
def scores(result):
    """Answers of one person, all right, but for the first word."""
    answered = []
    for sheet in validation_sheets(result):
        answers = sheet.questions.assign(answer=sheet.key["intruder"].replace(0, 5).astype(str))
        answered.append(score_sheet(answers, sheet.key))
    return tuple(answered)


def read(path):
    """Return all text of a document, as its reader sees it."""
    if path.suffix == ".docx":
        document = docx.Document(path)
        cells = [c.text for t in document.tables for row in t.rows for c in row.cells]
        return "\n".join([*(p.text for p in document.paragraphs), *cells])
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return re.sub(r"\\(.)", r"\1", text).replace("&amp;", "&")
    for command, character in (
        ("textbackslash", "\\"), ("textasciitilde", "~"), ("textasciicircum", "^"),
        ("textless", "<"), ("textgreater", ">"),
    ):  # fmt: skip
        text = text.replace(f"\\{command}{{}}", character)
    return re.sub(r"\\([&%$#_{}])", r"\1", re.sub(r"\{([\[*])\}", r"\1", text))


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_every_format_holds_the_whole_report(result, scores, suffix, tmp_path):
    path = tmp_path / f"study{suffix}"
    card = topics.evaluate(result, n_resamples=20)
    frame = topics.table(result)[["name", "size"]]
    assert report.write_report(
        result, path, evaluation=card, scores=scores, tables={"Sizes": frame}
    ) == path  # fmt: skip
    text = read(path)
    headings = (
        "Methods", "Sample and exclusions", "Topics", "Validation by people", "Measures",
        "Checks of each topic", "Sizes", "Decisions", "Edits after the fit", "Settings",
        "Software", "Checklist", "References",
    )  # fmt: skip
    for heading in headings:
        assert heading in text
    assert text.count(EVIL) >= 3  # a label, a text, and an edit
    assert all(topic.name in text for topic in result.topics)
    assert f"{scores[0].precision:.2f}".removesuffix(".00") in text and "not done" in text
    assert "Chang" in text and "Hoyle" in text
    keys = re.findall(r"^@\w+\{(\w+),$", path.with_suffix(".bib").read_text("utf-8"), re.MULTILINE)
    assert {"chang2009", "hoyle2025", "embedtopics"} <= set(keys)
    assert len(keys) == len(set(keys)) and "hennig2007" not in keys  # no stability was measured


def test_markdown_and_latex_hold_no_markup_of_texts(result, tmp_path):
    for suffix in (".md", ".tex"):
        report.write_report(result, tmp_path / f"s{suffix}")
    markdown = (tmp_path / "s.md").read_text("utf-8")
    assert not re.search(r"(?<!\\)[<*`_|\[](?=i>|b\*|c`|i_|l\])", markdown)
    heads = [line for line in markdown.splitlines() if line.startswith("| topic | name")]
    for head in heads:  # no cell of a text adds a column
        rows = markdown[markdown.index(head) :].split("\n\n")[0].splitlines()
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {head.count("|")}
    latex = (tmp_path / "s.tex").read_text("utf-8")
    assert latex.count("\\end{document}") == 1 and latex.rstrip().endswith("\\end{document}")
    assert not re.search(
        r"(?<!\\)[%$#_^~](?!\w*\})", latex.split("\\maketitle")[1].replace("\\_", "")
    )


def test_texts_are_no_options_of_latex(result, tmp_path):
    """A bracket or a star after the end of a row, or after an item, is an option of it."""
    result = topics.rename(result, {0: "[2em] first", 1: "*second"})
    path = report.write_report(
        result, tmp_path / "s.tex", tables={"[a]": pd.DataFrame({"x": "[b]"}, [0])}
    )
    latex = path.read_text("utf-8")
    assert "[2em] first" in read(path) and "*second" in read(path)
    assert not re.search(r"(\\\\|\\item)\s*[\[*]", latex)


def test_addresses_in_texts_are_no_links_in_markdown(result, tmp_path):
    addresses = "See https://evil.example/a?b, HTTP://evil.example, ftp://x.y, (WWW.evil.example)"
    result = topics.rename(result, {0: addresses})
    text = report.write_report(result, tmp_path / "s.md").read_text("utf-8")
    assert addresses in re.sub(r"\\(.)", r"\1", text)
    assert not re.search(r"(?<!\\)://|www\.", text, re.IGNORECASE)


def test_the_checklist_is_filled_with_what_was_done(result, scores, tmp_path):
    def states(**options):
        text = report.write_report(result, tmp_path / "c.md", **options).read_text("utf-8")
        rows = text.split("## Checklist")[1].split("## ")[0].splitlines()
        cells = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")][2:]
        return {check: state for _, check, state in cells}

    bare, full = states(), states(scores=scores, evaluation=topics.evaluate(result))
    assert bare["People identify intruding words"] == "not done"
    assert full["People identify intruding words"].startswith("1 ")
    assert bare["People named the topics"] == f"1 of {result.n_topics} topics"
    assert full["Coherence and diversity of the keywords are reported"].startswith("NPMI ")
    assert bare["Source and sampling of the texts are described"] == "to be written by the authors"


def test_bad_paths_are_named(result, tmp_path):
    for path in ("study.pdf", "study", "none/study.md"):
        with refuses("out"):
            report.write_report(result, tmp_path / path)
    assert set(FORMATS) == {".html", ".htm", *DOCUMENTS} and not [*tmp_path.iterdir()]


CHECKS = ("evaluation", "scores", "specifications", "verification")


@pytest.fixture(scope="module")
def checks(result, scores):
    """Checks of topics, of the right type as far as they are made quickly."""
    card = topics.evaluate(result, n_resamples=20)
    return {"evaluation": card, "scores": scores, "specifications": card, "verification": card}


@pytest.fixture(scope="module")
def training_report():
    return make_report()


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_of_topics_is_refused_for_another_result(name, checks, training_report, tmp_path):
    for other in (make_comparison(40), training_report):
        with refuses(name) as refusal:
            report.write_report(other, tmp_path / "r.html", **{name: checks[name]})

        assert type(other).__name__ in str(refusal.value)
    assert not [*tmp_path.iterdir()]


def test_tables_are_refused_for_a_comparison_and_shown_for_other_results(training_report, tmp_path):
    tables = {"Years and shares": pd.DataFrame({"year": [1999]})}

    with refuses("tables"):
        report.write_report(make_comparison(40), tmp_path / "c.html", tables=tables)
    path = report.write_report(training_report, tmp_path / "t.html", tables=tables)

    assert [*tmp_path.iterdir()] == [path]
    assert "Years and shares" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", [pd.DataFrame({"year": [1999]})]),
        ("tables", {"Years": [1999]}),
        ("tables", None),
        ("evaluation", pd.DataFrame({"year": [1999]})),
        ("evaluation", {"measure": 1}),
        ("scores", "scores"),
        ("specifications", "choices"),
        ("verification", True),
    ],
)
def test_an_addition_of_a_wrong_type_is_refused(name, value, result, tmp_path):
    with refuses(name):
        report.write_report(result, tmp_path / "r.md", **{name: value})
    assert not [*tmp_path.iterdir()]


def test_a_score_outside_of_a_list_is_refused(result, scores, tmp_path):
    with refuses("scores"):
        report.write_report(result, tmp_path / "r.md", scores=scores[0])


def test_what_has_no_page_is_refused_before_the_path_is_read(result):
    for value in (None, "study", [result], 3):
        with refuses("result"):
            report.write_report(value, "nowhere/r.html")


@pytest.mark.parametrize("path", [None, 3, ["r.html"]])
def test_a_path_that_is_none_is_refused(path, result):
    with refuses("out"):
        report.write_report(result, path)


def test_a_fitted_model_stands_for_its_result(result, tmp_path):
    model = TopicModel()
    with pytest.raises(NotFittedError):
        report.write_report(model, tmp_path / "r.md")

    model.result_ = result
    of_model = report.write_report(model, tmp_path / "model.md").read_text("utf-8")
    of_result = report.write_report(result, tmp_path / "result.md").read_text("utf-8")
    assert of_model == of_result


def test_what_has_a_report_elsewhere_is_named_with_its_call(tmp_path):
    with refuses("result") as caught:
        report.write_report(TextClassifier(), tmp_path / "r.html")
    assert str(caught.value).endswith(
        "got TextClassifier; call et.classification.evaluate(classifier, test, train) first"
    )

    with refuses("result") as caught:
        report.write_report("study", tmp_path / "r.html")
    assert str(caught.value).endswith("load it: et.TopicResult.load('study')")
