"""Shards: the same bytes whoever does them, whatever is killed; and counts that add up."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.batch import _manifest
from embedtopics.batch import _run as running
from embedtopics.batch._index import build_index
from embedtopics.batch._jobs import AssignTopics, ClassifyTexts, CountTopics, EmbedTexts
from embedtopics.batch._manifest import make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._run import plan_batch, read_counts, run_batch
from embedtopics.batch._runners import THREADS, Worker
from embedtopics.topics import by_group, over_time
from tests.cli.running import refused, run
from tests.factories import FULL_DISK, contents, raising, refuses, topic_counts
from tests.topics.conftest import branching

EMBED = EmbedTexts(str(Path(__file__).parents[1] / "data" / "saved" / "student"))
COLUMNS = Columns("body", "name", "date", "source", "vector")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A saved model, its result, and the frame it was fitted to, with vectors, in row groups."""
    folder = tmp_path_factory.mktemp("batch")
    texts, vectors = branching()
    texts[5] = ""
    frame = pd.DataFrame({
        "name": [f"d{n}" for n in range(len(texts))], "body": texts,
        "date": [f"20{10 + n % 3}-0{1 + n % 9}-15" for n in range(len(texts))],
        "source": [("press", "forum", "radio")[n % 3] for n in range(len(texts))],
        "vector": list(vectors),
    })  # fmt: skip
    corpus = et.Corpus(frame.drop(columns="vector"), "body", id="name", time="date", group="source")
    model = et.TopicModel(languages=[], random_state=2).fit(corpus, embeddings=vectors)
    model.save(folder / "model")
    frame.to_parquet(folder / "data.parquet", row_group_size=80)
    return folder, model.result_, frame


def in_this_process(todo, work, n_workers):
    """Stand in for the pool where processes are not what is tested."""
    worker = Worker(work)
    for named in todo:
        yield named, worker.do(*named)


def children(pid):
    """Return the workers that a process has spawned."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.fixture
def whole(fitted, tmp_path, here):
    """A job, its manifest, and the files that one process makes of them."""
    folder, _, _ = fitted
    job, manifest = AssignTopics(folder / "model"), make_manifest(folder / "data.parquet")
    run_batch(job, manifest, tmp_path / "whole", columns=COLUMNS)
    return job, manifest, contents(tmp_path / "whole")


@pytest.fixture
def here(monkeypatch):
    """Workers in this process, which must find it as it was."""
    monkeypatch.setattr(running, "run_processes", in_this_process)

    before = [os.environ.get(name) for name in THREADS]
    yield
    assert [os.environ.get(name) for name in THREADS] == before


def test_counts_of_shards_add_up_to_the_tables_of_one_process(fitted, tmp_path, here):
    folder, result, _ = fitted
    job, manifest = CountTopics(folder / "model", "quarter"), make_manifest(folder / "*.parquet")
    assert len(manifest.shards) > 5
    report = run_batch(job, manifest, tmp_path / "out", columns=COLUMNS)
    assert (report.n_rows, report.n_bad_rows, report.n_failed) == (len(result.corpus), 0, 0)
    found = read_counts(tmp_path / "out", folder / "model")
    sizes = found.rows.groupby("topic")["n"].sum()
    assert [sizes[topic.topic_id] for topic in result.topics] == [t.size for t in result.topics]
    in_topics = found.terms[found.terms["topic"] >= 0].groupby(["topic", "term"])["n"].sum()
    assert {(t, w): n for (t, w), n in in_topics.items()} == dict(
        topic_counts(result).todok().items()
    )
    for by, table in (("group", by_group(result)), ("period", over_time(result, "quarter"))):
        counts = found.table(by).reindex(columns=list(table.names), fill_value=0)
        assert np.array_equal(np.roll(counts.to_numpy(), -1, axis=0), table.counts)


def test_assignments_are_those_of_one_process(fitted, tmp_path, here, monkeypatch):
    monkeypatch.setattr(_manifest, "SHARD_BYTES", 40_000)
    folder, _, frame = fitted
    rng = np.random.default_rng(1)
    new = frame.assign(body=[f"{t} again" for t in frame["body"]])
    shifts = {text: 0.02 * rng.normal(size=24) for text in new["body"]}  # copies have one vector
    new["vector"] = [v + shifts[t] for v, t in zip(frame["vector"], new["body"], strict=True)]
    new.to_parquet(tmp_path / "new.parquet", row_group_size=100)
    new.to_json(tmp_path / "new.jsonl", orient="records", lines=True)
    model = et.TopicModel.load(folder / "model")
    whole = model._assign(new["body"].tolist(), np.array(new["vector"].tolist(), np.float32))
    for name in ("new.parquet", "new.jsonl"):
        manifest = make_manifest(tmp_path / name)
        out = tmp_path / f"out-{name}"
        run_batch(AssignTopics(folder / "model"), manifest, out, columns=COLUMNS)
        table = pd.read_parquet(out).sort_values("row").reset_index(drop=True)
        assert table["id"].tolist() == new["name"].tolist()
        assert table["topic"].tolist() == whole.labels.tolist()
        assert np.allclose(table["novelty"], whole.novelty, atol=1e-5)
        rows = np.repeat(np.arange(len(new)), table["topics"].map(len))
        dense = np.zeros(whole.memberships.shape)
        dense[rows, np.concatenate(table["topics"])] = np.concatenate(table["shares"])
        assert np.allclose(dense, whole.memberships.toarray(), atol=1e-5)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_bad_rows_are_set_aside(tmp_path, here, monkeypatch, suffix):
    monkeypatch.setattr(_manifest, "SHARD_BYTES", 40)
    path, columns = tmp_path / f"a.{suffix}", Columns("body", time="date")
    good = '{"body": "balcor dunfer", "date": "2020-01-02"}\n'
    if suffix == "jsonl":
        bad = '{"body": 7, "date": null}\n{"body": \n[]\n{"body": "a", "date": "02/01/2020"}\n'
        path.write_bytes((good * 3 + "\n" + bad).encode() + b'{"body": "\xff"}\n' + good.encode())
        places = [4, 5, 6, 7, 8]
    elif suffix == "csv":
        row = b'"balcor\ndunfer, ""gim""",2020-01-02\n'
        path.write_bytes(b"body,date\n" + 3 * row + b"a,b,c\n\xff,2020-01-02\nx,soon\n" + row)
        places = [3, 4, 5]
    else:
        frame = pd.DataFrame({"body": ["balcor"] * 6, "date": ["2020-01-02"] * 5 + ["never"]})
        frame.to_parquet(path, row_group_size=2)
        places = [5]
    out = tmp_path / "out"
    report = run_batch(EMBED, make_manifest(path), out, columns=columns)
    bad = pd.concat(map(pd.read_parquet, (out / "_errors").glob("*.parquet")))
    assert sorted(bad["row"]) == places and report.n_bad_rows == len(places) and not report.n_failed
    table = pd.read_parquet(out)
    assert len(table) == report.n_rows and not set(table["row"]) & set(places)
    assert all(np.isclose(np.linalg.norm(v), 1) for v in table["vector"])


