"""BM25 over all segments of a collection, as if it had been indexed at once.

A segment stores what does not depend on other segments: how often each word occurs in each
passage, and how long the passages are. Scores depend on the whole collection; a search computes
them for the words of the query.

Score of a passage for a query (Robertson and Zaragoza 2009; the variant of Lucene as in Kamphuis,
de Vries, Boytsov and Lin 2020, which is also the default of the package bm25s)::

    sum over the words w of the query, each as often as the query has it, of
        log(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * l / mean(l)))

with f the count of w in the passage, l the length of the passage in words, N the number of living
passages and n the number of living passages that hold w. Removed passages count nowhere.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.folders import parse_json
from embedtopics._utils.records import parse_record
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import BoolArray, Float64Array, Int32Array, Int64Array
from embedtopics.retrieval._records import LexicalAbout
from embedtopics.retrieval.storage._catalog import damage
from embedtopics.terms._languages import checked_languages
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
"""Files of a segment and the types of their numbers, all little-endian."""
LEXICAL_FILES = (_ABOUT, *(f"{name}.npy" for name in _ARRAYS))


@dataclass(frozen=True)
class LexicalSettings:
    """Rules that turn texts into words of the index, and the constants of BM25.

    The rules are stored with the postings, so that a later version does not change an existing
    index. The Snowball stemmers of `stems` (ISO 639-1) are applied one after the other.
    """

    stop_words: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    k1: float = 1.5
    b: float = 0.75
    words: WordRules = PLAIN

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        stored = {name: getattr(self, name) for name in ("stop_words", "stems", "k1", "b")}
        return {**stored, "words": self.words.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LexicalSettings:
        """Return stored settings."""
        return cls(
            tuple(values["stop_words"]), tuple(values["stems"]), values["k1"], values["b"],
            WordRules.from_json(values.get("words")),
        )  # fmt: skip

    @cached_property
    def _stop_words(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    def form(self, word: str) -> str | None:
        """Return the form of a word in the index, None for a stop word."""
        if word in self._stop_words:
            return None
        for code in self.stems:
            # An empty stem would lose the word.
            word = stems_of(word, (code,))[0][0] or word
        return fold_letters(word) if self.words.version > 1 else word


def fold_letters(word: str) -> str:
    """Return a form in which spellings of one word agree.

    Capitals hide whether a Turkish i has its dot, and whether a word is written with ss. Keyboards
    lack the letter that looks like an apostrophe.
    """
    if word.isascii():
        return word
    return word.casefold().replace("\u0131", "i").replace("\u02bc", "'")


def lexical_settings(
    languages: Iterable[str],
    *,
    stop_words: Iterable[str] | None = None,
    stems: bool = True,
    rules: WordRules = PLAIN,
) -> LexicalSettings:
    """Return the settings for a collection in some languages (ISO 639-1)."""
    # All documents share the rules of all languages: every third headline of 633 French and 710
    # English articles (MasakhaNEWS, first 1,500 characters) finds its article with an MRR@10 of
    # 0.775 and 0.934 in one index, and of 0.775 and 0.937 in one index for each language.
    codes = checked_languages(list(languages))
    listed = ["auto"] if stop_words is None else list(stop_words)
    for row, value in enumerate(listed):
        if not isinstance(value, str):
            raise InputError("stop_words", "strings", value, row=row)
    # In the spelling of the tokenizer.
    words = {word for text in listed if text != "auto" for word in words_of(text, rules)}
    if "auto" in listed:
        words |= {*stop_words_for(codes, general=False, rules=rules)}
    return LexicalSettings(tuple(sorted(words)), codes if stems else (), words=rules)


_STOP = "\x1f"
"""Prefix of a stop word in the index; no word of the tokenizer contains it."""


def stop_form(word: str) -> str:
    """Return the form of a stop word in the index, which no other word has."""
    return _STOP + word


class QueryWords(NamedTuple):
    """The words of a query, in alphabetical order.

    `written` counts the words by their form in the index, `stop_words` counts the stop words.
    """

    written: Mapping[str, Mapping[str, int]]
    stop_words: Mapping[str, int]

    def weight(self, form: str) -> int:
        """Return the number of words of a form in the query, its weight in BM25."""
        return sum(self.written[form].values())

    def with_stop_words(self, words: Iterable[str]) -> QueryWords:
        """Return the same query with some of its stop words as ordinary words."""
        included = set(words)
        more = {stop_form(w): {w: n} for w, n in self.stop_words.items() if w in included}
        rest = {word: n for word, n in self.stop_words.items() if word not in included}
        return QueryWords(dict(sorted({**self.written, **more}.items())), rest)


def query_words(query: str, settings: LexicalSettings) -> QueryWords:
    """Read a query."""
    written: dict[str, dict[str, int]] = {}
    stop_words: dict[str, int] = {}
    for word, times in sorted(Counter(words_of(query, settings.words)).items()):
        form = settings.form(word)
        if form is None:
            stop_words[word] = times
        else:
            written.setdefault(form, {})[word] = times
    return QueryWords(dict(sorted(written.items())), stop_words)


@dataclass(frozen=True, eq=False)
class LexicalSegment:
    """The postings of a segment, words in the order of their code points."""

    settings: LexicalSettings
    starts: Int64Array  # the passages of word i are rows[starts[i]:starts[i + 1]], ascending
    rows: Int32Array
    counts: npt.NDArray[Any]  # of the word in each of `rows`
    lengths: Int32Array  # (n_passages,), words without stop words
    letters: npt.NDArray[np.uint8]  # word i is letters[ends[i]:ends[i + 1]], in UTF-8
    ends: Int64Array

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.lengths)

    def check(self, n_passages: int) -> None:
        """Raise ValueError unless the arrays fit one another and the number of passages."""
        n_words = len(self.ends) - 1
        n_rows = len(self.rows)
        are_aligned = (len(self.starts), len(self.counts)) == (n_words + 1, n_rows)
        if n_words < 0 or not are_aligned or len(self) != n_passages:
            raise ValueError("arrays of different lengths")
        for bounds, end in ((self.starts, n_rows), (self.ends, len(self.letters))):
            if bounds[0] != 0 or bounds[-1] != end or (np.diff(bounds) < 0).any():
                raise ValueError("parts that do not ascend")

        is_passage = (self.rows >= 0) & (self.rows < n_passages)
        descents = np.flatnonzero(self.rows[1:] <= self.rows[:-1]) + 1
        if not is_passage.all() or not np.isin(descents, self.starts).all():
            raise ValueError("passages that do not exist or do not ascend")
        if (self.lengths < 0).any() or (self.counts == 0).any():
            raise ValueError("numbers of words that cannot be")

    def find(self, form: str) -> int:
        """Return the number of a word, or -1 if no passage holds it."""
        # UTF-8 keeps the order of the code points.
        target = form.encode("utf-8", "surrogatepass")
        n_words = len(self.ends) - 1
        number = bisect_left(range(n_words), target, key=self._word)
        return number if number < n_words and self._word(number) == target else -1

    def _word(self, number: int) -> bytes:
        return self.letters[self.ends[number] : self.ends[number + 1]].tobytes()

    def postings(self, number: int) -> tuple[Int32Array, npt.NDArray[Any]]:
        """Return the passages that hold a word, and its counts; none for the number -1."""
        if number < 0:
            return self.rows[:0], self.counts[:0]
        of_word = slice(self.starts[number], self.starts[number + 1])
        return self.rows[of_word], self.counts[of_word]


def build_lexical(folder: Path, texts: Sequence[str], settings: LexicalSettings) -> None:
    """Write the postings of a segment's passages."""
    from scipy.sparse import coo_array

    stream = tokenize(texts, rules=settings.words)
    shared = [settings.form(word) for word in stream.words]
    is_stop = np.array([form is None for form in shared], dtype=np.bool_)
    form_of = [form or stop_form(word) for word, form in zip(stream.words, shared, strict=True)]
    forms = sorted(set(form_of))
    number = {form: i for i, form in enumerate(forms)}
    words = np.array([number[form] for form in form_of], dtype=np.int32)[stream.ids]
    documents = np.repeat(np.arange(len(stream), dtype=np.int32), np.diff(stream.offsets))
    # Stop words have postings, but do not count for the length of a passage.
    counted = documents[~is_stop[stream.ids]]
    counts = coo_array(
        (np.ones(len(words), np.int32), (documents, words)), shape=(len(stream), len(forms))
    ).tocsc()  # which adds up repetitions in a passage
    counts.sort_indices()
    encoded = [form.encode("utf-8", "surrogatepass") for form in forms]
    highest = int(counts.data.max(initial=0))
    arrays = {
        "starts": counts.indptr.astype("<i8"),
        "rows": counts.indices.astype("<i4"),
        "counts": counts.data.astype(np.min_scalar_type(highest).newbyteorder("<")),
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
        content = (folder / _ABOUT).read_bytes()
        written = parse_json(content)["format"]
        if written != _FORMAT:
            raise CorruptFileError(
                f"{folder} was written in format {written!r:.40}, and this version reads "
                f"{_FORMAT}; upgrade embedtopics"
            )

        about = parse_record(LexicalAbout, content)
        settings = LexicalSettings.from_json(about.settings.model_dump(exclude_none=True))
        arrays = {name: _open(folder / f"{name}.npy") for name in _ARRAYS}
        segment = LexicalSegment(settings, **arrays)
        segment.check(about.passages)
    except CorruptFileError:
        raise
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise damage(folder, f"its postings: {error}") from error
    return segment


def _open(path: Path) -> npt.NDArray[Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim != 1 or array.dtype.newbyteorder("<").str[1:] not in _ARRAYS[path.stem]:
        raise ValueError(f"{path.name} holds {array.dtype} of shape {array.shape}")
    return np.asarray(array)  # slices of a memmap are slower


RARE_SHARE = 0.01
"""Maximum share of passages with a stop word that counts as an ordinary word."""
MOST_QUERIES_CACHED = 16


class LexicalHits(NamedTuple):
    """Passages with a word of the query, best first, ties by segment, then row; (n_hits,)."""

    scores: Float64Array
    segments: Int64Array
    rows: Int64Array


@dataclass(frozen=True)
class _QueryTerm:
    """A form of the query: its number in each segment, and its weight times its idf."""

    numbers: tuple[int, ...]
    worth: float


class _PreparedQuery(NamedTuple):
    """The words of a query, and its forms that living passages hold, in alphabetical order."""

    words: QueryWords
    terms: dict[str, _QueryTerm]


@dataclass(frozen=True, eq=False)
class LexicalSearcher:
    """Lexical search in one version of a collection; made by `of`.

    `alive` marks the living passages of each segment, None for all; only these count.
    """

    segments: tuple[LexicalSegment, ...]
    alive: tuple[BoolArray | None, ...]
    settings: LexicalSettings
    n_passages: int
    mean_length: float
    _cache: dict[str, _PreparedQuery] = field(default_factory=dict, init=False, repr=False)
    """The last queries: one search needs their words and terms several times."""

    @classmethod
    def of(
        cls,
        segments: Sequence[LexicalSegment],
        alive: Sequence[BoolArray | None],
        settings: LexicalSettings,
    ) -> LexicalSearcher:
        """Make a searcher of the segments of a collection; read only the lengths of passages."""
        lengths = [
            s.lengths if mask is None else s.lengths[mask]
            for s, mask in zip(segments, alive, strict=True)
        ]
        n_passages = sum(map(len, lengths))
        n_words = sum(int(some.sum(dtype=np.int64)) for some in lengths)
        # Passages of stop words alone have no length: any mean ranks them by their counts.
        mean_length = n_words / n_passages if n_words else 1.0
        return cls(tuple(segments), tuple(alive), settings, n_passages, mean_length)

    def read(self, query: str) -> QueryWords:
        """Return the words of a query, see `query_words`."""
        return self._prepare(query).words

    def _prepare(self, query: str) -> _PreparedQuery:
        # One look: another thread may clear the cache at any moment.
        prepared = self._cache.get(query)
        if prepared is not None:
            return prepared

        words = self._count_rare_stop_words(query_words(query, self.settings))
        prepared = _PreparedQuery(words, self._held_terms(words))
        if len(self._cache) >= MOST_QUERIES_CACHED:
            self._cache.clear()
        self._cache[query] = prepared
        return prepared

    def _count_rare_stop_words(self, words: QueryWords) -> QueryWords:
        # Lists of stop words hold meaningful words, such as *mill* or *value*. A stop word in at
        # most 1 % of the passages counts as an ordinary word; in a query of stop words, all count.
        n_holding = {word: self.n_holding(stop_form(word)) for word in words.stop_words}
        most = RARE_SHARE * self.n_passages if words.written else self.n_passages
        return words.with_stop_words(word for word, n in n_holding.items() if 0 < n <= most)

    def n_holding(self, form: str) -> int:
        """Return how many living passages hold a word."""
        n = 0
        for segment, mask in zip(self.segments, self.alive, strict=True):
            rows, _ = segment.postings(segment.find(form))
            n += len(rows) if mask is None else int(np.count_nonzero(mask[rows]))
        return n

    def coverage_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> Float64Array:
        """Return the share of the words of a query, by idf, that passages hold, (n,)."""
        words, terms = self.read(query), self.terms(query)
        most = math.log(1 + (self.n_passages + 0.5) / 0.5)  # idf of a word that no passage holds
        total = sum(
            terms[form].worth if form in terms else words.weight(form) * most
            for form in words.written
        )
        coverage = np.zeros(len(rows))
        for form, parts in self.parts_at(query, segments, rows).items():
            coverage += np.where(parts > 0, terms[form].worth, 0.0)
        return coverage / total if total > 0 else coverage

    def search(
        self, query: str, k: int, masks: Sequence[BoolArray | None] | None = None
    ) -> LexicalHits:
        """Return the passages with the highest scores, among those of the masks (n_passages,)."""
        allowed = masks or [None] * len(self.segments)
        terms = self.terms(query)
        parts = [
            self._best_of(number, terms, k, allowed[number]) for number in range(len(self.segments))
        ]
        scores = np.concatenate([np.zeros(0), *(part[0] for part in parts)])
        rows = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in parts)])
        sizes = [len(part[0]) for part in parts]
        segments = np.repeat(np.arange(len(parts), dtype=np.int64), sizes)
        order = np.argsort(-scores, kind="stable")[:k]  # ties stay in order
        return LexicalHits(scores[order], segments[order], rows[order])

    def scores_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> Float64Array:
        """Return the scores of passages, (n,)."""
        scores = np.zeros(len(rows))
        for part in self.parts_at(query, segments, rows).values():
            scores += part
        return scores

    def parts_at(
        self, query: str, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> dict[str, Float64Array]:
        """Return the part of each form of the query in the scores of passages, (n,)."""
        terms = self.terms(query)
        return {form: self._parts_at(term, segments, rows) for form, term in terms.items()}

    def missing(self, query: str) -> list[str]:
        """Return the words of a query that no living passage holds."""
        written, terms = self.read(query).written, self.terms(query)
        return sorted(word for form in written if form not in terms for word in written[form])

    def terms(self, query: str) -> dict[str, _QueryTerm]:
        """Return the forms of a query that living passages hold, in alphabetical order."""
        return self._prepare(query).terms

    def _held_terms(self, words: QueryWords) -> dict[str, _QueryTerm]:
        terms: dict[str, _QueryTerm] = {}
        for form in words.written:
            numbers = tuple(segment.find(form) for segment in self.segments)
            n = self.n_holding(form)
            if n:
                rarity = math.log(1 + (self.n_passages - n + 0.5) / (n + 0.5))
                terms[form] = _QueryTerm(numbers, words.weight(form) * rarity)
        return terms

    def _worth(
        self, term: _QueryTerm, counts: npt.NDArray[Any], lengths: npt.NDArray[Any]
    ) -> Float64Array:
        """Return the part of a term in the scores of passages that hold it."""
        k1, b = self.settings.k1, self.settings.b
        times = counts.astype(np.float64)
        return np.asarray(
            term.worth * times / (k1 * (1 - b + b * lengths / self.mean_length) + times)
        )

    def _best_of(
        self, number: int, terms: dict[str, _QueryTerm], k: int, allowed: BoolArray | None
    ) -> tuple[Float64Array, Int64Array]:
        """Return the k best scores of a segment and all ties with the last one, by row."""
        segment = self.segments[number]
        scores = np.zeros(len(segment))
        for term in terms.values():
            rows, counts = segment.postings(term.numbers[number])
            # The rows of a term are distinct, so that adding by index loses nothing.
            scores[rows] += self._worth(term, counts, segment.lengths[rows])
        is_hit = scores > 0
        for mask in (self.alive[number], allowed):
            if mask is not None:
                is_hit &= mask
        hits = np.flatnonzero(is_hit)
        best = scores[hits]
        if len(best) > k:
            near = best >= np.partition(best, len(best) - k)[len(best) - k]
            best, hits = best[near], hits[near]
        return best, hits

    def _parts_at(
        self, term: _QueryTerm, segments: npt.NDArray[Any], rows: npt.NDArray[Any]
    ) -> Float64Array:
        """Return the part of a term in the scores of passages, 0 if they do not hold it."""
        parts = np.zeros(len(rows))
        for number in np.unique(segments).tolist():
            passages = np.flatnonzero(np.asarray(segments) == number)
            segment = self.segments[number]
            holders, counts = segment.postings(term.numbers[number])
            positions = np.searchsorted(holders, rows[passages])
            is_held = positions < len(holders)
            is_held[is_held] = holders[positions[is_held]] == rows[passages[is_held]]
            passages, positions = passages[is_held], positions[is_held]
            lengths = segment.lengths[rows[passages]]
            parts[passages] = self._worth(term, counts[positions], lengths)
        return parts
