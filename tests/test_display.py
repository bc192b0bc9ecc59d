"""A result is one line, and in a notebook that line above the first rows of its table."""

import pandas as pd

from embedtopics._utils.display import SCORE_ROWS, Displayed


class Numbers(Displayed):
    """A result with one row for each of forty numbers."""

    def to_frame(self):
        return pd.DataFrame({"number": range(40), "text": "<b>", "hidden": "x"})

    def _summary(self):
        return "40 numbers"


class Scores(Numbers):
    """The same as scores, with the columns that matter."""

    _n_rows_displayed = SCORE_ROWS
    _columns_displayed = ("number", "text")


def test_a_notebook_shows_the_line_and_ten_rows():
    shown = Numbers()._repr_html_()

    assert repr(Numbers()) == "Numbers(40 numbers)"
    assert shown.startswith("<p><b>Numbers(40 numbers)</b></p>")
    assert "<td>9</td>" in shown
    assert "<td>10</td>" not in shown
    assert "30 more rows" in shown


def test_a_table_of_scores_shows_thirty_rows_of_its_columns():
    shown = Scores()._repr_html_()

    assert "<td>29</td>" in shown
    assert "10 more rows" in shown
    assert "hidden" not in shown


def test_text_of_a_table_is_never_markup():
    shown = Numbers()._repr_html_()

    assert "<td>&lt;b&gt;</td>" in shown
