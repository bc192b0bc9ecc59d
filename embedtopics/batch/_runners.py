"""Workers that read a shard and write a file, in a pool of processes or in actors of Ray.

A worker sets the number of threads before it imports heavy libraries.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line
from embedtopics._utils.folders import flush_file, flush_folder, replacing_file
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from embedtopics.batch._jobs import Job
    from embedtopics.batch._manifest import Shard
    from embedtopics.batch._rows import Columns

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SAMPLED_ROWS = 500
"""Rows from which a plan estimates the time."""

ERRORS = "_errors"
"""Readers of parquet folders skip names that begin with "_"."""


class Outcome(NamedTuple):
    """The outcome of a shard: success, a fault of the shard, or a fault that stops the run."""

    fault: str = ""
    stops: bool = False


def describe_work(job: Job, columns: Columns, folder: Path) -> bytes:
    """Return the arguments of a worker, which it unpacks after it has limited its threads."""
    return pickle.dumps((job, columns, folder))


def limit_threads() -> None:
    """Limit this process to one thread; call it before heavy libraries are imported."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


class Worker:
    """Loads the encoder or the model and runs shards one after the other."""

    def __init__(self, work: bytes) -> None:
        self.job, self.columns, self.folder = pickle.loads(work)
        self.model = self.job.load()

    def seconds_per_row(self, shard: Shard) -> float:
        """Return the seconds per row to read and process the first rows, after a warm-up."""
        from embedtopics.batch._rows import rows_of

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

        from embedtopics.batch._rows import rows_of

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

    with replacing_file(path) as fresh:
        # Every option that affects the bytes is explicit.
        pq.write_table(
            table, fresh, compression="zstd", compression_level=3, version="2.6",
            data_page_version="1.0", row_group_size=2**20, use_dictionary=False,
        )  # fmt: skip
        flush_file(fresh)
    flush_folder(path.parent)


Named = tuple["Shard", str]
"""A shard and the name of its part."""
DIED = "the worker died twice, often for lack of memory; use fewer workers or smaller shards"
NONE_LIVED = (
    "the workers died before the first shard was done: call run_batch below "
    'if __name__ == "__main__", or use fewer workers if memory ran out'
)

_worker: Worker | None = None
_fault = ""


def _start(work: bytes) -> None:
    """Load the model in a process of the pool; the process ends with its parent."""
    global _worker, _fault
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)  # otherwise it waits for work forever

    Thread(target=follow, daemon=True).start()
    limit_threads()
    try:
        _worker = Worker(work)
    except Exception as error:  # reported with a shard, because a failing pool reports nothing
        _fault = f"a worker could not load the model ({type(error).__name__}: {error})"


def _do(shard: Shard, name: str) -> Outcome:
    return Outcome(_fault, stops=True) if _worker is None else _worker.do(shard, name)


def _measure(shard: Shard) -> float:
    if _worker is None:
        raise InputError(_fault)
    return _worker.seconds_per_row(shard)


def seconds_per_row(shard: Shard, work: bytes) -> float:
    """Return the seconds per row of a worker process."""
    with _pool(1, work) as pool:
        try:
            return pool.submit(_measure, shard).result()
        except BrokenProcessPool:
            raise InputError(NONE_LIVED) from None
        except (InputError, OSError, ValueError) as error:
            reason = one_line(error)
            raise InputError("files", "rows that can be processed", found=reason) from None


def run_processes(
    todo: Sequence[Named], work: bytes, n_workers: int
) -> Iterator[tuple[Named, Outcome]]:
    """Run shards in a pool of processes.

    When a process dies, any of the running shards may be the cause. Each of them runs again alone;
    one that kills its process again has failed.
    """
    left, suspects, has_worked = list(reversed(todo)), list[Named](), False
    while left or suspects:
        alone = bool(suspects)
        queue = [suspects.pop()] if alone else left
        with _pool(1 if alone else min(n_workers, len(queue)), work) as pool:
            running: dict[Future[Outcome], Named] = {}
            is_broken = False
            while running or (queue and not is_broken):
                # No more shards than workers, so that few have to run again.
                while queue and len(running) < n_workers and not is_broken:
                    try:
                        running[pool.submit(_do, *queue[-1])] = queue[-1]
                        queue.pop()
                    except BrokenProcessPool:
                        is_broken = True
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    named = running.pop(future)
                    try:
                        yield named, future.result()
                        has_worked = True
                    except BrokenProcessPool:
                        is_broken = True
                        if alone:
                            yield named, Outcome(DIED) if has_worked else Outcome(NONE_LIVED, True)
                        else:
                            suspects.append(named)
        suspects += queue if alone else []


def _pool(n_workers: int, work: bytes) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(n_workers, context, initializer=_start, initargs=(work,))


class _RayWorker:
    """An actor that runs the shards of a batch of manifest rows."""

    def __init__(self, work: bytes) -> None:
        limit_threads()
        self.worker = Worker(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the outcome of each row of a batch."""
        from embedtopics.batch._manifest import Shard

        outcomes = [
            self.worker.do(Shard(**json.loads(shard)), str(name))
            for shard, name in zip(batch["shard"], batch["name"], strict=True)
        ]
        faults, stops = map(list, zip(*outcomes, strict=True))
        return {"name": batch["name"], "fault": faults, "stops": stops}


def run_ray(
    todo: Sequence[Named], work: bytes, n_workers: int, address: str | None
) -> Iterator[tuple[Named, Outcome]]:
    """Run shards by actors of Ray Data, on a cluster or on this machine.

    There is one actor per core, and more when the cluster grows. Only rows of the manifest and
    outcomes travel, never texts or vectors: the object store holds a few kilobytes.
    """
    ray = require("ray", 'runner="ray"', "ray")
    is_ours = not ray.is_initialized()
    if is_ours:
        here = {"address": "local", "num_cpus": n_workers, "include_dashboard": False}
        ray.init(**({"address": address} if address else here))
    by_name = {name: (shard, name) for shard, name in todo}
    rows = [{"shard": json.dumps(vars(s)), "name": n} for s, n in todo]
    try:
        # A dead actor restarts once; by default, Ray restarts it forever.
        done = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _RayWorker, batch_size=1, fn_constructor_args=(work,), num_cpus=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(n_workers, len(rows))),
            max_restarts=1, max_task_retries=1,
        )  # fmt: skip
        for row in done.iter_rows():
            yield by_name[str(row["name"])], Outcome(str(row["fault"]), bool(row["stops"]))
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0][:300]
        raise InputError(
            f"Ray failed ({reason}); finished shards are kept: run again, with fewer workers if "
            "memory ran out"
        ) from None
    finally:
        if is_ours:
            ray.shutdown()
