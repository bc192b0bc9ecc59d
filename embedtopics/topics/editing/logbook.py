"""What was done to a result after the fit, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history"]


def history(result: TopicResult) -> pd.DataFrame:
    """Tabulate what was done to a result after the fit.

    To take a step back, keep the result from before it: an edit leaves that as it was. Or do the
    steps before it again on the fit, with ``replay(fit, result.history[:n])``.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    DataFrame
        Columns step (from 1), edit (the function in `embedtopics.topics`) and message, in order.
    """
    import pandas as pd

    rows = [(step, edit.name, edit.message) for step, edit in enumerate(result.history, start=1)]
    return pd.DataFrame(rows, columns=["step", "edit", "message"])
