"""A function for each kind of batch writes what its job writes, and refuses other arguments."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics import batch
from embedtopics.batch import _run
from embedtopics.batch._index import build_index
from embedtopics.batch._jobs import AssignTopics, ClassifyTexts, CountTopics
from embedtopics.batch._manifest import make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._run import plan_batch, run_batch
from tests.batch.test_batch import EMBED, in_this_process
from tests.factories import contents, refuses

TEXTS = [f"{'plum pear' if i % 2 else 'train track'} number {i}" for i in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a classifier and a table of texts in two shards."""
    folder = tmp_path_factory.mktemp("functions")
    vectors = np.eye(8)[np.arange(40) % 2] + 0.05 * np.random.default_rng(0).normal(size=(40, 8))
    model = et.TopicModel(languages=["en"], random_state=0).fit(TEXTS, embeddings=vectors)
    model.save(folder / "model")
    encoder = et.encoders.StaticEncoder(EMBED.encoder)
    classes = ["fruit" if i % 2 else "rail" for i in range(40)]
    et.TextClassifier(encoder).fit(TEXTS, classes).save(folder / "classifier")
    frame = pd.DataFrame({
        "body": TEXTS,
        "name": [f"d{i}" for i in range(40)],
        "date": [f"20{10 + i % 3}-05-01" for i in range(40)],
        "source": ["press" if i % 3 else "forum" for i in range(40)],
        "vector": list(vectors),
    })  # fmt: skip
    frame.to_parquet(folder / "texts.parquet", row_group_size=20)
    return folder


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Workers in this process."""
    monkeypatch.setattr(_run, "run_processes", in_this_process)


def calls(folder):
    """Return for each function its first argument, its options, its job and the columns."""
    return {
        "embed": (EMBED.encoder, {"id": "name"}, EMBED, Columns("body", "name")),
        "assign": (
            folder / "model",
            {"id": "name", "vectors": "vector"},
            AssignTopics(folder / "model"),
            Columns("body", "name", vectors="vector"),
        ),
        "count": (
            folder / "model",
            {"time": "date", "group": "source", "vectors": "vector", "every": "year"},
            CountTopics(folder / "model", "year"),
            Columns("body", None, "date", "source", "vector"),
        ),
        "classify": (
            folder / "classifier",
            {"id": "name"},
            ClassifyTexts(folder / "classifier"),
            Columns("body", "name"),
        ),
    }


@pytest.mark.parametrize("name", ["embed", "assign", "count", "classify"])
def test_a_function_writes_the_bytes_of_its_job(folder, tmp_path, name):
    first, options, job, columns = calls(folder)[name]
    run_batch(job, make_manifest(folder / "texts.parquet"), tmp_path / "job", columns=columns)

    function = getattr(batch, name)
    report = function(first, str(folder / "*.parquet"), tmp_path / "out", text="body", **options)

    assert contents(tmp_path / "out") == contents(tmp_path / "job")
    assert repr(report) == "BatchReport(2 of 2 shards done, 40 rows, 0 bad)"
    assert list(report.to_frame()) == ["file", "shard", "first_row", "n", "reason"]


@pytest.mark.parametrize("name", ["embed", "assign", "count", "classify"])
def test_a_folder_of_a_job_goes_on(folder, tmp_path, name):
    first, options, job, columns = calls(folder)[name]
    run_batch(job, make_manifest(folder / "texts.parquet"), tmp_path / "out", columns=columns)
    before = contents(tmp_path / "out")
    next((tmp_path / "out").glob("part-*")).unlink()

    function = getattr(batch, name)
    report = function(first, folder / "texts.parquet", tmp_path / "out", text="body", **options)

    assert report.n_done_before == 1
    assert contents(tmp_path / "out") == before


def test_a_dry_run_is_the_plan_and_writes_nothing(folder, tmp_path):
    files = [folder / "texts.parquet"]
    for name, (first, options, job, columns) in calls(folder).items():
        function = getattr(batch, name)
        plan = function(first, files, tmp_path / "out", text="body", dry_run=True, **options)
        expected = plan_batch(job, make_manifest(files), tmp_path / "out", columns=columns)
        assert plan.n_rows_to_do == expected.n_rows_to_do == 40
        assert plan.n_bytes == expected.n_bytes
        assert repr(plan).startswith("BatchPlan(2 of 2 shards to do, 40 rows, about ")
        assert plan.to_frame()["n_shards"].tolist() == [2]
    assert not (tmp_path / "out").exists()


def test_an_index_embeds_what_is_missing(folder, tmp_path):
    options = {"text": "body", "id": "name", "time": "date", "group": "source"}
    columns = Columns("body", "name", "date", "source")
    manifest = make_manifest(folder / "texts.parquet")
    run_batch(EMBED, manifest, tmp_path / "job", columns=columns)
    expected = build_index(EMBED, manifest, tmp_path / "job", tmp_path / "a", columns=columns)

    plan = batch.index(
        EMBED.encoder,
        folder / "texts.parquet",
        tmp_path / "out",
        index=tmp_path / "b",
        dry_run=True,
        **options,
    )
    assert plan.n_shards_to_do == 2
    assert not (tmp_path / "b").exists()

    index = batch.index(
        EMBED.encoder, folder / "texts.parquet", tmp_path / "out", index=tmp_path / "b", **options
    )
    assert contents(tmp_path / "out") == contents(tmp_path / "job")
    hits = et.SearchIndex.load(tmp_path / "b").search("pear 3", k=5)
    assert [hit.id for hit in hits] == [hit.id for hit in expected.search("pear 3", k=5)]
    assert len(index) == len(expected) == 40


def test_an_index_of_a_batch_with_a_failed_shard_is_refused(folder, tmp_path):
    data = bytearray((folder / "texts.parquet").read_bytes())
    begin = make_manifest(folder / "texts.parquet").shards[1]
    data[begin.offset : begin.offset + begin.n_bytes] = b"\xff" * begin.n_bytes
    (tmp_path / "a.parquet").write_bytes(data)

    with refuses("files") as caught:
        batch.index(
            EMBED.encoder,
            tmp_path / "a.parquet",
            tmp_path / "out",
            index=tmp_path / "index",
            text="body",
        )
    assert "1 failed shard" in str(caught.value)
    assert not (tmp_path / "index").exists()


def test_counts_are_read_with_a_model_or_its_folder(folder, tmp_path):
    batch.count(
        folder / "model", folder / "texts.parquet", tmp_path / "out", text="body", vectors="vector"
    )
    counts = batch.read_counts(tmp_path / "out", folder / "model")
    of_model = batch.read_counts(tmp_path / "out", et.TopicModel.load(folder / "model"))

    assert counts.rows.equals(of_model.rows)
    assert counts.terms.equals(of_model.terms)
    assert counts.to_frame()["n"].sum() == 40
    assert repr(counts).startswith(f"TopicCounts({counts.n_topics} topics, 40 rows, ")
    with refuses("by"):
        counts.table("topic")
    with refuses("model"):
        batch.read_counts(tmp_path / "out", TEXTS)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("embed", "encoder"),
        ("index", "encoder"),
        ("assign", "model"),
        ("count", "model"),
        ("classify", "classifier"),
    ],
)
def test_swapped_arguments_and_objects_in_memory_are_refused(folder, tmp_path, name, parameter):
    function = getattr(batch, name)
    options = {"index": tmp_path / "index"} if name == "index" else {}
    with refuses(parameter) as caught:
        function("data/*.parquet", "all-MiniLM-L6-v2", tmp_path / "out", **options)
    assert f"call et.batch.{name}({parameter}, files, out" in str(caught.value)

    for value in (et.TopicModel(), et.encoders.StaticEncoder(EMBED.encoder), TEXTS, None):
        with refuses(parameter) as caught:
            function(value, folder / "texts.parquet", tmp_path / "out", **options)
        assert "pass the folder" in str(caught.value)
    with pytest.raises((et.errors.InputError, et.errors.ModelLoadError)):
        function(folder, folder / "texts.parquet", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_names_of_before_say_what_to_call():
    with pytest.raises(AttributeError, match=r"it is et\.batch\.assign\(model, files, out\) now"):
        batch.AssignTopics  # noqa: B018
    with pytest.raises(AttributeError, match=r"et\.batch"):
        et.distributed  # noqa: B018
