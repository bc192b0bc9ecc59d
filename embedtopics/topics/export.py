"""Results as plain files that any other program opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._spreadsheets import write_csv
from embedtopics.results import TopicResult
from embedtopics.topics._parquet import storable
from embedtopics.topics.label_files import LABELS, write_labels
from embedtopics.topics.tables import documents, table, terms

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["topic_table", "without_lists", "write_tables"]

N_EXAMPLES = 3


def topic_table(result: TopicResult) -> pd.DataFrame:
    """Return the table of topics with as much as a file should hold."""
    return table(result, n_terms=10, n_examples=N_EXAMPLES, n_characters=300)


def without_lists(topics: pd.DataFrame) -> pd.DataFrame:
    """Return a table of topics without lists, for files that cannot hold them.

    The terms are joined by commas, and each example has a column.
    """
    flat = topics.assign(terms=topics["terms"].map(", ".join))
    for place in range(N_EXAMPLES):
        flat[f"example_{place + 1}"] = [
            found[place] if len(found) > place else "" for found in flat["examples"]
        ]
    return flat.drop(columns="examples")


def write_tables(result: TopicResult, folder: str | Path) -> list[Path]:
    """Write the tables of a result.

    Parameters
    ----------
    result : TopicResult
    folder : str or Path
        Must exist.

    Returns
    -------
    list of Path
        ``topics.csv`` (a topic a row), ``documents.parquet`` (every input row in its order,
        with its topic, membership and map position), ``terms.parquet`` (the fifty best
        terms of each topic) and ``labels.csv`` (the names of the topics, to be edited; see
        `read_labels`).
    """
    folder = Path(folder)
    paths = [folder / name for name in ("topics.csv", "documents.parquet", "terms.parquet")]
    write_csv(paths[0], without_lists(topic_table(result)))
    storable(documents(result)).to_parquet(paths[1], engine="pyarrow", compression="zstd")
    terms(result).to_parquet(paths[2], engine="pyarrow", compression="zstd", index=False)
    return [*paths, write_labels(result, folder / LABELS)]
