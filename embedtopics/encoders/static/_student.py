"""Static students: a table of token vectors, learned from a teacher's vectors of whole texts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders.static._encoder import (
    StaticEncoder,
    TokenReader,
    parse_tokenizer,
    unknown_token,
)
from embedtopics.encoders.static._student_table import Bagged, Learned, StudentSettings, learn
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from tokenizers import Tokenizer

FEWEST_TEXTS = 50
VALIDATION_SHARE, MOST_VALIDATION = 0.05, 5_000
"""Share of the texts that are held out for validation, and their maximum number."""

MOST_WORDS, MIN_COUNT = 20_000, 5
"""Maximum number of words with a separate vector, and minimum count of each."""

MOST_PHRASES, MIN_PHRASE_COUNT, MIN_NPMI = 20_000, 10, 0.3
"""The same of phrases, and the minimum NPMI of their words."""

COEFFICIENT = 3e-4
"""a of the weights a / (a + p(token)) that training starts from (Arora, Liang and Ma 2017)."""

_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")
_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""Words that can be added: letters, digits and marks, with at least one letter."""

PRIOR_TOKENS = 1_000_000
"""Weight of Zipf's law, in tokens, relative to the counts of a corpus."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of words that are not frequent; it cannot occur in texts."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer without special tokens, as JSON, and the text of each token."""

    tokenizer: str
    surfaces: tuple[str, ...]

    @cached_property
    def parsed(self) -> Tokenizer:
        """The tokenizer."""
        return parse_tokenizer(self.tokenizer)

    @cached_property
    def unknown(self) -> int:
        """Id of the unknown token; -1 if there is none."""
        return unknown_token(self.parsed)

    @cached_property
    def is_word_piece(self) -> bool:
        """Whether tokens are pieces of words that were split at spaces before."""
        return bool(json.loads(self.tokenizer)["model"].get("type") == "WordPiece")

    def rows_with_text(self) -> Int64Array:
        """Return the tokens that stand for text."""
        return np.flatnonzero([bool(surface) for surface in self.surfaces])


def plain_vocabulary(tokenizer: str) -> Vocabulary:
    """Return a tokenizer's vocabulary without special tokens: "[SEP]" in a text is plain text."""
    content = json.loads(tokenizer)
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = content["truncation"] = content["padding"] = None
    parsed = parse_tokenizer(json.dumps(content, ensure_ascii=False))
    plain = Vocabulary(str(parsed.to_str()), ())
    numbered = parsed.get_vocab()
    prefix = content["model"].get("continuing_subword_prefix") or ""
    surfaces = []
    for token in sorted(numbered, key=numbered.__getitem__):
        if token in special or numbered[token] == plain.unknown or _PLACEHOLDER.fullmatch(token):
            surface = ""
        elif plain.is_word_piece or parsed.decoder is None:
            surface = token.removeprefix(prefix)
        else:
            surface = parsed.decoder.decode([token])
        # A byte that is no whole character shows as U+FFFD.
        surfaces.append(surface.strip().strip("\ufffd"))
    return Vocabulary(plain.tokenizer, tuple(surfaces))


