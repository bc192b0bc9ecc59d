"""Fuzzing the readers with atheris, which is no dependency: run it where that is installed.

    python -m tests.attacks.fuzz filter -max_total_time=600

What is read is served or refused by an error of this package; all else is a finding.
"""

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["embedtopics"]):
    from embedtopics._utils.folders import MANIFEST, read_manifest
    from embedtopics.corpus._readers import read_file
    from embedtopics.errors import EmbedTopicsError
    from embedtopics.retrieval.filters._conditions import filter_sql
    from embedtopics.retrieval.filters._parse import parse_filter
    from embedtopics.retrieval.storage._checks import find_damage
    from embedtopics.retrieval.storage._segments import read_snapshot

SAVED = Path(__file__).parents[1] / "data" / "saved"
COLUMNS = {"n": "integer", "x y": "real", "place": "text", "ok": "boolean", "day": "date"}
FOLDER = Path(tempfile.mkdtemp(prefix="embedtopics-fuzz-"))


def read_as_filter(data: bytes) -> None:
    """Parse a filter, and let SQLite prepare what it says."""
    text = atheris.FuzzedDataProvider(data).ConsumeUnicode(len(data))
    condition, parameters = filter_sql(parse_filter(text, COLUMNS), lambda name: f'"{name}"')
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE t (n, "x y", place, ok, day)')
    database.execute(f"SELECT 1 FROM t WHERE {condition}", parameters).fetchall()
    database.close()


def read_as_table(suffix: str) -> Callable[[bytes], None]:
    """Return a target that reads a file of a kind."""

    def read(data: bytes) -> None:
        path = FOLDER / f"a.{suffix}"
        path.write_bytes(data)
        read_file(path)

    return read


def read_as_manifest(data: bytes) -> None:
    """Read a folder whose manifest is anything."""
    (FOLDER / MANIFEST).write_bytes(data)
    read_manifest(FOLDER, "embedtopics topic result", 3)


def read_as_catalogue(data: bytes) -> None:
    """Write over a part of a sound catalogue, and read it."""
    folder = FOLDER / "index"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SAVED / "index", folder)
    given = atheris.FuzzedDataProvider(data)
    content = bytearray((folder / "catalog.sqlite").read_bytes())
    for _ in range(given.ConsumeIntInRange(1, 8)):
        place = given.ConsumeIntInRange(0, len(content) - 1)
        part = given.ConsumeBytes(given.ConsumeIntInRange(1, 16))
        content[place : place + len(part)] = part
    (folder / "catalog.sqlite").write_bytes(content)
    read_snapshot(folder, {})
    find_damage(folder)


TARGETS = {
    "filter": read_as_filter, "csv": read_as_table("csv"), "tsv": read_as_table("tsv"),
    "jsonl": read_as_table("jsonl"), "manifest": read_as_manifest, "catalogue": read_as_catalogue,
}  # fmt: skip


def main() -> None:
    """Fuzz the target that is named; atheris reads the other arguments."""
    target = TARGETS[sys.argv.pop(1)]

    def tried(data: bytes) -> None:
        try:
            target(data)
        except EmbedTopicsError as error:
            assert "\n" not in str(error)

    atheris.Setup(sys.argv, tried)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
