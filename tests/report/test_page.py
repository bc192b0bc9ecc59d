import base64
import hashlib
import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, report
from embedtopics.errors import InputError
from embedtopics.report._explorer import explorer_html
from embedtopics.results import Decision
from embedtopics.topics.results import Edit
from tests.factories import make_result, raising

NASTY = "</script><script>document.title='pwned'</script><!-- <b>bold</b> & \"q\" 🙂 %{x} \ud800"


class Page(HTMLParser):
    """Elements, and what the scripts hold."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and self.lasttag == "script":
            self.scripts[-1] += data
        self.text.append(data)


@pytest.fixture(scope="module")
def result():
    return make_result(
        texts=[NASTY],
        topic_labels=[NASTY],
        decisions=(
            Decision("corpus", "duplicates", 12, f"12 rows repeat another's text {NASTY}"),
            Decision("terms", "stop_words", ["<i>the</i>", "of"], "Stop words were left out."),
            Decision("custom", "x", 1, "Another stage spoke."),
        ),
        settings={"encoder": {"name": "mini", "batch": NASTY}, "k": 15},
        history=(Edit("rename", message="renamed topic 0"),),
    )


@pytest.fixture(scope="module")
def page(result):
    return explorer_html(result)


def test_no_text_of_the_corpus_becomes_an_element(page):
    parsed = Page(page)
    scripts = [attributes for tag, attributes in parsed.tags if tag == "script"]
    kinds = {"application/json", "application/octet-stream", None}
    assert {attributes.get("type") for attributes in scripts} == kinds
    assert not {"b", "i"} & {tag for tag, _ in parsed.tags}
    assert "<!--" not in page.split("<script>")[0]
    assert "document.title='pwned'" in "".join(parsed.text)


def check_that_nothing_is_loaded(page, n_scripts):
    """A page fetches nothing, has no handlers, and its policy allows its own scripts alone."""
    for _, attributes in Page(page).tags:
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy.split("style-src")[0]) == digests
    assert len(digests) == n_scripts
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert not re.search(r"<[^>]* style=", page)
    for script in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", script)


def test_the_page_loads_nothing_and_runs_only_its_scripts(page):
    check_that_nothing_is_loaded(page, 7)


def test_summary_gives_the_figures(page, result):
    tiles = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert "<h1>Topics of 313 rows</h1>" in page
    assert tiles["Rows"] == str(len(result.corpus)) == "313"
    assert tiles["Distinct documents"] == "300"
    assert tiles["Topics"] == "6"
    assert tiles["In a topic"] == f"{result.coverage:.1%}"
    assert tiles["Encoder"] == "mini"
    assert re.findall(r"\d{4}-\d\d-\d\d", tiles["Period"]) == ["2021-01-01", "2021-11-09"]


def test_topics_hold_keywords_shares_and_typical_documents(page, result):
    body = page.split('<section id="topics">')[1].split("</section>")[0]
    assert body.count('<tbody id="topic-') == result.n_topics
    topic = result.topics[2]
    row = body.split('<tbody id="topic-2">')[1].split("</tbody>")[0]
    assert f">{topic.size:,}</td>" in row
    assert [k in row for k in topic.keywords] == [True] * len(topic.keywords)
    assert row.count("<blockquote>") == len(topic.representatives)
    assert result.corpus.texts[topic.representatives[0]] in row
    assert f"row {topic.representatives[0]}" in row


def test_settings_versions_edits_and_decisions_are_there(page, result):
    assert "<bdi>encoder.batch</bdi>" in page and "<bdi>renamed topic 0</bdi>" in page
    assert all(f"<bdi>{name}</bdi>" in page for name in result.versions)
    body = page.split('<section id="decisions">')[1].split("</section>")[0]
    stages = re.findall(r"<tr><td><bdi>(\w+)</bdi>", body)
    assert list(dict.fromkeys(stages)) == ["corpus", "terms", "custom"]
    assert "<bdi>&lt;i&gt;the&lt;/i&gt;, of</bdi>" in body


@pytest.mark.parametrize("n_documents", [1, 2, 12])
def test_a_result_of_no_topics_has_a_report(n_documents):
    result = make_result(
        n_documents=n_documents, n_topics=0, dated=False, decisions=(), settings={}, versions={},
        timings={},
    )  # fmt: skip
    page = explorer_html(result)
    assert "No topics were found" in page
    assert 'id="decisions"' not in page
    assert "Period" not in page


def test_a_failed_write_keeps_the_old_report(tmp_path, result, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    full_disk = raising(OSError(28, "No space left on device"))
    monkeypatch.setattr("pathlib.Path.write_text", full_disk)
    with pytest.raises(InputError, match="No space left"):
        report.write_report(result, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_topics_over_time_and_by_group_are_shares_of_rows(result):
    who = [["ann", None, "<i>bob"][i % 3] for i in range(len(result.corpus))]
    frame = pd.DataFrame({"text": result.corpus.texts, "who": who})
    frame["date"] = [f"{2001 + i % 9}-06-01" for i in range(len(frame))]
    dated = replace(result, corpus=Corpus(frame, "text", time="date", group="who"))
    page = explorer_html(dated)
    held = result.distinct.of_row >= 0
    first = max(result.topics, key=lambda topic: topic.size).topic_id

    def shown(name):
        body = page.split(f'<section id="{name}">')[1].split("</section>")[0]
        cells = re.findall(r"<td><bdi>(.*?)</bdi></td>", body)
        heads = re.findall(r'<th scope="col">([^<]*) \(n = (\d+)\)</th>', body)
        return body, heads, cells[1 : len(heads) + 1]

    body, heads, shares = shown("by-group")
    for (name, n), share in zip(heads, shares, strict=True):
        rows = held & (np.array(who) == html.unescape(name))
        assert int(n) == rows.sum()
        assert share == f"{(result.labels[rows] == first).mean():.1%}"
    assert "<i>" not in body and len(heads) == 2

    years = 2001 + np.arange(len(frame)) % 9
    _, heads, shares = shown("over-time")
    assert [name for name, _ in heads] == [
        "2001 to 2002", "2003 to 2004", "2005 to 2006", "2007", "2008", "2009"
    ]  # fmt: skip
    for (name, n), share in zip(heads, shares, strict=True):
        rows = held & (years >= int(name[:4])) & (years <= int(name[-4:]))
        assert int(n) == rows.sum()
        assert share == f"{(result.labels[rows] == first).mean():.1%}"

    plain = explorer_html(replace(result, corpus=Corpus(list(result.corpus.texts))))
    assert 'id="over-time"' not in plain and 'id="by-group"' not in plain
