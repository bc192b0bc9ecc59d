"""Encode texts once, for the benchmarks: ``python benchmarks/embed.py NAME ...``.

The work is kept in chunks of 2,000 rows (000000.npy, 002000.npy, ...), so that it can be broken
off and taken up again. At the end they become one float32 .npy in the cache, beside a JSON file
with the hash of the texts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.corpora import CACHE, ENCODED, hash_texts
from embedtopics import SentenceEncoder
from embedtopics.protocols import Encoder

CHUNK = 2_000
_TOLERANCE = 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description="Encode texts once, for the benchmarks.")
    parser.add_argument(
        "names", nargs="+", choices=ENCODED, metavar="NAME", help=", ".join(ENCODED)
    )
    for name in parser.parse_args().names:
        embed(name)


def embed(name: str) -> None:
    """Encode one of `ENCODED` and keep its embeddings in the cache."""
    chunks = CACHE / f"{name}.chunks"
    texts = ENCODED[name]()
    encoder = SentenceEncoder(precision="float32")
    check_chunks(encoder, texts, chunks)
    encode_chunks(encoder, texts, chunks)
    embeddings = join_chunks(texts, chunks)
    about = {
        "texts_sha256": hash_texts(texts),
        "encoder": encoder.name,
        "max_length": encoder.max_seq_length,
        "shape": list(embeddings.shape),
    }
    file = CACHE / f"{name}.npy"
    _save(file, embeddings)
    file.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    print(f"wrote {file}: {about['shape'][0]} rows of {about['shape'][1]}")


def check_chunks(encoder: Encoder, texts: Sequence[str], folder: Path) -> None:
    """Encode the first text of each chunk that exists anew, and compare.

    Raises
    ------
    SystemExit
        If a chunk is of other texts or another encoder.
    """
    found = [start for start in _starts(texts) if _file(folder, start).exists()]
    if not found:
        return
    expected = encoder.encode([texts[start] for start in found])
    for start, vector in zip(found, expected, strict=True):
        first = np.load(_file(folder, start), mmap_mode="r")[0]
        if first.shape != vector.shape or np.abs(first - vector).max() > _TOLERANCE:
            raise SystemExit(
                f"expected row {start} in {_file(folder, start)}; its vector is "
                "not what this encoder makes of that text; delete the folder and start again"
            )


def encode_chunks(encoder: Encoder, texts: Sequence[str], folder: Path) -> None:
    """Encode every chunk that does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in _starts(texts):
        if not _file(folder, start).exists():
            _save(_file(folder, start), encoder.encode(texts[start : start + CHUNK]))
            print(f"{min(start + CHUNK, len(texts))} of {len(texts)}", file=sys.stderr)


def join_chunks(texts: Sequence[str], folder: Path) -> np.ndarray:
    """Return the embeddings of all texts, shape (n_texts, n_dimensions), float32."""
    joined = np.concatenate([np.load(_file(folder, start)) for start in _starts(texts)])
    if len(joined) != len(texts):
        raise SystemExit(f"expected {len(texts)} rows in the chunks in {folder}, got {len(joined)}")
    return joined.astype(np.float32)


def _starts(texts: Sequence[str]) -> range:
    return range(0, len(texts), CHUNK)


def _file(folder: Path, start: int) -> Path:
    return folder / f"{start:06d}.npy"


def _save(file: Path, array: np.ndarray) -> None:
    """Write a file whole or not at all."""
    unfinished = file.with_suffix(".unfinished.npy")
    np.save(unfinished, array)
    os.replace(unfinished, file)


if __name__ == "__main__":
    main()
