"""Texts -> one stream of word ids, from which counts, n-grams and windows are taken.

Definition of a word
--------------------
A word consists of letters with their combining marks, and digits. First HTML entities are resolved,
and text is composed (Unicode NFC) and lowercased, so that two encodings of an accented letter make
one word. Other forms of a letter become the letter: ligatures (``ﬁ``), full and half width,
mathematical alphabets, the forms of Arabic letters by position, and the dot that lowercasing leaves
above the i of a Turkish ``İ``. Superscripts, fractions and circled letters stay what they are:
``x²`` is not ``x2``.

- An apostrophe inside a word belongs to it (``don't``, ``aujourd'hui``). An elided article or
  pronoun is a word of its own (``l'eau`` is ``l``, ``eau``; ``dell'arte`` is ``dell``, ``arte``).
  The possessive ``'s`` is dropped, so that ``bank's`` counts as ``bank``.
- A hyphen separates words: ``long-term`` is ``long``, ``term``. Only a single letter in front
  keeps it (``x-ray``, ``k-means``, ``e-mail``), because the letter means nothing alone.
- A run of a script without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) becomes the words
  of the segmenter in the `WordRules`. Without one it becomes its overlapping pairs of characters,
  so that a sentence does not become one word.
- A number keeps the points and commas within it (``1,000``, ``3.11``). Numbers are words here;
  `count_terms` makes no terms of them.
- HTML tags, scripts and styles, web and mail addresses, emoji, symbols, punctuation and the signs
  of @names and #tags are dropped. `WordRules` can keep addresses, names, tags and emoji as words,
  drop all, or split names and tags: ``#ClimateActionNow`` is ``climate``, ``action``, ``now``. For
  search, an address is a word, and so are its parts: ``desk@paper.example`` is
  ``desk@paper.example``, ``desk``, ``paper``, ``example``.
- Phrases do not cross punctuation, an empty line, a dropped address or ``'s``. Quotation marks and
  the point of an abbreviation of up to two letters (``st. louis``) may stand inside.
"""

import html
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, count, pairwise
from string import ascii_letters, digits

import numpy as np

from embedtopics.corpus._texts import compose, lines_of
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.terms._rules import lemma_of, script_runs, segment_run, words_by_function
from embedtopics.terms.results import TokenStream, WordRules

# Only one step runs over the whole text: it cuts at ASCII characters that neither words nor
# punctuation hold, and numbers the different pieces. Patterns then find the chunks between
# punctuation in each different piece, and `_split` makes words of them.
_IS_WORD_BYTE = np.zeros(256, dtype=np.bool_)
_IS_WORD_BYTE[128:] = True  # the bytes of all other characters
_MARKS = "'-.,;:!?()[]{}|/"
_IS_WORD_BYTE[[ord(c) for c in ascii_letters + digits + _MARKS]] = True
_SPACED = bytes(b if is_word else ord(" ") for b, is_word in enumerate(_IS_WORD_BYTE))
_IN_NUMBER = r"(?<=\d)[.,](?=\d)"
_ASCII_CHUNK = re.compile(rf"(?ai)[a-z0-9]+(?:(?:['-]|{_IN_NUMBER})[a-z0-9]+)*")

# The parts of these patterns exclude one another or are bounded, so time is linear in the text.
ADDRESS = re.compile(
    r"(?:\b[a-z]{2,10}://|\bwww\.)[!#-;=?-~]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE,
)
_PICTURE = (
    "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]*"
)
_TAG = re.compile(
    r"(?i)<(script|style)\b[^<>]*>[^<]*(?:<(?!/?\1\b)[^<]*)*</\1\s*>"
    r"|</?[a-z][a-z0-9:-]*(?:\s[^<>=]*=[^<>]*|\s*/?)>"
)

