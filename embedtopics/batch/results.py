"""Plans, reports and counts of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BatchPlan", "BatchReport", "TopicCounts"]


@dataclass(frozen=True, repr=False)
class BatchPlan(Displayed):
    """What a batch would do: its shards and rows, the bytes to write, and the time.

    Parameters
    ----------
    n_shards, n_rows : int
        Of all files.
    n_shards_to_do, n_rows_to_do : int
        Without those of earlier runs.
    n_bytes, n_bytes_free : int
        Bytes to write, at most, and free on the disk.
    seconds : float
        The time with the given workers, estimated from the first rows.
    """

    n_shards: int
    n_rows: int
    n_shards_to_do: int
    n_rows_to_do: int
    n_bytes: int
    n_bytes_free: int
    seconds: float

    def _summary(self) -> str:
        return (
            f"{self.n_shards_to_do:,} of {spell_count(self.n_shards, 'shard', 'shards')} to do, "
            f"{spell_count(self.n_rows_to_do, 'row', 'rows')}, about {self.seconds:,.0f} s"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row, with a column for each number."""
        import pandas as pd

        return pd.DataFrame([vars(self)])


@dataclass(frozen=True, eq=False, repr=False)
class BatchReport(Displayed):
    """What a batch did. Rows and bad rows count all finished shards of all runs.

    Parameters
    ----------
    folder : Path
        Folder of the parts, which reads as one table.
    n_shards : int
    n_done_before : int
        Shards that earlier runs had finished.
    n_rows, n_bad_rows : int
        Rows of the parts, and rows that ``_errors`` lists with the reason.
    failures : DataFrame
        The shards that could not be read, or whose worker died twice: file, shard, first_row, n
        (rows of the shard) and reason.
    """

    folder: Path
    n_shards: int
    n_done_before: int
    n_rows: int
    n_bad_rows: int
    failures: pd.DataFrame

    @property
    def n_failed(self) -> int:
        """Number of shards that failed."""
        return len(self.failures)

    def _summary(self) -> str:
        return (
            f"{self.n_shards - self.n_failed:,} of "
            f"{spell_count(self.n_shards, 'shard', 'shards')} done, "
            f"{spell_count(self.n_rows, 'row', 'rows')}, {self.n_bad_rows:,} bad"
        )

    def __str__(self) -> str:
        """Return a summary in one or two sentences."""
        n_done = self.n_shards - self.n_failed
        return (
            f"{n_done:,} of {self.n_shards:,} shards are done ({self.n_done_before:,} before): "
            f"{self.n_rows:,} rows; _errors lists {self.n_bad_rows:,} bad rows."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per failed shard: file, shard, first_row, n and reason."""
        return self.failures.copy()


@dataclass(frozen=True, eq=False, repr=False)
class TopicCounts(Displayed):
    """Counts over all shards; topic -1 is none, "" is a missing period or group.

    Parameters
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

    def _summary(self) -> str:
        n_rows = int(self.rows["n"].sum())
        n_occurrences = int(self.terms["n"].sum())
        return (
            f"{spell_count(self.n_topics, 'topic', 'topics')}, "
            f"{spell_count(n_rows, 'row', 'rows')}, {n_occurrences:,} terms"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers of rows: topic, period, group and n."""
        return self.rows.copy()

    def table(self, by: str) -> pd.DataFrame:
        """Return the rows by topic and "period" or "group", without rows that have none.

        Raises
        ------
        InputError
            If `by` is neither.
        """
        if by not in ("period", "group"):
            raise InputError("by", '"period" or "group"', by)
        rows = self.rows[self.rows[by] != ""]
        table = rows.pivot_table(
            index="topic", columns=by, values="n", aggfunc="sum", fill_value=0, observed=True
        )
        return table.reindex(range(-1, self.n_topics), fill_value=0)
