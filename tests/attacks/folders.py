# ruff: noqa: E501
"""Saved folders: each file damaged in many ways; and forged, with right checksums."""

import hashlib
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import embedtopics as et
from embedtopics import topics
from embedtopics.encoders import CachedEncoder
from embedtopics.probing._extract import open_store
from embedtopics.topics._storage import read_arrays, write_arrays
from tests.attacks.trials import Trial

SAVED = Path(__file__).parents[1] / "data" / "saved"

TEXTS = ["apple pear", "station rail", "bishop rook", "a town", ""]


def of_result(folder: Path) -> Any:
    """Return what a result answers."""
    result = et.TopicResult.load(folder)
    new = topics.assign(result, TEXTS, embeddings=np.eye(5, result.embeddings.shape[1]) + 0.1)
    frames = (topics.table(result), topics.documents(result), topics.terms(result))
    return [result.map.tolist(), new.labels.tolist(), *(frame.to_csv() for frame in frames),
            repr(topics.levels(result))]  # fmt: skip


def of_index(folder: Path) -> Any:
    """Return what an index answers."""
    index = et.SearchIndex.load(folder)
    rows = [(d.id, d.text) for d in index]
    found = index.search(TEXTS[:3], 5, mode="lexical")
    near = [index.similar(name, 3) for name, _ in rows[:4]]
    return rows, [
        [(h.id, h.score) for h in hits] for hits in (*found.hits, *(n.hits[0] for n in near))
    ]


def of_encoder(kind: Any, folder: Path, **options: Any) -> Any:
    return kind(folder, **options).encode(TEXTS[:4]).tolist()


def of_states(folder: Path) -> Any:
    states, _ = open_store(folder)
    return states.texts, states.words, [states.layer(n).tolist() for n in states.layers]


def of_cache(folder: Path) -> Any:
    """Encode beside a cache; what is damaged there is encoded again."""
    plain = et.encoders.StaticEncoder(SAVED / "static")
    return CachedEncoder(plain, folder=folder).encode(TEXTS).tolist()


USES: dict[str, Callable[[Path], Any]] = {
    "result": of_result, "index": of_index, "index-ivf": of_index,
    "static": partial(of_encoder, et.encoders.StaticEncoder), "states-words": of_states,
    "student": partial(of_encoder, et.encoders.StaticEncoder),
    "tuned": partial(of_encoder, et.SentenceEncoder, backend="torch"), "cache": of_cache,
}  # fmt: skip


def places() -> Iterator[tuple[str, Path, Callable[[Path], Any], Any]]:
    """Yield the name of each kind of folder, a sound one, what it is used for, and what it answers."""
    of_cache(Path("cache"))
    for name, use in USES.items():
        sound = Path("cache") if name == "cache" else SAVED / name
        copy = Path(shutil.copytree(sound, f"sound-{name}"))  # a SQLite file may be written to
        yield name, copy, use, use(copied(copy))


