"""A worker: reads a shard and writes a file. It sets the number of threads before it imports."""

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
"""Rows from which a plan estimates the time."""

ERRORS = "_errors"
"""Readers of parquet folders skip names that begin with "_"."""


class Outcome(NamedTuple):
    """The outcome of a shard: success, a fault of the shard, or a fault that stops the run."""

    fault: str = ""
    stops: bool = False


def describe_work(job: Job, columns: Columns, folder: Path) -> dict[str, Any]:
    """Return the arguments of a worker as plain values."""
    fields = {key: str(value) for key, value in vars(job).items()}
    return {
        "job": job.name, "fields": fields, "columns": dataclasses.asdict(columns),
        "folder": str(folder),
    }  # fmt: skip


def limit_threads() -> None:
    """Limit this process to one thread; call it before heavy libraries are imported."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


class Worker:
    """Loads the encoder or the model and runs shards one after the other."""

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
        """Return the seconds per row to read and process the first rows, after a warm-up."""
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
        """Write the bad rows of a shard, then its part, which marks the shard as done."""
        import pyarrow as pa

        from embedtopics._utils.display import one_line
        from embedtopics.distributed._rows import rows_of
        from embedtopics.errors import InputError

        try:
            rows = rows_of(shard, self.columns)
            table = self.job.table(self.model, rows, self.columns)
        except MemoryError:
            return Outcome("memory ran out; use fewer workers or smaller shards")
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
        except InputError as error:  # such as a full disk: other shards would fail, too
            return Outcome(str(error), stops=True)
        return Outcome()


def _write(table: pa.Table, path: Path) -> None:
    """Write a table atomically."""
    import pyarrow.parquet as pq

    from embedtopics._utils.folders import flush_file, flush_folder, replacing_file

    with replacing_file(path) as fresh:
        # Every option that affects the bytes is explicit.
        pq.write_table(
            table, fresh, compression="zstd", compression_level=3, version="2.6",
            data_page_version="1.0", row_group_size=2**20, use_dictionary=False,
        )  # fmt: skip
        flush_file(fresh)
    flush_folder(path.parent)