def test_classes_are_those_of_the_classifier(fitted, tmp_path, here):
    _, _, frame = fitted
    labels = frame["source"].where(frame.index % 2 == 0, "press")
    texts = [f"{t} {s}" for t, s in zip(frame["body"], labels, strict=True)]
    encoder = et.encoders.StaticEncoder(EMBED.encoder)
    model = et.TextClassifier(encoder).fit(texts, labels.tolist())
    model.save(tmp_path / "model")
    pd.DataFrame({"text": [*texts, None]}).to_parquet(tmp_path / "a.parquet", row_group_size=150)
    run_batch(ClassifyTexts(tmp_path / "model"), make_manifest(tmp_path / "a.parquet"),
              tmp_path / "out")  # fmt: skip
    table = pd.read_parquet(tmp_path / "out").sort_values("row")
    assert table["label"].tolist()[:-1] == model.predict(texts).tolist()
    assert pd.isna(table["label"].iloc[-1])
    chances = table[[f"p_{name}" for name in model.classes_]].to_numpy()[:-1]
    assert np.allclose(chances, model.predict_proba(texts), atol=1e-6)


def test_a_broken_row_group_is_named_and_the_others_are_done(fitted, tmp_path, here):
    folder, _, _ = fitted
    path, out = tmp_path / "a.parquet", tmp_path / "out"
    data = bytearray((folder / "data.parquet").read_bytes())
    begin = make_manifest(folder / "data.parquet").shards[2]
    data[begin.offset : begin.offset + begin.n_bytes] = b"\xff" * begin.n_bytes
    path.write_bytes(data)
    job, manifest = AssignTopics(folder / "model"), make_manifest(path)
    for _ in range(2):  # again, too: what is done stays, and the fault is told anew
        report = run_batch(job, manifest, out, columns=COLUMNS)
        (failure,) = report.to_frame().itertuples()
        assert failure.shard == 2 and failure.file == str(path)
        assert failure.first_row == begin.row and failure.n == begin.n_rows
        assert report.n_rows == manifest.n_rows - failure.n
    assert report.n_done_before == len(manifest.shards) - 1


