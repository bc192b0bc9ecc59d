"""Parts of a batch that another program wrote or changed are refused, and named."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embedtopics as et
from embedtopics.batch._index import build_index
from embedtopics.batch._jobs import AssignTopics, CountTopics, EmbedTexts
from embedtopics.batch._manifest import make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._run import plan_batch, read_counts, run_batch
from embedtopics.errors import CorruptFileError
from tests.batch.test_batch import EMBED, in_this_process
from tests.factories import refuses

TEXTS = [f"{'plum pear' if i % 2 else 'train track'} number {i}" for i in range(40)]
COUNTS = {"topic": [0, 1], "period": ["", "2020"], "group": ["", "b"], "term": [-1, 0], "n": [5, 2]}


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """The folder of a saved model with a table of texts in two shards."""
    folder = tmp_path_factory.mktemp("batch")
    vectors = np.eye(8)[np.arange(40) % 2] + 0.05 * np.random.default_rng(0).normal(size=(40, 8))
    et.TopicModel(languages=["en"], random_state=0).fit(TEXTS, embeddings=vectors).save(
        folder / "model"
    )
    frame = pd.DataFrame({"text": TEXTS, "vector": list(vectors)})
    frame.to_parquet(folder / "texts.parquet", row_group_size=20)
    return folder


@pytest.fixture
def here(monkeypatch):
    """Workers in this process."""
    from embedtopics.batch import _run

    monkeypatch.setattr(_run, "run_processes", in_this_process)


@pytest.mark.parametrize("n_workers", [0, -1, True, 1.0, 1.5, "2", None, np.float64(2)])
def test_a_number_of_workers_that_is_no_count_is_refused(batch, tmp_path, n_workers):
    job = CountTopics(batch / "model")
    manifest = make_manifest(batch / "texts.parquet")
    for function in (plan_batch, run_batch):
        with refuses("n_workers"):
            function(job, manifest, tmp_path / "out", n_workers=n_workers)
    assert not (tmp_path / "out").exists()


def write_parts(folder, second):
    folder.mkdir()
    pd.DataFrame(COUNTS).to_parquet(folder / "part-a.parquet")
    pd.DataFrame(second).to_parquet(folder / "part-b.parquet")
    pd.DataFrame(COUNTS).to_parquet(folder / "part-c.parquet")
    return folder


def test_counts_of_all_parts_are_added(batch, tmp_path):
    counts = read_counts(write_parts(tmp_path / "out", COUNTS), batch / "model")
    assert counts.rows[["topic", "n"]].to_numpy().tolist() == [[0, 15]]
    assert counts.terms[["topic", "term", "n"]].to_numpy().tolist() == [[1, 0, 6]]


@pytest.mark.parametrize("column", list(COUNTS))
def test_a_part_without_a_column_of_counts_is_named(batch, tmp_path, column):
    second = {name: values for name, values in COUNTS.items() if name != column}
    folder = write_parts(tmp_path / "out", second)
    with refuses("out") as caught:
        read_counts(folder, batch / "model")
    assert "part-b" in str(caught.value) and repr(column) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"n": [5, -2]},
        {"n": [5, 2**62]},
        {"n": [5.0, 2.5]},
        {"n": ["5", "2"]},
        {"n": pd.array([5, None], "Int64")},
        {"n": [True, False]},
        {"topic": [0, 999]},
        {"topic": [-2, 0]},
        {"term": [-1, 10**6]},
        {"period": [0, 1]},
        {"group": [["a"], ["b"]]},
        {"group": ["a", None]},
    ],
    ids=str,
)
def test_a_part_of_values_that_are_no_counts_is_named(batch, tmp_path, change):
    folder = write_parts(tmp_path / "out", {**COUNTS, **change})
    with pytest.raises(CorruptFileError, match="part-b"):
        read_counts(folder, batch / "model")


def test_a_part_that_is_no_parquet_is_named(batch, tmp_path):
    folder = write_parts(tmp_path / "out", COUNTS)
    (folder / "part-b.parquet").write_text("no table")
    with pytest.raises(CorruptFileError, match="part-b"):
        read_counts(folder, batch / "model")


@pytest.mark.parametrize(
    "metadata", [None, {"rows": "x", "bad": "0"}, {"rows": "-5", "bad": "0"}, {"rows": "1"}]
)
def test_a_part_without_its_numbers_of_rows_is_named(batch, tmp_path, here, metadata):
    job, manifest = AssignTopics(batch / "model"), make_manifest(batch / "texts.parquet")
    columns = Columns(vectors="vector")
    assert run_batch(job, manifest, tmp_path / "out", columns=columns).n_rows == 40
    part = next((tmp_path / "out").glob("part-*.parquet"))
    pq.write_table(pq.read_table(part).replace_schema_metadata(metadata), part)
    with pytest.raises(CorruptFileError, match=part.name):
        run_batch(job, manifest, tmp_path / "out", columns=columns)


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": 1},
        {"columns": []},
        {"columns": {"text": 5}},
        {"shards": {}},
        {"shards": [{"path": "x"}]},
        {"versions": None},
        {"code": "x"},
    ],
    ids=str,
)
def test_a_record_of_a_batch_of_another_form_is_refused(batch, tmp_path, here, change):
    job, manifest = AssignTopics(batch / "model"), make_manifest(batch / "texts.parquet")
    columns = Columns(vectors="vector")
    run_batch(job, manifest, tmp_path / "out", columns=columns)
    record = json.loads((tmp_path / "out" / "_batch.json").read_text())
    (tmp_path / "out" / "_batch.json").write_text(json.dumps({**record, **change}))
    with refuses("out"):
        run_batch(job, manifest, tmp_path / "out", columns=columns)


@pytest.mark.parametrize(
    "vectors",
    [
        pa.array([[1.0, 2.0]] * 20, pa.list_(pa.float64())),
        pa.array([[1.0, None]] * 20, pa.list_(pa.float32())),
        pa.array([[1.0, 2.0]] * 19 + [[1.0]], pa.list_(pa.float32())),
        pa.array([[1.0, 2.0]] * 20, pa.list_(pa.float32())),
        pa.array(["x"] * 20),
    ],
    ids=["wide", "missing", "ragged", "another length", "text"],
)
def test_an_index_of_parts_with_other_vectors_is_refused(batch, tmp_path, here, vectors):
    manifest = make_manifest(batch / "texts.parquet")
    run_batch(EMBED, manifest, tmp_path / "out")
    part = sorted((tmp_path / "out").glob("part-*.parquet"))[-1]
    table = pq.read_table(part)
    place = table.column_names.index("vector")
    pq.write_table(table.set_column(place, "vector", vectors), part)
    with pytest.raises(CorruptFileError, match="part-"):
        build_index(EmbedTexts(EMBED.encoder), manifest, tmp_path / "out", tmp_path / "index")
