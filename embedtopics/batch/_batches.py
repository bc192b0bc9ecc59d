"""One function for each kind of batch: vectors, topics, counts, classes and a search index.

Each function makes a job, a manifest of the files, and the columns to read, and runs or plans them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedtopics.batch._index import build_index
from embedtopics.batch._jobs import AssignTopics, ClassifyTexts, CountTopics, EmbedTexts, Job
from embedtopics.batch._manifest import SUFFIXES, make_manifest
from embedtopics.batch._rows import Columns
from embedtopics.batch._run import plan_batch, run_batch
from embedtopics.batch.results import BatchPlan, BatchReport
from embedtopics.errors import InputError
from embedtopics.retrieval._index import SearchIndex
from embedtopics.retrieval.storage._checks import check_target

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def embed(
    encoder: str | os.PathLike[str],
    files: Files,
    out: str | os.PathLike[str],
    *,
    text: str = "text",
    id: str | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
    dry_run: bool = False,
) -> BatchReport | BatchPlan:
    """Write the vectors of the texts of large files, shard by shard.

    Each shard writes one file ``part-<id>.parquet`` atomically, and its bad rows to
    ``_errors/errors-<id>.parquet``. The bytes depend only on the shard and the call, so nothing is
    counted twice after a kill: the same call again goes on.

    Parameters
    ----------
    encoder : str or path
        Name or folder of a checkpoint, or folder of a static encoder. Each worker loads it. It must
        not learn from the texts.
    files : path or sequence of paths
        Uncompressed parquet, jsonl (ndjson), csv and tsv files in UTF-8; or patterns such as
        ``"data/*.parquet"``. A row group of parquet, or a block of whole lines, is a shard.
    out : path
        Folder that `pandas.read_parquet` reads as one table: row, id and vector.
    text, id : str
        Columns of the texts, and of ids.
    n_workers : int
        Processes of one thread; each loads the encoder or the model.
    runner : {"processes", "ray"}
        "ray" needs the extra ``ray`` and a folder `out` that all machines share.
    address : str, optional
        Address of a Ray cluster; by default one is started on this machine.
    dry_run : bool
        Whether to return the plan, without writing anything. A worker processes some rows to
        estimate the time.

    Returns
    -------
    BatchReport or BatchPlan
        The report of the run, or the plan with `dry_run`.

    Raises
    ------
    InputError
        If no file matches, a file cannot be read or has changed since the last run, `out` belongs
        to another batch, or the disk is full.

    Notes
    -----
    Processes are spawned, so a script must call this below ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = ["A river burst its banks.", "Bees swarmed in the garden."]
    >>> pd.DataFrame({"id": ["a", "b"], "text": texts}).to_csv(folder / "texts.csv", index=False)
    >>> out = folder / "vectors"
    >>> et.batch.embed("all-MiniLM-L6-v2", folder / "texts.csv", out, id="id")
    BatchReport(1 of 1 shard done, 2 rows, 0 bad)
    >>> table = pd.read_parquet(out)
    >>> list(table), len(table["vector"][0])
    (['row', 'id', 'vector'], 384)
    >>> temporary.cleanup()
    """
    _check_encoder(encoder, "embed(encoder, files, out)")
    job = EmbedTexts(os.fspath(encoder))
    columns = Columns(text=text, id=id)
    return _run(job, files, out, columns, n_workers, runner, address, dry_run)


def assign(
    model: str | os.PathLike[str],
    files: Files,
    out: str | os.PathLike[str],
    *,
    text: str = "text",
    id: str | None = None,
    vectors: str | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
    dry_run: bool = False,
) -> BatchReport | BatchPlan:
    """Write the topics of the texts of large files: topic, novelty and topic shares of each row.

    Parameters
    ----------
    model : path
        Folder of a saved `TopicModel`.
    files, out
        See `embed`.
    text, id : str
        Columns of the texts, and of ids.
    vectors : str, optional
        Column of vectors by the encoder of the model, which then is not needed.
    n_workers, runner, address, dry_run
        See `embed`.

    Returns
    -------
    BatchReport or BatchPlan
        The report of the run, or the plan with `dry_run`.

    Raises
    ------
    InputError
        If `model` is not the folder of a saved model; and as `embed`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = ["A river burst its banks.", "Bees swarmed in the garden."]
    >>> pd.DataFrame({"id": ["a", "b"], "text": texts}).to_csv(folder / "texts.csv", index=False)
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo", limit=300))
    >>> saved = model.save(folder / "model")
    >>> out = folder / "topics"
    >>> et.batch.assign(folder / "model", folder / "*.csv", out, id="id")
    BatchReport(1 of 1 shard done, 2 rows, 0 bad)
    >>> list(pd.read_parquet(out))
    ['row', 'id', 'topic', 'novelty', 'topics', 'shares']
    >>> temporary.cleanup()
    """
    _check_folder(model, "model", "assign(model, files, out)")
    columns = Columns(text=text, id=id, vectors=vectors)
    job = AssignTopics(Path(model))
    return _run(job, files, out, columns, n_workers, runner, address, dry_run)


def count(
    model: str | os.PathLike[str],
    files: Files,
    out: str | os.PathLike[str],
    *,
    every: str = "month",
    text: str = "text",
    time: str | None = None,
    group: str | None = None,
    vectors: str | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
    dry_run: bool = False,
) -> BatchReport | BatchPlan:
    """Count the rows and terms of each topic in large files, by period and group.

    `read_counts` adds up the counts of the shards.

    Parameters
    ----------
    model : path
        Folder of a saved `TopicModel`, whose terms are counted.
    files, out
        See `embed`.
    every : str
        Length of a period, as in `topics.over_time`. "auto" is refused: it would depend on the
        shard.
    text, time, group : str
        Columns of the texts, of ISO 8601 dates, and of groups.
    vectors : str, optional
        Column of vectors by the encoder of the model, which then is not needed.
    n_workers, runner, address, dry_run
        See `embed`.

    Returns
    -------
    BatchReport or BatchPlan
        The report of the run, or the plan with `dry_run`.

    Raises
    ------
    InputError
        If `model` is not the folder of a saved model; and as `embed`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = pd.DataFrame(
    ...     {
    ...         "text": ["A river burst its banks.", "Bees swarmed.", "The bees are back."],
    ...         "date": ["2023-05-01", "2023-06-01", "2024-05-01"],
    ...     }
    ... )
    >>> texts.to_csv(folder / "texts.csv", index=False)
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo", limit=300))
    >>> saved = model.save(folder / "model")
    >>> out = folder / "counts"
    >>> et.batch.count(folder / "model", folder / "texts.csv", out, every="year", time="date")
    BatchReport(1 of 1 shard done, 3 rows, 0 bad)
    >>> counts = et.batch.read_counts(out, folder / "model")
    >>> counts.table("period").sum().to_dict()
    {'2023': 2, '2024': 1}
    >>> temporary.cleanup()
    """
    _check_folder(model, "model", "count(model, files, out)")
    job = CountTopics(Path(model), every)
    columns = Columns(text=text, time=time, group=group, vectors=vectors)
    return _run(job, files, out, columns, n_workers, runner, address, dry_run)


def classify(
    classifier: str | os.PathLike[str],
    files: Files,
    out: str | os.PathLike[str],
    *,
    text: str = "text",
    id: str | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
    dry_run: bool = False,
) -> BatchReport | BatchPlan:
    """Write the classes of the texts of large files, and the probability of each class.

    Parameters
    ----------
    classifier : path
        Folder of a saved `TextClassifier`.
    files, out
        See `embed`.
    text, id : str
        Columns of the texts, and of ids.
    n_workers, runner, address, dry_run
        See `embed`.

    Returns
    -------
    BatchReport or BatchPlan
        The report of the run, or the plan with `dry_run`.

    Raises
    ------
    InputError
        If `classifier` is not the folder of a saved classifier; and as `embed`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = ["A river burst its banks.", "Bees swarmed in the garden."]
    >>> pd.DataFrame({"id": ["a", "b"], "text": texts}).to_csv(folder / "texts.csv", index=False)
    >>> water = [f"The {name} is full of water." for name in ["river", "lake", "sea", "pond"]]
    >>> insects = [f"The {name} are insects." for name in ["bees", "ants", "wasps", "flies"]]
    >>> classifier = et.TextClassifier("all-MiniLM-L6-v2")
    >>> classifier = classifier.fit(water + insects, ["water"] * 4 + ["insects"] * 4)
    >>> saved = classifier.save(folder / "classifier")
    >>> out = folder / "classes"
    >>> et.batch.classify(folder / "classifier", folder / "texts.csv", out, id="id")
    BatchReport(1 of 1 shard done, 2 rows, 0 bad)
    >>> list(pd.read_parquet(out))[:4]
    ['row', 'id', 'label', 'confidence']
    >>> temporary.cleanup()
    """
    _check_folder(classifier, "classifier", "classify(classifier, files, out)")
    columns = Columns(text=text, id=id)
    job = ClassifyTexts(Path(classifier))
    return _run(job, files, out, columns, n_workers, runner, address, dry_run)


def index(
    encoder: str | os.PathLike[str],
    files: Files,
    out: str | os.PathLike[str],
    *,
    index: str | os.PathLike[str],
    text: str = "text",
    id: str | None = None,
    time: str | None = None,
    group: str | None = None,
    n_workers: int = 1,
    runner: str = "processes",
    address: str | None = None,
    dry_run: bool = False,
) -> SearchIndex | BatchPlan:
    """Build a search index of the texts of large files; vectors that are missing are computed.

    Parameters
    ----------
    encoder, files, out
        See `embed`. `out` holds the vectors of the shards.
    index : path
        New folder of the index, written atomically. Rows without text are omitted.
    text, id, time, group : str
        Columns of the texts, of ids, of ISO 8601 dates and of groups; the last two become metadata
        for filters. Without a column of ids, the id of a row is its file and number, as in
        ``articles.csv:17``.
    n_workers, runner, address, dry_run
        See `embed`.

    Returns
    -------
    SearchIndex or BatchPlan
        The index, saved in its folder; or the plan with `dry_run`.

    Raises
    ------
    InputError
        If a shard failed, an id occurs twice, or the folder `index` holds something; and as
        `embed`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> texts = ["A river burst its banks.", "Bees swarmed in the garden."]
    >>> pd.DataFrame({"id": ["a", "b"], "text": texts}).to_csv(folder / "texts.csv", index=False)
    >>> index = et.batch.index(
    ...     "all-MiniLM-L6-v2",
    ...     folder / "texts.csv",
    ...     folder / "vectors",
    ...     index=folder / "texts.index",
    ...     id="id",
    ... )
    >>> index.search("flood", k=1)[0].id
    'a'
    >>> temporary.cleanup()
    """
    _check_encoder(encoder, "index(encoder, files, out, index=folder)")
    check_target(Path(index).expanduser(), False)
    manifest = make_manifest(files)
    job = EmbedTexts(os.fspath(encoder))
    columns = Columns(text=text, id=id, time=time, group=group)
    if dry_run:
        return plan_batch(job, manifest, out, columns=columns, n_workers=n_workers)

    report = run_batch(
        job,
        manifest,
        out,
        columns=columns,
        n_workers=n_workers,
        runner=runner,
        address=address,
    )
    if report.n_failed:
        first = report.to_frame().iloc[0]
        failed = f"{report.n_failed:,} failed shards, such as one of {first['file']}"
        remedy = "call it again to retry them"
        raise InputError(
            "files", "files that can be read", found=f"{failed} ({first['reason']})", remedy=remedy
        )
    return build_index(job, manifest, out, index, columns=columns)


def _run(
    job: Job,
    files: Files,
    out: str | os.PathLike[str],
    columns: Columns,
    n_workers: int,
    runner: str,
    address: str | None,
    dry_run: bool,
) -> BatchReport | BatchPlan:
    """Run a job on the shards of some files, or plan it."""
    manifest = make_manifest(files)
    if dry_run:
        return plan_batch(job, manifest, out, columns=columns, n_workers=n_workers)
    return run_batch(
        job,
        manifest,
        out,
        columns=columns,
        n_workers=n_workers,
        runner=runner,
        address=address,
    )


def _check_encoder(encoder: Any, call: str) -> None:
    """Refuse what the workers cannot load, such as an encoder in memory."""
    if not isinstance(encoder, str | os.PathLike):
        expected = "the name of a checkpoint, or the folder of an encoder, which each worker loads"
        raise InputError("encoder", expected, encoder, "save it, and pass the folder")
    _refuse_files(encoder, "encoder", "the name of a checkpoint, or the folder of an encoder", call)


def _check_folder(model: Any, parameter: str, call: str) -> None:
    """Refuse what the workers cannot load, such as a model in memory."""
    expected = f"the folder of a saved {parameter}"
    if not isinstance(model, str | os.PathLike):
        remedy = f"save it: {parameter}.save({parameter!r}), and pass the folder"
        raise InputError(parameter, f"{expected}, which each worker loads", model, remedy)
    _refuse_files(model, parameter, expected, call)


def _refuse_files(value: str | os.PathLike[str], parameter: str, expected: str, call: str) -> None:
    """Refuse a file of texts as the first argument, where the arguments are swapped."""
    if os.fspath(value).endswith(SUFFIXES):
        raise InputError(parameter, expected, value, f"call et.batch.{call}")