_ELIDED = re.compile(
    r"([cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|presqu|quelqu"  # French; Catalan and Italian too
    r"|all|dall|dell|nell|sull|coll|quell|quest|bell|sant|un)'(.+)",  # Italian
    re.IGNORECASE | re.DOTALL,
)
_UNSPACED_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]+"
)
_PIECE = re.compile(
    "[" + "".join(re.escape(chr(b)) for b in range(128) if _IS_WORD_BYTE[b]) + "\x80-\U0010ffff]+"
)
PLAIN = WordRules()
_BREAK = ""
"""Mark between two words that no phrase joins."""
_BREAKING, _BREAKING_KINDS = frozenset(_MARKS) - {"'"}, ("Po", "Ps", "Pe", "Pd")
_NO_BREAK = frozenset("\u00b7\u05be\u05f3\u05f4\u0f0b\u0f0c\u1361")
"""Punctuation inside words, and that between Ethiopic words and Tibetan syllables."""
_BLOCK_CHARACTERS = 1 << 25
"""Characters of texts that are split together; the memory is ten times as much."""
FEW_BYTES = 1 << 24
"""Bytes of texts up to which pieces are numbered without compiled code, in about a second."""
_LETTER_FORMS = {"\u2018": "'", "\u2019": "'", "\u2010": "-", "\u2011": "-", "\u00ad": ""}

# Kinds of decompositions in the Unicode database that lead to the same letter in its usual form.
# Superscripts, subscripts, fractions, circles and squares mean something else than their letters.
_SAME_LETTER = frozenset(
    "<compat> <font> <wide> <narrow> <initial> <medial> <final> <isolated>".split()
)
# Letters of an orthography that the database nevertheless decomposes: Armenian և, Thai and Lao
# vowels with their consonants, and single letters of Korean.
_OWN_LETTERS = re.compile("[\u0587\u0e00-\u0eff\u3131-\u318e\uffa0-\uffdc]")

# Addresses are written in one piece, as a mark and hexadecimal digits. The mark is a code point
# that Unicode reserves for uses inside a program.
_ADDRESS_MARK = "\ufdd0"
_ADDRESS_START = re.compile(r"(?:[a-z]{2,10}://)?(?:www\.)?")
_ADDRESS_END = ".,;:!?)'\"/"
LONGEST_ADDRESS = 500
"""Characters of an address that is a word; of longer ones only the parts are."""


def tokenize(
    texts: Sequence[str], *, rules: WordRules = PLAIN, rows: Sequence[int] = ()
) -> TokenStream:
    """Split all documents into words, as defined above; errors name `rows`."""
    builder = _StreamBuilder()
    texts_read, n_characters, begin = [], 0, 0
    for row, text in enumerate(texts):
        texts_read.append(text)
        n_characters += len(text)
        if n_characters >= _BLOCK_CHARACTERS:
            builder.add(*_pieces(texts_read, rules, rows[begin:]))
            texts_read, n_characters, begin = [], 0, row + 1
    builder.add(*_pieces(texts_read, rules, rows[begin:]))
    return builder.stream(rules)


def _pieces(
    texts: list[str], rules: WordRules, rows: Sequence[int]
) -> tuple[Int32Array, Int64Array, list[list[str]]]:
    """Return the numbers of pieces, the offsets of texts, and the words and breaks of each."""
    # Such words can span several pieces.
    if rules.social == "kept" or rules.function is not None:
        words = [
            _words_and_breaks(text, rules, rows[place] if rows else None)
            for place, text in enumerate(texts)
        ]
        return np.arange(len(texts), dtype=np.int32), np.arange(len(texts) + 1), words
    cleaned = [clean(text, rules).encode("utf-8", "surrogatepass") for text in texts]
    if sum(map(len, cleaned)) <= FEW_BYTES:
        split = [text.translate(_SPACED).split() for text in cleaned]
        numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
        stream = np.fromiter(map(numbers.__getitem__, chain.from_iterable(split)), np.int32)
        offsets = np.cumsum([0, *map(len, split)])
        encoded: Iterable[bytes] = numbers
    else:
        from embedtopics.terms._kernels import number_pieces

        data, ends = b"".join(cleaned), np.cumsum([len(text) for text in cleaned])
        stream, offsets, spans = number_pieces(np.frombuffer(data, np.uint8), _IS_WORD_BYTE, ends)
        encoded = (data[start:end] for start, end in spans.tolist())
    pieces = [piece.decode("utf-8", "surrogatepass") for piece in encoded]
    return stream, offsets, [
        # Most pieces are one plain word, which the rules would not change.
        [lemma_of(piece, rules) if rules.lemmas else piece] if piece.isascii() and piece.isalnum()
        else _read_piece(piece, rules)
        for piece in pieces
    ]  # fmt: skip


