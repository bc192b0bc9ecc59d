"""Results as plain files that any other program opens."""

from __future__ import annotations

from pathlib import Path

from embedtopics._files import spreadsheet_safe
from embedtopics.results import TopicResult
from embedtopics.topics._parquet import storable
from embedtopics.topics.label_files import LABELS, write_labels
from embedtopics.topics.tables import documents, table, terms

__all__ = ["write_tables"]


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
    topics = table(result, n_terms=10, n_examples=3, n_characters=300)
    topics["terms"] = topics["terms"].map(", ".join)
    for place in range(3):
        topics[f"example_{place + 1}"] = [
            found[place] if len(found) > place else "" for found in topics["examples"]
        ]
    topics = topics.drop(columns="examples")
    for name in topics.columns.difference(["topic", "size", "share", "recurrence"]):
        topics[name] = topics[name].map(spreadsheet_safe)
    paths = [folder / name for name in ("topics.csv", "documents.parquet", "terms.parquet")]
    topics.to_csv(paths[0], index=False, encoding="utf-8")
    storable(documents(result)).to_parquet(paths[1], engine="pyarrow", compression="zstd")
    terms(result).to_parquet(paths[2], engine="pyarrow", compression="zstd", index=False)
    return [*paths, write_labels(result, folder / LABELS)]
