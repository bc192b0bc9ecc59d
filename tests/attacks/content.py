# ruff: noqa: E501
"""Hostile filters and texts, and the files that are written from them."""

import csv
import itertools
import json
import random
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


FILTERS = [
    "", " ", "n", "n ==", "== 1", "n = 1; DROP TABLE documents", "1 == 1", "n == 1 or 1 == 1", "' OR 1=1 --",
    "n == 1 -- x", "n == 1 /* x */", "n in ()", "n in (1,)", "n in 1", "(" * 5000, "not " * 99 + "n == 1",
    "not " * 3000 + "n == 1", "(" * 400 + "n == 1" + ")" * 400, "n == 1 and " * 900 + "n == 1", "n == " + "9" * 5000,
    "n == 1e999", "n == nan", "n == -0", "day == 2020-13-45", "day == 'x'", "day > 0000-00-00", "day > 99999-01-01",
    '"n', "'", '"""', "n == '\0'", "place == '\ud800'", "\u202en == 1", "\uff4e == 1", "n == \uff11", "n LIKE '%'",
    "randomblob(1e9) == 1", "load_extension('x')", "n == (SELECT 1)", "c0 == 1", "number == 1", "metadata.c0 == 1",
    "rowid == 1", "sqlite_master == 1", "__class__ == 1", "n.__class__", "n\n==\n1", "n == 0x10", "n == 1_0",
    "n == .5", "n == 5.", "n == +5", "n contains 5", "place == 5", "place > 'a' > 'b'", "n == n", "n is null",
    "place contains '%_\\'", "place contains ''", "place startswith '" + "a" * 9000 + "'", "n in (" + "1, " * 3000 + "1)",
    "place == \"x'; DROP TABLE documents; --\"", "place == 'a' AND place == 'b'", "NOT n == 1", "n <> 1", "n ! 1",
    "'a' in tags", "a in tags", "tags in tags", "'a' in place", "'a' not in tags", "'a' in 'tags'", "tags > 'a'", "tags == 1", "1 in tags",
    "tags contains '\"'", "tags == '[]'", "tags between 'a' and 'b'", "'x') OR 1=1 --' in tags", "tags endswith ''", "tags in ('a', 'b')",
    "n == true", "place == null", "day == today", "day > '2020-01-01T25:00'", "day == 2020-01-01T00:00:00+99:00",
]  # fmt: skip
TOKENS = (
    "n place day tags == != < >= in not and or ( ) , 1 -2 0.5 1e9 'a' \"b\" 'x''y' 2020-01-01 '2020-02-30' contains startswith endswith "
    "true null nan is like between * % ; -- \\ ` $1 ? :a @b # \0 \u00e9 \U0001f600 \ud800 text id c0"
).split(" ")  # fmt: skip


def of_filters() -> Iterator[Trial]:
    texts = [f"text number {n} of the {'river' if n % 2 else 'town'}" for n in range(12)]
    frame = pd.DataFrame({"text": texts, "n": range(12), "place": ["a", "b", None] * 4, "tags": [["a", "'"], [], None] * 4, "day": pd.Timestamp("2020-01-01")})  # fmt: skip
    index = et.SearchIndex.build(frame, encoder=Vectors(), languages=["en"], time="day")
    before = {document.id: document.text for document in index}
    rng = random.Random(0)
    drawn = [" ".join(rng.choices(TOKENS, k=rng.randrange(1, 12))) for _ in range(1000)]

    def whole(_: Any) -> bool:
        return {document.id: document.text for document in index} == before

    for number, text in enumerate(itertools.chain(FILTERS, drawn)):
        yield Trial(
            f"filter {number} {text[:60]!r}",
            partial(index.search, "river", 3, "lexical", text),
            whole,
        )


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


def of_texts() -> Iterator[Trial]:
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


def trials() -> Iterator[Trial]:
    """Yield all trials of filters and texts."""
    for family in (of_filters, of_texts):
        yield from family()
