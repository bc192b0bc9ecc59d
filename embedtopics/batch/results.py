"""Columns, shards and reports of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """Columns of the input: texts, and optionally ids, dates, groups and vectors."""

    text: str = "text"
    id: str | None = None
    time: str | None = None
    group: str | None = None
    vectors: str | None = None

    def wanted(self) -> list[str]:
        """Return the distinct names of the columns to read."""
        return list(dict.fromkeys(name for name in vars(self).values() if name is not None))


@dataclass(frozen=True)
class Shard:
    """A part of a file: a row group of parquet, or the bytes of whole lines.

    `row` is the number of its first row in the file; `digest` is the SHA-256 of its `n_bytes` bytes
    from `offset`; `number` counts the shards of the file.
    """

    path: str
    file_bytes: int
    number: int
    offset: int
    n_bytes: int
    row: int
    n_rows: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """The shards of some files, in the order of the files."""

    shards: tuple[Shard, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all files, including blank lines."""
        return sum(shard.n_rows for shard in self.shards)


@dataclass(frozen=True)
class Failure:
    """A shard that failed, and the reason."""

    shard: Shard
    reason: str

    def __str__(self) -> str:
        """Return the file, the shard and the reason."""
        shard, last = self.shard, self.shard.row + self.shard.n_rows - 1
        rows = f"rows {shard.row:,} to {last:,}"
        return f"{shard.path}, shard {shard.number} ({rows}): {self.reason}"


@dataclass(frozen=True)
class BatchPlan:
    """Shards and rows of a batch, in total and still to do, bytes to write and bytes free.

    `seconds` is the estimated time with the given workers.
    """

    n_shards: int
    n_rows: int
    n_shards_to_do: int
    n_rows_to_do: int
    n_bytes: int
    n_bytes_free: int
    seconds: float


@dataclass(frozen=True)
class BatchReport:
    """Result of a batch. Rows and bad rows count all finished shards of all runs."""

    folder: Path
    n_shards: int
    n_found: int
    n_rows: int
    n_bad: int
    failures: tuple[Failure, ...] = ()

    def __str__(self) -> str:
        """Return a summary in one or two sentences."""
        n_done = self.n_shards - len(self.failures)
        return (
            f"{n_done:,} of {self.n_shards:,} shards are done ({self.n_found:,} before): "
            f"{self.n_rows:,} rows; _errors lists {self.n_bad:,} bad rows."
        )


@dataclass(frozen=True, eq=False)
class TopicCounts:
    """Counts over all shards; topic -1 is none, "" is a missing period or group.

    Attributes
    ----------
    rows : DataFrame
        topic, period, group, n: number of rows with text.
    terms : DataFrame
        topic, period, group, term, n: occurrences of a term of the model.
    names : tuple of str
        Terms of the model, indexed by `term`.
    n_topics : int
    """

    rows: pd.DataFrame
    terms: pd.DataFrame
    names: tuple[str, ...]
    n_topics: int

    def table(self, by: str) -> pd.DataFrame:
        """Return the rows by topic and "period" or "group", without rows that have none."""
        rows = self.rows[self.rows[by] != ""]
        table = rows.pivot_table(
            index="topic", columns=by, values="n", aggfunc="sum", fill_value=0, observed=True
        )
        return table.reindex(range(-1, self.n_topics), fill_value=0)
