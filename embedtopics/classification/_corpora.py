"""Classify whole corpora in parts, from files larger than memory to parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.display import one_line, progress_bar, spell_count
from embedtopics._utils.folders import replacing_file
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
"""Rows of each output file."""

ABOUT = "_classified.json"
"""Readers of parquet folders skip names that start with "_"."""


def classify(
    classifier: TextClassifier,
    corpus: Any,
    out: str | os.PathLike[str],
    *,
    text: str | None = None,
    id: str | None = None,
    max_error: float | None = None,
) -> Exported:
    """Predict the class of every text of a corpus and write parquet files, part by part.

    An interrupted run continues with the first missing part.

    Parameters
    ----------
    classifier : TextClassifier
        A fitted classifier.
    corpus : path, Corpus, or any input of `Corpus`
        Files of type csv, tsv, jsonl and parquet are read in parts and may be larger than memory.
    out : path
        Folder that `pandas.read_parquet` reads as one table with the columns row, id, label,
        confidence, and the probability of each class. Rows without text have no label.
    text, id : str, optional
        As in `Corpus`.
    max_error : float, optional
        Largest share of errors, as in `TextClassifier.predict`; less confident rows get no label.

    Returns
    -------
    Exported

    Raises
    ------
    InputError
        `out` holds other files, or the results of another corpus or classifier.
    """
    check_is_fitted(classifier, "head_")
    threshold = -np.inf
    if max_error is not None:
        threshold = threshold_for(max_error, classifier.risk_coverage())
    folder = Path(out).expanduser()
    about = {
        "classifier": hashlib.sha256(b"\0".join([
            classifier.head_.weights.tobytes(), classifier.head_.bias.tobytes(),
            repr(classifier.calibration_).encode(), repr(classifier.classes_.tolist()).encode(),
            str(classifier.encoder_.fingerprint or "").encode(),
        ])).hexdigest(),
        "part_rows": PART_ROWS,
        "max_error": max_error,
        "text": text,
        "id": id,
        "source": f"{Path(corpus).name}, {Path(corpus).stat().st_size} bytes"
        if _is_file(corpus)
        else hashlib.sha256(Corpus.of(corpus).hashes.tobytes()).hexdigest(),
    }  # fmt: skip
    _prepare_folder(folder, about)
    paths, n_rows, n_present = [], 0, 0
    bar = progress_bar(total=0, unit="text", description="Classifying", show=None)
    with bar, closing(_parts(corpus, text, id)) as parts:
        for number, part in enumerate(parts):
            path = folder / f"part-{number:06d}.parquet"
            n_present += path.exists()
            if not path.exists():
                table = classified(classifier, part, n_rows, threshold)
                with replacing_file(path) as fresh:
                    table.to_parquet(fresh, index=False)
            paths.append(path)
            n_rows += len(part)
            bar.update(len(part))
    rows, files = spell_count(n_rows, "row", "rows"), spell_count(len(paths), "file", "files")
    message = f"Classified {rows} into {files}{f' ({n_present:,} existed)' * (n_present > 0)}."
    return Exported(tuple(paths), (Decision("classification", "classified", n_rows, message),))


def _is_file(corpus: Any) -> bool:
    return isinstance(corpus, (str, os.PathLike)) and Path(corpus).is_file()


def _prepare_folder(folder: Path, about: dict[str, Any]) -> None:
    """Create the folder, or refuse one with other content than this run's."""
    content = json.dumps(about, indent=1, default=str)
    if folder.is_dir() and any(folder.iterdir()):
        described = folder / ABOUT
        if not described.is_file() or described.read_text("utf-8") != content:
            other = "another run" if described.is_file() else "other files"
            raise InputError("out", "a new folder", found=f"{folder}, which holds {other}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    with replacing_file(folder / ABOUT) as fresh:
        fresh.write_text(content, "utf-8")


def _parts(corpus: Any, text: Any, id: str | None) -> Generator[Corpus]:
    frames = _frames(Path(corpus)) if _is_file(corpus) else None
    if frames is None:
        read = Corpus(corpus, text, id) if text or id else Corpus.of(corpus)
        for begin in range(0, len(read), PART_ROWS):
            yield read[begin : begin + PART_ROWS]
        return
    n_rows = 0
    with closing(frames):
        while True:
            try:
                frame = next(frames, None)
            except ValueError as error:  # of pandas and pyarrow, also for a wrong encoding
                state = f"{corpus}, unreadable after {n_rows:,} rows ({one_line(error)})"
                raise InputError("corpus", "a readable file", found=state) from None
            if frame is None:
                return
            part = Corpus(frame.reset_index(drop=True), text, id)
            text = text or part.text_column  # the column of the first part
            n_rows += len(part)
            yield part


def _frames(path: Path) -> Generator[pd.DataFrame] | None:
    """Return the parts of a file as frames, or None for a file that is read as a whole."""
    check_path(path)
    name = path.name.lower()
    is_lines = name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    is_delimited = name.removesuffix(".gz").endswith((".csv", ".tsv"))

    def read() -> Generator[pd.DataFrame]:
        import pandas as pd
        import pyarrow.parquet as pq

        reader: Any
        if not is_lines and not is_delimited:
            with pq.ParquetFile(path) as file:
                yield from (batch.to_pandas() for batch in file.iter_batches(PART_ROWS))
            return
        if is_lines:
            reader = pd.read_json(path, dtype=False, lines=True, chunksize=PART_ROWS)
        else:
            with open_text(path, "utf-8") as stream:
                sniffed = sniff_delimiter(stream.read(65536)) or ","
            options: Any = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
            options["sep"] = "\t" if ".tsv" in name else sniffed
            reader = pd.read_csv(path, chunksize=PART_ROWS, **options)
        with reader:
            yield from reader

    return read() if is_lines or is_delimited or name.endswith(".parquet") else None


def classified(
    classifier: TextClassifier, part: Corpus, begin: int, threshold: float
) -> pd.DataFrame:
    """Return the predictions of one part, one row for each row of the part."""
    import pandas as pd

    rows = np.flatnonzero(part.status == TEXT)
    chances = classifier.predict_proba([part.texts[row] for row in rows.tolist()])
    names, is_multilabel = classifier.classes_.tolist(), classifier.head == "multilabel"
    labels: list[Any] = [None] * len(part)
    for row, of_row in zip(rows.tolist(), chances, strict=True):
        if is_multilabel:
            labels[row] = [name for name, p in zip(names, of_row, strict=True) if p >= 0.5]
        elif of_row.max() >= threshold:
            labels[row] = names[int(of_row.argmax())]
    columns = np.full((len(part), len(names)), np.nan, dtype=np.float32)
    columns[rows] = chances
    # An explicit type: a part without any label must have the same one.
    dtypes = {"i": "Int64", "U": "string", "b": "boolean"}
    kind = "O" if is_multilabel else classifier.classes_.dtype.kind
    table = {
        "row": np.arange(begin, begin + len(part)),
        "id": part.ids,
        "label": pd.Series(labels, dtype=dtypes.get(kind, object)),
        "confidence": columns.max(axis=1),
    }
    return pd.DataFrame(table | {f"p_{name}": columns[:, i] for i, name in enumerate(names)})
