"""Build a search index from the vectors of a batch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import only_writer
from embedtopics.batch._jobs import EmbedTexts
from embedtopics.batch._manifest import Manifest, Shard
from embedtopics.batch._rows import Columns, rows_of
from embedtopics.batch._run import damaged_part, parts_of
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from embedtopics.retrieval._index import SearchIndex

ROWS_AT_ONCE = 50_000
"""Rows per segment; the segments are merged at the end."""


def build_index(
    job: EmbedTexts,
    manifest: Manifest,
    out: str | os.PathLike[str],
    index: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
) -> SearchIndex:
    """Build a search index from the vectors that `run_batch` wrote with `EmbedTexts`.

    Parameters
    ----------
    job, manifest, out, columns
        The arguments of `run_batch`. Dates and groups become metadata for filters. Without a
        column of ids, the id of a row is its file and number, as in ``articles.csv:17``.
    index : path
        New folder of the index, written atomically. Rows without text are omitted.

    Raises
    ------
    InputError
        If parts are missing (run the batch first), or an id occurs twice.
    """
    from embedtopics.retrieval._index import SearchIndex
    from embedtopics.retrieval.storage._checks import check_target

    columns = columns or Columns()
    folder, target = Path(out).expanduser().resolve(), Path(index).expanduser()
    check_target(target, False)
    parts = parts_of(job, manifest, folder, columns)
    missing = [shard for shard, part in parts if not part.exists()]
    if missing:
        undone = f"{len(missing):,} of {len(parts):,} shards missing, such as {missing[0].path}"
        raise InputError("out", "a folder of a finished batch", found=undone, remedy="run it first")
    unfinished = folder / ".writing-index"  # the next run deletes it after a kill
    with only_writer(folder):
        try:
            blocks = _blocks(parts, columns)
            frame, vectors = next(blocks, (None, None))
            if frame is None:
                raise InputError("files", "rows with text", found="none")
            search_index = SearchIndex.build(
                frame, unfinished, text=columns.text, id=columns.id or "id",
                time=columns.time, encoder=job.encoder, embeddings=vectors, overwrite=True,
            )  # fmt: skip
            for frame, vectors in blocks:
                search_index.add(frame, embeddings=vectors)
            search_index.compact()
            return search_index.save(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _blocks(
    parts: list[tuple[Shard, Path]], columns: Columns
) -> Iterator[tuple[pd.DataFrame, FloatArray]]:
    """Yield frames of rows with text and their vectors, several shards at a time."""
    import pandas as pd

    frames: list[pd.DataFrame] = []
    vectors: list[FloatArray] = []
    widths: set[int] = set()
    for place, (shard, part) in enumerate(parts):
        rows = rows_of(shard, columns)
        column = _vectors_of(part)
        if len(column) != len(rows.numbers):
            raise InputError("files", "unchanged since encoding", found=f"a changed {shard.path}")

        file_ids = [f"{Path(shard.path).name}:{number}" for number in rows.numbers]
        cells: dict[str | None, Any] = {
            columns.text: rows.texts,
            columns.id or "id": rows.ids if columns.id else file_ids,
            columns.time: rows.times,
            columns.group: rows.groups,
        }
        cells.pop(None, None)

        has_vector = np.asarray(column.is_valid())
        frames.append(pd.DataFrame(cells)[has_vector])
        flat = column.drop_null().flatten().to_numpy(zero_copy_only=False)
        n_vectors = int(has_vector.sum())
        if n_vectors:
            widths |= set(column.drop_null().value_lengths().unique().to_pylist())
            if len(widths) > 1:
                raise damaged_part(part, "its vectors have another length")
            vectors.append(flat.reshape(n_vectors, -1))

        is_last = place == len(parts) - 1
        if any(map(len, frames)) and (is_last or sum(map(len, frames)) >= ROWS_AT_ONCE):
            yield pd.concat(frames, ignore_index=True), np.concatenate(vectors)
            frames = []
            vectors = []


def _vectors_of(part: Path) -> pa.ListArray:
    """Read the vectors of a part of `EmbedTexts`; rows without text have none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        column = pq.read_table(part, columns=["vector"])["vector"].combine_chunks()
        column.validate(full=True)
        if not pa.types.is_list(column.type) or column.type.value_type != pa.float32():
            raise ValueError(f"its vectors are {column.type}")
        if column.flatten().null_count:
            raise ValueError("numbers of its vectors are missing")
        return column
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        raise damaged_part(part, error) from None
