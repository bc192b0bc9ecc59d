"""One worker: a shard in, a whole file out, counts back. Imports nothing before threads are set."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from embedtopics.distributed._jobs import Job
    from embedtopics.distributed.results import Columns, Shard

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SAMPLED_ROWS = 500
"""Rows by which a plan tells the time."""

ERRORS = "_errors"
"""Readers of parquet folders pass over names that begin with "_"."""


class Outcome(NamedTuple):
    """What became of a shard: nothing, a fault of the shard, or one that stops the whole run."""

    fault: str = ""
    stops: bool = False


def describe_work(job: Job, columns: Columns, folder: Path) -> dict[str, Any]:
    """Return what a worker needs, as plain values."""
    fields = {key: str(value) for key, value in vars(job).items()}
    return {
        "job": job.name, "fields": fields, "columns": dataclasses.asdict(columns),
        "folder": str(folder),
    }  # fmt: skip


def limit_threads() -> None:
    """Give this process, which does nothing else, one thread; before heavy libraries are there."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


class Worker:
    """Has the encoder or the model loaded and does shards one after the other."""

    def __init__(self, work: dict[str, Any]) -> None:
        from embedtopics.distributed import _jobs
        from embedtopics.distributed.results import Columns

        kinds: dict[str, Any] = {
            kind.name: kind
            for kind in (
                _jobs.EmbedTexts, _jobs.AssignTopics, _jobs.CountTopics, _jobs.ClassifyTexts,
            )
        }  # fmt: skip
        self.job = kinds[work["job"]](**work["fields"])
        self.columns, self.folder = Columns(**work["columns"]), Path(work["folder"])
        self.model = self.job.load()

    def seconds_per_row(self, shard: Shard) -> float:
        """Return what the first rows of a shard take, read and done; not the first time."""
        from time import perf_counter

        from embedtopics.distributed._rows import rows_of

        begin = perf_counter()
        rows = rows_of(shard, self.columns)
        reading = (perf_counter() - begin) / max(1, shard.n_rows)
        some = rows.first(SAMPLED_ROWS)
        for _ in range(2):
            begin = perf_counter()
            self.job.table(self.model, some, self.columns)
            doing = (perf_counter() - begin) / max(1, len(some.texts))
        return reading + doing

    def do(self, shard: Shard, name: str) -> Outcome:
        """Write the part of a shard, and before it its bad rows: a part says that all is done."""
        import pyarrow as pa

        from embedtopics._utils.display import one_line
        from embedtopics.distributed._rows import rows_of
        from embedtopics.errors import InputError

        try:
            rows = rows_of(shard, self.columns)
            table = self.job.table(self.model, rows, self.columns)
        except MemoryError:
            return Outcome("memory ran out; take fewer workers, or smaller shards")
        except (InputError, OSError, ValueError, pa.ArrowException) as error:
            return Outcome(one_line(error))
        about = {b"rows": str(len(rows.numbers)).encode(), b"bad": str(len(rows.bad)).encode()}
        try:
            if rows.bad:
                numbers, reasons, contents = zip(*rows.bad, strict=True)
                bad = pa.table({
                    "file": [shard.path] * len(numbers), "row": pa.array(numbers, pa.int64()),
                    "reason": pa.array(reasons), "content": pa.array(contents),
                })  # fmt: skip
                _write(bad, self.folder / ERRORS / f"errors-{name}.parquet")
            _write(table.replace_schema_metadata(about), self.folder / f"part-{name}.parquet")
        except InputError as error:  # a full disk, for one: other shards would not fit either
            return Outcome(str(error), stops=True)
        return Outcome()


def _write(table: pa.Table, path: Path) -> None:
    """Write a table whole: under another name, put on disk, renamed."""
    import pyarrow.parquet as pq

    from embedtopics._utils.folders import flush_file, flush_folder, replacing_file

    with replacing_file(path) as fresh:
        # All that could change the bytes is said.
        pq.write_table(
            table, fresh, compression="zstd", compression_level=3, version="2.6",
            data_page_version="1.0", row_group_size=2**20, use_dictionary=False,
        )  # fmt: skip
        flush_file(fresh)
    flush_folder(path.parent)
