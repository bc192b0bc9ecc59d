# ruff: noqa: E501
"""What is in a table: filters, columns and their names, texts; and what of it is written."""

import csv
import datetime
import itertools
import json
import random
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import embedtopics as et
from embedtopics import report, topics
from embedtopics.corpus._table_files import FORMULA_STARTS
from tests.attacks.parameters import WRONG, Nothing, Vectors
from tests.attacks.trials import Trial
from tests.factories import make_result
from tests.report.test_page import Page

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
    for column in ("n", "place", "day", "tags", "none", "", "\0", 5, None, ("n",)):
        for kind, value in WRONG.items():
            yield Trial(
                f"{column!r}: {kind}",
                partial(index.search, "river", 3, "lexical", {column: value}),
                whole,
            )


N = 40
"""Rows of the tables below."""


def table() -> tuple[pd.DataFrame, Any]:
    """Return texts on two themes, and their vectors."""
    points = np.repeat([[1.0, 0.0, 0.2], [0.0, 1.0, 0.1]], N // 2, axis=0)
    points = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    texts = [f"{'apple pie' if i < N // 2 else 'train station'} {i}" for i in range(N)]
    return pd.DataFrame({"text": texts}), points


def mixed(*values: Any) -> list[Any]:
    return list(itertools.islice(itertools.cycle(values), N))


COLUMNS: dict[str, Any] = {
    "None": mixed(None), "NaN": mixed(np.nan), "none of each": mixed(None, np.nan, pd.NA, pd.NaT), "all kinds": mixed(1, "a", None, 2.5, b"x"),
    "2**53": mixed(2**53, 2**53 + 1), "2**63": mixed(2**63, 1), "10**400": mixed(10**400, 1), "inf": mixed(np.inf, -np.inf, 0.0),
    "bools": mixed(True, False, None), "bytes": mixed(b"\xff\0"), "lists": mixed([1], []), "lists of texts": mixed(["a"], ["\ud800", "<b>"], []), "lists of lists": mixed([["a"], ["b", "c"]]), "nested arrays": mixed(np.array([["a"]]), np.array("a")), "dicts": mixed({"a": 1}, {}), "sets": mixed({1}),
    "objects": mixed(Nothing()), "functions": mixed(len), "arrays": mixed(np.zeros(2)), "frames": mixed(pd.DataFrame()), "complex": mixed(1j),
    "Decimal": mixed(Decimal("0.1"), Decimal("NaN")), "zones": mixed(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020")),
    "zone": pd.date_range("2020", periods=N, tz="Asia/Tokyo"), "first year": mixed(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)),
    "dates": mixed(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)), "times": mixed(datetime.time(1)), "NaT": mixed(pd.NaT, pd.Timestamp("2020")),
    "bad dates": mixed("2020-02-30", "yesterday", ""), "years": mixed(0, -5, 99999), "epochs": mixed(0, 2**40, 2**62), "huge years": mixed("99999-01-01", "-0001-01-01"),
    "periods": pd.period_range("2020", periods=N, freq="M"), "spans": pd.timedelta_range("1D", periods=N), "ranges": pd.interval_range(0, N, N),
    "categories": pd.Categorical(mixed("a", "b", None), categories=["b", "a", "c"]), "Int64": pd.array(mixed(1, None, 2**62), dtype="Int64"),
    "boolean": pd.array(mixed(True, None), dtype="boolean"), "string": pd.array(mixed("a", None), dtype="string"), "float16": np.arange(N, dtype=np.float16),
    "surrogates": mixed("\ud800", "a\udfff"), "NULs": mixed("\0", "a\0b"), "long": mixed("x" * 100_000, "y"), "empty": mixed("", " ", "\u200b"),
    "formulas": mixed("=1+1", "@x", "-1", "+1"), "right to left": mixed("\u202eabc", "\u05e9"), "same": mixed("a"), "1 and 1.0": mixed(1, 1.0, "1", True),
    "-0.0": mixed(-0.0, 0.0), "each other": [f"v{i}" for i in range(N)], "date words": mixed("2020-01-01", "2020-06-01"), "numpy": mixed(np.int8(1), np.float32(2)),
    "sparse": pd.arrays.SparseArray(mixed(0, 0, 1)), "denormal": mixed(5e-324, 1e308), "markup": mixed("<script>alert(1)</script>"), "tuples": mixed((1, 2), ()),
}  # fmt: skip
NAMES: dict[str, Any] = {
    "empty": "", "space": " ", "NUL": "a\0b", "surrogate": "\ud800", "formula": "=1+1", "5": 5, "None": None, "NaN": np.nan, "tuple": ("a", "b"),
    "long": "x" * 10_000, "__text__": "__text__", "__id__": "__id__", "__status__": "__status__", "number": "number", "passage": "passage", "passage_of": "passage_of",
    "c0": "c0", "id": "id", "topic": "topic", "score": "score", "label": "label", "right to left": "\u202e", "dots": "a.b", "quotes": "\"'`", "SQL": "x; DROP TABLE documents",
    "markup": "<script>alert(1)</script>", "line": "a\nb", "path": "../../x", "time": pd.Timestamp("2020"), "bool": True, "index": "index", "text ": "text ", "TEXT": "TEXT",
}  # fmt: skip


