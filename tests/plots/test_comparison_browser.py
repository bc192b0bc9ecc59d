"""The maps and scores of a comparison as a browser draws them: nothing cut off, nothing covered."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest

from embedtopics import plots
from tests.factories import make_comparison
from tests.report.driving import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MEASURES = tuple(f"measure {i}" for i in range(8))
BOX = "(selector => document.querySelector(selector).getBoundingClientRect())"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(CHROMIUM, tmp_path_factory.mktemp("browser"))
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize(("n_encoders", "width"), [(3, 1000), (5, 800)])
def test_all_scores_are_seen_and_no_tool_covers_the_legend(browser, tmp_path, n_encoders, width):
    result = make_comparison(n_encoders=n_encoders)
    rows = [(name, m, 0.5, 0.45, 0.55, 300) for m in MEASURES for name in result.names]
    columns = ["encoder", "measure", "value", "low", "high", "n"]
    figure = plots.comparison(
        replace(result, scores=pd.DataFrame(rows, columns=columns)), width=width
    )
    figure.write_html(tmp_path / "maps.html")
    browser.open(tmp_path / "maps.html")
    browser.wait("document.querySelectorAll('.cell-text').length > 0")
    browser.frame()
    top, lowest = browser.ask(
        f"[{BOX}('.plot-container').top,"
        " Math.max(...[...document.querySelectorAll('.column-cell .cell-rect')]"
        ".map(cell => cell.getBoundingClientRect().bottom))]"
    )
    # What lies below the table's own place is cut off.
    assert lowest <= top + figure.layout.height - figure.layout.margin.b + 1
    tools, legend = browser.ask(f"[{BOX}('.modebar').bottom, {BOX}('.legend .traces').top]")
    assert tools <= legend + 1
