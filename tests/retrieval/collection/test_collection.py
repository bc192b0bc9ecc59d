import sqlite3
import subprocess
import sys

import pytest

from embedtopics.errors import CorruptFileError, InputError
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import refuses
from tests.retrieval.collection.fake import add, assert_clean, make_segment, small, state


def test_segments_without_documents_go_and_their_names_are_not_used_again(tmp_path):
    collection = small(tmp_path / "a")
    version = collection.snapshot().version
    with collection.writing() as writer:
        with refuses("ids"):
            writer.remove(["100", "d1"])
        assert collection.snapshot().version == version
        assert writer.remove(["100", "1.5"]) == 2
        assert collection.snapshot().version == version + 1
        assert [view.name for view in collection.snapshot().segments] == ["000001"]
        assert not (tmp_path / "a" / "segments" / "000002").exists()
        writer.remove(["d0", "d0", "d2", "d3", "d4", "d5"])
        assert collection.snapshot().segments == () and collection.snapshot().n_documents == 0
        assert not writer.compact(make_segment)
        add(writer, ["d0"], ["Again."])
    assert [view.name for view in collection.snapshot().segments] == ["000003"]
    assert_clean(collection)


def test_a_removed_text_is_not_left_in_the_file(tmp_path):
    collection = Collection.create(tmp_path / "a", {})
    with collection.writing() as writer:
        add(writer, ["a", "b"], ["kept " * 50, "very secret words " * 50])
        writer.remove(["b"])
    content = (tmp_path / "a" / "catalog.sqlite").read_bytes()
    assert b"kept" in content and b"secret" not in content


def test_compaction_gives_space_back_beside_a_reader(tmp_path):
    collection = Collection.create(tmp_path / "a", {})
    with collection.writing() as writer:
        add(writer, range(100), ["long text " * 300] * 100)
        writer.remove([str(n) for n in range(0, 100, 2)])
    size = (tmp_path / "a" / "catalog.sqlite").stat().st_size
    pages = collection.batches(10)
    first = next(pages)
    with collection.writing() as writer:
        assert writer.compact(make_segment)
    assert [d.id for page in [first, *pages] for d in page] == [str(n) for n in range(1, 100, 2)]
    with collection.writing():
        pass
    assert (tmp_path / "a" / "catalog.sqlite").stat().st_size < 0.7 * size
    assert [d.number for d in collection.documents([2, 100])] == [2, 100]
    assert_clean(collection)


def test_a_second_writer_is_told_at_once(tmp_path):
    collection = small(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    code = (
        "import sys; from embedtopics.retrieval.storage._collection import Collection\n"
        "with Collection.open(sys.argv[1]).writing(): pass"
    )
    with collection.writing():
        for name in ("a", "link"):
            done = subprocess.run(
                [sys.executable, "-c", code, tmp_path / name], capture_output=True, text=True
            )
            assert "InputError: another process is writing" in done.stderr
        with pytest.raises(InputError, match="another process is writing"), collection.writing():
            pass
    with collection.writing() as writer:
        writer.remove(["d0"])


def test_readers_keep_their_version_during_a_write(tmp_path):
    collection = small(tmp_path / "a")
    before = state(collection)
    pages = collection.batches(2)
    first = next(pages)
    snapshot = collection.snapshot()
    with collection.writing() as writer:

        def slowly(folder, *others):
            make_segment(folder, *others)
            assert state(collection) == before

        add(writer, ["x"], ["While."], make=slowly)
        writer.remove(["d2"])
        assert collection.snapshot().version == snapshot.version + 2
    rest = [document for page in pages for document in page]
    assert {d.id: (d.text, d.metadata) for d in first + rest} == before
    assert snapshot.segments[0].alive.tolist() == [d != 2 for d in snapshot.segments[0].documents]


def test_opening_what_is_no_collection(tmp_path):
    with refuses("folder"):
        Collection.open(tmp_path / "none")
    with pytest.raises(CorruptFileError, match=r"no catalog\.sqlite"):
        Collection.open(tmp_path)
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(CorruptFileError, match="not the catalog of an index"):
        Collection.open(tmp_path)


def test_newer_formats_are_refused(tmp_path):
    collection = small(tmp_path / "a")
    connection = sqlite3.connect(tmp_path / "a" / "catalog.sqlite")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    for ask in (lambda: Collection.open(tmp_path / "a"), collection.snapshot):
        with pytest.raises(CorruptFileError, match=r"format 2.* upgrade"):
            ask()
    with pytest.raises(CorruptFileError, match="format 2"), collection.writing():
        pass