class _StreamBuilder:
    """Builder of a stream from blocks of texts; words are numbered in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids: list[Int32Array] = []
        self._lengths: list[Int64Array] = [np.zeros(1, dtype=np.int64)]

    def add(self, stream: Int32Array, offsets: Int64Array, words_of: list[list[str]]) -> None:
        """Add texts with pieces (n_pieces,) and `offsets` (n_texts + 1,)."""
        numbers = self._numbers
        words = (numbers.setdefault(word, len(numbers)) for piece in words_of for word in piece)
        flat = np.fromiter(words, dtype=np.int32)
        n_words = np.fromiter(map(len, words_of), dtype=np.int64, count=len(words_of))
        starts = np.cumsum(n_words) - n_words
        lengths = n_words[stream]
        stops = np.concatenate([[0], np.cumsum(lengths)])
        position = np.arange(stops[-1]) + np.repeat(starts[stream] - stops[:-1], lengths)
        self._ids.append(flat[position])
        self._lengths.append(np.diff(stops[offsets]))

    def stream(self, rules: WordRules) -> TokenStream:
        """Return the stream, with the words numbered alphabetically."""
        met = list(self._numbers)
        order = sorted(range(len(met)), key=met.__getitem__)
        place = np.empty(len(met), dtype=np.int32)
        place[order] = np.arange(len(met), dtype=np.int32)
        ids = np.empty(sum(map(len, self._ids)), dtype=np.int32)
        end = len(ids)
        while self._ids:  # copied parts are freed at once
            part = self._ids.pop()
            ids[end - len(part) : end] = place[part]
            end -= len(part)
        offsets, words = np.cumsum(np.concatenate(self._lengths)), [met[i] for i in order]
        breaks = np.empty(0, dtype=np.int64)
        if words[:1] == [_BREAK]:
            breaks, words = np.flatnonzero(ids == 0), words[1:]
            ids = ids[ids > 0] - np.int32(1)
            offsets = offsets - np.searchsorted(breaks, offsets)
            breaks -= np.arange(len(breaks))
        segments = np.sort(np.concatenate([offsets, breaks]), kind="stable")  # two ascending parts
        segments = segments[np.diff(segments, prepend=-1) > 0]
        return TokenStream(ids, offsets, tuple(words), rules, segments)


def find_phrase(tokens: TokenStream, words: Sequence[str]) -> tuple[Int64Array, Int64Array]:
    """Return the positions of a phrase in the stream, and their documents, ascending."""
    places = np.arange(max(len(tokens.ids) - len(words) + 1, 0) if words else 0)
    for step, word in enumerate(words):
        word_id = bisect_left(tokens.words, word)
        exists = word_id < len(tokens.words) and tokens.words[word_id] == word
        places = places[tokens.ids[places + step] == word_id] if exists else places[:0]
    documents = np.searchsorted(tokens.offsets, places, side="right") - 1
    inside = places + len(words) <= tokens.offsets[documents + 1]
    return places[inside], documents[inside]


def texts_with(texts: Sequence[str], words: Sequence[str], rules: WordRules = PLAIN) -> Int64Array:
    """Return the positions of the texts that hold a phrase."""
    return np.unique(find_phrase(tokenize(texts, rules=rules), words)[1])


def words_of(text: str, rules: WordRules = PLAIN) -> list[str]:
    """Return the words of one text in order, as in `tokenize`."""
    return [word for word in _words_and_breaks(text, rules, None) if word != _BREAK]


def _words_and_breaks(text: str, rules: WordRules, row: int | None) -> list[str]:
    text, words = clean(text, rules), []
    for word, begin, end in special_words(text, rules, row):
        if word is not None:
            words.append(word)
            continue
        for piece in _PIECE.findall(text, begin, end):
            words += _read_piece(piece, rules)
    return words


def special_words(
    text: str, rules: WordRules, row: int | None = None
) -> Iterator[tuple[str | None, int, int]]:
    """Yield the words that special rules find, with their positions.

    None comes with each stretch of text between them, which the general rules read.
    """
    if rules.function is not None:
        yield from words_by_function(text, rules, row)
        return

    place = 0
    for match in social_pattern().finditer(text) if rules.social == "kept" else ():
        begin = match.start()
        word = match[0].rstrip(".,;:!?)'")
        yield None, place, begin
        place = begin + len(word)
        word = word.replace("\ufe0f", "")
        yield usual_letters(word) if rules.version > 1 else word, begin, place
    yield None, place, len(text)


def clean(text: str, rules: WordRules = PLAIN) -> str:
    """Remove markup, and addresses unless they are words."""
    # A substring test costs a hundredth of the substitution that it usually saves.
    if "&" in text:
        text = html.unescape(text)
    if rules.social == "split" and (places := capitals_of_tags(text)):
        text = " ".join(text[a:b] for a, b in pairwise([0, *places, len(text)]))

    text = text.lower()
    if "<" in text:
        text = _TAG.sub(" ", text)
    if rules.addresses:
        text = text.replace(_ADDRESS_MARK, " ")

    if rules.social == "dropped":
        text = social_pattern().sub(" . ", text)
    elif rules.social != "kept" and _may_hold_address(text):
        # They hold no space: few of the parts between spaces are searched.
        put = _mark_address if rules.addresses else " . "
        text = " ".join(
            ADDRESS.sub(put, part) if _may_hold_address(part) else part for part in text.split(" ")
        )

    return text.replace("\n\n", "\n.\n")


def _may_hold_address(text: str) -> bool:
    return "@" in text or "://" in text or "www." in text


def _mark_address(match: re.Match[str]) -> str:
    return f" . {_ADDRESS_MARK}{match[0].encode('utf-8', 'surrogatepass').hex()} . "


def address_span(address: str) -> tuple[int, int]:
    """Return the part that identifies an address, without ``https://www.`` and a last point."""
    start = _ADDRESS_START.match(address)
    begin = 0 if start is None else start.end()
    return begin, max(begin, len(address.rstrip(_ADDRESS_END)))


