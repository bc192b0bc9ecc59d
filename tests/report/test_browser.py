"""The report, and the maps and scores of a comparison, as a browser shows them."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from embedtopics import plots, report
from tests.factories import make_comparison, make_result
from tests.report.driving import IN_A_BROWSER

MEASURES = tuple(f"measure {i}" for i in range(8))
BOX = "(selector => document.querySelector(selector).getBoundingClientRect())"

pytestmark = IN_A_BROWSER


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


@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_a_page_has_no_fault_that_keeps_people_out(browser, tmp_path, kind):
    rules = find_spec("axe_core_python")
    if rules is None:
        pytest.skip("needs axe-core-python, of which only the rules are read")
    written = make_comparison() if kind == "comparison" else make_result()
    browser.open(report.write_report(written, tmp_path / "page.html"))
    browser.wait("document.querySelector('[data-ready], .main-svg') !== null")
    browser.frame()
    axe = Path(rules.origin).with_name("axe.min.js").read_text("utf-8")
    browser.ask(f"{axe}; 0")
    faults = browser.ask("axe.run().then(r => r.violations.map(v => [v.impact, v.id]))")
    assert [fault for fault in faults if fault[0] != "minor"] == []
