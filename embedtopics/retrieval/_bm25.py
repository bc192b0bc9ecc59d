"""BM25 over all segments of a collection, as if it had been indexed at once.

A segment keeps what does not change when others come and go: how often each word occurs in each
passage, and how long the passages are. Scores depend on the whole collection, and are worked out
at the search for the words of the query alone.

Score of a passage for a query (Robertson and Zaragoza 2009; the variant of Lucene as in Kamphuis,
de Vries, Boytsov and Lin 2020, which is also the default of the package bm25s)::

    sum over the words w of the query, each as often as the query has it, of
        log(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * l / mean(l)))

with f how often the passage holds w, l its length in words, N the number of living passages and
n how many of these hold w. Removed passages count nowhere: neither in N, nor in n, nor in mean(l).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.folders import parse_json
from embedtopics.corpus._languages import checked_languages
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.terms._spans import edit_distance, words_like
from embedtopics.terms._stop_words import stems_of, stop_words_for
from embedtopics.terms._tokens import PLAIN, tokenize, words_of
from embedtopics.terms.results import WordRules

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

    All of it is stored beside the postings, so that a later version changes no index that exists.
    The Snowball stemmers of several `stems` (ISO 639-1) are applied one after the other.
    """

    stop_words: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    k1: float = 1.5
    b: float = 0.75
    words: WordRules = PLAIN

    def to_json(self) -> dict[str, Any]:
        """Return what is stored; the words only where they are not made as by default."""
        stored = {name: getattr(self, name) for name in ("stop_words", "stems", "k1", "b")}
        return stored if self.words == PLAIN else {**stored, "words": self.words.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LexicalSettings:
        """Return the settings that were stored."""
        return cls(
            tuple(values["stop_words"]), tuple(values["stems"]), values["k1"], values["b"],
            WordRules.from_json(values.get("words")),
        )  # fmt: skip

    @cached_property
    def _left_out(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    def form(self, word: str) -> str | None:
        """Return the form under which the index knows a word, None for a stop word."""
        if word in self._left_out:
            return None
        for code in self.stems:
            # A stem may be empty or hold a blank in no language that we know of; were it so, the
            # word would be lost.
            word = stems_of(word, (code,))[0][0] or word
        return word


def lexical_settings(
    languages: Iterable[str],
    *,
    stop_words: Iterable[str] | None = None,
    stems: bool = True,
    rules: WordRules = PLAIN,
) -> LexicalSettings:
    """Return the settings for a collection in some languages (ISO 639-1)."""
    # All documents are read in the same way, whatever their language: every third headline of 633
    # French and 710 English articles (MasakhaNEWS, first 1,500 characters) finds its article with
    # an MRR@10 of 0.775 and 0.934 in one index, and of 0.775 and 0.937 in one for each language.
    codes, own = checked_languages(list(languages)), ["auto"]
    if stop_words is not None:
        own = list(stop_words)
    for row, value in enumerate(own):
        if not isinstance(value, str):
            raise InputError("stop_words", "strings", value, row=row)
    # As the tokenizer writes them, which alone are ever met.
    words = {word for written in own if written != "auto" for word in words_of(written, rules)}
    if "auto" in own:
        words |= {*stop_words_for(codes, general=False, rules=rules)}
    return LexicalSettings(tuple(sorted(words)), codes if stems else (), words=rules)


_STOP = "\x1f"
"""In front of a stop word in the index; no word of the tokenizer has it."""


def stop_form(word: str) -> str:
    """Return the form under which the index knows a stop word: never that of another word."""
    return _STOP + word


class QueryWords(NamedTuple):
    """What a query asks for, in alphabetical order.

    `written` counts the query's words by form of the index; `stop_words` the others' occurrences.
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
    written: dict[str, dict[str, int]] = {}
    left_out: dict[str, int] = {}
    for word, times in sorted(Counter(words_of(query, settings.words)).items()):
        form = settings.form(word)
        if form is None:
            left_out[word] = times
        else:
            written.setdefault(form, {})[word] = times
    return QueryWords(dict(sorted(written.items())), left_out)


class ParsedQuery(NamedTuple):
    """A query without its quotes and exclusions, and the words of each phrase and exclusion."""

    text: str
    phrases: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[str, ...], ...]


# A hyphen before a number is a minus.
_SYNTAX = re.compile(r'(?<!\S)(-?)"([^"]+)"(?!\w)|(?<!\S)-(?=[^\W\d_])([^\s"]+)')


def parse_query(query: str, rules: WordRules = PLAIN) -> ParsedQuery:
    """Read "phrases in quotes" and -exclusions; any other text is the query as it is."""
    phrases: list[tuple[str, ...]] = []
    excluded: list[tuple[str, ...]] = []

    def keep(match: re.Match[str]) -> str:
        is_out = match[1] != ""
        words = tuple(words_of(match[2] or match[3], rules))
        if words:
            (excluded if is_out else phrases).append(words)
        return " " if is_out else match[2]

    return ParsedQuery(_SYNTAX.sub(keep, query), tuple(phrases), tuple(excluded))


@dataclass(frozen=True, eq=False)
class LexicalSegment:
    """The words of some passages, in the order of their code points.

    The passages of word `i` are ``rows[starts[i]:starts[i + 1]]`` (int32), ascending, with as many
    `counts`; the word is ``letters[ends[i]:ends[i + 1]]`` in UTF-8. `lengths` (n_passages,) count
    words that are no stop words.
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

    def check(self, n_passages: int) -> None:
        """Make sure that every number is of something; who wrote the checksums may be anybody."""
        lowest, highest = self.rows.min(initial=0), self.rows.max(initial=-1)
        falls = (np.diff(self.starts) < 0).any() or (np.diff(self.ends) < 0).any()
        if falls or lowest < 0 or highest >= n_passages or len(self.lengths) != n_passages:
            raise ValueError(f"its words are not of {n_passages:,} passages")


def build_lexical(folder: Path, texts: Sequence[str], settings: LexicalSettings) -> None:
    """Write the postings of a segment's passages."""
    from scipy.sparse import coo_array

    stream = tokenize(texts, rules=settings.words)
    shared = [settings.form(word) for word in stream.words]
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


def open_lexical(folder: Path) -> LexicalSegment:
    """Open the postings of a segment."""
    try:
        about = parse_json((folder / _ABOUT).read_bytes())
        if about["format"] != _FORMAT:
            raise CorruptFileError(
                f"{folder} was written in format {about['format']}, and this version reads "
                f"{_FORMAT}; upgrade embedtopics"
            )
        settings = LexicalSettings.from_json(about["settings"])
        arrays = {name: _open(folder / f"{name}.npy") for name in _ARRAYS}
        starts, ends = arrays["starts"], arrays["ends"]
        # As far as that can be seen without reading them.
        if not (
            len(starts) == len(ends) >= 1
            and starts[0] == ends[0] == 0
            and starts[-1] == len(arrays["rows"]) == len(arrays["counts"])
            and ends[-1] == len(arrays["letters"])
            and len(arrays["lengths"]) == about["passages"]
        ):
            raise ValueError("their lengths do not go together")
    except CorruptFileError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"expected the word index of a segment in {folder}, got files that are damaged or "
            f"missing ({error}); build the index again or restore it from a copy"
        ) from error
    return LexicalSegment(settings, **arrays)


def _open(path: Path) -> npt.NDArray[Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or array.dtype.newbyteorder("<").str[1:] not in _ARRAYS[path.stem]:
        raise ValueError(f"{path.name} holds {array.dtype} of shape {array.shape}")
    return np.asarray(array)  # of the same memory, with less to do at each slice


RARE_SHARE = 0.01
"""Share of the passages up to which a stop word counts as any other word."""
QUERIES_KEPT = 16

Mask = npt.NDArray[np.bool_]
FloatVector = npt.NDArray[np.float64]


class LexicalHits(NamedTuple):
    """Passages that hold a word of the query, best first; ties by segment, then row; (n_hits,)."""

    scores: FloatVector
    segments: Int64Array
    rows: Int64Array


@dataclass(frozen=True)
class _Wanted:
    """A word of the query: its number in each segment, and what one occurrence is worth."""

    numbers: tuple[int, ...]
    worth: float


@dataclass(frozen=True, eq=False)
class LexicalSearcher:
    """One version of a collection, searched by words; made by `of`.

    `alive` are each segment's passages that are there, None for all; the figures are theirs.
    """

    segments: tuple[LexicalSegment, ...]
    alive: tuple[Mask | None, ...]
    settings: LexicalSettings
    n_passages: int
    mean_length: float
    _known: dict[str, dict[str, _Wanted]] = field(default_factory=dict, init=False, repr=False)
    """What the last few queries ask for: each is asked several times for one search."""

    @classmethod
    def of(
        cls,
        segments: Sequence[LexicalSegment],
        alive: Sequence[Mask | None],
        settings: LexicalSettings,
    ) -> LexicalSearcher:
        """Take stock of the segments of a collection; only their lengths are read."""
        lengths = [
            s.lengths if mask is None else s.lengths[mask]
            for s, mask in zip(segments, alive, strict=True)
        ]
        n_passages = sum(map(len, lengths))
        n_words = sum(int(some.sum(dtype=np.int64)) for some in lengths)
        mean_length = n_words / max(n_passages, 1)
        return cls(tuple(segments), tuple(alive), settings, n_passages, mean_length)

    def read(self, query: str) -> QueryWords:
        """Return the words that a query asks for, see `query_words`."""
        # Lists of stop words hold some that mean something, such as *mill* or *value*. One that
        # hardly any passage holds (1 %) is looked for like any other word, and where a query has
        # nothing but stop words, all of them are.
        words = query_words(query, self.settings)
        held = {word: self._n_holding(stop_form(word)) for word in words.stop_words}
        most = RARE_SHARE * self.n_passages if words.written else self.n_passages
        return words.asking(word for word, n in held.items() if 0 < n <= most)

    def _n_holding(self, form: str) -> int:
        n = 0
        for segment, mask in zip(self.segments, self.alive, strict=True):
            rows, _ = segment.postings(segment.find(form))
            n += len(rows) if mask is None else int(np.count_nonzero(mask[rows]))
        return n

    def suggest(self, form: str) -> str | None:
        """Return the word of the collection nearest to one that no passage holds, if it is near."""
        most = 1 if len(form) <= 5 else 2
        found = {
            word for part in self.segments for word in words_like(form, part.letters, part.ends)
        }
        near = [
            (distance, -self._n_holding(word), word)
            for word in found
            if (distance := edit_distance(form, word)) <= most and self._n_holding(word)
        ]
        return min(near)[2] if near and len(form) > 2 else None

    def coverage_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> FloatVector:
        """Return the share of a query's words, by rarity, that given passages hold, (n,)."""
        words, wanted = self.read(query), self._wanted(query)
        most = math.log(1 + (self.n_passages + 0.5) / 0.5)  # of a word that no passage holds
        total = sum(
            wanted[form].worth if form in wanted else words.weight(form) * most
            for form in words.written
        )
        held = np.zeros(len(rows))
        for form, parts in self.parts_at(query, segments, rows).items():
            held += np.where(parts > 0, wanted[form].worth, 0.0)
        return held / total if total > 0 else held

    def search(self, query: str, k: int, masks: Sequence[Mask | None] | None = None) -> LexicalHits:
        """Return the passages with the highest scores, among those of the masks, (n_passages,)."""
        allowed = masks or [None] * len(self.segments)
        wanted = self._wanted(query)
        found = [
            self._best_of(number, wanted, k, allowed[number])
            for number in range(len(self.segments))
        ]
        scores = np.concatenate([np.zeros(0), *(part[0] for part in found)])
        rows = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in found)])
        sizes = [len(part[0]) for part in found]
        segments = np.repeat(np.arange(len(found), dtype=np.int64), sizes)
        order = np.argsort(-scores, kind="stable")[:k]  # of segments, and rows in order
        return LexicalHits(scores[order], segments[order], rows[order])

    def scores_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> FloatVector:
        """Return the scores of given passages, (n,)."""
        scores = np.zeros(len(rows))
        for part in self.parts_at(query, segments, rows).values():
            scores += part
        return scores

    def parts_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> dict[str, FloatVector]:
        """Return what each word adds to the scores of given passages, (n,)."""
        wanted = self._wanted(query)
        return {form: self._parts_at(word, segments, rows) for form, word in wanted.items()}

    def _wanted(self, query: str) -> dict[str, _Wanted]:
        """Return those forms of a query that living passages hold, in alphabetical order."""
        known = self._known.get(query)
        if known is not None:
            return known
        words = self.read(query)
        wanted: dict[str, _Wanted] = {}
        for form in words.written:
            numbers = tuple(segment.find(form) for segment in self.segments)
            n = self._n_holding(form)
            if n:
                rarity = math.log(1 + (self.n_passages - n + 0.5) / (n + 0.5))
                wanted[form] = _Wanted(numbers, words.weight(form) * rarity)
        if len(self._known) >= QUERIES_KEPT:
            self._known.clear()
        self._known[query] = wanted
        return wanted

    def _worth(
        self, word: _Wanted, counts: npt.NDArray[Any], lengths: npt.NDArray[Any]
    ) -> FloatVector:
        """Return a word's part of the scores of passages that hold it."""
        k1, b = self.settings.k1, self.settings.b
        times = counts.astype(np.float64)
        return np.asarray(
            word.worth * times / (k1 * (1 - b + b * lengths / self.mean_length) + times)
        )

    def _best_of(
        self, place: int, wanted: dict[str, _Wanted], k: int, allowed: Mask | None
    ) -> tuple[FloatVector, Int64Array]:
        """Return the k best scores of a segment and all that tie with the last, by row."""
        segment = self.segments[place]
        scores = np.zeros(len(segment))
        for word in wanted.values():
            rows, counts = segment.postings(word.numbers[place])
            # A word has each row once, so that nothing is lost in adding by index.
            scores[rows] += self._worth(word, counts, segment.lengths[rows])
        found = scores > 0
        for mask in (self.alive[place], allowed):
            if mask is not None:
                found &= mask
        rows_found = np.flatnonzero(found)
        best = scores[rows_found]
        if len(best) > k:
            near = best >= np.partition(best, len(best) - k)[len(best) - k]
            best, rows_found = best[near], rows_found[near]
        return best, rows_found

    def _parts_at(
        self, word: _Wanted, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> FloatVector:
        """Return a word's part of the scores of given passages, 0 where they do not hold it."""
        parts = np.zeros(len(rows))
        for place in np.unique(segments).tolist():
            here = np.flatnonzero(np.asarray(segments) == place)
            segment = self.segments[place]
            holding, counts = segment.postings(word.numbers[place])
            where = np.searchsorted(holding, rows[here])
            held = where < len(holding)
            held[held] = holding[where[held]] == rows[here[held]]
            here, where = here[held], where[held]
            parts[here] = self._worth(word, counts[where], segment.lengths[rows[here]])
        return parts
