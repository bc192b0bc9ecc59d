"""Whichever step of a write fails, the collection is as it was before."""

import os
import sqlite3
import sys
from functools import partial

import pytest

from embedtopics.errors import InputError
from embedtopics.retrieval.storage import _collection as writing
from tests.retrieval.collection.fake import Disk, add, assert_clean, make_segment, small, state

WRITES = {
    "add": lambda writer: add(writer, ["new"], ["A new text."]),
    "update": lambda writer: add(writer, ["d2", 1.5], ["A new text.", "b"], update=True),
    "compact": lambda writer: writer.compact(make_segment),
    "remove": lambda writer: writer.remove(["100", "1.5"]),
}


def folders(collection):
    return sorted(path.name for path in (collection.folder / "segments").iterdir())


@pytest.mark.parametrize("kind", ["add", "update", "compact"])
def test_each_step_of_writing_files(tmp_path, monkeypatch, kind):
    collection = small(tmp_path / "a")
    before, names = state(collection), folders(collection)
    disk = Disk(monkeypatch)
    for step in range(100):
        with collection.writing() as writer:
            if not disk.fails_at(step, partial(WRITES[kind], writer)):
                break
            assert state(collection) == before and folders(collection) == names
            assert_clean(collection)
    assert step >= 8
    assert (state(collection) == before) == (kind == "compact")
    assert_clean(collection)


@pytest.mark.parametrize("kind", WRITES)
def test_a_catalogue_that_cannot_grow(tmp_path, monkeypatch, kind):
    collection = small(tmp_path / "a", 300)
    before = state(collection)
    connect, rooms = writing.connect_writer, [0]

    def connect_to_full(folder):
        connection = connect(folder)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + rooms[0]}")
        return connection

    monkeypatch.setattr(writing, "connect_writer", connect_to_full)
    texts = ["Long. " * 500] * 20
    while rooms[0] < 100:
        with collection.writing() as writer:
            try:
                if kind == "add":
                    add(writer, range(200, 220), texts)
                else:
                    WRITES[kind](writer)
            except InputError as error:
                assert "database or disk is full" in str(error) and "as it was" in str(error)
                assert state(collection) == before
                assert_clean(collection)
                rooms[0] += 1
            else:
                break
    assert rooms[0] > 5 or kind != "add"
    assert_clean(collection)


class FailingCommit:
    """A connection whose COMMIT fails, before it is there or after."""

    def __init__(self, connection, when):
        self.connection, self.when = connection, when

    def execute(self, statement, *parameters):
        if statement == "COMMIT" and self.when:
            when, self.when = self.when, None
            if when == "after":
                self.connection.execute(statement)
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(statement, *parameters)

    def __getattr__(self, name):
        return getattr(self.connection, name)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_reports_failure(tmp_path, monkeypatch, when):
    collection = small(tmp_path / "a")
    before, connect = state(collection), writing.connect_writer
    monkeypatch.setattr(
        writing, "connect_writer", lambda folder: FailingCommit(connect(folder), when)
    )
    with collection.writing() as writer, pytest.raises(sqlite3.OperationalError):
        add(writer, ["new"], ["A new text."])
    added = {"new": ("A new text.", {})} if when == "after" else {}
    assert state(collection) == {**before, **added}  # whichever it is, its files are there
    assert_clean(collection)


def test_a_failing_commit_beside_a_reader_leaves_its_files_to_the_next_writer(
    tmp_path, monkeypatch
):
    collection = small(tmp_path / "a")
    before = state(collection)
    with collection.writing() as writer:
        add(writer, ["more"], ["More."])  # is in the log, which a reader keeps from being emptied
        pages = collection.batches(1)
        next(pages)
        writer._connection = FailingCommit(writer._connection, "before")
        with pytest.raises(sqlite3.OperationalError):
            add(writer, ["new"], ["A new text."])
        assert folders(collection) == ["000001", "000002", "000003", "000004"]
        add(writer, ["new"], ["A new text."])
        pages.close()
    assert state(collection).keys() == before.keys() | {"more", "new"}
    with collection.writing():
        assert folders(collection) == ["000001", "000002", "000003", "000005"]
    assert_clean(collection)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are put on disk on POSIX")
@pytest.mark.parametrize("kind", ["add", "compact"])
def test_all_files_are_on_disk_before_they_are_named(tmp_path, monkeypatch, kind):
    collection = small(tmp_path / "a")
    fsync, events = os.fsync, []

    def record(handle):
        fsync(handle)
        events.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", record)
    with collection.writing() as writer:
        events.clear()
        writer._connection.set_trace_callback(events.append)
        WRITES[kind](writer)
    new = tmp_path / "a" / "segments" / "000003"
    needed = {path.stat().st_ino for path in (new.parent, new, *new.rglob("*"))}
    assert len(needed) == 6
    assert needed <= set(events[: events.index("BEGIN IMMEDIATE")])
    assert needed.isdisjoint(events[events.index("BEGIN IMMEDIATE") :])
    with collection.writing() as writer:
        assert writer._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert writer._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
