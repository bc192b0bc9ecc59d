# ruff: noqa: E501
"""Files that are broken, endless, huge or lie about themselves; names that cannot be written."""

import gzip
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import embedtopics as et
from embedtopics import topics
from embedtopics.cli._app import app
from tests.attacks.trials import Trial
from tests.factories import full_disk, make_result

SAVED = Path(__file__).parents[1] / "data" / "saved"

TEXTS = ["A river, a town.", 'She said "no".', "=1+1", "\u05e9\u05dc\u05d5\u05dd", "e\u0301t\u00e9"]
SUFFIXES = ("csv", "tsv", "jsonl", "json", "txt", "parquet")


def sound(suffix: str) -> bytes:
    """Return a file that can be read, of a kind."""
    frame = pd.DataFrame({"text": TEXTS, "n": range(len(TEXTS))})
    if suffix == "parquet":
        return bytes(frame.to_parquet())
    if suffix == "txt":
        return "\n".join(TEXTS).encode()
    if suffix in ("json", "jsonl"):
        return str(frame.to_json(orient="records", lines=suffix == "jsonl")).encode()
    return frame.to_csv(index=False, sep="," if suffix == "csv" else "\t").encode()


def read(name: str, content: bytes, **options: Any) -> Any:
    """Write a file and read it."""
    Path(name).write_bytes(content)
    return et.Corpus(Path(name), **options)


def same(corpus: Any) -> bool:
    """Return whether the texts of a sound file are all there."""
    return list(corpus.texts) == TEXTS


def first(corpus: Any) -> bool:
    """Return whether a file that was cut gave only texts that are whole, but the last."""
    return [text for text in corpus.texts[:-1] if text] == TEXTS[: len(corpus) - 1]


ODD = {
    "empty": b"", "newline": b"\n", "space": b"  ", "NUL": b"\0", "NULs": b"\0" * 5000, "BOM": b"\xef\xbb\xbf",
    "half BOM": b"\xff\xfe", "UTF-16 BOM": b"\xff\xfe\0", "UTF-32": "text\nä".encode("utf-32"),
    "bytes": bytes(range(256)), "lone quote": b'text\n"', "quotes": b'"' * 999, "commas": b"," * 9999,
    "header": b"text", "no rows": b"text,n\n", "one column twice": b"text,text\na,b\n",
    "no names": b",,\na,b,c\n", "uneven": b"text,n\na\nb,1,2\n", "CR": b"text\ra\rb\r", "CRLF": b"text\r\na\r\n",
    "formula": b"text,=1+1\n=cmd|' /C calc'!A0,1\n", "long field": b"text\n" + b"a" * 3_000_000,
    "long line": b"text\n" + b"a," * 1_000_000, "wide": b",".join(b"c%d" % n for n in range(3000)) + b"\n" * 9,
    "numbers": b"text\n1\n2\n", "dates": b"text\n2020-01-01\n", "NA": b"text\nNA\n\nnull\n",
    "Infinity": b'{"text": "a", "n": Infinity}\n{"text": "b", "n": NaN}', "array": b"[]", "arrays": b"[[]]",
    "null": b"null", "number": b"5", "string": b'"a"', "deep": b"[" * 100_000, "deeper": b'{"text":' * 20_000,
    "deep whole": b'{"text": "a", "n": ' + b"[" * 900 + b"]" * 900 + b"}", "huge int": b'{"text":"a","n":' + b"9" * 5000 + b"}",
    "1e999": b'{"text": "a", "n": 1e999}', "same key": b'{"text": "a", "text": "b"}',
    "surrogate": b'{"text": "\\ud800", "\\udfff": 1}', "object text": b'{"text": {"a": 1}}', "mixed": b'{"text": "a"}\n[1]\n',
    "empty key": b'{"": "a", "text": "b"}', "gzip": gzip.compress(b"text\na\n"), "controls": b"text\n\x01\x02\x1b[31m\x07\n",
    "escape in header": b"\x1b[31mtext\na b\n", "html": b"<html><script>1</script>", "zip": b"PK\3\4" + b"\0" * 99,
}  # fmt: skip
ENCODINGS = ("utf-8", "cp1252", "utf-16", "utf-16-le", "utf-32", "latin-1", "ascii", "utf-7", "idna",
             "punycode", "hex", "rot13", "unicode_escape", "raw_unicode_escape", "mbcs", "", "\0", "cp037")  # fmt: skip


