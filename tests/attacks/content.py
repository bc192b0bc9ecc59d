# ruff: noqa: E501
"""Hostile texts, and the files that are written from them."""

import csv
import itertools
import json
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import embedtopics as et
from embedtopics import report, topics
from embedtopics.corpus._table_files import FORMULA_STARTS
from tests.attacks.trials import Trial
from tests.factories import make_result
from tests.report.test_page import Page


class Vectors:
    """An encoder of hashes, which is fast and needs no file."""

    name = "hashes"
    settings = None

    def encode(self, texts: Any, **_: Any) -> Any:
        rows = [
            np.random.default_rng([ord(c) for c in text[:40]] or 0).normal(size=8) for text in texts
        ]
        return np.array(rows, dtype=np.float32).reshape(len(rows), 8)


TEXTS: dict[str, str] = {
    "NUL": "a\0b", "NULs": "\0" * 99, "surrogate": "a\ud800b", "pair": "\ud83d\ude00", "right to left": "\u202eabc\u202c \u05e9\u05dc\u05d5\u05dd", "isolates": "\u2066a\u2069" * 50,
    "marks": "\u0301" * 500, "tower": "e" + "\u0301" * 5000, "joiners": "\u200d" * 500, "tags": "\U000e0041" * 99, "private": "\ue000\U0010ffff\ufffe", "controls": "".join(map(chr, range(32))),
    "escapes": "\x1b[31m\x1b]0;t\x07 red", "separators": "a\u2028b\u2029c\x85d\x0be\x0cf", "CRLF": "a\r\nb\rc", "formula": "=1+1", "command": "=cmd|' /C calc'!A0", "link": '=HYPERLINK("http://x","a")',
    "at": "@SUM(1)", "plus": "+1+1", "minus": "-1+1", "tab": "\t=1+1", "wide": "\uff1d1+1", "script": "<script>alert(1)</script>", "closed": "</script></style></title><svg/onload=alert(1)>",
    "attribute": '" onmouseover="alert(1)', "entity": "&lt;script&gt;&#x3c;img src=x onerror=alert(1)&#x3e;", "comment": "<!--<script>", "template": "{{7*7}} ${7*7} %{x} {x}", "url": "javascript:alert(1)",
    "markdown": "[a](javascript:alert(1)) ![x](http://x/y)", "MathJax": "$$\\href{javascript:alert(1)}{x}$$ \\(x\\)", "quote": "'\"`", "SQL": "'; DROP TABLE documents; --", "backslash": "\\" * 99, "percent": "%s%n%d",
    "digits": "9" * 5000, "one word": "a" * 100_000, "words": "word " * 50_000, "10 MB": "The quick brown fox. " * 500_000, "dots": "." * 1_000_000, "lines": "\n" * 100_000, "empty": "", "space": " \u3000\u00a0",
    "BOM": "\ufefftext", "soft": "\u00ad" * 500, "hangul": "\u1100\u1161\u11a8" * 500, "expands": "\ufdfa" * 2000, "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 500, "NEL": "a\x85b",
}  # fmt: skip


def check_written(path: Path) -> None:
    """Assert that no cell of a table is a formula."""
    if path.suffix in (".csv", ".tsv"):
        before = csv.field_size_limit(1 << 30)
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = itertools.chain(
                *csv.reader(file, delimiter="," if path.suffix == ".csv" else "\t")
            )
            for cell in cells:
                number = pd.to_numeric(cell, errors="coerce") if len(cell) < 30 else np.nan
                assert not cell.startswith(FORMULA_STARTS) or not np.isnan(number), cell[:99]
        csv.field_size_limit(before)
    elif path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            for name in book.namelist():
                assert not name.endswith(".rels") or b"External" not in book.read(name)
                assert b"<f>" not in book.read(name) and b"<f " not in book.read(name)


def trials() -> Iterator[Trial]:
    """Yield all trials of texts."""
    plain = Page(report_of(make_result(60, 3, texts=["a"], topic_labels=["a", "b"])))
    for kind, text in TEXTS.items():
        shown = text.encode("utf-8", "replace").decode()  # labels are checked where they are given
        result = make_result(60, 3, texts=[text, f"{text} more"], topic_labels=[shown[:500] or "a"])

        def saved(result: Any = result) -> bool:
            back = topics.load_result(topics.save_result(result, "saved"))
            return (
                back.corpus.texts == result.corpus.texts
                and back.topics[0].label == result.topics[0].label
            )

        def page(result: Any = result) -> bool:
            # Elements depend on the texts in number only where a text is empty.
            found = Page(report_of(result))
            events = [a for _, names in found.tags for a in names if a.startswith("on")]
            return not events and {t for t, _ in found.tags} <= {t for t, _ in plain.tags} and len(found.scripts) == len(plain.scripts)  # fmt: skip

        def indexed(text: str = text) -> bool:
            index = et.SearchIndex.build(
                [text, "a river", "a town"], encoder=Vectors(), languages=["en"]
            )
            try:
                index.search(text[:1000], 2)
            except et.errors.InputError:
                pass  # of no word, for instance
            return "a river" in [document.text for document in index]

        for end in ("csv", "tsv", "xlsx", "parquet", "jsonl"):
            for what in ("topics", "documents"):
                yield Trial(
                    f"{what}.{end}: {kind}",
                    partial(written, result, f"{what}.{end}", what),
                    lambda a: a,
                )
        for name, call in (("saved", saved), ("page", page), ("indexed", indexed)):
            yield Trial(f"{name}: {kind}", call, lambda answer: answer)
        yield Trial(
            f"renamed: {kind}",
            lambda text=text, result=result: topics.table(
                topics.rename(result, {0: text})
            ).to_csv(),
        )
        yield Trial(f"found: {kind}", partial(topics.find, result, text[:1000], by="terms"))
        yield Trial(f"concordance: {kind}", partial(topics.concordance, result, text[:1000]))
        yield Trial(f"passages: {kind}", lambda text=text: len(et.Corpus([text, "a"]).passages()))
        yield Trial(
            f"encoded: {kind}", lambda text=text: et.RandomProjectionEncoder().encode([text, "a"])
        )
        yield Trial(f"from csv: {kind}", partial(read_back, text, "csv"))
        yield Trial(f"from jsonl: {kind}", partial(read_back, text, "jsonl"))


def report_of(result: Any) -> str:
    return report.write_report(result, "page.html").read_text("utf-8")


def written(result: Any, name: str, what: str) -> bool:
    topics.export(result, name, what=what)
    check_written(Path(name))
    return True


def read_back(text: str, end: str) -> Any:
    frame = pd.DataFrame({"text": pd.Series([text, "a"], dtype=object)})
    lines = "".join(json.dumps({"text": one}) + "\n" for one in (text, "a"))
    content = frame.to_csv(index=False) if end == "csv" else lines
    Path(f"back.{end}").write_text(content, "utf-8", "surrogatepass", newline="")
    return et.Corpus(Path(f"back.{end}")).texts