def _read_address(address: str, rules: WordRules) -> list[str]:
    """Return an address as a word, and the words in it."""
    begin, end = address_span(address)
    whole = usual_letters(address[begin:end])
    pieces = _PIECE.findall(address, begin, end)
    parts = [word for piece in pieces for word in _read_piece(piece, rules) if word != _BREAK]
    is_word = 0 < len(whole) <= LONGEST_ADDRESS and parts != [whole]
    return [whole, *parts] if is_word else parts


@lru_cache(maxsize=1)
def _forms() -> Mapping[int, str]:
    """Return the usual form of each letter and digit in another form, by code point."""
    forms = {}
    for code in range(0x80, 0x20000):
        letter = chr(code)
        kind = unicodedata.decomposition(letter).partition(" ")[0]
        if kind not in _SAME_LETTER or _OWN_LETTERS.match(letter):
            continue
        form = unicodedata.normalize("NFKC", letter)
        is_letter = unicodedata.category(letter)[0] in "LMN" or 0x2E80 <= code <= 0x2FDF  # radicals
        if is_letter and all(unicodedata.category(part)[0] in "LMN" for part in form):
            forms[code] = form.lower()
    return forms


def usual_letters(word: str) -> str:
    """Return a lowercased word with its letters in their usual forms, composed (Unicode NFC)."""
    if word.isascii():
        return word
    # Lowercasing makes two characters of a Turkish İ: the i has its dot already.
    return compose(word.translate(_forms()).replace("i\u0307", "i"))


