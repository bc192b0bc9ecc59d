"""Guards against tokenizer files that make the library panic or exhaust the memory."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from embedtopics._utils.folders import parse_json


@contextmanager
def refusing_panics() -> Iterator[None]:
    """Turn a panic of Rust, which is not an Exception in Python, into a ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise ValueError(str(error)) from None
        raise


def try_out(tokenizer: Any) -> None:
    """Tokenize a text: missing parts show only then, by a panic."""
    with suppress(Exception):  # a vocabulary may lack what it needs for this text
        tokenizer.encode("a")


def check_tokenizer(text: str) -> None:
    """Refuse a character map of another size than it declares: the library allocates that much."""
    if "precompiled_charsmap" in text:
        _check_maps(parse_json(text))


def _check_maps(part: Any) -> None:
    if isinstance(part, list):
        for one in part:
            _check_maps(one)
    if not isinstance(part, dict):
        return
    encoded = part.get("precompiled_charsmap")
    if isinstance(encoded, str):
        content = base64.b64decode(encoded)
        size = int.from_bytes(content[:4], "little")
        if size % 4 or size > len(content) - 4:
            raise ValueError(f"its character map has {len(content):,} bytes and declares {size:,}")
    for name in ("normalizer", "normalizers"):
        _check_maps(part.get(name))