def uses(frame: pd.DataFrame, points: Any, column: Any) -> dict[str, Any]:
    """Return calls that read a column of a table."""
    model = partial(et.TopicModel, languages=["en"])

    def fitted(**named: Any) -> Any:
        return model().fit(et.Corpus(frame, text="text", **named), embeddings=points).result_

    def saved() -> bool:
        result = fitted()
        back = topics.load_result(topics.save_result(result, "saved"))
        return (
            list(back.corpus.texts) == list(result.corpus.texts)
            and back.corpus.ids == result.corpus.ids
        )

    def exported() -> int:
        result = fitted()
        for end in ("csv", "xlsx", "parquet", "jsonl", "tsv"):
            topics.export(result, f"out.{end}", what="documents")
            check_written(Path(f"out.{end}"))
        return 1

    def indexed(**named: Any) -> int:
        index = et.SearchIndex.build(
            frame,
            "index",
            text="text",
            encoder=Vectors(),
            languages=["en"],
            overwrite=True,
            **named,
        )
        index.search("apple", 3)
        found = et.SearchIndex.load("index", verify=True).get(index.ids[3])
        return len(index) <= N and found is not None and found.text == index.get(index.ids[3]).text

    return {
        "text": lambda: et.Corpus(frame, text=column), "id": lambda: et.Corpus(frame, text="text", id=column), "saved": saved, "exported": exported,
        "time": lambda: topics.over_time(fitted(time=column)), "group": lambda: topics.by_group(fitted(group=column)),
        "covariate": lambda: topics.effects(fitted(), covariates=column, n_resamples=5), "indexed": indexed, "index by id": lambda: indexed(id=column),
        "index by time": lambda: indexed(time=column), "classes": lambda: topics.report_card(fitted(), labels=column, n_resamples=5),
    }  # fmt: skip


def of_columns() -> Iterator[Trial]:
    plain, points = table()
    frames = {}
    for kind, values in COLUMNS.items():
        column = pd.Series(values, dtype=object if isinstance(values, list) else None)
        frames[f"a column of {kind}"] = (plain.assign(c=column), "c")
    for kind, name in NAMES.items():
        frames[f"a column named {kind}"] = (
            plain.assign(c=range(N)).set_axis(
                pd.Index(["text", name], dtype=object, tupleize_cols=False), axis=1
            ),
            name,
        )
    for kind, (frame, column) in frames.items():
        for use, call in uses(frame, points, column).items():
            yield Trial(f"{use}: {kind}", call, lambda answer: answer is not False)


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
    """Yield all trials of what tables hold."""
    for family in (of_filters, of_columns, of_texts):
        yield from family()