def capitals_of_tags(text: str) -> list[int]:
    """Return the positions at which words begin within @names and #tags, by their capitals."""
    places = []
    for tag in social_pattern().finditer(text) if "#" in text or "@" in text else ():
        for place in range(tag.start() + 2, tag.end() if tag[0][0] in "#@" else 0):
            before, letter, after = text[place - 1], text[place], text[place + 1 : tag.end()][:1]
            if letter.isupper() and before != "_" and (not before.isupper() or after.islower()):
                places.append(place)
    return places


def _read_piece(piece: str, rules: WordRules) -> list[str]:
    """Return the words and breaks of a piece."""
    if piece[0] == _ADDRESS_MARK and rules.addresses:
        return _read_address(bytes.fromhex(piece[1:]).decode("utf-8", "surrogatepass"), rules)

    # Most pieces that are no plain word are one with marks around it.
    word = piece.strip(_MARKS)
    if word.isascii() and word.isalnum():
        before, _, after = piece.partition(word)
        return [*_breaks(before, []), lemma_of(word, rules), *_breaks(after, [word])]

    pattern = _ASCII_CHUNK
    if not piece.isascii():
        for form, plain in _LETTER_FORMS.items():
            piece = piece.replace(form, plain)
        normal = usual_letters if rules.version > 1 else compose
        piece = normal(piece)
        pattern = _unicode_chunk()

    words: list[str] = []
    place = 0
    for chunk in pattern.finditer(piece):
        words += _breaks(piece[place : chunk.start()], words)
        word = chunk[0]
        place = chunk.end()
        if word.isascii() and "'" not in word and "-" not in word:  # most of them
            words.append(lemma_of(word, rules))
            continue
        words += [part for part, _, _ in _split(word, rules)]
        words += [_BREAK] * word.endswith("'s")

    return words + _breaks(piece[place:], words)


def _breaks(between: str, words: list[str]) -> list[str]:
    """Return a break if the characters behind some words of a piece hold punctuation."""
    if not between or (between == "." and words and len(words[-1]) <= 2):
        return []
    if between.isascii():
        return [_BREAK] * (not _BREAKING.isdisjoint(between))
    return [_BREAK] * any(
        c in _BREAKING
        or (not c.isascii() and c not in _NO_BREAK and unicodedata.category(c) in _BREAKING_KINDS)
        for c in between
    )


@lru_cache(maxsize=1)
def _letters() -> str:
    """Return the pattern of letters and marks of all scripts, which may follow a letter."""
    marks = [
        chr(code)
        for code in range(0x300, 0x1F000)
        if unicodedata.category(chr(code)) in ("Mn", "Mc") and not 0xFE00 <= code <= 0xFE0F
    ]
    return rf"[\w{''.join(marks)}]"


@lru_cache(maxsize=1)
def _unicode_chunk() -> re.Pattern[str]:
    """Return the pattern of chunks in all scripts; marks stay with their letters."""
    more = _letters()
    return re.compile(rf"\w{more}*(?:(?:['\-\u200c\u200d]|{_IN_NUMBER})\w{more}*)*")


@lru_cache(maxsize=1)
def social_pattern() -> re.Pattern[str]:
    """Return the pattern of web addresses, @names, #tags and emoji."""
    return re.compile(
        rf"{ADDRESS.pattern}|(?<![\w@#])[@#]\w{_letters()}*"
        rf"|[\U0001f1e6-\U0001f1ff]{{2}}|{_PICTURE}(?:\u200d{_PICTURE})*",
        re.IGNORECASE,
    )


def _parts(chunk: str) -> list[str]:
    """Split a chunk at hyphens, except after a single letter."""
    parts = chunk.split("-")
    first, second = (*parts, "")[:2]
    if len(first) == 1 < len(second) and (first + second).isalpha():
        parts[:2] = [f"{first}-{second}"]
    return parts


def _split(chunk: str, rules: WordRules = PLAIN) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a chunk, such as ``qu'est-ce`` or ``x-ray``, with their positions."""
    place = 0
    for part in _parts(chunk):
        begin, place = place, place + len(part) + 1
        if elided := _ELIDED.fullmatch(part):
            yield lemma_of(elided[1], rules), begin, begin + len(elided[1])
            begin, part = begin + elided.start(2), elided[2]
        part = part.removesuffix("'s")
        if part.isascii():
            yield lemma_of(part, rules), begin, begin + len(part)
        else:
            for word, start, stop in _split_unspaced(part, rules):
                yield lemma_of(word, rules), begin + start, begin + stop