def flipped(content: bytes, part: int, parts: int = 12) -> bytes:
    place = (len(content) - 1) * part // (parts - 1)
    return content[:place] + bytes([content[place] ^ 1 << part % 8]) + content[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda c: b"", "one byte": lambda c: c[:1], "a quarter": lambda c: c[: len(c) // 4],
    "half": lambda c: c[: len(c) // 2], "last cut": lambda c: c[:-1], "longer": lambda c: c + b"\0",
    "zeros": lambda c: bytes(len(c)), "twice": lambda c: c * 2, "reversed": lambda c: c[::-1],
    **{f"bit {n}": partial(flipped, part=n) for n in range(12)},
}  # fmt: skip
TYPES: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: None, "folder": Path.mkdir, "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name), "dangling": lambda path: path.symlink_to("no"),
    "endless": lambda path: path.symlink_to("/dev/zero"), "locked": lambda path: path.touch(0),
    "random": lambda path: path.symlink_to("/dev/urandom"), "passwords": lambda path: path.symlink_to("/etc/passwd"),
}  # fmt: skip


def copied(sound: Path) -> Path:
    """Return a fresh copy in the one place that all trials use."""
    shutil.rmtree("tried", ignore_errors=True)
    return Path(shutil.copytree(sound, "tried"))


def damaged(sound: Path, file: Path, kind: str, use: Callable[[Path], Any]) -> Any:
    path = copied(sound) / file
    content = path.read_bytes()
    path.unlink()
    if kind in DAMAGES:
        path.write_bytes(DAMAGES[kind](content))
    else:
        TYPES[kind](path)
    return use(Path("tried"))


def files_of(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def of_damage() -> Iterator[Trial]:
    for name, sound, use, answer in places():
        for file in files_of(sound):
            for kind in (*DAMAGES, *TYPES):
                yield Trial(f"{kind} {name}/{file}", partial(damaged, sound, file, kind, use), answer.__eq__)  # fmt: skip


class Evil:
    """What runs code where anybody unpickles it."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("owned"),))


def no_code_ran(_: Any) -> bool:
    return not Path("owned").exists()


def sign(folder: Path, file: Path) -> None:
    """Make the recorded checksum of a file right again."""
    content = (folder / file).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    for above in [p for p in (folder / file).parents if (p / "manifest.json").is_file()]:
        manifest = json.loads((above / "manifest.json").read_text("utf-8"))
        name = (folder / file).relative_to(above).as_posix()
        if name in manifest["files"]:
            manifest["files"][name] = {"bytes": len(content), "sha256": digest}
            (above / "manifest.json").write_text(json.dumps(manifest), "utf-8")
            return
    if (folder / "catalog.sqlite").is_file():
        with closing(sqlite3.connect(folder / "catalog.sqlite")) as catalog, catalog:
            of_file = int(file.parts[1]), "/".join(file.parts[2:])
            catalog.execute("UPDATE files SET bytes = ?, sha256 = ? WHERE segment = ? AND path = ?",
                            (len(content), digest, *of_file))  # fmt: skip


def forged(sound: Path, file: Path, content: bytes | Callable[[], bytes], use: Callable[[Path], Any]) -> Any:  # fmt: skip
    folder = copied(sound)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content())
    if file.name != "manifest.json":
        sign(folder, file)
    return use(folder)


def arrays_like(array: Any) -> dict[str, Any]:
    """Return arrays of numbers that may stand in the place of one."""
    size = max(1, array.size)
    return {
        "none": array[:0], "longer": np.concatenate([array.ravel()] * 2), "flat": array.ravel(),
        "3-d": array.reshape(*array.shape, 1, 1), "0-d": np.array(1), "float": np.full(array.shape, np.nan),
        "inf": np.full(array.shape, np.inf, dtype=np.float32), "wide": array.astype(np.float64),
        "negative": np.full(array.shape, -7, dtype=np.int64), "bool": np.zeros(array.shape, dtype=bool),
        "most": np.full(array.shape, 2**31 - 1, dtype=np.int32), "bytes": np.arange(size, dtype=np.uint8),
        "most of its kind": np.full(array.shape, np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 1, dtype=array.dtype),
        "least of its kind": np.full(array.shape, -np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).min if array.dtype.kind in "iu" else 0, dtype=array.dtype),
    }  # fmt: skip


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


EVIL = np.array([Evil()], dtype=object)
ENDLESS = npy(np.zeros(3)).replace(b"(3,), }" + b" " * 11, b"(" + b"9" * 12 + b",), }")


def contents_like(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what may stand in the place of a file of arrays: one array is of another kind."""
    if path.suffix == ".npy":
        yield from ((kind, npy(one)) for kind, one in arrays_like(np.load(path)).items())
        yield from (("pickle", npy(EVIL)), ("endless", ENDLESS))
    elif path.suffix == ".npz":
        with np.load(path) as stored:
            parts = dict(stored)
        for part, array in parts.items():
            for kind, one in (arrays_like(array) | {"pickle": EVIL}).items():
                stream = io.BytesIO()
                np.savez(stream, **{**parts, part: one})
                yield f"{part} {kind}", stream.getvalue()
    elif path.suffix == ".arrow":
        with path.open("rb") as opened:
            parts = read_arrays(opened)
        for part, array in parts.items():
            for kind, one in arrays_like(array).items():
                write_arrays(Path("made"), {**parts, part: one})
                yield f"{part} {kind}", Path("made").read_bytes()
    elif path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
        n = len(table)
        columns = {"nulls": pa.nulls(n), "ints": pa.array(range(n)), "lists": pa.array([[b"x"]] * n),
                   "far": pa.array([2**62] * n, pa.timestamp("us"))}  # fmt: skip
        for place, part in enumerate(table.column_names):
            for kind, column in columns.items():
                pa.parquet.write_table(table.set_column(place, part, column), "made")
                yield f"{part} {kind}", Path("made").read_bytes()


def of_forged_arrays() -> Iterator[Trial]:
    for name, sound, use, _ in places():
        for file in files_of(sound):
            if file.parent.name == "lexical":  # NumPy checks its indices
                continue
            for kind, content in contents_like(sound / file):
                yield Trial(
                    f"forged {name}/{file}: {kind}",
                    partial(forged, sound, file, content, use),
                    no_code_ran,
                )


def in_catalog(sound: Path, statement: str, value: Any, use: Callable[[Path], Any]) -> Any:
    folder = copied(sound)
    with closing(sqlite3.connect(folder / "catalog.sqlite")) as catalog, catalog:
        with suppress(sqlite3.IntegrityError):  # no such value can be there
            catalog.execute(statement, (value,) if "?" in statement else ())
    return use(folder)


def of_forged_catalogues() -> Iterator[Trial]:
    sound = Path(shutil.copytree(SAVED / "index", "sound"))
    with closing(sqlite3.connect(sound / "catalog.sqlite")) as catalog:
        tables = [
            n for (n,) in catalog.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        columns = [(t, c[1]) for t in tables for c in catalog.execute(f"PRAGMA table_info({t})")]
    values = {"text": "x", "-1": -1, "2**62": 2**62, "blob": b"\xff" * 9, "0.5": 0.5, "long": "x" * 10**6,
              "..": "../../../etc/passwd", "NUL": "a\0b", "null": None, "no UTF-8": b"\xff"}  # fmt: skip
    for table, column in columns:
        for kind, value in values.items():
            for one in ("", f" WHERE rowid = (SELECT min(rowid) FROM {table})"):
                if one and table in ("meta", "files"):  # without row ids
                    one = f" WHERE {column} = (SELECT {column} FROM {table} LIMIT 1)"
                what = f"UPDATE OR IGNORE {table} SET {column} = ?{one}"
                if value is None:
                    what = f"DELETE FROM {table}{one}"
                yield Trial(
                    f"{table}.{column} = {kind}{one[:6]}",
                    partial(in_catalog, sound, what, value, of_index),
                )


def trials() -> Iterator[Trial]:
    """Yield all trials of saved folders."""
    for family in (of_damage, of_forged_arrays, of_forged_catalogues):
        folder = Path(family.__name__)
        folder.mkdir()
        os.chdir(folder)
        seen = set()
        for trial in family():
            # Of files of one name in several folders, what they have in common is tried once.
            name = trial.name.rpartition("/")[2] if trial.name.startswith("forged") else trial.name
            if name not in seen:
                seen.add(name)
                yield trial
        os.chdir("..")
