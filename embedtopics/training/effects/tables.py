"""Changes as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from embedtopics.results import Change

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["change_table"]


def change_table(changes: Sequence[Change]) -> pd.DataFrame:
    """Return a row for each change.

    Parameters
    ----------
    changes : sequence of Change
        As `TrainingReport.before_after`.

    Returns
    -------
    pandas.DataFrame
        A column for each field of `Change`.
    """
    import pandas as pd

    return pd.DataFrame(
        [asdict(change) for change in changes], columns=[field.name for field in fields(Change)]
    )