def _split_unspaced(part: str, rules: WordRules) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a part with their positions; segment scripts without spaces."""
    place = 0
    for run in (script_runs(rules) if rules.segmenters else _UNSPACED_RUN).finditer(part):
        begin, end = run.span()
        if begin > place:
            yield part[place:begin], place, begin
        place = end
        words = segment_run(run, rules) if rules.segmenters else None
        if words is None:
            yield from _pairs(part, begin, end)
        for word in words or ():
            yield word, begin, begin + len(word)
            begin += len(word)
    if place < len(part):
        yield part[place:], place, len(part)


def _pairs(part: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the overlapping pairs of letters of a stretch, each letter with its marks."""
    edges = [begin]
    for place in range(begin + 1, end):
        if unicodedata.category(part[place]) not in ("Mn", "Mc"):
            edges.append(place)
    edges.append(end)
    step = min(2, len(edges) - 1)
    for start, stop in zip(edges, edges[step:], strict=False):
        yield part[start:stop], start, stop


def join_tokens(first: TokenStream, second: TokenStream, order: Int64Array) -> TokenStream:
    """Join two streams, with the documents in `order` (n_documents,)."""
    # Results in several languages have different segmenters.
    both = {**dict(first.rules.segmenters), **dict(second.rules.segmenters)}
    rules = replace(first.rules, segmenters=tuple(sorted(both.items())))
    if replace(second.rules, segmenters=rules.segmenters) != rules:
        both_rules = f"{first.rules.to_json()} and {second.rules.to_json()}"
        expected = "the same rules in both results"
        remedy = "fit both with the same words="
        raise InputError("words", expected, found=both_rules, remedy=remedy)
    words = sorted({*first.words, *second.words})
    number = {word: place for place, word in enumerate(words)}
    numbers = [np.array([number[w] for w in part.words], np.int32) for part in (first, second)]
    ids = np.concatenate([numbers[0][first.ids], numbers[1][second.ids]])
    starts = np.concatenate([first.offsets[:-1], second.offsets[:-1] + len(first.ids)])
    lengths = np.concatenate([np.diff(first.offsets), np.diff(second.offsets)])[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(starts[order] - offsets[:-1], lengths)
    begins = np.zeros(len(ids) + 1, dtype=np.bool_)
    begins[np.concatenate([first.parts, second.parts + len(first.ids)])] = True
    segments = np.unique(np.concatenate([offsets, np.flatnonzero(begins[places])]))
    skipped = None
    if first.skipped is not None:
        skipped = np.append(first.skipped, np.zeros(len(second.ids), dtype=np.bool_))[places]
    ids, is_used = ids[places], np.zeros(len(words), dtype=np.bool_)
    is_used[ids] = True
    number_of = (np.cumsum(is_used) - 1).astype(np.int32)
    used = tuple(word for word, keep in zip(words, is_used.tolist(), strict=True) if keep)
    return TokenStream(number_of[ids], offsets, used, rules, segments, skipped)


def skip_lines(
    tokens: TokenStream, texts: Sequence[str], lines: Mapping[str, int], holders: Iterable[int]
) -> TokenStream:
    """Mark the words of some lines of the texts at `holders` as skipped: terms omit them."""
    numbers = {
        line: [bisect_left(tokens.words, word) for word in words_of(line, tokens.rules)]
        for line in lines
    }
    skipped = np.zeros(len(tokens.ids), dtype=np.bool_)
    for row in holders:
        first, end = tokens.offsets[row : row + 2].tolist()
        for line in lines_of(texts[row]) & lines.keys():
            part = numbers[line]
            places = np.arange(first, end - len(part) + 1)
            for step, number in enumerate(part):
                places = places[tokens.ids[places + step] == number]
            for place in places.tolist():
                skipped[place : place + len(part)] = True
    return replace(tokens, skipped=skipped)