def _word_reader(
    vocabulary: Vocabulary, texts: Sequence[str], min_count: int
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Return a tokenizer of the words of a corpus, and the word of each token."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = vocabulary.parsed
    normal = (lambda word: word) if parsed.normalizer is None else parsed.normalizer.normalize_str
    reader = Tokenizer(WordLevel(unk_token=_OTHER))
    reader.normalizer, reader.pre_tokenizer = parsed.normalizer, parsed.pre_tokenizer
    trainer = WordLevelTrainer(
        vocab_size=_EVERY_WORD, min_frequency=min_count, show_progress=False,
        special_tokens=[_OTHER],
    )  # fmt: skip
    reader.train_from_iterator((readable(text) for text in texts), trainer=trainer)
    numbered = reader.get_vocab()
    decoder = None if vocabulary.is_word_piece else parsed.decoder
    words = []
    for raw in sorted(numbered, key=numbered.__getitem__):
        word = raw if decoder is None else decoder.decode([raw]).strip()
        words.append(word if _WORD.fullmatch(word) and normal(word) == word else "")
    return reader, tuple(words)


def frequent_split_words(
    vocabulary: Vocabulary, texts: Sequence[str], *, max_words: int, min_count: int
) -> list[str]:
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first."""
    _, raw = _word_reader(vocabulary, texts, min_count)
    words = list(dict.fromkeys(word for word in raw if word))
    encodings = vocabulary.parsed.encode_batch_fast(words, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [vocabulary.unknown] for each in encodings]
    return [word for word, split in zip(words, is_split, strict=True) if split][:max_words]


def frequent_phrases(vocabulary: Vocabulary, texts: Sequence[str]) -> list[str]:
    """Return phrases of two and three words with enough NPMI (Bouma 2009), most frequent first."""
    ids, words = _read(vocabulary, texts)
    singles = np.bincount(ids, minlength=len(words) + 1)
    n_words = len(ids) - singles[0]
    count_of: dict[str, int] = {}
    for n in (2, 3):
        runs: Int64Array = np.stack([ids[begin : len(ids) - n + 1 + begin] for begin in range(n)])
        keys: Any = np.ravel_multi_index(runs[:, (runs > 0).all(axis=0)], (len(singles),) * n)
        keys, counts = np.unique(keys, return_counts=True)
        keys, counts = keys[counts >= MIN_PHRASE_COUNT], counts[counts >= MIN_PHRASE_COUNT]
        first, *others = np.unravel_index(keys, (len(singles),) * n)
        expected = singles[first].astype(np.float64)
        for part in others:
            expected *= singles[part] / n_words
        with np.errstate(divide="ignore", invalid="ignore"):
            npmi = np.log(counts / expected) / ((1 - n) * np.log(counts / n_words))
        # A phrase that is the whole corpus has no information: 0 / 0.
        for row in np.flatnonzero(np.nan_to_num(npmi, nan=-1.0) >= MIN_NPMI).tolist():
            phrase = " ".join(words[part[row] - 1] for part in (first, *others))
            count_of[phrase] = count_of.get(phrase, 0) + int(counts[row])
    return sorted(count_of, key=lambda phrase: (-count_of[phrase], phrase))[:MOST_PHRASES]


def _read(vocabulary: Vocabulary, texts: Sequence[str]) -> tuple[Int64Array, list[str]]:
    """Return all words of all texts as numbers from 1 (0: between texts, or not frequent)."""
    reader, raw = _word_reader(vocabulary, texts, MIN_PHRASE_COUNT)
    words = sorted({word for word in raw if word})
    number = {word: place for place, word in enumerate(words, start=1)}
    numbers = np.array([number.get(word, 0) for word in raw], dtype=np.int64)
    parts = [np.zeros(0, dtype=np.int64)]
    for slab in slabs(texts):
        encodings = reader.encode_batch_fast([readable(text) for text in slab])
        ids = chain.from_iterable(chain(encoding.ids, (0,)) for encoding in encodings)
        parts.append(numbers[np.fromiter(ids, dtype=np.int64)])
    return np.concatenate(parts), words


def add_words(vocabulary: Vocabulary, words: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with additional tokens for whole words."""
    from tokenizers import AddedToken

    parsed = parse_tokenizer(vocabulary.tokenizer)
    n_before = parsed.get_vocab_size()
    # Otherwise tokenizers that attach spaces to words would leave a lone space.
    how = {"single_word": True, "lstrip": not vocabulary.is_word_piece, "normalized": True}
    parsed.add_tokens([AddedToken(word, **how) for word in words])
    encodings = parsed.encode_batch_fast(list(words), add_special_tokens=False)
    for place, (word, encoding) in enumerate(zip(words, encodings, strict=True)):
        if encoding.ids != [n_before + place]:
            raise InputError(
                f"the tokenizer does not recognize the added word {word!r}; leave "
                "vocabulary_from out, or pass max_words=0"
            )
    return Vocabulary(str(parsed.to_str()), (*vocabulary.surfaces, *words))


def bags_of(
    vocabulary: Vocabulary, texts: Sequence[str], max_length: int | None = None
) -> csr_matrix:
    """Return how often each text holds each token, float32 of shape (n_texts, n_tokens)."""
    from scipy.sparse import vstack

    reader = TokenReader(vocabulary.parsed, max_length, by_characters=False)
    counts: csr_matrix = vstack([reader.read(slab).tokens for slab in slabs(texts)], "csr")
    counts.sum_duplicates()
    return counts


def token_probabilities(
    n_tokens: int, counts: Int64Array | None = None, n_counted: int = 0
) -> Float64Array:
    """Return probabilities of tokens by Zipf's law, joined to `counts` of `n_counted` tokens."""
    zipf: Float64Array = 1.0 / np.arange(2, n_tokens + 2)
    zipf /= zipf.sum()
    if counts is None:
        return zipf
    joined: Float64Array = (counts + PRIOR_TOKENS * zipf) / (n_counted + PRIOR_TOKENS)
    return joined


def principal_axes(products: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return eigenvalues of ``rows.T @ rows``, descending, and eigenvectors of fixed sign."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def project(rows: Any, axes: Any) -> Any:
    """Return ``rows @ axes``, by BLAS on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return np.asarray(rows @ axes)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Distinct texts, in an order that does not depend on that of the rows."""

    texts: list[str]  # those of the corpus first
    n_corpus: int  # how many they are
    training: Int64Array  # places in `texts`, ascending
    validation: Int64Array  # places in `texts`, ascending
    sources: tuple[str, ...]  # where the corpus came from, and the general mix where there is one


def gather(texts: Any, general: Any, settings: StudentSettings) -> Gathered:
    """Join the texts of a corpus and a general mix, each once, and hold some of them out."""
    corpus = Corpus.of(texts)
    require_text(corpus)
    joined = dict.fromkeys(corpus.document_texts())
    n_corpus, sources = len(joined), [corpus.source]
    if general is not None:
        mix = Corpus.of(general)
        require_text(mix)
        joined |= dict.fromkeys(mix.document_texts())
        sources.append(mix.source)
    distinct = list(joined)
    if len(distinct) < FEWEST_TEXTS:
        remedy = "give more texts, or use distill(), which needs none"
        raise InputError("texts", f"{FEWEST_TEXTS} or more", len(distinct), remedy)
    n_held = min(MOST_VALIDATION, max(10, round(VALIDATION_SHARE * len(distinct))))
    order = np.random.default_rng(settings.random_state).permutation(len(distinct))
    training, validation = np.sort(order[n_held:]), np.sort(order[:n_held])
    return Gathered(distinct, n_corpus, training, validation, tuple(sources))


@dataclass(frozen=True, eq=False)
class Student:
    """A static student, with what it learned from and how.

    `seconds` are those of finding words, of the teacher, and of learning.
    """

    encoder: StaticEncoder
    words: tuple[str, ...]
    phrases: tuple[str, ...]
    data: StudentData
    learned: Learned
    seconds: dict[str, float]


def learn_student(
    teacher: BaseEncoder,
    gathered: Gathered,
    settings: StudentSettings,
    *,
    name: str = "",
    show_progress: bool | None = None,
) -> Student:
    """Let a student learn from a teacher's vectors of the texts."""
    tokenizer = teacher.tokenizer_json
    if tokenizer is None:
        raise InputError("teacher", "a SentenceEncoder with a tokenizer.json", teacher)
    clock = [time.perf_counter()]
    training_texts = [gathered.texts[row] for row in gathered.training]
    plain = plain_vocabulary(tokenizer)
    words = frequent_split_words(plain, training_texts, max_words=MOST_WORDS, min_count=MIN_COUNT)
    phrases = frequent_phrases(plain, training_texts)
    vocabulary = add_words(plain, [*words, *phrases])
    clock.append(time.perf_counter())
    vectors = encode_with(teacher, gathered.texts, show_progress)
    data = _prepare(teacher, vectors, vocabulary, gathered, settings, show_progress)
    clock.append(time.perf_counter())
    learned = learn(
        data.table, data.weights, data.training, data.validation, settings, show_progress
    )
    clock.append(time.perf_counter())
    encoder = StaticEncoder.from_arrays(
        learned.table * learned.weights[:, None], vocabulary.tokenizer,
        name=f"student {name or teacher.name}", languages=teacher.languages,
    )  # fmt: skip
    seconds = dict(zip(("words", "teacher", "learning"), np.diff(clock).tolist(), strict=True))
    return Student(encoder, tuple(words), tuple(phrases), data, learned, seconds)


@dataclass(frozen=True, eq=False)
class StudentData:
    """Training data of a student: texts with at least one token of its vocabulary."""

    table: FloatArray
    weights: FloatArray
    training: Bagged
    validation: Bagged
    explained: float
    n_unread: int


def _prepare(
    teacher: BaseEncoder,
    vectors: FloatArray,
    vocabulary: Vocabulary,
    gathered: Gathered,
    settings: StudentSettings,
    show_progress: bool | None,
) -> StudentData:
    """Return training data from the teacher's vectors of the texts, and of tokens alone."""
    # Tokens beyond the teacher's limit did not influence its vector of the text.
    bags = bags_of(vocabulary, gathered.texts, teacher.max_length)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    counts = np.asarray(bags[gathered.training].sum(axis=0)).ravel().astype(np.int64)
    is_read = (np.diff(bags.indptr) > 0) & (lengths > 0)
    training, validation = (
        rows[is_read[rows]] for rows in (gathered.training, gathered.validation)
    )
    if len(training) < FEWEST_TEXTS // 2 or not len(validation):
        actual = f"{int(is_read.sum())} such texts of {len(is_read)}"
        raise InputError("texts", "in words that the teacher knows", found=actual)
    vectors = vectors / np.maximum(lengths, 1e-30).astype(np.float32)[:, None]
    axes, explained = _axes_of(vectors[training], settings.dimensions)
    rows_with_text = vocabulary.rows_with_text()
    surfaces = [vocabulary.surfaces[row] for row in rows_with_text]
    alone = encode_with(teacher, surfaces, show_progress)
    table, weights = _start_table(project(alone, axes), rows_with_text, counts)

    def bagged(rows: Int64Array) -> Bagged:
        targets = project(vectors[rows], axes)
        norms = np.sqrt(np.einsum("ij,ij->i", targets, targets))[:, None]
        return Bagged(bags[rows], targets / np.maximum(norms, np.float32(1e-12)))

    unread = int((~is_read).sum())
    return StudentData(table, weights, bagged(training), bagged(validation), explained, unread)


def encode_with(teacher: Any, texts: Sequence[str], show_progress: bool | None) -> FloatArray:
    """Return a teacher's vectors, (n_texts, n_dimensions)."""
    vectors = np.asarray(teacher.encode(texts, show_progress=show_progress), dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        actual = f"another number for {texts[int(np.argmin(finite))][:60]!r}"
        raise InputError("teacher", "one of finite vectors", found=actual)
    return vectors


def _axes_of(vectors: FloatArray, dimensions: int) -> tuple[FloatArray, float]:
    """Return principal axes of vectors, not centred, (n_teacher, n_dimensions), and their share."""
    products = np.zeros((vectors.shape[1],) * 2)
    for begin in range(0, len(vectors), 65_536):
        part = vectors[begin : begin + 65_536].astype(np.float64)
        products += project(part.T, part)
    values, axes = principal_axes(products)
    explained = float(values[:dimensions].sum() / max(values.sum(), 1e-30))
    return np.ascontiguousarray(axes[:, :dimensions], dtype=np.float32), explained


def _start_table(
    vectors: FloatArray, rows: Int64Array, counts: Int64Array
) -> tuple[FloatArray, FloatArray]:
    """Return table (n_tokens, n_dimensions) and weights (n_tokens,) of a distilled encoder."""
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = float(np.sqrt((centred.astype(np.float64) ** 2).sum(axis=1)).mean())
    table = np.zeros((len(counts), vectors.shape[1]), dtype=np.float32)
    table[rows] = centred / np.float32(max(length, 1e-12))
    p = token_probabilities(len(rows), counts[rows], counts.sum())
    weights = np.ones(len(counts), dtype=np.float32)
    weights[rows] = COEFFICIENT / (COEFFICIENT + p)
    return table, weights
