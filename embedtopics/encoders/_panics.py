"""Files of tokenizers that make the library panic, or take as much memory as they say."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from embedtopics._utils.folders import parse_json


@contextmanager
def refusing_panics() -> Iterator[None]:
    """Turn a panic of Rust, which is no Exception of Python, into a ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise ValueError(str(error)) from None
        raise


def try_out(tokenizer: Any) -> None:
    """Cut a text: parts that are missing are noticed first there, by a panic."""
    with suppress(Exception):  # a vocabulary may lack what it needs for this text
        tokenizer.encode("a")


def check_tokenizer(text: str) -> None:
    """Refuse a character map that is not of the size it says: that much memory would be taken."""
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
            raise ValueError(f"its character map has {len(content):,} bytes, and says {size:,}")
    for name in ("normalizer", "normalizers"):
        _check_maps(part.get(name))
