"""Classes of whole corpora: files that memory does not hold, part by part, to parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import replacing_file
from embedtopics._utils.progress import progress_bar
from embedtopics.classification._heads import threshold_for
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._readers import check_path, open_text, sniff_delimiter
from embedtopics.corpus._texts import TEXT
from embedtopics.decisions import Decision, Exported
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

PART_ROWS = 20_000
"""Rows of a file."""

ABOUT = "_classified.json"
"""Readers of parquet folders pass over names that begin with "_"."""


def classify(
    classifier: TextClassifier,
    corpus: Any,
    out: str | os.PathLike[str],
    *,
    text: str | None = None,
    id: str | None = None,
    max_error: float | None = None,
    show_progress: bool | None = None,
) -> Exported:
    """Give every text of a corpus its class, part by part, in a folder of parquet files.

    A run that was interrupted goes on where it ended. Vectors come from the cache where the
    classifier's encoder has one.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    corpus : path, Corpus, or what `Corpus` takes
        csv, tsv, jsonl and parquet files are read in parts, and may be larger than memory.
    out : path
        Folder, which `pandas.read_parquet` reads as one table: row, id, label, confidence, and the
        probability of each class. Rows without text have no label.
    text, id : str, optional
        Columns, as in `Corpus`.
    max_error : float, optional
        Hold predictions back as in `TextClassifier.predict`: the label is missing there.
    show_progress : bool, optional

    Returns
    -------
    Exported

    Raises
    ------
    InputError
        Where `out` holds anything else, such as the classes of another corpus or classifier.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(classifier, "head_")
    threshold = -np.inf
    if max_error is not None:
        threshold = threshold_for(max_error, classifier.risk_coverage())
    folder = Path(out).expanduser()
    about = {
        "classifier": _fingerprint(classifier), "part_rows": PART_ROWS, "max_error": max_error,
        "text": text, "id": id, "source": _source(corpus),
    }  # fmt: skip
    _claim(folder, about)
    paths, n_rows, n_done = [], 0, 0
    with ExitStack() as stack:
        bar = stack.enter_context(
            progress_bar(total=0, unit="text", description="Classifying", show=show_progress)
        )
        parts = stack.enter_context(closing(_parts(corpus, text, id)))
        for number, part in enumerate(parts):
            path = folder / f"part-{number:06d}.parquet"
            if path.exists():
                n_done += 1
            else:
                table = classified(classifier, part, n_rows, threshold)
                with replacing_file(path) as fresh:
                    table.to_parquet(fresh, index=False)
            paths.append(path)
            n_rows += len(part)
            bar.update(len(part))
    message = f"{n_rows:,} rows have classes, in {len(paths):,} files; {n_done:,} were there."
    return Exported(tuple(paths), (Decision("classification", "classified", n_rows, message),))


def _fingerprint(classifier: TextClassifier) -> str:
    """Return what a prediction depends on, as a digest."""
    parts = [
        classifier.head_.weights.tobytes(), classifier.head_.bias.tobytes(),
        repr(classifier.calibration_).encode(), repr(classifier.classes_.tolist()).encode(),
        str(classifier.encoder_.fingerprint or "").encode(),
    ]  # fmt: skip
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _source(corpus: Any) -> str:
    if isinstance(corpus, (str, os.PathLike)) and Path(corpus).is_file():
        return f"{Path(corpus).name}, {Path(corpus).stat().st_size} bytes"
    read = Corpus.of(corpus)
    return hashlib.sha256(read.hashes.tobytes()).hexdigest()


def _claim(folder: Path, about: dict[str, Any]) -> None:
    """Make the folder, or make sure that what is in it is of the same run."""
    content = json.dumps(about, indent=1, default=str)
    if folder.is_dir() and any(folder.iterdir()):
        named = folder / ABOUT
        if not named.is_file() or named.read_text("utf-8") != content:
            found = f"{folder}, which holds {'another run' if named.is_file() else 'other files'}"
            raise InputError("out", "a new folder", found=found, remedy="name another one")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", "a folder that can be made", found=f"{folder} ({error})") from None
    with replacing_file(folder / ABOUT) as fresh:
        fresh.write_text(content, "utf-8")


def _parts(corpus: Any, text: str | None, id: str | None) -> Generator[Corpus]:
    is_path = isinstance(corpus, (str, os.PathLike)) and Path(corpus).is_file()
    frames = _frames(Path(corpus)) if is_path else None
    if frames is None:
        read = Corpus(corpus, text, id) if text or id else Corpus.of(corpus)
        for begin in range(0, len(read), PART_ROWS):
            yield read[begin : begin + PART_ROWS]
        return
    begin = 0
    with closing(frames):
        while True:
            try:
                frame = next(frames, None)
                if frame is None:
                    return
                part = Corpus(frame.reset_index(drop=True), text, id)
            except InputError as error:
                raise InputError(f"{error} (rows from {begin} of {corpus})") from None
            except ValueError as error:  # of pandas and pyarrow, wrong encodings too
                found = f"{corpus}, unreadable after {begin:,} rows ({one_line(error)})"
                raise InputError("corpus", "a file that can be read", found=found) from None
            text = text or part.text_column  # of the first part
            begin += len(part)
            yield part


def _frames(path: Path) -> Generator[pd.DataFrame] | None:
    """Return the parts of a file as tables, or None where it is read as a whole."""
    check_path(path)
    name = path.name.lower().removesuffix(".gz")
    if path.name.lower().endswith(".parquet"):
        return _batches(path)
    if name.endswith((".jsonl", ".ndjson", ".csv", ".tsv")):
        return _chunks(path, name)
    return None


def _batches(path: Path) -> Generator[pd.DataFrame]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=PART_ROWS):
            yield batch.to_pandas()


def _chunks(path: Path, name: str) -> Generator[pd.DataFrame]:
    import pandas as pd

    reader: Any
    if name.endswith((".jsonl", ".ndjson")):
        reader = pd.read_json(path, dtype=False, lines=True, chunksize=PART_ROWS)
    else:
        with open_text(path, "utf-8") as stream:
            sign = "\t" if name.endswith(".tsv") else sniff_delimiter(stream.read(65536)) or ","
        reader = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            sep=sign,
            chunksize=PART_ROWS,
        )
    with reader:
        yield from reader


def classified(
    classifier: TextClassifier, part: Corpus, begin: int, threshold: float
) -> pd.DataFrame:
    """Return the table of a part."""
    import pandas as pd

    rows = np.flatnonzero(part.status == TEXT)
    found = classifier.predict_proba([part.texts[row] for row in rows.tolist()])
    names, several = classifier.classes_.tolist(), classifier.head == "multilabel"
    labels: list[Any] = [None] * len(part)
    for row, chances in zip(rows.tolist(), found, strict=True):
        if several:
            labels[row] = [name for name, p in zip(names, chances, strict=True) if p >= 0.5]
        elif chances.max() >= threshold:
            labels[row] = names[int(chances.argmax())]
    every = np.full((len(part), len(names)), np.nan, dtype=np.float32)
    every[rows] = found
    # Named, so that a part in which all are missing is of the same type.
    dtypes = {"i": "Int64", "U": "string", "b": "boolean"}
    kind = "O" if several else classifier.classes_.dtype.kind
    return pd.DataFrame({
        "row": np.arange(begin, begin + len(part)), "id": part.ids,
        "label": pd.Series(labels, dtype=dtypes.get(kind, object)),
        "confidence": every.max(axis=1),
        **{f"p_{name}": column for name, column in zip(names, every.T, strict=True)},
    })  # fmt: skip
