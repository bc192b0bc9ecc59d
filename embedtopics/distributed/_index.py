"""Build a search index from the vectors of a batch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embedtopics._utils.folders import only_writer
from embedtopics._utils.progress import progress_bar
from embedtopics.distributed._jobs import EmbedTexts
from embedtopics.distributed._rows import rows_of
from embedtopics.distributed._run import parts_of
from embedtopics.distributed.results import Columns, Manifest, Shard
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    import pandas as pd

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
    overwrite: bool = False,
    show_progress: bool | None = None,
) -> SearchIndex:
    """Build a search index from the vectors that `run_batch` wrote with `EmbedTexts`.

    Parameters
    ----------
    job, manifest, out, columns
        The arguments of `run_batch`. Dates and groups become metadata for filters. Without a
        column of ids, the id of a row is its file and number, as in ``articles.csv:17``.
    index : path
        Folder of the index, written atomically. Rows without text are omitted.
    overwrite : bool
        Replace an existing index.
    show_progress : bool, optional

    Returns
    -------
    SearchIndex

    Raises
    ------
    InputError
        If parts are missing (run the batch first), or an id occurs twice.
    """
    from embedtopics.retrieval._index import SearchIndex
    from embedtopics.retrieval.storage._checks import check_target

    columns = Columns() if columns is None else columns
    folder, target = Path(out).expanduser().resolve(), Path(index).expanduser()
    check_target(target, overwrite)
    parts = parts_of(job, manifest, folder, columns)
    missing = [shard for shard, part in parts if not part.exists()]
    if missing:
        undone = f"{len(missing):,} of {len(parts):,} shards missing, such as {missing[0].path}"
        raise InputError("out", "a folder of a finished batch", found=undone, remedy="run it first")
    search_index: SearchIndex | None = None
    with only_writer(folder), progress_bar(
        total=manifest.n_rows, unit="row", description="index", show=show_progress
    ) as bar:  # fmt: skip
        beside = folder / ".writing-index"  # the next run deletes it after a kill
        shutil.rmtree(beside, ignore_errors=True)
        try:
            for frame, vectors in _blocks(parts, columns):
                if search_index is None:
                    search_index = SearchIndex.build(
                        frame, beside, text=columns.text, id=columns.id or "id",
                        time=columns.time, encoder=job.encoder, embeddings=vectors,
                        show_progress=False,
                    )  # fmt: skip
                else:
                    search_index.add(frame, embeddings=vectors, show_progress=False)
                bar.update(len(frame))
            if search_index is None:
                raise InputError("files", "rows with text", found="none")
            search_index.compact()
            return search_index.save(target, overwrite=overwrite)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _blocks(
    parts: list[tuple[Shard, Path]], columns: Columns
) -> Iterator[tuple[pd.DataFrame, FloatArray]]:
    """Yield frames of rows with text and their vectors, several shards at a time."""
    import pandas as pd
    import pyarrow.parquet as pq

    frames: list[pd.DataFrame] = []
    vectors: list[FloatArray] = []
    for shard, part in parts:
        rows = rows_of(shard, columns)
        column = pq.read_table(part, columns=["vector"])["vector"].combine_chunks()
        has_vector = np.asarray(column.is_valid())
        if len(has_vector) != len(rows.numbers):
            raise InputError("files", "unchanged since encoding", found=f"a changed {shard.path}")
        if not has_vector.any():
            continue
        name = Path(shard.path).name
        frame = pd.DataFrame({
            columns.text: rows.texts,
            columns.id or "id": rows.ids if columns.id else [f"{name}:{n}" for n in rows.numbers],
        })  # fmt: skip
        for key, values in ((columns.time, rows.times), (columns.group, rows.groups)):
            if key is not None:
                frame[key] = values
        frames.append(frame[has_vector])
        flat = column.drop_null().flatten().to_numpy(zero_copy_only=False)
        vectors.append(flat.reshape(int(has_vector.sum()), -1))
        if sum(map(len, frames)) >= ROWS_AT_ONCE:
            yield pd.concat(frames, ignore_index=True), np.concatenate(vectors)
            frames, vectors = [], []
    if frames:
        yield pd.concat(frames, ignore_index=True), np.concatenate(vectors)
