"""Indexes that somebody changed on purpose, with checksums that fit: one error, at once."""

import hashlib
import json
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

from embedtopics import SearchIndex
from embedtopics.errors import CorruptFileError
from embedtopics.retrieval.storage._checks import check

VECTORS = np.random.default_rng(0).normal(size=(12, 4))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "original"
    rows = pd.DataFrame({
        "id": [f"d{i}" for i in range(12)],
        "text": [f"ship harbor w{i % 4}" for i in range(12)],
        "year": range(2000, 2012),
        "day": pd.date_range("2020-01-01", periods=12),
        "tags": [["a"], ["b", "c"]] * 6,
        "open": [True, False] * 6,
    })  # fmt: skip
    index = SearchIndex.build(
        rows, folder, text="text", id="id", time="day", encoder=None, embeddings=VECTORS,
        languages=["en"], show_progress=False,
    )  # fmt: skip
    index.remove(["d3"])
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "index")


def run(folder, *statements):
    connection = sqlite3.connect(folder / "catalog.sqlite")
    for statement, *parameters in statements:
        connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def use(folder):
    """Call everything that reads an index."""
    index = SearchIndex.load(folder)
    len(index)
    index.ids  # noqa: B018
    list(index)
    index.get("d1")
    index.search("ship", mode="lexical", where="year > 2001 and tags == 'a'")
    index.search("ship w2", vectors=VECTORS[:1])
    index.facets("ship", by=["tags", "year", "open", "day"], mode="lexical")
    index.similar("d1")


def test_the_index_is_sound(folder):
    use(folder)
    assert check(folder) == []


LOOP = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "


@pytest.mark.parametrize("table", ["meta", "segments", "files", "removed", "columns", "metadata"])
@pytest.mark.parametrize("query", [LOOP + "SELECT x AS number FROM n", "SELECT * FROM kept"])
def test_a_view_in_the_place_of_a_table_is_refused(folder, table, query):
    run(folder, (f"ALTER TABLE {table} RENAME TO kept",), (f"CREATE VIEW {table} AS {query}",))
    with pytest.raises(CorruptFileError, match="tables are not those of an index"):
        SearchIndex.load(folder)
    assert len(check(folder)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE more (a)",
        "CREATE INDEX more ON documents (text)",
        "CREATE TRIGGER more AFTER INSERT ON documents BEGIN DELETE FROM meta; END",
        "CREATE VIEW more AS SELECT 1",
        "ALTER TABLE documents ADD COLUMN more",
        "ALTER TABLE documents ADD COLUMN more AS (length(text) || zeroblob(1000000000))",
        "ALTER TABLE metadata ADD COLUMN more",
        "ALTER TABLE metadata ADD COLUMN c5",
        "ALTER TABLE metadata ADD COLUMN c4 INTEGER DEFAULT 7",
        "ALTER TABLE metadata RENAME COLUMN c0 TO c9",
        "DROP TABLE removed",
        "CREATE VIRTUAL TABLE more USING rtree(id, low, high)",
        "ANALYZE",
        "PRAGMA user_version = -5",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 7",
    ],
)
def test_another_schema_is_refused_by_readers_and_writers(folder, statement):
    index = SearchIndex.load(folder)
    run(folder, (statement,))
    with pytest.raises(CorruptFileError):
        SearchIndex.load(folder)
    with pytest.raises(CorruptFileError):
        index.add(["more"], embeddings=[[1, 2, 3, 4]], show_progress=False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE segments SET n_living = -5",
        "UPDATE segments SET n_living = 12",
        "UPDATE segments SET n_living = 'many'",
        "UPDATE segments SET n_passages = 1e300",
        "UPDATE segments SET first = -1",
        "UPDATE segments SET last = x'00'",
        "UPDATE segments SET n_files = 3",
        "UPDATE segments SET number = -4",
        "DELETE FROM removed",
        "DELETE FROM files WHERE path = 'vectors.f32'",
        "DELETE FROM files WHERE path = 'lexical/rows.npy'",
        "UPDATE files SET bytes = -1",
        "UPDATE files SET sha256 = 7",
        "UPDATE files SET path = '/etc/passwd' WHERE path = 'sum.npy'",
        "UPDATE columns SET kind = 'pickle'",
        "UPDATE columns SET kind = 'date' WHERE name = 'year'",
        "UPDATE columns SET kind = 'list' WHERE name = 'year'",
        "UPDATE columns SET kind = 'integer' WHERE name = 'tags'",
        "UPDATE columns SET name = x'ff' WHERE name = 'year'",
        "UPDATE columns SET position = 99 WHERE name = 'year'",
        "DELETE FROM columns WHERE position = 0",
        "INSERT INTO columns VALUES (4, 'more', 'text')",
        "UPDATE metadata SET c0 = 'x'",
        "UPDATE metadata SET c0 = zeroblob(100)",
        "UPDATE metadata SET c2 = '{'",
        "UPDATE documents SET text = x'ff'",
        "UPDATE documents SET text = CAST(x'ff' AS TEXT)",
        "UPDATE documents SET id = x'ff' || number",
        "UPDATE documents SET digest = 'x'",
        "DELETE FROM documents WHERE number = 2",
        "DELETE FROM metadata WHERE number = 2",
        "DELETE FROM meta WHERE name = 'settings'",
        "UPDATE meta SET value = 1 WHERE name = 'settings'",
    ],
)  # fmt: skip
def test_values_that_no_index_has_are_refused(folder, statement):
    run(folder, ("PRAGMA ignore_check_constraints = ON",), (statement,))
    with pytest.raises(CorruptFileError):
        use(folder)


