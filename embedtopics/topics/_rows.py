"""The rows of a corpus as a parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.corpus import Corpus
from embedtopics.results import Decision
from embedtopics.topics._parquet import storable, unique_names

__all__ = ["read_rows", "saved_name", "write_rows"]

TEXT, ID, STATUS = "__text__", "__id__", "__status__"


def write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that parquet cannot hold are written as their text."""
    frame = storable(corpus.metadata)
    frame.insert(0, TEXT, list(corpus.texts))
    frame.insert(1, ID, list(corpus.ids))
    frame.insert(2, STATUS, corpus.status)
    # A dictionary would have to hash all texts, to find that hardly any repeats.
    columns = [name for name in frame.columns if name not in (TEXT, ID)]
    frame.to_parquet(path, engine="pyarrow", compression="zstd", use_dictionary=columns)


def saved_name(corpus: Corpus, column: Any) -> str | None:
    """Return the name under which a column of the metadata is saved."""
    if column is None:
        return None
    names = list(corpus.metadata.columns)
    return unique_names(names)[names.index(column)] if column in names else str(column)


def read_rows(path: Path, about: dict[str, Any]) -> Corpus:
    from pyarrow import parquet

    table = parquet.read_table(path)
    # Straight to strings: a Series of them is several times as slow to go through.
    texts, ids = (tuple(table.column(name).to_pylist()) for name in (TEXT, ID))
    frame = table.drop_columns([TEXT, ID]).to_pandas()
    return Corpus(
        texts=texts,
        ids=ids,
        status=frame.pop(STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        text_column=about["text_column"],
        time_column=about["time_column"],
        group_column=about["group_column"],
        source=about["source"],
        notes=tuple(Decision(**note) for note in about["notes"]),
    )
