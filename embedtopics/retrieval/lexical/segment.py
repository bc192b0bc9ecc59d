"""The postings of one segment: written once, opened without reading them.

A segment keeps what does not change when others come and go: how often each word occurs in each
passage, and how long the passages are. What BM25 makes of it depends on the whole collection and
is worked out at the search, for the words of the query alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.retrieval.lexical.settings import LexicalSettings
from embedtopics.retrieval.lexical.words import WordForms, stop_form
from embedtopics.terms.tokens import tokenize

__all__ = ["LexicalSegment", "build_lexical", "open_lexical"]

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


@dataclass(frozen=True, eq=False)
class LexicalSegment:
    """The words of some passages.

    Parameters
    ----------
    settings : LexicalSettings
        By which the texts became words.
    starts : int64 ndarray of shape (n_words + 1,)
        The postings of word `i` are ``rows[starts[i]:starts[i + 1]]``, and `counts` alike.
    rows : int32 ndarray of shape (n_postings,)
        Passages that hold the word, ascending.
    counts : unsigned ndarray of shape (n_postings,)
        How often each holds it.
    lengths : int32 ndarray of shape (n_passages,)
        Words of each passage that are no stop words.
    letters : uint8 ndarray
        All words, in the order of their code points, in UTF-8, one behind the other.
    ends : int64 ndarray of shape (n_words + 1,)
        Word `i` is ``letters[ends[i]:ends[i + 1]]``.
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
    """Write the postings of a segment's passages.

    Parameters
    ----------
    folder : Path
        Must exist; files of an earlier build are overwritten.
    texts : sequence of str
        One passage each, in the order of the segment's rows; passages without a word are allowed.
    settings : LexicalSettings

    Raises
    ------
    InputError
        If an element is no string.
    """
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
    """Open the postings of a segment.

    Parameters
    ----------
    folder : Path
    mmap : bool
        Whether postings stay on disk until a query asks for them.

    Returns
    -------
    LexicalSegment

    Raises
    ------
    CorruptFileError
        If a file is missing, damaged, of a newer version or does not go with the others.
    """
    try:
        about = json.loads((folder / _ABOUT).read_text("utf-8"))
        if about["format"] != _FORMAT:
            raise CorruptFileError(
                f"{folder} was written in format {about['format']}, and this version reads "
                f"{_FORMAT}; upgrade embedtopics"
            )
        settings = LexicalSettings.of_json(about["settings"])
        arrays = {name: _open(folder / f"{name}.npy", mmap) for name in _ARRAYS}
        _check(arrays, about["passages"])
    except CorruptFileError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError, InputError) as error:
        raise CorruptFileError(
            f"expected the word index of a segment in {folder}, got files that are damaged or "
            f"missing ({error}); build the collection again or restore it from a copy"
        ) from error
    return LexicalSegment(settings, **arrays)


def _open(path: Path, mmap: bool) -> npt.NDArray[Any]:
    array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    if array.ndim != 1 or array.dtype.newbyteorder("<").str[1:] not in _ARRAYS[path.stem]:
        raise ValueError(f"{path.name} holds {array.dtype} of shape {array.shape}")
    return np.asarray(array)  # of the same memory, with less to do at each slice


def _check(arrays: dict[str, npt.NDArray[Any]], n_passages: int) -> None:
    """Make sure that the files go together, as far as that can be told without reading them."""
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
