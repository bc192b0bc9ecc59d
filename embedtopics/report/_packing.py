"""Pack arrays, texts and posting lists compactly for a page."""

from __future__ import annotations

import base64
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

TEXTS_PER_BLOCK = 1000
"""Texts of a deflated block: enough to compress well, and inflated in a few ms."""

LINES_PER_BLOCK = 20_000
"""Ids or web addresses of a deflated block."""

_ONE_BYTE, _TWO_BYTES, _THREE_BYTES = 64, 56 * 255, 8 * 255**2
"""Number of words with codes of each length, by lead byte: 0x80-0xbf, 0xc0-0xf7, 0xf8-0xff."""

_LEAST_OCCURRENCES = 4
_WORD = re.compile(r" ?[^\W_]+")
_PIECE = re.compile(r" ?[^\W_]+|[\W_]")


class CodedTexts(NamedTuple):
    """Texts with frequent words replaced by codes, and these words, the most frequent first."""

    texts: list[bytes]
    words: tuple[str, ...]


def packed(name: str, content: bytes | npt.NDArray[Any], *, deflate: bool = True) -> str:
    """Return bytes, or a little-endian array, as an inert script element."""
    if isinstance(content, np.ndarray):
        content = content.astype(content.dtype.newbyteorder("<")).tobytes()
    if deflate:
        content = zlib.compress(content, 9)
    how = " data-deflated" if deflate else ""
    body = base64.b64encode(content).decode()
    return f'<script type="application/octet-stream" id="packed-{name}"{how}>{body}</script>'


def packed_strings(name: str, strings: Sequence[str]) -> str:
    """Return strings separated by NUL, which is replaced in them."""
    clean = "\0".join(one.replace("\0", "\ufffd") for one in strings)
    return packed(name, clean.encode("utf-8", "replace"))


def packed_lines(name: str, lines: Sequence[str], per_block: int = LINES_PER_BLOCK) -> list[str]:
    """Return strings as numbered blocks."""
    blocks = (lines[i : i + per_block] for i in range(0, len(lines), per_block))
    return [packed_strings(f"{name}-{number}", block) for number, block in enumerate(blocks)]


def packed_texts(texts: Sequence[str]) -> list[str]:
    """Return the frequent words, and numbered blocks of coded texts separated by NUL."""
    coded = code_texts(texts)
    blocks = (
        b"\0".join(coded.texts[i : i + TEXTS_PER_BLOCK])
        for i in range(0, len(texts), TEXTS_PER_BLOCK)
    )
    return [
        packed_strings("words", coded.words),
        *(packed(f"texts-{number}", block) for number, block in enumerate(blocks)),
    ]


def code_texts(texts: Sequence[str]) -> CodedTexts:
    """Replace frequent words by codes before compression, which saves a quarter of the size.

    A word may start with the space before it. Bytes below 0x80 are ASCII; bytes from 0x80 on start
    the code of a word. Other characters are 0x01, the length of their UTF-8 encoding (LEB128), and
    that encoding. No byte is 0; NUL becomes U+FFFD.
    """
    counts = Counter(chain.from_iterable(map(_WORD.findall, texts)))
    frequent = [
        word
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= _LEAST_OCCURRENCES and len(word) > 1 and not word.isspace()
    ][: _ONE_BYTE + _TWO_BYTES + _THREE_BYTES]
    codes = _Codes((word, _word_code(rank)) for rank, word in enumerate(frequent))
    coded = ("".join(map(codes.__getitem__, _PIECE.findall(text))) for text in texts)
    return CodedTexts([one.encode("latin-1") for one in coded], tuple(frequent))


class _Codes(dict[str, str]):
    """The code of each piece of text, as characters below 256."""

    def __missing__(self, piece: str) -> str:
        code = piece
        if not piece.isascii() or piece < "\x02":
            spelled = piece.replace("\0", "\ufffd").encode("utf-8", "replace")
            code = (b"\x01" + varints(np.array([len(spelled)])) + spelled).decode("latin-1")
        self[piece] = code
        return code


def _word_code(rank: int) -> str:
    if rank < _ONE_BYTE:
        return chr(0x80 + rank)
    rank -= _ONE_BYTE
    if rank < _TWO_BYTES:
        return chr(0xC0 + rank // 255) + chr(1 + rank % 255)
    lead, rest = divmod(rank - _TWO_BYTES, 255**2)
    return chr(0xF8 + lead) + chr(1 + rest // 255) + chr(1 + rest % 255)


def varints(values: npt.NDArray[Any]) -> bytes:
    """Return non-negative integers below 2**35, 7 bits a byte, lowest first (LEB128)."""
    values, n_bytes = values.astype(np.uint64), _varint_bytes(values)
    starts = np.cumsum(n_bytes) - n_bytes
    out = np.zeros(int(n_bytes.sum()), dtype=np.uint8)
    for place in range(5):
        has_byte = n_bytes > place
        low = (values[has_byte] >> np.uint64(7 * place)) & np.uint64(127)
        more = np.where(n_bytes[has_byte] > place + 1, 128, 0)
        out[starts[has_byte] + place] = low.astype(np.uint8) | more.astype(np.uint8)
    return out.tobytes()


def _varint_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the number of bytes of each integer."""
    longer = [values >= (1 << bits) for bits in (7, 14, 21, 28)]
    return np.asarray(1 + np.sum(longer, axis=0), dtype=np.int64)


def postings(counts: csc_matrix) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Return the posting lists of (n_documents, n_terms) counts, and the bytes of each list.

    An entry is twice the difference to the previous document (-1 at first), plus 1 for a term that
    occurs more than once; then its count minus 2 follows.
    """
    counts = counts.sorted_indices()
    steps = np.diff(counts.indices.astype(np.int64), prepend=-1)
    starts = counts.indptr[:-1][np.diff(counts.indptr) > 0]
    steps[starts] = counts.indices[starts] + 1
    repeats = counts.data > 1
    entries = np.zeros((len(steps), 2), dtype=np.int64)
    entries[:, 0] = 2 * steps + repeats
    entries[:, 1] = counts.data - 2
    written = np.stack([np.ones(len(steps), dtype=bool), repeats], axis=1)
    values = entries[written]
    ends = np.concatenate([[0], np.cumsum(_varint_bytes(values))])
    n_values = np.concatenate([[0], np.cumsum(written.sum(axis=1))])
    return varints(values), np.diff(ends[n_values[counts.indptr]]).astype(np.uint32)