def test_the_values_of_a_document_have_the_types_of_their_columns(folder):
    from embedtopics.retrieval.storage._catalog import document_digest

    connection = sqlite3.connect(folder / "catalog.sqlite")
    row = connection.execute("SELECT number, id, text FROM documents LIMIT 1").fetchone()
    query = "SELECT position FROM columns WHERE name = 'tags'"
    (position,) = connection.execute(query).fetchone()
    connection.execute(f"UPDATE metadata SET c{position} = '[1, 2]' WHERE number = ?", row[:1])
    stored = connection.execute("SELECT * FROM metadata WHERE number = ?", (row[0],)).fetchone()
    values = [(position, value) for position, value in enumerate(stored[1:]) if value is not None]
    digest = document_digest(*row, values)
    connection.execute("UPDATE documents SET digest = ? WHERE number = ?", (digest, row[0]))
    connection.commit()
    connection.close()

    with pytest.raises(CorruptFileError, match="list of texts"):
        list(SearchIndex.load(folder))


def change_settings(folder, change):
    """Change the settings, with a checksum that fits."""
    connection = sqlite3.connect(folder / "catalog.sqlite")
    query = "SELECT value FROM meta WHERE name = 'settings'"
    settings = json.loads(connection.execute(query).fetchone()[0])
    settings = change(settings) or settings
    text = json.dumps(settings)
    connection.close()
    digest = hashlib.sha256(text.encode()).hexdigest()
    run(
        folder,
        ("UPDATE meta SET value = ? WHERE name = 'settings'", text),
        ("UPDATE meta SET value = ? WHERE name = 'settings_sha256'", digest),
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(columns=["id"]),
        lambda s: s.update(columns={"id": {}}),
        lambda s: s.update(columns={"text": [[]]}),
        lambda s: s.update(n_dimensions=-4),
        lambda s: s.update(n_dimensions=5),
        lambda s: s.update(n_dimensions="4"),
        lambda s: s.update(n_dimensions=10**30),
        lambda s: s.update(words_only="no"),
        lambda s: s.update(passages=None),
        lambda s: s.update(languages="en"),
        lambda s: s.update(encoder=["a"]),
        lambda s: s.update(encoder_settings="a"),
        lambda s: s.update(dense={"kind": "hnsw", "seed": 0}),
        lambda s: s.update(dense={"kind": "flat", "seed": -1}),
        lambda s: s.update(dense=None),
        lambda s: s["lexical"].update(k1=-1),
        lambda s: s["lexical"].update(k1="1"),
        lambda s: s["lexical"].update(b=3.0),
        lambda s: s["lexical"].update(stop_words="the"),
        lambda s: s["lexical"].update(stems=[1]),
        lambda s: s["lexical"].update(words={"social": "all"}),
        lambda s: s["lexical"].update(words={"segmenters": ["os"]}),
        lambda s: s["lexical"].update(words=[]),
        lambda s: s["lexical"].update(more=1),
        lambda s: s.update(lexical=[1]),
        lambda s: s.update(topics={"columns": "id"}),
        lambda s: s.update(topics=[]),
        lambda s: s.update(trust_remote_code=True),
        lambda s: s.pop("lexical") and None,
        lambda s: [s],
        lambda s: {"a": 1},
    ],
)
def test_settings_of_another_form_are_refused(folder, change):
    change_settings(folder, change)
    with pytest.raises(CorruptFileError):
        use(folder)


