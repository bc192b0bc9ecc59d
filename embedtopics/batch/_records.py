"""The record of a batch in its folder: the job and its shards."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from embedtopics._utils.records import Record

Count = Annotated[int, Field(ge=0)]


class ColumnsRecord(Record):
    """The fields of `Columns`."""

    text: str
    id: str | None
    time: str | None
    group: str | None
    vectors: str | None


class ShardRecord(Record):
    """The fields of `Shard`."""

    path: str
    file_bytes: Count
    number: Count
    offset: Count
    n_bytes: Count
    row: Count
    n_rows: Count
    digest: str


class BatchRecord(Record):
    """Content of ``_batch.json``."""

    job: str
    fingerprint: str
    columns: ColumnsRecord
    versions: dict[str, str]
    shards: list[ShardRecord]
