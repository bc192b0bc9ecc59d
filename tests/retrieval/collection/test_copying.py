import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from embedtopics.errors import CorruptFileError, InputError
from embedtopics.retrieval.storage import _checks as copying
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import raising
from tests.retrieval.collection.fake import add, assert_clean, make_segment, small, state

REPOSITORY = Path(__file__).parents[3]


def test_a_copy_is_a_collection_of_its_own(tmp_path):
    collection = small(tmp_path / "a")
    before = state(collection)
    copy = collection.copy_to(tmp_path / "b")
    assert_clean(copy)
    assert copy.snapshot().version == collection.snapshot().version and state(copy) == before
    with collection.writing() as writer, copy.writing() as other:
        writer.compact(make_segment)
        writer.remove(["d0"])
        add(other, ["mine"], ["Of the copy."])
    assert state(copy) == {**before, "mine": ("Of the copy.", {})}
    shutil.rmtree(tmp_path / "a")
    assert state(Collection.open(tmp_path / "b", verify=True)).keys() == before.keys() | {"mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_without_links_files_are_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", raising(OSError(errno.EXDEV, "another disk")))
    collection = small(tmp_path / "a")
    copy = collection.copy_to(tmp_path / "b")
    assert state(copy) == state(collection)
    vectors = tmp_path / "b" / "segments" / "000001" / "vectors.f32"
    assert vectors.stat().st_nlink == 1
    assert_clean(copy)


def test_a_copy_during_a_compaction_is_one_version(tmp_path, monkeypatch):
    collection = small(tmp_path / "a")
    link, todo = copying._link, [1]

    def compact_first(source, target):
        if todo and target.name == "vectors.f32":
            todo.pop()
            with collection.writing() as writer:
                writer.compact(make_segment)
        link(source, target)

    monkeypatch.setattr(copying, "_link", compact_first)
    copy = collection.copy_to(tmp_path / "b")
    assert state(copy) == state(collection) and len(copy.snapshot().segments) == 1
    assert_clean(copy)


def test_what_is_there_is_replaced_only_if_asked_and_ours(tmp_path):
    collection, other = small(tmp_path / "a"), small(tmp_path / "b", 3)
    expected = state(other)
    with pytest.raises(InputError, match="overwrite=True"):
        collection.copy_to(tmp_path / "b")
    (tmp_path / "b" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        collection.copy_to(tmp_path / "b", overwrite=True)
    assert state(other) == expected
    (tmp_path / "b" / "notes.txt").unlink()
    with other.writing(), pytest.raises(InputError, match="another process is writing"):
        collection.copy_to(tmp_path / "b", overwrite=True)
    other.snapshot()
    collection.copy_to(tmp_path / "b", overwrite=True)
    assert state(other) == state(collection)  # whoever reads there goes on with the new one
    (tmp_path / "c").mkdir()
    assert state(collection.copy_to(tmp_path / "c")) == state(collection)
    for wrong in ("a", "a/segments", ""):
        with pytest.raises(InputError, match="neither inside nor around"):
            collection.copy_to(tmp_path / wrong, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_a_damaged_collection_is_not_copied(tmp_path):
    collection = small(tmp_path / "a")
    (tmp_path / "a" / "segments" / "000002" / "vectors.f32").unlink()
    with pytest.raises(CorruptFileError, match="000002/vectors"):
        collection.copy_to(tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_replacement_set_aside_is_put_back(tmp_path):
    expected = state(small(tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / ".a.embedtopics-old")
    assert state(Collection.open(tmp_path / "a")) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "a").rename(tmp_path / ".a.embedtopics-old")
    with pytest.raises(InputError, match="which holds an index"):
        Collection.create(tmp_path / "a", {})


@pytest.fixture
def nobody():
    """Run code as a user that may write nothing."""
    if sys.platform == "win32":
        pytest.skip("needs permissions of POSIX")
    above = Path(tempfile.mkdtemp())
    above.chmod(0o755)

    def run(code, folder):
        code = (
            "import sys, tempfile; from pathlib import Path\n"
            "from embedtopics.retrieval.storage._checks import check\n"
            "from embedtopics.retrieval.storage._collection import Collection\n"
            "from tests.retrieval.collection.fake import small, state\n"
            # Only now, because the interpreter may lie where that user reads nothing.
            "with tempfile.TemporaryDirectory() as other: state(small(Path(other) / 'a'))\n"
            "import os; os.geteuid() or os.setuid(65534)\n"
            f"folder = Path(sys.argv[1])\n{code}"
        )
        return subprocess.run(
            [sys.executable, "-c", code, folder], cwd=REPOSITORY, capture_output=True, text=True
        )

    def lock(folder):
        for path in [folder, *folder.rglob("*")]:
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod((mode | 0o555 if path.is_dir() else mode | 0o444) & ~0o222)

    yield above / "a", run, lock
    for path in [above, *above.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(above)


def test_a_read_only_folder_can_be_read(nobody):
    folder, run, lock = nobody
    collection = small(folder)
    expected = state(collection)
    for path in folder.glob("catalog.sqlite-*"):
        path.unlink()  # of no use when nobody writes
    lock(folder)
    done = run("print(state(Collection.open(folder, verify=True))); print(check(folder))", folder)
    assert done.stdout == f"{expected}\n[]\n", done.stderr
    done = run("with Collection.open(folder).writing(): pass", folder)
    assert "InputError: could not write" in done.stderr


def test_a_log_that_cannot_be_read_is_not_passed_over(nobody):
    folder, run, lock = nobody
    small(folder)
    for path in folder.glob("catalog.sqlite-*"):
        path.unlink()
    (folder / "catalog.sqlite-wal").write_bytes(b"x" * 5000)
    lock(folder)
    done = run("Collection.open(folder)", folder)
    assert "not closed by its last writer" in done.stderr
