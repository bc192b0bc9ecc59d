"""From texts to words, and the postings of one segment: written once, opened without reading them.

A segment keeps what does not change when others come and go: how often each word occurs in each
passage, and how long the passages are. What BM25 makes of it depends on the whole collection and
is worked out at the search, for the words of the query alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_number
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.terms._spans import words_of
from embedtopics.terms._stop_words import stems_of, stop_words_for
from embedtopics.terms._tokens import tokenize

_FORMAT = 1
_ABOUT = "lexical.json"
_ARRAYS = {
    "starts": ("i8",),
    "rows": ("i4",),
    "counts": ("u1", "u2", "u4"),
    "lengths": ("i4",),
    "letters": ("u1",),
    "ends": ("i8",),
}
"""Files of a segment and what their numbers may be, all little-endian."""


@dataclass(frozen=True)
class LexicalSettings:
    """How texts become words of the index, and the constants of BM25.

    All that decides which words a text has is spelled out here and stored beside the postings:
    a list of stop words that grows in a later version changes no index that exists. Of several
    languages in `stems` (ISO 639-1) the Snowball stemmers are applied one after the other.
    """

    stop_words: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        for name in ("stop_words", "stems"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(word, str) for word in value):
                raise InputError(name, "a tuple of strings", value)
        for name, highest in (("k1", math.inf), ("b", 1.0)):
            value = getattr(self, name)
            if not is_number(value) or not math.isfinite(value) or not 0 <= value <= highest:
                raise InputError(name, f"a number from 0 to {highest:g}", value)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, from which `from_json` makes the same settings."""
        return {**asdict(self), "stop_words": list(self.stop_words), "stems": list(self.stems)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LexicalSettings:
        """Return the settings that `to_json` gave."""
        try:
            return cls(
                tuple(values["stop_words"]), tuple(values["stems"]), values["k1"], values["b"]
            )
        except (KeyError, TypeError) as error:
            raise InputError("settings", f"those of a lexical index ({error})", values) from None


def lexical_settings(
    languages: Iterable[str], *, stop_words: Iterable[str] | None = None, stems: bool = True
) -> LexicalSettings:
    """Return the settings for a collection in some languages (ISO 639-1)."""
    codes = tuple(languages)
    if stop_words is None:
        return LexicalSettings(stop_words_for(codes), codes if stems else ())
    words: set[str] = set()
    for row, word in enumerate(stop_words):
        if not isinstance(word, str):
            raise InputError("stop_words", "strings", word, row=row)
        words.update(words_of(word))  # as the tokenizer writes them, which alone are ever met
    return LexicalSettings(tuple(sorted(words)), codes if stems else ())


_STOP = "\x1f"
"""In front of a stop word in the index; no word of the tokenizer has it."""


def stop_form(word: str) -> str:
    """Return the form under which the index knows a stop word: never that of another word."""
    return _STOP + word


class WordForms:
    """The form under which the index knows a word."""

    def __init__(self, settings: LexicalSettings) -> None:
        self._left_out = frozenset(settings.stop_words)
        self._stems = settings.stems

    def of(self, word: str) -> str | None:
        """Return the form of a word of the tokenizer, or None where it is a stop word."""
        if word in self._left_out:
            return None
        for code in self._stems:
            # A stem may be empty or hold a blank in no language that we know of; were it so, the
            # word would be lost.
            word = stems_of(word, (code,))[0][0] or word
        return word


class QueryWords(NamedTuple):
    """What a query asks for, in alphabetical order.

    `written` holds by form of the index the words of the query that have this form, and how often
    each occurs; `stop_words` how often each stop word occurs that is not among these.
    """

    written: Mapping[str, Mapping[str, int]]
    stop_words: Mapping[str, int]

    def weight(self, form: str) -> int:
        """Return how often the query has a form; BM25 counts it so often."""
        return sum(self.written[form].values())

    def asking(self, stop_words: Iterable[str]) -> QueryWords:
        """Return the same query with some of its stop words looked for."""
        chosen = set(stop_words)
        more = {stop_form(w): {w: n} for w, n in self.stop_words.items() if w in chosen}
        rest = {word: n for word, n in self.stop_words.items() if word not in chosen}
        return QueryWords(dict(sorted({**self.written, **more}.items())), rest)


def query_words(query: str, settings: LexicalSettings) -> QueryWords:
    """Read a query."""
    if not isinstance(query, str):
        raise InputError("query", "a string", query)
    forms = WordForms(settings)
    written: dict[str, dict[str, int]] = {}
    left_out: dict[str, int] = {}
    for word, times in sorted(Counter(words_of(query)).items()):
        form = forms.of(word)
        if form is None:
            left_out[word] = times
        else:
            written.setdefault(form, {})[word] = times
    return QueryWords(dict(sorted(written.items())), left_out)


@dataclass(frozen=True, eq=False)
class LexicalSegment:
    """The words of some passages.

    The postings of word `i` are ``rows[starts[i]:starts[i + 1]]`` (int32), the passages that hold
    it, ascending, and as many `counts`, how often. `lengths` (n_passages,) count the words of each
    passage that are no stop words. Word `i` is ``letters[ends[i]:ends[i + 1]]`` in UTF-8; words
    are in the order of their code points.
    """

    settings: LexicalSettings
    starts: Int64Array
    rows: Int32Array
    counts: npt.NDArray[Any]
    lengths: Int32Array
    letters: npt.NDArray[np.uint8]
    ends: Int64Array

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.lengths)

    def find(self, form: str) -> int:
        """Return the number of a word, or -1 where no passage holds it."""
        # UTF-8 keeps the order of the code points.
        wanted = form.encode("utf-8", "surrogatepass")
        low, high = 0, len(self.ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self._word(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.ends) - 1 and self._word(low) == wanted else -1

    def _word(self, number: int) -> bytes:
        return self.letters[self.ends[number] : self.ends[number + 1]].tobytes()

    def postings(self, number: int) -> tuple[Int32Array, npt.NDArray[Any]]:
        """Return the passages that hold a word, and how often; none for the number -1."""
        if number < 0:
            return self.rows[:0], self.counts[:0]
        of_word = slice(self.starts[number], self.starts[number + 1])
        return self.rows[of_word], self.counts[of_word]


def build_lexical(folder: Path, texts: Sequence[str], settings: LexicalSettings) -> None:
    """Write the postings of a segment's passages."""
    from scipy.sparse import coo_array

    stream = tokenize(texts)
    forms = WordForms(settings)
    shared = [forms.of(word) for word in stream.words]
    is_stop = np.array([form is None for form in shared], dtype=np.bool_)
    form_of = [form or stop_form(word) for word, form in zip(stream.words, shared, strict=True)]
    known = sorted(set(form_of))
    number = {form: i for i, form in enumerate(known)}
    words = np.array([number[form] for form in form_of], dtype=np.int32)[stream.ids]
    documents = np.repeat(np.arange(len(stream), dtype=np.int32), np.diff(stream.offsets))
    # Stop words can be found, but a passage is no longer for them.
    counted = documents[~is_stop[stream.ids]]
    found = coo_array(
        (np.ones(len(words), np.int32), (documents, words)), shape=(len(stream), len(known))
    ).tocsc()  # which adds up what a passage holds several times
    found.sort_indices()
    encoded = [form.encode("utf-8", "surrogatepass") for form in known]
    highest = int(found.data.max(initial=0))
    arrays = {
        "starts": found.indptr.astype("<i8"),
        "rows": found.indices.astype("<i4"),
        "counts": found.data.astype(np.min_scalar_type(highest).newbyteorder("<")),
        "lengths": np.bincount(counted, minlength=len(stream)).astype("<i4"),
        "letters": np.frombuffer(b"".join(encoded), np.uint8),
        "ends": np.cumsum([0, *map(len, encoded)]).astype("<i8"),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    about = {"format": _FORMAT, "passages": len(stream), "settings": settings.to_json()}
    (folder / _ABOUT).write_text(json.dumps(about, indent=1), "utf-8")


def open_lexical(folder: Path, mmap: bool = True) -> LexicalSegment:
    """Open the postings of a segment."""
    try:
        about = json.loads((folder / _ABOUT).read_text("utf-8"))
        if about["format"] != _FORMAT:
            raise CorruptFileError(
                f"{folder} was written in format {about['format']}, and this version reads "
                f"{_FORMAT}; upgrade embedtopics"
            )
        settings = LexicalSettings.from_json(about["settings"])
        arrays = {name: _open(folder / f"{name}.npy", mmap) for name in _ARRAYS}
        _check(arrays, about["passages"])
    except CorruptFileError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, InputError) as error:
        raise CorruptFileError(
            f"expected the word index of a segment in {folder}, got files that are damaged or "
            f"missing ({error}); build the index again or restore it from a copy"
        ) from error
    return LexicalSegment(settings, **arrays)


def _open(path: Path, mmap: bool) -> npt.NDArray[Any]:
    array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    if array.ndim != 1 or array.dtype.newbyteorder("<").str[1:] not in _ARRAYS[path.stem]:
        raise ValueError(f"{path.name} holds {array.dtype} of shape {array.shape}")
    return np.asarray(array)  # of the same memory, with less to do at each slice


def _check(arrays: dict[str, npt.NDArray[Any]], n_passages: int) -> None:
    """Make sure that the files go together, as far as that can be seen without reading them."""
    starts, ends = arrays["starts"], arrays["ends"]
    agrees = (
        len(starts) == len(ends) >= 1
        and starts[0] == ends[0] == 0
        and starts[-1] == len(arrays["rows"]) == len(arrays["counts"])
        and ends[-1] == len(arrays["letters"])
        and len(arrays["lengths"]) == n_passages
    )
    if not agrees:
        raise ValueError("their lengths do not go together")
