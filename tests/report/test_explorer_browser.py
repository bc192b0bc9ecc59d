"""The explorer, used as a person would use it in a browser."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, report, topics
from embedtopics.report import _explorer
from embedtopics.report._documents import asset
from tests.factories import make_result
from tests.report.driving import IN_A_BROWSER, check_console
from tests.report.test_page import NASTY

OTHERS = [
    "مرحبا بالعالم",
    "ภาษาไทยง่าย",
    "👩‍👩‍👧 family 🙂",
    "<img src=x onerror=\"document.title='p'\">",
]
READY = "document.getElementById('map')?.dataset.ready === '1'"
STATE = "document.getElementById('state').textContent"
MAP = (
    "(b => [b.left, b.top, b.width, b.height])"
    "(document.getElementById('map').getBoundingClientRect())"
)

pytestmark = IN_A_BROWSER


def opened(browser, page, hash_=""):
    """Open a page anew, with what its address asks for."""
    browser.call("Page.navigate", url="about:blank")
    browser.wait("location.href === 'about:blank'")
    browser.events.clear()
    browser.call("Page.navigate", url=page.as_uri() + hash_)
    browser.wait(READY)
    return browser


@pytest.fixture(scope="module")
def result():
    made = make_result(texts=[NASTY, *OTHERS], topic_labels=[NASTY])
    frame = pd.DataFrame({
        "text": list(made.corpus.texts), "date": made.corpus.time.dt.strftime("%Y-%m-%d"),
        "who": ["ann" if i % 3 else "bob's" for i in range(len(made.corpus))],
    })  # fmt: skip
    corpus = Corpus(frame, text="text", time="date", group="who")
    return replace(made, corpus=corpus)


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    return report.write_report(result, tmp_path_factory.mktemp("explorer") / "study.html")


@pytest.mark.parametrize(("hash_", "painter"), [("#gl=", "webgl2"), ("", "cpu")])
def test_points_are_drawn_and_hostile_texts_stay_texts(browser, page, hash_, painter):
    opened(browser, page, hash_)
    assert browser.ask("document.getElementById('map').dataset.painter") == painter
    browser.wait("document.querySelectorAll('#table [role=row]').length > 3")
    shown = browser.ask("document.getElementById('table').innerText")
    assert all(text in shown for text in OTHERS[:3])
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.ask("document.title").startswith("Topics of")
    check_console(browser)


def test_a_search_selects_the_texts_that_hold_the_words(browser, page, result):
    opened(browser, page)
    browser.click_on("#search")
    browser.type("river often")
    rows = [text for text in result.corpus.texts if "river" in text and "often" in text]
    browser.wait(f"{STATE}.startsWith('{len(rows)} of 312')")
    browser.wait("location.hash.includes('q=river')")
    browser.press("Escape")
    browser.wait(f"{STATE} === ''")


def test_the_words_that_set_a_topic_apart_are_those_of_keyness(browser, page, result):
    opened(browser, page)
    found = json.loads(browser.ask(
        "Store.loadIndex().then(() => { const w = new Float64Array(Store.nDocuments);"
        "for (let r = 0; r < Store.n; r += 1) if (Store.topicOf[r] === 2) w[Store.documentOf[r]]++;"
        "return JSON.stringify(Store.keyness(w)); })"
    ))  # fmt: skip
    expected = topics.keyness(result, 1, n_terms=None).set_index("term")
    assert {one["term"] for one in found} == set(expected.index)
    for one in found:
        row = expected.loc[one["term"]]
        assert one["counts"] == [row["count_target"], row["count_reference"]]
        np.testing.assert_allclose(
            [one[name] for name in ("effect", "low", "high", "z")],
            row[["effect", "low", "high", "statistic"]].to_numpy(float), atol=1e-9,
        )  # fmt: skip


def test_a_line_around_everything_selects_all_and_leaves_as_rows(browser, page, result):
    opened(browser, page)
    left, top, width, height = browser.ask(MAP)
    right, low = left + width - 2, top + height - 2
    corners = [(left + 2, top + 2), (right, top + 2), (right, low), (left + 2, low)]
    browser.drag(corners, shift=True)
    browser.wait(f"{STATE}.startsWith('312 of 312')")
    browser.ask("window.taken = null; URL.createObjectURL = blob => (blob.text().then("
                "text => { window.taken = text; }), 'blob:x')")  # fmt: skip
    browser.click_on("#csv")
    browser.wait("window.taken !== null")
    lines = browser.ask("window.taken").strip().splitlines()
    assert lines[0].lstrip("\ufeff") == "row,topic,topic_label"
    held = np.flatnonzero(result.distinct.of_row >= 0)
    assert [int(line.split(",")[0]) for line in lines[1:]] == held.tolist()
    assert [int(line.split(",")[1]) for line in lines[1:]] == result.labels[held].tolist()


def test_keys_alone_open_a_document_and_say_it(browser, page):
    opened(browser, page)
    browser.ask("document.getElementById('map').focus()")
    browser.press("ArrowRight")
    browser.wait("document.querySelector('#document .text')?.textContent.length > 0")
    first = browser.ask("document.getElementById('live').textContent")
    browser.press("ArrowLeft")
    browser.wait(f"document.getElementById('live').textContent !== {json.dumps(first)}")
    browser.press("Escape")
    assert browser.ask("document.getElementById('document').hidden")


def test_a_group_becomes_a_filter_that_the_package_reads(browser, page, result):
    from embedtopics.corpus.filters._expressions import parse_filter

    opened(browser, page, "#groups=2")
    n_rows = int((result.corpus.group[result.distinct.of_row >= 0] == "bob's").sum())
    browser.wait(f"{STATE}.startsWith('{n_rows} of')")
    browser.ask("navigator.clipboard.writeText = async text => { window.copied = text; }")
    browser.click_on("#copy-filter")
    browser.wait("window.copied !== undefined")
    copied = browser.ask("window.copied")
    sql, values = parse_filter(copied, {"who": "text"}).sql
    assert (sql, values) == ("(who IS NOT NULL AND who IN (?))", ["bob's"])


@pytest.mark.parametrize("n_documents", [1, 30, 631])
def test_corpora_of_any_size_open(browser, tmp_path, n_documents):
    n_topics = 0 if n_documents == 1 else 3
    made = make_result(n_documents=n_documents, n_topics=n_topics, dated=False)
    opened(browser, report.write_report(made, tmp_path / "study.html"))
    number = browser.ask("document.getElementById('number').textContent")
    assert number.startswith(f"{int((made.distinct.of_row >= 0).sum())} document")
    check_console(browser)


NOTEBOOK = """<!doctype html><meta charset="utf-8"><body style="margin: 0"><div id="cell"></div>
<script type="module">
%s
const state = { page: %s, height: 900, rows: new DataView(new ArrayBuffer(0)) };
const listeners = new Set();
window.model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; for (const one of [...listeners]) one(); },
  save_changes: () => { window.saves = (window.saves ?? 0) + 1; },
  on: (name, listener) => listeners.add(listener),
  off: (name, listener) => listeners.delete(listener),
};
window.rows = () => [...new Uint32Array(state.rows.buffer)];
window.isListening = () => listeners.size > 0;
window.close = render({ model, el: document.getElementById("cell") });
</script>"""
"""A notebook's page, with a model in place of the kernel's."""


def test_the_selection_goes_from_the_page_to_the_notebook_and_back(browser, result, tmp_path):
    page = json.dumps(_explorer.explorer_html(result)).replace("</", "<\\/")
    script = asset("widget.js").replace("export default { render };", "")
    path = tmp_path / "notebook.html"
    path.write_text(NOTEBOOK % (script, page), "utf-8")
    browser.open(path)
    browser.wait("window.isListening?.()")
    has_text = np.flatnonzero(result.distinct.of_row >= 0).tolist()
    all_selected = f"rows().join() === '{','.join(map(str, has_text))}'"
    around_all_points = [(890, 88), (890, 648), (3, 648), (3, 88)]
    browser.drag_until(all_selected, around_all_points, shift=True)
    for selected in ([has_text[3], has_text[8]], []):  # the way back, which the page confirms
        saves = browser.ask("window.saves")
        browser.ask(f"model.set('rows', new DataView(Uint32Array.from({selected}).buffer))")
        browser.wait(f"window.saves > {saves}")
        assert browser.ask("rows()") == selected
    browser.ask("window.postMessage({ embedtopics: 'selection', rows: new Uint32Array([1]) }, '*')")
    browser.frame()
    assert browser.ask("rows()") == []  # others than the frame are not heard
    assert browser.ask("document.title") == ""
    browser.ask("window.close()")
    assert not browser.ask("window.isListening()")
    check_console(browser)