def of_content() -> Iterator[Trial]:
    for suffix in SUFFIXES:
        whole = sound(suffix)
        for end in ("", ".gz"):
            packed = gzip.compress(whole, mtime=0) if end else whole
            yield Trial(f"sound {suffix}{end}", partial(read, f"a.{suffix}{end}", packed), same)
            # Of text, a cut at the end of a row leaves a file that is sound.
            must = "refuse" if end or suffix in ("json", "parquet") else first
            for tenth in range(10):
                cut = packed[: len(packed) * tenth // 10]
                yield Trial(
                    f"{tenth}/10 of {suffix}{end}", partial(read, f"a.{suffix}{end}", cut), must
                )
            for name, content in ODD.items():
                if end == "" or len(content) < 5000:
                    odd = gzip.compress(content) if end else content
                    yield Trial(f"{name} in {suffix}{end}", partial(read, f"a.{suffix}{end}", odd))
        for encoding in ENCODINGS:
            yield Trial(f"{suffix} read as {encoding!r}",
                        partial(read, f"a.{suffix}", whole, encoding=encoding))  # fmt: skip
            try:
                written = whole.decode().encode(encoding)
            except (LookupError, ValueError):
                continue
            for named in ("utf-8", encoding):
                yield Trial(f"{suffix} in {encoding!r} read as {named}",
                            partial(read, f"a.{suffix}", written, encoding=named))  # fmt: skip


def of_places() -> Iterator[Trial]:
    """Yield trials of what is no plain file."""
    os.mkfifo("pipe.csv")
    os.mkdir("folder.csv")
    os.symlink("loop.csv", "loop.csv")
    os.symlink("nowhere.csv", "dangling.csv")
    os.mkdir("around")
    os.symlink("..", "around/back")
    Path("around/a.txt").write_text("a text")
    Path("locked.csv").write_text("text\na\n")
    for end in SUFFIXES:
        os.symlink("/dev/zero", f"zero.{end}")
    places = ["pipe.csv", "folder.csv", "loop.csv", "dangling.csv", "/dev/zero", "/dev/null", "/dev/full",
              "/proc/self/mem", "/proc/self/environ", "", ".", "..", "a" * 300 + ".csv", "a/" * 3000,
              "\ud800.csv", "\udcff.csv", "a\0.csv", "~nouser/a.csv", "https://example.com/a.csv",
              *(f"zero.{end}" for end in SUFFIXES)]  # fmt: skip
    for place in places:
        yield Trial(
            f"read {place[:40]!r}",
            lambda place=place: et.Corpus(Path(place)),
            None if place in ("", ".") else "refuse",
        )
        yield Trial(f"index {place[:40]!r}", partial(et.SearchIndex.load, place), "refuse")
        yield Trial(f"load {place[:40]!r}", partial(et.TopicResult.load, place), "refuse")
    yield Trial("a folder around itself", lambda: et.Corpus(Path("around")))


BAD_NAMES = {
    "no UTF-8": "\udcff", "NUL": "a\0b", "245": "a" * 245, "300": "a" * 300, "proc": "/proc/a",
    "sys": "/sys/a", "dev": "/dev/null/a", "link": "itself", "file": "plain/below",
    "locked": "readonly/a", "deep": "a/" * 2100 + "a", "root": "/", "empty": "", "dot": ".",
}  # fmt: skip


def of_names() -> Iterator[Trial]:
    """Yield trials of names that nothing can be written to, in the library and on the command line."""
    os.symlink("itself", "itself")
    Path("plain").write_text("a file")
    os.mkdir("readonly", 0o555)
    result = make_result(60, 3)
    for kind, name in BAD_NAMES.items():
        yield Trial(f"save to {kind}", partial(result.save, name))
        for end in ("", ".csv", ".xlsx", ".parquet", ".jsonl"):
            yield Trial(
                f"export to {kind}{end}", partial(topics.export, result, name + end, what="topics")
            )
        for command in COMMANDS:
            yield Trial(f"{command[0]} to {kind}", partial(run, *command, name))


COMMANDS = [
    ("topics", "none.csv", "--out"),
    ("compare-encoders", "none.csv", "--out"),
    ("demo", "--out"),
]


def run(*arguments: str) -> Any:
    """Run a command; return its status, after a look at what it printed."""
    from typer.testing import CliRunner

    from embedtopics.errors import InputError

    done = CliRunner().invoke(app, [*arguments])
    if done.exit_code == 2:
        raise InputError(" ".join(done.stderr.split())[-300:])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code


def _full(call: Any) -> Any:
    """Call something on a file system that takes no more than 4 KB a file."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with full_disk():
        return call()


def of_full_disks() -> Iterator[Trial]:
    result = make_result(200, 3)
    texts = [f"text {n} " * 50 for n in range(60)]
    for what in ("csv", "tsv", "parquet", "jsonl", "xlsx"):
        yield Trial(
            f"{what} on a full disk",
            partial(_full, partial(topics.export, result, f"full.{what}")),
            "refuse",
        )
    yield Trial("save on a full disk", partial(_full, partial(result.save, "full")), "refuse")
    for out in (None, "full-index"):
        build = partial(et.SearchIndex.build, texts, out, encoder=et.SentenceEncoder())
        yield Trial(f"index on a full disk, out={out}", partial(_full, build), "refuse")


def of_environment() -> Iterator[Trial]:
    def encoded(folder: str) -> Any:
        before = os.environ.get("EMBEDTOPICS_CACHE", "")
        os.environ["EMBEDTOPICS_CACHE"] = folder
        try:
            from embedtopics.encoders import CachedEncoder

            return (
                CachedEncoder(et.encoders.StaticEncoder(SAVED / "static")).encode(["a text"]).shape
            )
        finally:
            os.environ["EMBEDTOPICS_CACHE"] = before

    Path("a-file").write_text("x")
    for name in (
        "~nouser/x",
        "a-file",
        "a-file/below",
        "/proc/x",
        "readonly/x",
        "\udcff",
        "a" * 300,
        "itself",
        "",
    ):
        yield Trial(f"EMBEDTOPICS_CACHE={name[:20]!r}", partial(encoded, name))


def trials() -> Iterator[Trial]:
    """Yield all trials of files and names."""
    for family in (of_content, of_places, of_names, of_full_disks, of_environment):
        yield from family()
