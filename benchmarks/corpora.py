"""The labelled corpora and the arXiv abstracts, with their embeddings.

The files are development data and not part of the repository. They are looked for in the folders
that EMBEDTOPICS_DATA and EMBEDTOPICS_EMBEDDINGS name, by default beside the repository.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import ROOT

__all__ = [
    "CACHE",
    "LABELLED",
    "LabelledCorpus",
    "hash_texts",
    "load_arxiv",
    "load_labelled",
    "read_arxiv_texts",
    "sample_rows",
]

DATA = Path(os.environ.get("EMBEDTOPICS_DATA") or ROOT.parent / "shared" / "data")
EMBEDDINGS = Path(os.environ.get("EMBEDTOPICS_EMBEDDINGS") or ROOT.parent / "shared" / "embeddings")
CACHE = ROOT / ".cache"
LABELLED = ("bbc_news", "ag_news", "20newsgroups")


@dataclass(frozen=True, eq=False)
class LabelledCorpus:
    """Texts whose classes are known.

    Parameters
    ----------
    name : str
    texts : list of str
        What was encoded; some may be empty.
    classes : list of str
        True class of each text.
    embeddings : float32 ndarray of shape (n_texts, n_dimensions)
    """

    name: str
    texts: list[str]
    classes: list[str]
    embeddings: np.ndarray


def load_labelled(name: str) -> LabelledCorpus:
    """Read one of `LABELLED`, its texts written as they were for its embeddings.

    Raises
    ------
    SystemExit
        If a file is missing, or the embeddings are not of these texts.
    """
    texts, classes, file = _READERS[name]()
    embeddings = np.load(_existing(EMBEDDINGS / file, "EMBEDTOPICS_EMBEDDINGS"))
    if len(embeddings) != len(texts):
        raise SystemExit(
            f"expected {len(texts)} rows in {file}, one a text of {name}, got {len(embeddings)}"
        )
    return LabelledCorpus(name, texts, classes, embeddings.astype(np.float32))


def _read_bbc_news() -> tuple[list[str], list[str], str]:
    rows = _read_rows("bbc_news/bbc_news.jsonl.gz")
    texts = [f"{row['title']}. {row['text']}" for row in rows]
    return texts, [row["label"] for row in rows], "bbc_news.npy"


def _read_ag_news() -> tuple[list[str], list[str], str]:
    rows = _read_rows("ag_news/test.jsonl.gz")
    texts = [f"{row['title']}. {row['description']}" for row in rows]
    return texts, [row["label"] for row in rows], "ag_news_test.npy"


def _read_20newsgroups() -> tuple[list[str], list[str], str]:
    # scikit-learn offers these only through its loader, which downloads. The loader strips the
    # footer before the quotes; the embeddings were made in the order below, which leaves 49
    # messages empty instead of 515.
    from sklearn.datasets._twenty_newsgroups import (
        strip_newsgroup_footer,
        strip_newsgroup_header,
        strip_newsgroup_quoting,
    )

    rows = [
        row for part in ("train", "test") for row in _read_rows(f"20newsgroups/{part}.jsonl.gz")
    ]
    texts = [
        strip_newsgroup_footer(strip_newsgroup_quoting(strip_newsgroup_header(row["text"]))).strip()
        for row in rows
    ]
    return texts, [row["label"] for row in rows], "20newsgroups.npy"


_READERS = {
    "bbc_news": _read_bbc_news,
    "ag_news": _read_ag_news,
    "20newsgroups": _read_20newsgroups,
}


def read_arxiv_texts() -> list[str]:
    """Return title + ". " + abstract of all arXiv abstracts, in the order of the file."""
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    return [f"{row['title']}. {row['abstract']}" for row in rows]


def load_arxiv(cache: Path = CACHE) -> tuple[list[str], np.ndarray]:
    """Read the arXiv texts, and their embeddings as embed_arxiv.py left them.

    Returns
    -------
    texts : list of str
    embeddings : float32 ndarray of shape (n_texts, n_dimensions)

    Raises
    ------
    SystemExit
        If there are no embeddings, or they are of other texts.
    """
    texts = read_arxiv_texts()
    file = cache / "arxiv_abstracts.npy"
    if not file.exists():
        raise SystemExit(
            f"expected the embeddings of the arXiv abstracts in {file}; they are not there; "
            "make them once with: python benchmarks/embed_arxiv.py"
        )
    made_of = json.loads(file.with_suffix(".json").read_text("utf-8"))["texts_sha256"]
    if made_of != hash_texts(texts):
        raise SystemExit(
            f"expected embeddings of the texts in {DATA}; those in {file} are of others; "
            "delete them and make them again with: python benchmarks/embed_arxiv.py"
        )
    return texts, np.load(file)


def hash_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of texts in their order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(json.dumps(text).encode() + b"\n")
    return digest.hexdigest()


def sample_rows(n_rows: int, n: int) -> np.ndarray:
    """Return `n` of the rows, ascending: always the same, the smaller samples in the larger ones.

    The abstracts are ordered by date, so that the first `n` would be of another age than all.
    """
    if n > n_rows:
        raise SystemExit(f"expected at least {n} documents, got {n_rows}")
    return np.sort(np.random.default_rng(0).permutation(n_rows)[:n])


def _read_rows(file: str) -> list[dict[str, Any]]:
    with gzip.open(_existing(DATA / file, "EMBEDTOPICS_DATA"), "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def _existing(path: Path, variable: str) -> Path:
    if not path.is_file():
        raise SystemExit(
            f"expected the development data in {path}; it is not there; "
            f"name its folder in {variable}"
        )
    return path