def seal(folder, path):
    """Write the size and the checksum of a changed file into the catalog."""
    content = (folder / "segments" / "000001" / path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    run(
        folder,
        ("UPDATE files SET bytes = ?, sha256 = ? WHERE path = ?", len(content), digest, path),
    )


def set_item(position, value):
    def change(array):
        array[position] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", set_item(0, 12)),
        ("rows", set_item(0, -1)),
        ("rows", set_item(1, 0)),
        ("rows", lambda array: array[:-1]),
        ("rows", lambda array: array.astype("f4")),
        ("starts", set_item(0, 1)),
        ("starts", set_item(-1, 10**9)),
        ("starts", set_item(1, -5)),
        ("starts", lambda array: array[:0]),
        ("ends", set_item(1, 10**6)),
        ("ends", lambda array: array[:-1]),
        ("counts", set_item(0, 0)),
        ("counts", lambda array: array[:3]),
        ("counts", lambda array: np.stack([array, array])),
        ("lengths", set_item(2, -7)),
        ("lengths", lambda array: np.append(array, array)),
        ("letters", lambda array: array[:1]),
    ],
)  # fmt: skip
def test_postings_out_of_range_are_refused(folder, name, change):
    path = f"lexical/{name}.npy"
    array = np.load(folder / "segments" / "000001" / path)
    changed = change(array.copy())
    np.save(folder / "segments" / "000001" / path, changed)
    seal(folder, path)
    with pytest.raises(CorruptFileError):
        use(folder)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("lexical/lexical.json", lambda about: about.update(passages=3)),
        ("lexical/lexical.json", lambda about: about.update(format=-1)),
        ("lexical/lexical.json", lambda about: about["settings"].update(stop_words={})),
        ("lexical/lexical.json", lambda about: about["settings"].update(b=[0.5])),
        ("dense/dense.json", lambda about: about.update(format=0)),
        ("dense/dense.json", lambda about: about.update(n=-1)),
        ("dense/dense.json", lambda about: about.update(n=6, d=8)),
        ("dense/dense.json", lambda about: about.update(kind="own")),
        ("dense/dense.json", lambda about: about.update(parameters=[])),
    ],
)
def test_descriptions_of_a_segment_of_another_form_are_refused(folder, path, change):
    file = folder / "segments" / "000001" / path
    about = json.loads(file.read_text())
    change(about)
    file.write_text(json.dumps(about))
    seal(folder, path)
    with pytest.raises(CorruptFileError):
        use(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("documents", set_item(0, -3)),
        ("documents", set_item(4, 1)),
        ("documents", set_item(-1, 10**6)),
        ("documents", lambda array: array[:0]),
        ("documents", lambda array: array.astype(float)),
        ("documents", lambda array: array.astype("U3")),
        ("spans", set_item((0, 0), -2)),
        ("spans", set_item((0, 0), 10**6)),
        ("spans", lambda array: array.T),
        ("spans", lambda array: array.astype(bool)),
    ],
)
def test_passages_of_no_document_are_refused(folder, name, change):
    file = folder / "segments" / "000001" / "passages.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays[name] = change(arrays[name].copy())
    np.savez(file, **arrays)
    seal(folder, "passages.npz")
    with pytest.raises(CorruptFileError):
        use(folder)


@pytest.mark.parametrize("path", ["sum.npy", "lexical/rows.npy", "lexical", ""])
def test_a_link_out_of_the_index_is_refused(folder, tmp_path, path):
    inside = folder / "segments" / "000001" / path
    outside = inside.rename(tmp_path / "outside")
    inside.symlink_to(outside)
    with pytest.raises(CorruptFileError, match="link out of the index"):
        SearchIndex.load(folder)


def test_an_index_may_be_reached_by_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    use(tmp_path / "link")


def test_packed_passages_are_refused_before_they_are_unpacked(folder):
    file = folder / "segments" / "000001" / "passages.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    np.savez_compressed(file, **arrays, more=np.zeros(10_000_000, dtype=np.int8))
    seal(folder, "passages.npz")
    with pytest.raises(CorruptFileError, match="packed"):
        use(folder)


@pytest.mark.parametrize("row", [300, 2**40, -2, -(2**40)])
def test_lists_of_codes_with_rows_that_do_not_exist_are_refused(tmp_path, row):
    import faiss

    vectors = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    folder = tmp_path / "index"
    SearchIndex.build(
        [f"t{i}" for i in range(300)], folder, encoder=None, embeddings=vectors, kind="ivf",
        languages=[], show_progress=False,
    )  # fmt: skip
    path = "dense/codes.faiss"
    codes = faiss.read_index(str(folder / "segments" / "000001" / path))
    for number in range(codes.nlist):
        size = codes.invlists.list_size(number)
        if size:
            faiss.rev_swig_ptr(codes.invlists.get_ids(number), size)[:] = row
    faiss.write_index(codes, str(folder / "segments" / "000001" / path))
    seal(folder, path)

    with pytest.raises(CorruptFileError, match="rows that do not exist"):
        SearchIndex.load(folder).search("", vectors=vectors[:1], mode="dense")


NOT_FINITE = [np.full(4, np.nan), np.full(4, np.inf)]


@pytest.mark.parametrize(
    "total", [np.zeros(5), np.zeros(4, "f4"), np.zeros((1, 4)), np.zeros(0), *NOT_FINITE]
)
def test_a_sum_of_other_vectors_is_refused(folder, total):
    np.save(folder / "segments" / "000001" / "sum.npy", total)
    seal(folder, "sum.npy")
    with pytest.raises(CorruptFileError):
        use(folder)
