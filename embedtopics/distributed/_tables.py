"""Counts of shards, added up."""

from __future__ import annotations

import os
from pathlib import Path

from embedtopics.distributed.results import TopicCounts
from embedtopics.errors import InputError


def read_counts(out: str | os.PathLike[str], model: str | os.PathLike[str]) -> TopicCounts:
    """Add up the counts of all shards.

    Parameters
    ----------
    out : path
        Folder that `run_batch` wrote with `CountTopics`.
    model : path
        The saved model, for the names of the terms.

    Raises
    ------
    InputError
        Where the folder holds no counts.
    """
    import pandas as pd

    from embedtopics.topics._storage import load_result

    by = ["topic", "period", "group", "term"]
    parts = sorted(Path(out).expanduser().glob("part-*.parquet"))
    total = None
    for path in parts:  # one at a time: all may not fit into memory, their sum does
        table = pd.read_parquet(path)
        if not {*by, "n"} <= set(table.columns):
            break
        joined = table if total is None else pd.concat([total, table])
        total = joined.groupby(by, as_index=False)["n"].sum()
    if total is None:
        raise InputError("out", "a folder of counts", out)
    result = load_result(Path(model))
    is_row = total["term"] == -1
    return TopicCounts(
        total[is_row].drop(columns="term").reset_index(drop=True),
        total[~is_row].reset_index(drop=True),
        result.term_counts.terms,
        result.n_topics,
    )
