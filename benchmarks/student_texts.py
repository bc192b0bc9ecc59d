"""The texts that static students learn from, without any that a test set holds."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.corpora import DATA, _existing, _read_rows

__all__ = ["StudentTexts", "load_student_texts", "titles_and_categories"]

N_TEST_TITLES, N_TITLES = 20_000, 100_000
MOST = {"inference": 80_000, "captions": 50_000, "encyclopedia": 60_000}
"""Texts taken of a source; all of the others."""
QUICK = 40
"""What the numbers of texts are divided by in a quick run."""

_PAIRS = ("premise", "hypothesis")
_IN_TESTS = (
    ("stsb/en_dev", ("sentence1", "sentence2")),
    ("stsb/en_test", ("sentence1", "sentence2")),
    ("sick/sick", ("sentence_a", "sentence_b")),
    ("lingnli/val", _PAIRS),
    ("multinli_sample/dev", _PAIRS),
    ("snli_counterfactual/dev", _PAIRS),
    ("snli_counterfactual/test", _PAIRS),
    ("rte/dev", _PAIRS),
    ("xnli/en_validation", _PAIRS),
    ("xnli/en_test", _PAIRS),
    ("mpe/dev", ("premises", "hypothesis")),
    ("mpe/test", ("premises", "hypothesis")),
    ("ag_news/test", ("title", "description")),
    ("multi30k/captions_val", ("en",)),
    ("multi30k/captions_test_2016", ("en",)),
)
_IN_TRAINING = {
    "sts": (("stsb/en_train", ("sentence1", "sentence2")),),
    "inference": (
        ("lingnli/train", _PAIRS),
        ("multinli_sample/train", _PAIRS),
        ("snli_counterfactual/train", _PAIRS),
        ("mpe/train", ("premises", "hypothesis")),
    ),
    "captions": (("multi30k/captions_train", ("en",)),),
    "news": (("ag_news/train_4000", ("title", "description")),),
}
_SENTENCE_END = re.compile(r'(?<=[.!?])\s+(?=[A-Z"(])')


@dataclass(frozen=True, eq=False)
class StudentTexts:
    """What students learn from, and the titles that they are measured on.

    Parameters
    ----------
    titles : list of str
        In the domain of the test.
    general : list of str
        From everywhere else.
    sources : dict of str to int
        How many of `general` come from where.
    test_titles : list of str
    test_categories : list of str
        The primary category of each.
    """

    titles: list[str]
    general: list[str]
    sources: dict[str, int]
    test_titles: list[str]
    test_categories: list[str]


def load_student_texts(*, quick: bool = False) -> StudentTexts:
    """Read the texts; no text for learning is one of a test, whatever its case and marks."""
    part = QUICK if quick else 1
    rows = titles_and_categories()
    order = np.random.default_rng(1).permutation(len(rows))
    test = [rows[row] for row in np.sort(order[: N_TEST_TITLES // part])]
    held_out = set(map(_normal, _texts(_IN_TESTS))) | {_normal(title) for _, title in test}
    for row in _read_rows("sts12_14/sts12_14.jsonl.gz"):
        if not row["in_stsb"]:  # the others are in its parts, of which one is for training
            held_out |= {_normal(row["sentence1"]), _normal(row["sentence2"])}
    learned = (rows[row][1] for row in np.sort(order[N_TEST_TITLES // part :]))
    titles = _take(learned, N_TITLES // part, held_out)
    general: dict[str, None] = {}
    sources = {}
    for source in (*_IN_TRAINING, "encyclopedia"):
        texts = _sentences() if source == "encyclopedia" else _texts(_IN_TRAINING[source])
        taken = _take(texts, MOST.get(source, 10**9) // part, held_out)
        before = len(general)
        general |= dict.fromkeys(taken)
        sources[source] = len(general) - before
    return StudentTexts(
        titles, list(general), sources, [title for _, title in test], [cat for cat, _ in test]
    )


def titles_and_categories() -> list[tuple[str, str]]:
    path = _existing(DATA / "arxiv_titles/arxiv_titles.tsv.gz", "EMBEDTOPICS_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        cells = [line.rstrip("\n").split("\t") for line in stream][1:]
    return [(row[2], row[3]) for row in cells]


def _texts(files: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for file, keys in files:
        for row in _read_rows(f"{file}.jsonl.gz"):
            for key in keys:
                yield from [row[key]] if isinstance(row[key], str) else row[key]


def _sentences() -> Iterator[str]:
    for row in _read_rows("enwiki_2015_sample/articles.jsonl.gz"):
        for line in row["text"].split("\n"):
            yield from (part for part in _SENTENCE_END.split(line) if 40 <= len(part) <= 250)


def _normal(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _take(texts: Iterable[str], n: int, held_out: set[str]) -> list[str]:
    """Return distinct texts that are not held out, those with the lowest hashes."""
    distinct: dict[str, str] = {}
    for text in texts:
        key = _normal(text)
        if len(key) >= 8 and key not in held_out:
            distinct.setdefault(key, text.replace("\\", " ").strip())
    return sorted(distinct.values(), key=lambda text: hashlib.sha256(text.encode()).digest())[:n]
