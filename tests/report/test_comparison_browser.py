"""Linked maps, used as a person would use them in a browser.

Thirty-six documents lie on a grid, in another order in each map, so that what a line encloses can
be told by hand.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from embedtopics import report
from tests.factories import make_comparison
from tests.report.driving import IN_A_BROWSER, check_console
from tests.report.test_explorer_browser import STATE, opened
from tests.report.test_page import NASTY

SIDE = 6
SPACING = 100.0

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def result():
    made = make_comparison(n_documents=SIDE * SIDE, n_groups=3, texts=[NASTY])
    grid = np.array([(x, y) for y in range(SIDE) for x in range(SIDE)], dtype=np.float32)
    rng = np.random.default_rng(5)
    encoders = tuple(
        replace(view, map=SPACING * grid[rng.permutation(len(grid))]) for view in made.encoders
    )
    return replace(made, encoders=encoders)


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    return report.write_report(result, tmp_path_factory.mktemp("linked") / "comparison.html")


def at(browser, panel, points):
    """Return pixels of the window for points of the grid, by hand."""
    left, top, width, height = browser.ask(
        f"(b => [b.left, b.top, b.width, b.height])"
        f"(document.querySelectorAll('.map')[{panel}].getBoundingClientRect())"
    )
    span = SPACING * (SIDE - 1)
    scale = (min(width, height) - min(64, int(width) // 8)) / span
    return [
        (left + width / 2 + scale * (SPACING * x - span / 2),
         top + height / 2 - scale * (SPACING * y - span / 2))
        for x, y in points
    ]  # fmt: skip


def selected(browser):
    """Return the rows that are lit up, by what leaves the page."""
    browser.ask("navigator.clipboard.writeText = async text => { window.copied = text; }")
    browser.click_on("#copy-filter")
    browser.wait("window.copied !== undefined")
    listed = browser.ask("window.copied").removeprefix("corpus.take([").removesuffix("])")
    return {int(row) for row in listed.split(", ")}


@pytest.mark.parametrize("panel", [0, 2])
def test_a_line_in_one_map_selects_the_same_documents_in_all(browser, page, result, panel):
    opened(browser, page)
    corners = [(-0.2, -0.2), (2.4, -0.2), (2.4, 1.4), (1.4, 1.4), (1.4, 3.4), (-0.2, 3.4)]
    browser.drag(at(browser, panel, corners), shift=True)
    cells = np.rint(result.encoders[panel].map / SPACING).astype(int).tolist()
    inside = [(x <= 1 and y <= 3) or (x == 2 and y <= 1) for x, y in cells]
    rows = np.flatnonzero(np.isin(result.distinct.of_row, np.flatnonzero(inside)))
    browser.wait(f"{STATE}.startsWith('{len(rows)} of')")
    assert selected(browser) == set(rows.tolist())
    name = result.names[panel]
    assert name in browser.ask("document.getElementById('conditions').textContent")
    browser.wait("location.hash.includes('line=')")
    again = browser.ask("location.hash")
    opened(browser, page, again)
    browser.wait(f"{STATE}.startsWith('{len(rows)} of')")


def test_a_document_stands_with_its_neighbours_in_every_list(browser, page, result):
    opened(browser, page)
    browser.click_on("#largest-changes details[open] [data-row]")
    browser.wait("document.querySelectorAll('#document .near').length === 3")
    row = browser.ask("+document.querySelector('#largest-changes [data-row]').dataset.row")
    held = np.flatnonzero(result.distinct.of_row >= 0)
    document = int(result.distinct.of_row[held[row]])
    assert document == result.moved["document"].iloc[0]
    columns = browser.ask(
        "[...document.querySelectorAll('#document .near')].map(o => "
        "[...o.querySelectorAll('[data-row]')].map(e => +e.dataset.row))"
    )
    near = [view.graph.indices[document].tolist() for view in result.encoders]
    assert [[int(result.distinct.of_row[held[r]]) for r in column] for column in columns] == near
    notes = browser.ask("[...document.querySelectorAll('.near .note')].map(e => e.textContent)")
    every = [j for column in near for j in column]
    words = {1: "only here", 2: "in 2 of 3", 3: "in every list"}
    assert notes == [words[every.count(j)] for j in every]
    check_console(browser)


def test_keys_move_over_the_map_that_has_the_focus(browser, page, result):
    opened(browser, page)
    browser.ask("document.querySelectorAll('.map')[1].focus()")
    browser.press("ArrowRight")  # begins at a document in the middle
    live = "document.getElementById('live').textContent"
    browser.wait(f"{live} !== ''")
    first = browser.ask(live)
    browser.press("ArrowLeft")
    browser.wait(f"{live} !== {json.dumps(first)}")
    texts = {result.corpus.texts[row][:60]: i
             for i, row in enumerate(result.distinct.first_rows)}  # fmt: skip
    spots = [
        result.encoders[1].map[texts[said.split(": ", 1)[1][:60]]].tolist()
        for said in (first, browser.ask(live))
    ]
    assert spots[1] == [spots[0][0] - SPACING, spots[0][1]]
    assert browser.ask("document.querySelectorAll('img').length") == 0
    fetched = [e["params"]["request"]["url"] for e in browser.events
               if e["method"] == "Network.requestWillBeSent"]  # fmt: skip
    assert [url.split(":")[0] for url in fetched] == ["file"]
