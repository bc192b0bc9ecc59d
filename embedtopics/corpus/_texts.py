"""Texts: their normal form and content hash.

A document is identified by the hash of its normal form, so that neither its identity nor its order
depends on the position or the number of its rows.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.hidden_characters import without_hidden
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.errors import InputError, name_rows

TEXT, EMPTY, MISSING = 0, 1, 2
"""Status of a row: with text, without a visible character, without a value."""

MISSING_MARKERS = frozenset("NA N/A #N/A <NA> NaN nan NaT NULL null None".split())
"""Cells that stand for "no value" in the text and time columns of tables."""

# Control characters that str.split does not treat as whitespace.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_VISIBLE = re.compile(r"[^\s\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")

_PRINTABLE = bytes(range(32, 127))
_CONTROL_AS_SPACE = bytes(b if 32 <= b < 127 else 32 for b in range(256))

_JOINERS = "\u200c\u200d"
_SIGN = re.compile(r"(<(?=\S)|\|(?=>)|\[(?=/?[A-Z_]+\]))")
"""Starts and ends of the markers by which chat formats separate speakers: ``<|user|>``, ``</s>``,
``<<SYS>>``, ``<start_of_turn>``, ``[INST]``."""


def replace_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


# The longest run of marks on one letter; beyond it, the letter is not one of any language. The
# Unicode standard (annex 15, the "stream-safe text process") has the same limit and joiner.
MOST_MARKS = 30
JOINER = "\u034f"

# Composing takes quadratic time in a run of marks: 20,000 take a second. A shorter text has none
# that costs anything.
QUICKLY_COMPOSED = 1000


def compose(text: str) -> str:
    """Return a text with its marks composed (Unicode NFC), in linear time.

    Longer runs of marks are divided by an invisible joiner.
    """
    if text.isascii():
        return text
    if len(text) > QUICKLY_COMPOSED:
        text = _long_runs().sub(_divide_run, text)
    return unicodedata.normalize("NFC", text)


@lru_cache(maxsize=1)
def _long_runs() -> re.Pattern[str]:
    marks = [chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))]
    return re.compile(f"[{''.join(marks)}]{{{MOST_MARKS + 1},}}")


def _divide_run(match: re.Match[str]) -> str:
    run = match[0]
    return JOINER.join(run[i : i + MOST_MARKS] for i in range(0, len(run), MOST_MARKS))


def distinct_names(
    names: Sequence[str], others: Iterable[str] = (), separator: str = "_"
) -> list[str]:
    """Return names that differ from one another and from `others`; "_2", "_3" ... mark repeats."""
    used, originals = set(others), set(names)
    unique_names = []
    for name in names:
        unique, number = name, 2
        while unique in used or (unique != name and unique in originals):
            unique, number = f"{name}{separator}{number}", number + 1
        used.add(unique)
        unique_names.append(unique)
    return unique_names


def normalize_text(text: str) -> str:
    """Return the normal form of a text; texts with equal forms are one document.

    The text is composed (Unicode NFC), runs of control characters and whitespace become one space,
    spaces at the ends are removed, and lone surrogates become U+FFFD. Case, punctuation, combining
    marks, emoji, zero-width joiners and the writing direction stay. The function is idempotent.
    """
    # Most texts are normal, which is checked in a tenth of the time. Printable text has no
    # surrogates, no control characters, and no whitespace except the space.
    if text.isascii() and _is_plain(text):
        return text
    if text.isascii():  # bytes take a third of the time
        return b" ".join(text.encode().translate(_CONTROL_AS_SPACE).split()).decode()
    text = compose(replace_surrogates(text))
    return text if _is_plain(text) else " ".join(_CONTROL.sub(" ", text).split())


def _is_plain(text: str) -> bool:
    """Return whether words are separated by single spaces, and all characters are printable."""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    if text.isascii():  # on long texts, bytes take a fifth of the time
        return not text.encode().translate(None, _PRINTABLE)
    return text.isprintable()


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT or pandas.NA."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def content_ids(hashes: npt.NDArray[np.uint64]) -> Iterator[str]:
    """Yield ids from hashes (n_rows, 2): 16 hexadecimal digits, with "-2", "-3" ... for repeats."""
    keys = pd.Series(hashes[:, 0])
    for key, n in zip(keys.tolist(), keys.groupby(keys).cumcount().tolist(), strict=True):
        yield f"{key:016x}-{n + 1}" if n else f"{key:016x}"


def find_distinct(
    hashes: npt.NDArray[np.uint64], status: npt.NDArray[np.int8]
) -> DistinctDocuments:
    """Group the rows with text by content; `hashes` (n_rows, 2), `status` (n_rows,)."""
    rows = np.flatnonzero(status == TEXT)
    # lexsort is stable: the rows of a document stay in order.
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


@dataclass(frozen=True, eq=False)
class TextRows:
    """A column of texts; `status` (n_rows,), `hashes` (n_rows, 2)."""

    texts: tuple[str, ...]
    status: npt.NDArray[np.int8]
    hashes: npt.NDArray[np.uint64]
    n_repaired: int


def read_texts(values: Iterable[object], what: str, lines: Sequence[int] | None = None) -> TextRows:
    """Read a column of texts in one pass."""
    texts: list[str] = []
    status, digests = bytearray(), bytearray()
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
                f"{what} must hold strings; {name_rows([len(texts)], lines)} holds a "
                f"{type(value).__name__}: convert the values with str() or choose another column"
            )
        texts.append(text)
        digests += blake2b(normal.encode(), digest_size=16).digest()
    kinds = np.frombuffer(status, dtype=np.int8)
    kinds.flags.writeable = False
    hashes = np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    hashes.flags.writeable = False
    return TextRows(tuple(texts), kinds, hashes, n_repaired)


def harmless(text: str) -> str:
    """Remove invisible characters, and break the markers of chat formats; lines stay apart."""
    lines = without_hidden(text, sign="").replace("\r\n", "\n").replace("\r", "\n")
    visible = "".join(c for c in lines if c in "\n\t" or not is_hidden(c))
    return _SIGN.sub(r"\1 ", visible)


def is_hidden(character: str) -> bool:
    """Return whether a character is a control character."""
    return character not in _JOINERS and unicodedata.category(character)[0] == "C"


MIN_WORDS, MIN_TEXTS, MIN_SHARE = 5, 5, 0.001
"""Minimum number of texts with a line, and minimum share of all texts. These find the headers and
signatures of 20 Newsgroups and *Tel est l'objet du présent amendement* of French amendments; no
line of bank questions and arXiv abstracts, and one of 1,028 German news articles."""

_LINE = re.compile(r"[^\n.!?\u2026\u3002\u0964\u061f]{30,}")


def repeated_lines(texts: Sequence[str]) -> tuple[dict[str, int], list[int]]:
    """Return the lines that many distinct texts share, such as signatures, with their numbers.

    A line ends with a sentence. A text that consists mostly of shared lines is a copy, and does not
    count. The second value holds the positions of all texts with such a line.
    """
    fewest = max(MIN_TEXTS, MIN_SHARE * len(texts))
    hashes, ends = array("q"), array("q")
    for text in texts:
        hashes.extend(map(hash, lines_of(text)))
        ends.append(len(hashes))
    numbers, times = np.unique(hashes, return_counts=True)
    shared = numbers[times >= fewest]
    places = np.flatnonzero(np.isin(hashes, shared))
    holders = np.unique(np.searchsorted(ends, places, side="right")).tolist()
    counted, of_hash = Counter[str](), set(shared.tolist())
    for row in holders:
        lines = {line for line in lines_of(texts[row]) if hash(line) in of_hash}
        if 2 * sum(map(len, lines)) < len(texts[row]):
            counted.update(lines)
    ordered = sorted(line for line in counted if len(line.split()) >= MIN_WORDS)
    return {line: counted[line] for line in ordered if counted[line] >= fewest}, holders


def lines_of(text: str) -> set[str]:
    """Return the lines and sentences of a text that are long enough to recur by design."""
    return {line.strip() for line in _LINE.findall(text)}