def test_other_inputs_and_jobs_are_refused(fitted, tmp_path, here, monkeypatch):
    folder, _, frame = fitted
    job, path, out = AssignTopics(folder / "model"), tmp_path / "a.parquet", tmp_path / "out"
    frame.to_parquet(path, row_group_size=200)
    before = make_manifest(path)
    plan = plan_batch(job, before, out, columns=COLUMNS, n_workers=2)
    assert not out.exists() and plan.n_rows_to_do == plan.n_rows == len(frame)
    assert 0 < plan.seconds < 600
    with refuses("files"):  # these rows have no such column
        plan_batch(job, before, out, columns=Columns("nothing"))
    run_batch(job, before, out, columns=COLUMNS)
    done = plan_batch(job, before, out, columns=COLUMNS)
    assert done.n_shards_to_do == 0 and done.seconds == 0
    with refuses("out"):
        run_batch(job, before, out, columns=Columns("name", vectors="vector"))
    with refuses("out"):
        run_batch(EMBED, before, out, columns=COLUMNS)
    frame.assign(body=frame["body"].str.upper()).to_parquet(path, row_group_size=200)
    with refuses("files") as caught:
        run_batch(job, make_manifest(path), out, columns=COLUMNS)
    assert str(path) in str(caught.value)
    late = run_batch(job, before, tmp_path / "late", columns=COLUMNS)  # changed under way
    (reason,) = set(late.failures["reason"])
    assert "changed" in reason and late.n_rows == 0
    assert late.n_failed == late.n_shards
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    with refuses("out"):
        run_batch(job, before, tmp_path / "mine", columns=COLUMNS)
    for wrong in ("none.parquet", "*.txt", "mine/a.txt"):
        with refuses("files"):
            make_manifest(tmp_path / wrong)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing PAR1")
    with refuses("files"):
        make_manifest(tmp_path / "b.parquet")
    with refuses("encoder"):
        run_batch(EmbedTexts("tfidf"), make_manifest(path), tmp_path / "new")


def test_an_index_of_shards_answers_as_that_of_one_process(fitted, tmp_path, here, monkeypatch):
    folder, _, frame = fitted
    monkeypatch.setattr("embedtopics.batch._index.ROWS_AT_ONCE", 100)
    manifest, columns = make_manifest(folder / "data.parquet"), Columns("body", "name", "date")
    with refuses("out"):
        build_index(EMBED, manifest, tmp_path / "out", tmp_path / "a.index", columns=columns)
    run_batch(EMBED, manifest, tmp_path / "out", columns=columns)
    made = build_index(EMBED, manifest, tmp_path / "out", tmp_path / "a.index", columns=columns)
    kept = frame[frame["body"] != ""][["name", "body", "date"]]
    whole = et.SearchIndex.build(
        kept, text="body", id="name", time="date", encoder=EMBED.encoder, passages=False
    )
    assert len(made) == len(whole) == len(kept)
    for query in kept["body"][::60]:
        found, wanted = (index.search(query, k=5) for index in (made, whole))
        assert [hit.id for hit in found] == [hit.id for hit in wanted]
        assert np.allclose([hit.score for hit in found], [hit.score for hit in wanted], atol=1e-5)
    command = ("batch", "index", folder / "data.parquet", "--encoder", EMBED.encoder, "--out",
               tmp_path / "out", "--text", "body", "--id", "name", "--time", "date")  # fmt: skip
    assert "a.index" in refused(*command, "--index", tmp_path / "a.index")
    done = run(*command, "--index", tmp_path / "b.index")
    assert done.exit_code == 0 and f"{len(kept)} documents" in done.stdout
    assert not list((tmp_path / "out").glob(".writing-*"))


def test_a_full_disk_stops_the_run_which_goes_on_later(whole, tmp_path, monkeypatch):
    job, manifest, files = whole
    import pyarrow.parquet as pq

    usual, calls = pq.write_table, []

    def fills(*arguments, **options):
        calls.append(1)
        return usual(*arguments, **options) if len(calls) < 4 else raising(FULL_DISK)()

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", fills)
        with pytest.raises(et.errors.InputError, match="No space left"):
            run_batch(job, manifest, tmp_path / "out", columns=COLUMNS)
    report = run_batch(job, manifest, tmp_path / "out", columns=COLUMNS)
    assert report.n_done_before == 3 and contents(tmp_path / "out") == files


def test_what_killed_workers_had_begun_is_cleared(fitted, tmp_path, here, monkeypatch):
    folder, _, _ = fitted
    job, manifest = AssignTopics(folder / "model"), make_manifest(folder / "data.parquet")

    def leave_something(todo, work, n_workers):
        for place in (tmp_path / "o", tmp_path / "o" / "_errors"):
            (place / ".writing-abc").mkdir()
            (place / ".writing-abc" / "part-abc.parquet").write_bytes(b"PAR1")
        yield from in_this_process(todo, work, n_workers)

    monkeypatch.setattr(running, "run_processes", leave_something)
    run_batch(job, manifest, tmp_path / "o", columns=COLUMNS)
    assert len(contents(tmp_path / "o")) == len(manifest.shards) + 1  # and what it says of itself


