"""Columns of cells as columns of numbers."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd


def infer_type(objects: pd.Series) -> pd.Series:
    """Infer the type of a column of objects; integers with missing values stay integers."""
    present = [value for value in objects.tolist() if value is not None]
    if len(present) < len(objects) and present and all(type(value) is int for value in present):
        with suppress(OverflowError):  # beyond 64 bits they stay objects
            return objects.astype("Int64")
        return objects
    return objects.infer_objects()
