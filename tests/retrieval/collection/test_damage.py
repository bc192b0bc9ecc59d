"""Files that are not as they were written are named; nothing is answered from them."""

import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

from embedtopics.errors import CorruptFileError
from embedtopics.retrieval.storage._checks import check
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import refuses
from tests.retrieval.collection.fake import add, assert_clean, make_segment, small, state

FILES = ["passages.npz", "vectors.f32", "dense/index.bin"]


@pytest.fixture
def folder(tmp_path):
    small(tmp_path / "a")
    return tmp_path / "a"


@pytest.mark.parametrize("name", FILES)
def test_a_compaction_does_not_make_damage_good(folder, name):
    path = folder / "segments" / "000002" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 4
    path.write_bytes(content)
    before = check(folder)
    with Collection(folder).writing() as writer, pytest.raises(CorruptFileError, match=str(path)):
        writer.compact(make_segment)
    assert check(folder) == before and len(before) == 1


def test_a_segment_that_is_gone(folder):
    shutil.rmtree(folder / "segments" / "000002")
    collection = Collection(folder)
    with pytest.raises(CorruptFileError, match=r"000002/passages\.npz is damaged .*missing"):
        collection.snapshot()
    assert len(check(folder)) == len(FILES)


@pytest.mark.parametrize("size", [0, 50, 100, 5000, -4096, -1])
def test_a_truncated_catalogue(folder, size):
    path = folder / "catalog.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:size])
    with pytest.raises(CorruptFileError, match=r"catalog\.sqlite .*restore"):
        Collection.open(folder)
    with pytest.raises(CorruptFileError, match=r"catalog\.sqlite"), Collection(folder).writing():
        pass
    (problem,) = check(folder)
    assert problem.file == path


def test_every_flipped_page_of_the_catalogue_is_seen(folder):
    with Collection.open(folder).writing() as writer:
        frame = pd.DataFrame({"n": range(50), "s": ["x" * 40] * 50})
        add(writer, range(200, 250), [f"{'long text ' * 150}{i}" for i in range(50)], frame)
    path = folder / "catalog.sqlite"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    expected = state(Collection.open(folder))
    n_seen = 0
    for place in rng.integers(0, len(whole), 60):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        problems = check(folder)
        n_seen += bool(problems)
        if not problems:  # an unused byte: all that is stored is still what it was
            assert state(Collection.open(folder)) == expected
    assert n_seen > 20


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE documents SET text = 'Text number 9.' WHERE id = 'd3'", "'d3' differs"),
        ("UPDATE documents SET id = 'd9' WHERE id = 'd3'", "'d9' differs"),
        ("DELETE FROM metadata WHERE number = 3", "'d2' has no metadata"),
    ],
)
def test_what_does_not_belong_together(folder, statement, said):
    connection = sqlite3.connect(folder / "catalog.sqlite")
    connection.executescript(statement)
    connection.close()
    assert any(said in problem.what for problem in check(folder))
    with pytest.raises(CorruptFileError):
        Collection.open(folder, verify=True)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE meta SET value = value || ' ' WHERE name = 'settings'", "differ from"),
        ("DELETE FROM meta WHERE name = 'stamp'", "has no stamp"),
        ("UPDATE meta SET value = 'x' WHERE name = 'version'", "no number"),
        ("UPDATE meta SET value = -1 WHERE name = 'version'", "no number"),
        ("UPDATE meta SET value = 7 WHERE name = 'stamp'", "no text"),
        (
            "UPDATE files SET path = '../../' || path WHERE path != 'passages.npz'",
            "outside the index",
        ),
        ("INSERT INTO files VALUES (1, x'00', 1, 'a')", "outside the index"),
    ],
)
def test_values_that_are_not_ours_are_refused_in_one_sentence(folder, statement, said):
    connection = sqlite3.connect(folder / "catalog.sqlite")
    connection.executescript(statement)
    connection.close()
    with pytest.raises(CorruptFileError, match=said):
        Collection(folder).stamp()
        Collection(folder).snapshot()


def test_damaged_settings_are_refused(folder):
    connection = sqlite3.connect(folder / "catalog.sqlite")
    for text in ("[1]", "[" * 100_000, '{"a": NaN}', "{"):
        connection.execute("UPDATE meta SET value = ? WHERE name = 'settings'", (text,))
        connection.commit()
        with pytest.raises(CorruptFileError, match="its settings"):
            Collection.open(folder).settings()
    connection.close()


def test_leftovers_are_named_and_swept_but_nothing_else(folder):
    segments = folder / "segments"
    (segments / "000009").mkdir()
    (segments / "000009" / "vectors.f32").write_bytes(b"half")
    (segments / "mine").mkdir()
    (folder / "notes.txt").write_text("mine")
    collection = Collection.open(folder, verify=True)
    (problem,) = check(folder)
    assert problem.file == segments / "000009" and "next writer" in str(problem)
    before = state(collection)
    with collection.writing():
        assert not (segments / "000009").exists()
    assert (segments / "mine").is_dir() and (folder / "notes.txt").is_file()
    assert state(collection) == before
    assert_clean(collection)


def test_checking_what_is_not_there(tmp_path):
    with refuses("folder"):
        check(tmp_path / "none")
    (problem,) = check(tmp_path)
    assert problem.file.name == "catalog.sqlite"
