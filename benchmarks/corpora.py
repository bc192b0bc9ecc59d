"""The labelled corpora, and the arXiv abstracts and titles.

The files are development data and not part of the repository. They are looked for in the folders
that EMBEDTOPICS_DATA and EMBEDTOPICS_EMBEDDINGS name, by default beside the repository.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import ROOT

__all__ = [
    "CACHE",
    "ENCODED",
    "FRENCH",
    "LABELLED",
    "LabelledCorpus",
    "hash_texts",
    "load_arxiv",
    "load_arxiv_dates",
    "load_encoded",
    "load_labelled",
    "load_sts",
    "sample_rows",
]

DATA = Path(os.environ.get("EMBEDTOPICS_DATA") or ROOT.parent / "shared" / "data")
EMBEDDINGS = Path(os.environ.get("EMBEDTOPICS_EMBEDDINGS") or ROOT.parent / "shared" / "embeddings")
CACHE = ROOT / ".cache"
LABELLED = ("bbc_news", "ag_news", "20newsgroups", "octis_m10", "octis_dblp")
"""What topics are measured on."""
FRENCH = "masakhanews_fra"
"""A labelled corpus that the encoder of the ready embeddings was not made for."""
ARXIV_ABSTRACTS = "arxiv_abstracts/arxiv_abstracts.jsonl.gz"
N_TITLES = 226_000


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
    """Read one of `LABELLED`, or `FRENCH`, its texts written as they were for its embeddings.

    Raises
    ------
    SystemExit
        If a file is missing, or the embeddings are not of these texts.
    """
    texts, classes, file = _READERS[name]()
    if file is None:
        return LabelledCorpus(name, texts, classes, load_encoded(name)[1])
    embeddings = np.load(_existing(EMBEDDINGS / file, "EMBEDTOPICS_EMBEDDINGS"))
    if len(embeddings) != len(texts):
        raise SystemExit(
            f"expected {len(texts)} rows in {file}, one a text of {name}, got {len(embeddings)}"
        )
    return LabelledCorpus(name, texts, classes, embeddings.astype(np.float32))


def load_arxiv() -> LabelledCorpus:
    """Return the arXiv abstracts with their primary categories as classes."""
    texts, embeddings = load_encoded("arxiv_abstracts")
    rows = _read_rows(ARXIV_ABSTRACTS)
    return LabelledCorpus("arXiv", texts, [row["primary_cat"] for row in rows], embeddings)


def load_arxiv_dates() -> list[str]:
    """Return the dates of the arXiv abstracts, in the order of `load_arxiv`."""
    return [row["created"] for row in _read_rows(ARXIV_ABSTRACTS)]


def load_sts(part: str) -> list[dict[str, Any]]:
    """Return the English pairs of the STS benchmark: two sentences, and how alike they are."""
    keys = ("sentence1", "sentence2", "score")
    return [{key: row[key] for key in keys} for row in _read_rows(f"stsb/en_{part}.jsonl.gz")]


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


def _read_octis_m10() -> tuple[list[str], list[str], str]:
    rows = _read_rows("octis_m10/octis_m10.jsonl.gz")
    return [row["text"] for row in rows], [row["label"] for row in rows], "octis_m10.npy"


def _read_octis_dblp() -> tuple[list[str], list[str], None]:
    rows = _read_rows("octis_dblp/octis_dblp.jsonl.gz")
    return [row["text"] for row in rows], [row["label"] for row in rows], None


def _read_masakhanews(language: str) -> tuple[list[str], list[str], None]:
    rows = [
        row
        for part in ("train_fewshot50", "dev", "test")
        for row in _read_rows(f"masakhanews_{language}/{part}.jsonl.gz")
    ]
    texts = [f"{row['headline']}. {row['text']}" for row in rows]
    return texts, [row["label"] for row in rows], None


def _read_biomedical() -> tuple[list[str], list[str], None]:
    rows = _read_rows("short_text_clustering/biomedical.jsonl.gz")
    return [row["text"] for row in rows], [row["label"] for row in rows], None


def _read_trec_questions() -> tuple[list[str], list[str], None]:
    rows = [
        row for part in ("train", "test") for row in _read_rows(f"trec_questions/{part}.jsonl.gz")
    ]
    return [row["text"] for row in rows], [row["coarse"] for row in rows], None


def _read_octis_bbc() -> tuple[list[str], list[str], str]:
    rows = _read_rows("octis_bbc/octis_bbc.jsonl.gz")
    return [row["text"] for row in rows], [row["label"] for row in rows], "octis_bbc.npy"


def _read_trump_tweets() -> list[str]:
    """Return the tweets as they were written but for the HTML entities of their source."""
    return [html.unescape(row["text"]) for row in _read_rows("trump_tweets/trump_tweets.jsonl.gz")]


_READERS: dict[str, Callable[[], tuple[list[str], list[str], str | None]]] = {
    "bbc_news": _read_bbc_news,
    "ag_news": _read_ag_news,
    "20newsgroups": _read_20newsgroups,
    "octis_bbc": _read_octis_bbc,
    "octis_m10": _read_octis_m10,
    "octis_dblp": _read_octis_dblp,
    FRENCH: partial(_read_masakhanews, "fra"),
    "masakhanews_eng": partial(_read_masakhanews, "eng"),
    "biomedical": _read_biomedical,
    "trec_questions": _read_trec_questions,
}


def _texts_of(name: str) -> list[str]:
    return _READERS[name]()[0]


def _read_arxiv_abstracts() -> list[str]:
    """Return title + ". " + abstract of all arXiv abstracts, in the order of the file."""
    rows = _read_rows(ARXIV_ABSTRACTS)
    return [f"{row['title']}. {row['abstract']}" for row in rows]


def _read_arxiv_titles() -> list[str]:
    """Return a sample of the arXiv titles; the file is ordered by date."""
    path = _existing(DATA / "arxiv_titles/arxiv_titles.tsv.gz", "EMBEDTOPICS_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        titles = [line.rstrip("\n").split("\t")[3] for line in stream][1:]
    return [titles[row] for row in sample_rows(len(titles), N_TITLES)]


ENCODED: dict[str, Callable[[], list[str]]] = {
    "arxiv_abstracts": _read_arxiv_abstracts,
    "arxiv_titles": _read_arxiv_titles,
    **{
        name: partial(_texts_of, name)
        for name in ("octis_dblp", FRENCH, "masakhanews_eng", "biomedical", "trec_questions")
    },
    "trump_tweets": _read_trump_tweets,
}
"""Texts whose embeddings have to be made here, by embed.py."""


def load_encoded(name: str, cache: Path = CACHE) -> tuple[list[str], np.ndarray]:
    """Read texts, and their embeddings as embed.py left them.

    Parameters
    ----------
    name : str
        One of `ENCODED`.
    cache : Path

    Returns
    -------
    texts : list of str
    embeddings : float32 ndarray of shape (n_texts, n_dimensions)

    Raises
    ------
    SystemExit
        If there are no embeddings, or they are of other texts.
    """
    texts = ENCODED[name]()
    file = cache / f"{name}.npy"
    if not file.exists():
        raise SystemExit(
            f"expected the embeddings of {name} in {file}; they are not there; "
            f"make them once with: python benchmarks/embed.py {name}"
        )
    made_of = json.loads(file.with_suffix(".json").read_text("utf-8"))["texts_sha256"]
    if made_of != hash_texts(texts):
        raise SystemExit(
            f"expected embeddings of the texts in {DATA}; those in {file} are of others; "
            f"delete them and make them again with: python benchmarks/embed.py {name}"
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