@pytest.mark.slow
@pytest.mark.smoke
def test_processes_write_the_same_bytes_and_survive_a_death(whole, tmp_path, monkeypatch):
    job, manifest, files = whole
    monkeypatch.undo()
    killed: list[int] = []
    usual = running.run_processes

    def with_a_kill(todo, work, n_workers):
        for named, outcome in usual(todo, work, n_workers):
            yield named, outcome
            for pid in children(os.getpid())[:1] if not killed else ():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    monkeypatch.setattr(running, "run_processes", with_a_kill)
    report = run_batch(job, manifest, tmp_path / "two", columns=COLUMNS, n_workers=2)
    assert killed
    assert not report.n_failed
    assert contents(tmp_path / "two") == files


RUN = """
import sys
from embedtopics.batch._jobs import AssignTopics
from embedtopics.batch._manifest import make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._run import run_batch

if __name__ == "__main__":
    model, data, out, n_workers, runner = sys.argv[1:]
    columns = Columns("body", "name", "date", "source", "vector")
    report = run_batch(AssignTopics(model), make_manifest(data), out, columns=columns,
                       n_workers=int(n_workers), runner=runner)
    print(report.n_failed, report.n_rows)
"""


@pytest.fixture
def script(tmp_path):
    """A function that starts a run in a process of its own."""
    (tmp_path / "run.py").write_text(RUN)

    def start(folder, out, n_workers=2, runner="processes"):
        arguments = [folder / "model", folder / "data.parquet", out, n_workers, runner]
        return subprocess.Popen(
            [sys.executable, tmp_path / "run.py", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_kills_of_workers_and_drivers_leave_the_same_bytes(fitted, whole, tmp_path, script):
    (folder, result, _), (*_, files), rng = fitted, whole, np.random.default_rng(3)
    for number in range(20):
        out = tmp_path / f"out{number}"
        run = script(folder, out, n_workers=(2, 4)[number % 2])
        time.sleep(rng.uniform(1.0, 6.0))
        workers = children(run.pid) if run.poll() is None else []
        if number % 3 and workers:
            os.kill(int(rng.choice(workers)), signal.SIGKILL)
        else:
            run.kill()
        run.communicate()
        again = script(folder, out)
        said, errors = again.communicate()
        assert said.split() == ["0", str(len(result.corpus))], errors
        assert contents(out) == files
        left = [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        assert not left  # nobody waits for a driver that is gone


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
@pytest.mark.slow
def test_ray_writes_the_same_bytes(fitted, whole, tmp_path, script):
    folder, result, _ = fitted
    said, errors = script(folder, tmp_path / "ray", 2, "ray").communicate()
    assert said.split()[-2:] == ["0", str(len(result.corpus))], errors
    assert contents(tmp_path / "ray") == whole[2]


def test_the_command_line_runs_and_reports(fitted, tmp_path, here):
    folder, result, _ = fitted
    model, data = folder / "model", folder / "data.parquet"
    counted = ("batch", "count", data, "--model", model, "--out", tmp_path / "out", "--text",
               "body", "--time", "date", "--group", "source", "--vectors", "vector")  # fmt: skip
    plan = run(*counted, "--dry-run")
    n_rows = len(result.corpus)
    assert plan.exit_code == 0 and f"{n_rows} ({n_rows} remain)" in plan.output
    done = run(*counted)
    assert done.exit_code == 0 and f"{n_rows} rows" in " ".join(done.output.split()), done.output
    assert read_counts(tmp_path / "out", model).rows["n"].sum() == n_rows - 1  # one has no text
    (tmp_path / "a.csv").write_text("body\nbalcor dunfer\n")
    for command, option, value in (("embed", "encoder", EMBED.encoder), ("assign", "model", model)):
        done = run("batch", command, tmp_path / "a.csv", f"--{option}", value, "--out",
                   tmp_path / command, "--text", "body")  # fmt: skip
        # Of the model no encoder is known: its vectors were given.
        assert done.exit_code == (0 if command == "embed" else 2), done.output
    assert "--out" in refused("batch", "embed", tmp_path / "a.csv", "--encoder", EMBED.encoder,
                              "--out", tmp_path / "out", "--text", "body")  # fmt: skip
    assert "--classifier" in refused(
        "batch", "classify", data, "--classifier", folder, "--out", tmp_path / "c"
    )
