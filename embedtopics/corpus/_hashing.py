"""Which rows hold the same text: normalisation, content hashes and distinct documents.

Two rows hold the same document if their texts are equal after Unicode and whitespace
normalisation. Documents are known by a hash of that normal form, so that neither their identity
nor their order depends on where, or how often, they stand in the input.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError

TEXT = 0
"""Status of a row that has text."""
EMPTY = 1
"""Status of a row whose text shows nothing: whitespace, control or zero-width characters only."""
MISSING = 2
"""Status of a row without a value: None, NaN, NaT or pandas.NA."""

# Control characters that str.split does not already take for whitespace.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
# Anything but whitespace and the format characters that have no glyph of their own.
_VISIBLE = re.compile(r"[^\s\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


_PRINTABLE = bytes(range(32, 127))


@dataclass(frozen=True, eq=False)
class TextRows:
    """A column of texts after its single reading: (n_rows,), but `hashes` (n_rows, 2)."""

    texts: Sequence[str]
    status: npt.NDArray[np.int8]
    hashes: npt.NDArray[np.uint64]
    is_normal: npt.NDArray[np.bool_]
    n_repaired: int


def replace_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def normalize_text(text: str) -> str:
    """Return the form of a text by which two texts count as the same document.

    Canonical composition (Unicode NFC), control characters and runs of whitespace to one space,
    none at the ends, lone surrogates to U+FFFD. Case, punctuation, combining marks, emoji,
    zero-width joiners and the direction of writing stay as they are. The function is idempotent.
    """
    # Most texts need nothing, and that is seen in a tenth of the time. Printable text holds no
    # surrogate, no control character and no whitespace but the space.
    if text.isascii() and _is_plain(text):
        return text
    text = unicodedata.normalize("NFC", replace_surrogates(text))
    return text if _is_plain(text) else " ".join(_CONTROL.sub(" ", text).split())


def _is_plain(text: str) -> bool:
    """Return whether words are parted by single spaces, and nothing else is to be cleaned."""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    if text.isascii():  # of long texts, bytes tell it in a fifth of the time
        return not text.encode().translate(None, _PRINTABLE)
    return text.isprintable()


def is_missing(value: object) -> bool:
    """Return whether a value stands for "no value": None, NaN, NaT or pandas.NA."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def read_texts(values: Iterable[object], what: str, name_row: Callable[[int], str]) -> TextRows:
    """Read a column of texts in one pass; what Arrow holds is not copied."""
    from embedtopics.corpus._arrow import ArrowTexts

    held = values if isinstance(values, ArrowTexts) else None
    texts: list[str] = []
    status, is_normal, digests = bytearray(), bytearray(), bytearray()
    n_repaired = 0
    for value in values:
        if isinstance(value, str):
            text = replace_surrogates(str(value))
            n_repaired += text != value
            normal = normalize_text(text)
            status.append(TEXT if _VISIBLE.search(normal) else EMPTY)
        elif is_missing(value):
            text = normal = ""
            status.append(MISSING)
        else:
            raise InputError(
                f"{what} must hold strings; {name_row(len(texts))} holds a "
                f"{type(value).__name__}: convert the values with str() or choose another column"
            )
        if held is None:
            texts.append(text)
        is_normal.append(normal is text)
        digests += blake2b(normal.encode(), digest_size=16).digest()
    kinds = np.frombuffer(status, dtype=np.int8)
    if held is not None and held.is_missing is not None:
        kinds[held.is_missing] = MISSING
    kinds.flags.writeable = False
    hashes = np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    hashes.flags.writeable = False
    known = np.frombuffer(is_normal, dtype=np.bool_)
    return TextRows(tuple(texts) if held is None else held, kinds, hashes, known, n_repaired)


def content_ids(hashes: npt.NDArray[np.uint64]) -> Iterator[str]:
    """Name rows by content, (n_rows, 2): 16 hexadecimal digits, with "-2", "-3" ... for repeats."""
    order = np.argsort(hashes[:, 0], kind="stable")
    ordered, place = hashes[order, 0], np.arange(len(order))
    first = np.zeros(len(order), dtype=np.int64)
    first[1:] = np.where(ordered[1:] == ordered[:-1], 0, place[1:])
    times = np.empty_like(place)
    times[order] = place - np.maximum.accumulate(first) + 1
    for key, n in zip(hashes[:, 0].tolist(), times.tolist(), strict=True):
        yield f"{key:016x}" if n == 1 else f"{key:016x}-{n}"


def find_distinct(
    hashes: npt.NDArray[np.uint64], status: npt.NDArray[np.int8]
) -> DistinctDocuments:
    """Group the rows with text by content; `hashes` (n_rows, 2), `status` (n_rows,)."""
    rows = np.flatnonzero(status == TEXT)
    # lexsort is stable, so that within a document the first row comes first.
    rows = rows[np.lexsort((hashes[rows, 1], hashes[rows, 0]))]
    ordered = hashes[rows]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    document = np.cumsum(is_first) - 1
    of_row = np.full(len(status), -1, dtype=np.int64)
    of_row[rows] = document
    weights = np.bincount(document).astype(np.int64)
    return DistinctDocuments(
        hashes=ordered[is_first],
        first_rows=rows[is_first].astype(np.int64),
        of_row=of_row,
        weights=weights,
    )
