"""Run a job on all shards of a manifest; skip the shards that are already done."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics._utils.display import excerpt, progress_bar
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics._utils.folders import only_writer, read_regular, replacing_file
from embedtopics._utils.machine import package_versions
from embedtopics._utils.records import parse_record
from embedtopics.batch._jobs import Job
from embedtopics.batch._manifest import Manifest, Shard
from embedtopics.batch._rows import Columns
from embedtopics.batch._runners import (
    ERRORS,
    Named,
    describe_work,
    run_processes,
    run_ray,
    seconds_per_row,
)
from embedtopics.batch.results import BatchPlan, BatchReport, TopicCounts
from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "_batch.json"


def run_batch(
    job: Job,
    manifest: Manifest,
    out: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
) -> BatchReport:
    """Run a job on every shard of a manifest; an interrupted run resumes.

    Each shard writes one file ``part-<id>.parquet`` atomically, and its bad rows to
    ``_errors/errors-<id>.parquet``. The bytes depend only on the shard and the job, so nothing is
    counted twice after a kill.

    Parameters
    ----------
    job : EmbedTexts, AssignTopics, CountTopics or ClassifyTexts
    manifest : Manifest
        See `make_manifest`.
    out : path
        Folder that `pandas.read_parquet` reads as one table.
    columns : Columns, optional
        By default, the column "text" holds the texts.
    n_workers : int
        Processes of one thread; each loads the model.
    runner : {"processes", "ray"}
        "ray" needs the extra ``ray`` and a folder `out` that all machines share.
    address : str, optional
        Address of a Ray cluster; by default one is started on this machine.

    Returns
    -------
    BatchReport
        `failures` lists the shards that cannot be read or whose worker died twice.

    Raises
    ------
    InputError
        If `out` belongs to another job, a file has changed since the last run, or the disk is full.

    Notes
    -----
    Processes are spawned, so a script must call this below ``if __name__ == "__main__":``.
    """
    checked_choice(runner, "runner", ("processes", "ray"))
    n_workers = checked_count(n_workers, "n_workers")
    columns = columns or Columns()
    folder = Path(out).expanduser().resolve()
    about = _about(job, columns)

    with only_writer(folder):
        _claim(folder, manifest, about)
        _clear(folder)
        named = _named(manifest, about)
        todo = [pair for pair in named if not _part(folder, pair).exists()]
        work = describe_work(job, columns, folder)

        reason_of_shard: dict[Shard, str] = {}
        if todo:
            done = run_processes(todo, work, n_workers)
            if runner == "ray":
                done = run_ray(todo, work, n_workers, address)
            total = sum(shard.n_rows for shard, _ in todo)
            with progress_bar(total=total, unit="row", description=job.name, show=None) as bar:
                for (shard, _), outcome in done:
                    if outcome.stops:
                        raise InputError(outcome.fault)
                    if outcome.fault:
                        reason_of_shard[shard] = outcome.fault
                    bar.update(shard.n_rows)

        _clear(folder)
        paths = [_part(folder, pair) for pair in named]
        parts = [path for path in paths if path.exists()]
        counts = [_row_counts(path) for path in parts]
        n_rows = sum(n_read for n_read, _ in counts)
        n_bad = sum(n_refused for _, n_refused in counts)

    return BatchReport(
        folder=folder,
        n_shards=len(named),
        n_done_before=len(named) - len(todo),
        n_rows=n_rows,
        n_bad_rows=n_bad,
        failures=_failures(manifest, reason_of_shard),
    )


def _failures(manifest: Manifest, reason_of_shard: Mapping[Shard, str]) -> pd.DataFrame:
    """Return a row for each shard that failed, in the order of the files."""
    import pandas as pd

    failed = [shard for shard in manifest.shards if shard in reason_of_shard]
    columns = {
        "file": [shard.path for shard in failed],
        "shard": [shard.number for shard in failed],
        "first_row": [shard.row for shard in failed],
        "n": [shard.n_rows for shard in failed],
        "reason": [reason_of_shard[shard] for shard in failed],
    }
    return pd.DataFrame(columns)


def plan_batch(
    job: Job,
    manifest: Manifest,
    out: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    n_workers: int = 1,
) -> BatchPlan:
    """Plan a `run_batch`: the shards and rows to do, their bytes, and the time.

    A worker processes some rows, without writing them, to estimate the time.

    Parameters
    ----------
    job, manifest, out, columns, n_workers
        See `run_batch`.

    Raises
    ------
    InputError
        If `n_workers` is no count, or the rows to measure cannot be processed.
    """
    n_workers = checked_count(n_workers, "n_workers")
    folder = Path(out).expanduser().resolve()
    columns = columns or Columns()
    named = _named(manifest, _about(job, columns))
    todo = [one[0] for one in named if not _part(folder, one).exists()]
    n_rows = sum(shard.n_rows for shard in todo)
    free = shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free
    seconds = 0.0
    if todo:
        a_row = seconds_per_row(todo[0], describe_work(job, columns, folder))
        seconds = a_row * n_rows / min(n_workers, len(todo))
    n_bytes = n_rows * job.row_bytes
    return BatchPlan(len(named), manifest.n_rows, len(todo), n_rows, n_bytes, free, seconds)


def _about(job: Job, columns: Columns) -> dict[str, Any]:
    """Return what the bytes of a part depend on, apart from the shard."""
    return {
        "job": job.name, "fingerprint": job.fingerprint(columns),
        "columns": dataclasses.asdict(columns), "versions": package_versions(),
    }  # fmt: skip


def _named(manifest: Manifest, about: dict[str, Any]) -> list[Named]:
    """Return each shard with its id."""
    shared, named = json.dumps(about, sort_keys=True), []
    for shard in manifest.shards:
        key = f"{shared} {json.dumps(dataclasses.asdict(shard), sort_keys=True)}"
        named.append((shard, hashlib.sha256(key.encode()).hexdigest()[:32]))
    return named


def parts_of(
    job: Job, manifest: Manifest, folder: Path, columns: Columns
) -> list[tuple[Shard, Path]]:
    """Return each shard with the path of its part, which may not exist yet."""
    return [(one[0], _part(folder, one)) for one in _named(manifest, _about(job, columns))]


def _part(folder: Path, named: Named) -> Path:
    return folder / f"part-{named[1]}.parquet"


def _claim(folder: Path, manifest: Manifest, about: dict[str, Any]) -> None:
    """Create the folder, or check that it belongs to the same job and the same files."""
    from embedtopics.batch._records import BatchRecord

    content = {**about, "shards": [dataclasses.asdict(shard) for shard in manifest.shards]}

    if folder.is_dir() and any(folder.iterdir()):
        try:
            before = parse_record(BatchRecord, read_regular(folder / ABOUT)).model_dump()
        except (OSError, ValueError):
            state = f"{folder}, which holds other files"
            raise InputError("out", "a new folder", found=state) from None

        different = [key for key in about if before[key] != about[key]]
        changed = [shard["path"] for shard in before["shards"] if shard not in content["shards"]]
        if different:
            raise InputError("out", "a new folder", found=f"{folder}, whose {different[0]} differs")
        if changed:
            raise InputError(
                "files",
                f"the files that {folder} was created from",
                found=f"{len(changed):,} changed or missing shards, such as one of {changed[0]}",
                remedy="choose another folder",
            )

    try:
        (folder / ERRORS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", "a writable folder", found=f"{folder} ({error})") from None
    with replacing_file(folder / ABOUT) as fresh:
        fresh.write_text(json.dumps(content), "utf-8")


def _clear(folder: Path) -> None:
    """Delete unfinished files of killed workers; call it under the lock, without workers."""
    for left in (*folder.glob(".writing-*"), *(folder / ERRORS).glob(".writing-*")):
        shutil.rmtree(left, ignore_errors=True)


def read_counts(
    out: str | os.PathLike[str], model: str | os.PathLike[str] | FittedTopics
) -> TopicCounts:
    """Add up the counts of all shards.

    Parameters
    ----------
    out : path
        Folder that `count` wrote.
    model : path, TopicModel or TopicResult
        The model, or its folder, for the names of the terms.

    Raises
    ------
    InputError
        If the folder holds no counts, or a part of another job.
    CorruptFileError
        If a part holds values that are no counts of the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = pd.DataFrame(
    ...     {
    ...         "text": ["A river burst its banks.", "Bees swarmed.", "The bees are back."],
    ...         "date": ["2023-05-01", "2023-06-01", "2024-05-01"],
    ...     }
    ... )
    >>> texts.to_csv(folder / "texts.csv", index=False)
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo", limit=300))
    >>> saved = model.save(folder / "model")
    >>> report = et.batch.count(folder / "model", folder / "texts.csv", folder / "counts")
    >>> counts = et.batch.read_counts(folder / "counts", model)
    >>> list(counts.to_frame()), counts.to_frame()["n"].sum().item()
    (['topic', 'period', 'group', 'n'], 3)
    >>> temporary.cleanup()
    """
    import pandas as pd

    from embedtopics.topics.results import TopicResult

    if isinstance(model, str | os.PathLike):
        result = TopicResult.load(Path(model))
    else:
        result = result_of(model, "model")
    bounds = {"topic": result.n_topics, "term": len(result.term_counts.terms)}
    parts = sorted(Path(out).expanduser().glob("part-*.parquet"))
    if not parts:
        raise InputError("out", "a folder of counts", out)

    total = pd.DataFrame()
    for path in parts:  # one at a time: only the sum has to fit in memory
        counts = _read_part(path, bounds)
        joined = pd.concat([total, counts]) if len(total) else counts
        total = joined.groupby(CELL)["n"].sum().reset_index()
    is_row = total["term"] == -1
    return TopicCounts(
        rows=total[is_row].drop(columns="term").reset_index(drop=True),
        terms=total[~is_row].reset_index(drop=True),
        names=result.term_counts.terms,
        n_topics=result.n_topics,
    )


CELL = ["topic", "period", "group", "term"]
"""What a count is of; the term -1 stands for rows."""

MOST_OCCURRENCES = 2**48
"""Largest count of a part: sums of thousands of parts fit into 64 bits."""


def _read_part(path: Path, bounds: Mapping[str, int]) -> pd.DataFrame:
    """Read the counts of a shard; topics and terms are from -1 to below their `bounds`."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as types

    try:
        schema = pq.read_schema(path)
        missing = [name for name in (*CELL, "n") if name not in schema.names]
        if missing:
            found = f"{path}, which has no column {missing[0]!r}"
            raise InputError("out", "a folder of counts alone", found=found)

        is_sound = all(types.is_integer(schema.field(name).type) for name in ("topic", "term", "n"))
        for name in ("period", "group"):
            text_type = schema.field(name).type
            is_sound &= types.is_string(text_type) or types.is_large_string(text_type)
        if not is_sound:
            raise ValueError("its columns have other types")

        table = pq.read_table(path, columns=[*CELL, "n"])
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise damaged_part(path, error) from None

    if any(column.null_count for column in table.columns):
        raise damaged_part(path, "cells are missing")
    counts: pd.DataFrame = table.to_pandas()
    if not counts["n"].between(0, MOST_OCCURRENCES).all():
        raise damaged_part(path, "a count is negative or too large")
    for name, bound in bounds.items():
        if not counts[name].between(-1, bound - 1).all():
            raise damaged_part(path, f"a {name} is not one of the {bound:,} of the model")
    return counts


def _row_counts(path: Path) -> tuple[int, int]:
    """Return the numbers of rows and of bad rows that a part records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        recorded = pq.read_schema(path).metadata or {}
        n_rows = int(recorded[b"rows"])
        n_bad = int(recorded[b"bad"])
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        raise damaged_part(path, error) from None
    if min(n_rows, n_bad) < 0:
        raise damaged_part(path, "it records a negative number of rows")
    return n_rows, n_bad


def damaged_part(path: Path, reason: object) -> CorruptFileError:
    """Return the error of a part that `run_batch` did not write like this."""
    message = f"{path} is damaged ({excerpt(str(reason), 160)}); delete it, and run the batch again"
    return CorruptFileError(message)
