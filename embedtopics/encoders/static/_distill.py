"""A static encoder made from a sentence encoder: each token encoded alone, reduced and weighted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import StaticEncoder, bag_tokens, unknown_token
from embedtopics.encoders.static._files import parse_tokenizer
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PRIOR_TOKENS = 1_000_000
"""Tokens of running text that Zipf's law counts for, beside those of a corpus."""

COEFFICIENTS = {"zipf": 3e-5, "corpus": 3e-4}
"""The a of the weights, by where the probabilities come from."""


def distill(
    encoder: Any,
    *,
    vocabulary_from: Any = None,
    max_words: int = 10_000,
    min_count: int = 5,
    dimensions: int | None = 256,
    weighting: str = "sif",
    sif_coefficient: float | None = None,
    remove_components: int = 0,
    normalize: bool = True,
    max_length: int | None = None,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Make a static encoder from a sentence encoder, in about a minute.

    Each token of the sentence encoder's tokenizer is encoded alone, as model2vec does. The
    vectors are reduced to their principal components, and each is multiplied by its smooth
    inverse frequency a / (a + p(token)) (Arora, Liang and Ma 2017, equation 3), so that the mean
    over a text is about its rare words. The defaults are those that did best on the development
    part of the STS benchmark with all-MiniLM-L6-v2.

    Parameters
    ----------
    encoder : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Its checkpoint has to have a tokenizer.json.
    vocabulary_from : Corpus, sequence of str or whatever `Corpus.of` takes, optional
        Texts whose frequent words get vectors of their own where the tokenizer would split them,
        and whose counts give p. Without it p is 1 / (rank + 1) in the vocabulary, by Zipf's law.
    max_words : int
        Most words that are added.
    min_count : int
        Fewest occurrences of a word that is added.
    dimensions : int, optional
        Principal components kept, at most. None leaves the vectors as they are, not centred either.
    weighting : {"sif", "none"}
    sif_coefficient : float, optional
        The a of the weights; by default 3e-4 with the counts of a corpus, and 3e-5 without.
    remove_components : int
        Directions taken out of all vectors: those in which tokens drawn from running text differ
        most from zero, after weighting (section 3 of the paper, by tokens in place of sentences).
    normalize : bool
        Whether vectors of texts are scaled to length 1.
    max_length : int, optional
        Most tokens read of a text; all by default.
    show_progress : bool, optional
        None shows a bar where stderr is a terminal or a notebook listens.

    Returns
    -------
    StaticEncoder
        Its `made_from` says what was done. Tokens that no text can hold, such as padding, have
        a vector of zeros.

    Raises
    ------
    InputError
        If a parameter is out of range, or the encoder shows no tokenizer.json.

    References
    ----------
    S. Arora, Y. Liang and T. Ma, "A simple but tough-to-beat baseline for sentence embeddings",
    ICLR 2017.

    Examples
    --------
    >>> static = distill("all-MiniLM-L6-v2", vocabulary_from=corpus)  # doctest: +SKIP
    >>> static.save("minilm-static")  # doctest: +SKIP
    """
    _check(max_words, min_count, dimensions, weighting, sif_coefficient, remove_components)
    encoder = resolve_exact(encoder)
    tokenizer = getattr(encoder, "tokenizer_json", None)
    if not isinstance(tokenizer, str):
        raise InputError(
            "expected a SentenceEncoder, whose `tokenizer_json` tells the tokens to encode; got "
            f"{encoder!r}"
        )
    vocabulary = plain_vocabulary(tokenizer)
    counts = None
    made_from = {
        "method": "distillation",
        "encoder": Path(str(getattr(encoder, "name", type(encoder).__name__))).name,
        "encoder_fingerprint": getattr(encoder, "fingerprint", None),
    }
    if vocabulary_from is not None:
        corpus = Corpus.of(vocabulary_from)
        require_text(corpus)
        texts = corpus.document_texts()
        words = frequent_split_words(vocabulary, texts, max_words=max_words, min_count=min_count)
        vocabulary = add_words(vocabulary, words)
        counts = count_in_corpus(vocabulary, texts)
        made_from |= {
            "n_texts": len(texts), "n_tokens": int(counts.sum()), "n_words": len(words),
            "min_count": min_count,
        }  # fmt: skip
    # Only the tokens that stand for some text.
    kept = np.array([place for place, text in enumerate(vocabulary.surfaces) if text])
    alone = [vocabulary.surfaces[place] for place in kept]
    vectors = np.asarray(encoder.encode(alone, show_progress=show_progress), dtype=np.float64)
    probabilities = _probabilities(len(kept), None if counts is None else counts[kept])
    vectors, explained = _principal_components(vectors, dimensions)
    source = "zipf" if counts is None else "corpus"
    coefficient = COEFFICIENTS[source] if sif_coefficient is None else float(sif_coefficient)
    if weighting == "sif":
        vectors = vectors * (coefficient / (coefficient + probabilities))[:, None]
    vectors = _without_components(vectors, probabilities, remove_components)
    table = np.zeros((len(vocabulary.surfaces), vectors.shape[1]), dtype=np.float32)
    table[kept] = vectors
    made_from |= {
        "dimensions": int(vectors.shape[1]),
        "explained_variance": explained,
        "weighting": weighting,
        "sif_coefficient": coefficient if weighting == "sif" else None,
        "probabilities": source,
        "remove_components": remove_components,
    }
    return StaticEncoder.from_arrays(
        table, vocabulary.tokenizer, normalize=normalize, max_length=max_length,
        name=f"static {made_from['encoder']}", languages=getattr(encoder, "languages", None),
        made_from=made_from,
    )  # fmt: skip


def _check(
    max_words: Any, min_count: Any, dimensions: Any, weighting: Any, coefficient: Any, removed: Any
) -> None:
    checked_count(max_words, "max_words", 0)
    checked_count(min_count, "min_count")
    checked_count(1 if dimensions is None else dimensions, "dimensions")
    checked_count(removed, "remove_components", 0)
    if weighting not in ("sif", "none"):
        raise InputError(f'expected weighting to be "sif" or "none", got {weighting!r}')
    is_factor = isinstance(coefficient, (int, float)) and 0 < coefficient < float("inf")
    if coefficient is not None and not is_factor:
        raise InputError(f"expected sif_coefficient to be above 0, got {coefficient!r}")


def _probabilities(n_tokens: int, counts: npt.NDArray[np.int64] | None) -> Float64Array:
    """Return how likely tokens are: counts, and Zipf's law as so many tokens beside them."""
    zipf = 1.0 / np.arange(2, n_tokens + 2)
    zipf /= zipf.sum()
    if counts is None:
        return zipf
    joined: Float64Array = (counts + PRIOR_TOKENS * zipf) / (counts.sum() + PRIOR_TOKENS)
    return joined


def _principal_components(
    vectors: Float64Array, dimensions: int | None
) -> tuple[Float64Array, float | None]:
    """Return the scores on the first components, and the share of the variance they hold."""
    if dimensions is None:
        return vectors, None
    n_kept = min(dimensions, vectors.shape[1], max(1, len(vectors) - 1))
    centred = vectors - vectors.mean(axis=0)
    variances, axes = _eigen(centred)
    share = float(variances[:n_kept].sum() / variances.sum()) if variances.sum() > 0 else 1.0
    return _product(centred, axes[:, :n_kept]), round(share, 4)


def _without_components(
    vectors: Float64Array, probabilities: Float64Array, n_removed: int
) -> Float64Array:
    if n_removed == 0:
        return vectors
    axes = _eigen(vectors * np.sqrt(probabilities)[:, None])[1][:, :n_removed]
    return vectors - _product(_product(vectors, axes), axes.T)


def _eigen(rows: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the eigenvalues of ``rows.T @ rows``, descending, and vectors of fixed sign."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        values, axes = np.linalg.eigh(rows.T @ rows)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def _product(left: Float64Array, right: Float64Array) -> Float64Array:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        product: Float64Array = left @ right
    return product


_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")
_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""What is added as a whole word: letters, digits and marks, at least one a letter."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of what is no frequent word; no text that is read holds it."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer without special tokens, and what each of its tokens stands for."""

    tokenizer: str
    surfaces: tuple[str, ...]


def plain_vocabulary(tokenizer: str) -> Vocabulary:
    """Return a tokenizer's vocabulary in which the text "[SEP]" is read as what it says."""
    content = json.loads(tokenizer)
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = content["truncation"] = content["padding"] = None
    text = json.dumps(content, ensure_ascii=False)
    parsed = parse_tokenizer(text, "the tokenizer without its special tokens")
    numbered = parsed.get_vocab()
    unknown = unknown_token(parsed)
    prefix = content["model"].get("continuing_subword_prefix") or ""
    is_word_piece = content["model"].get("type") == "WordPiece"
    surfaces = []
    for token in sorted(numbered, key=numbered.__getitem__):
        if token in special or numbered[token] == unknown or _PLACEHOLDER.fullmatch(token):
            surface = ""
        elif is_word_piece or parsed.decoder is None:
            surface = token.removeprefix(prefix)
        else:
            surface = parsed.decoder.decode([token])
        # A byte that is no whole character shows as U+FFFD.
        surfaces.append(surface.strip().strip("\ufffd"))
    return Vocabulary(str(parsed.to_str()), tuple(surfaces))


def word_reader(
    vocabulary: Vocabulary, texts: Sequence[str], min_count: int
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Return a tokenizer of a corpus's words as the vocabulary cuts them, and each token's word."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    reader = Tokenizer(WordLevel(unk_token=_OTHER))
    reader.normalizer, reader.pre_tokenizer = parsed.normalizer, parsed.pre_tokenizer
    trainer = WordLevelTrainer(
        vocab_size=_EVERY_WORD, min_frequency=min_count, show_progress=False,
        special_tokens=[_OTHER],
    )  # fmt: skip
    reader.train_from_iterator((readable(text) for text in texts), trainer=trainer)
    numbered = reader.get_vocab()
    is_word_piece = json.loads(vocabulary.tokenizer)["model"].get("type") == "WordPiece"
    decoder = None if is_word_piece else parsed.decoder
    words = []
    for raw in sorted(numbered, key=numbered.__getitem__):
        word = raw if decoder is None else decoder.decode([raw]).strip()
        words.append(word if _WORD.fullmatch(word) and _normal(parsed, word) == word else "")
    return reader, tuple(words)


def frequent_split_words(
    vocabulary: Vocabulary, texts: Sequence[str], *, max_words: int, min_count: int
) -> list[str]:
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first."""
    words = dict.fromkeys(word for word in word_reader(vocabulary, texts, min_count)[1] if word)
    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    unknown = unknown_token(parsed)
    chosen = list(words)
    found = parsed.encode_batch_fast(chosen, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [unknown] for each in found]
    return [word for word, split in zip(chosen, is_split, strict=True) if split][:max_words]


def _normal(tokenizer: Tokenizer, word: str) -> str:
    return word if tokenizer.normalizer is None else str(tokenizer.normalizer.normalize_str(word))


def add_words(vocabulary: Vocabulary, words: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with more tokens of whole words; the rest splits as before."""
    from tokenizers import AddedToken

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    n_before = parsed.get_vocab_size()
    # Tokenizers that write the space before a word as part of it would be left with a lone one.
    keeps_spaces = json.loads(vocabulary.tokenizer)["model"].get("type") != "WordPiece"
    parsed.add_tokens(
        [AddedToken(w, single_word=True, lstrip=keeps_spaces, normalized=True) for w in words]
    )
    found = parsed.encode_batch_fast(list(words), add_special_tokens=False)
    for place, (word, encoding) in enumerate(zip(words, found, strict=True)):
        if encoding.ids != [n_before + place]:
            raise InputError(
                f"the tokenizer does not find the word {word!r} that was added to it; leave "
                "vocabulary_from out, or use max_words=0"
            )
    return Vocabulary(str(parsed.to_str()), (*vocabulary.surfaces, *words))


def count_in_corpus(vocabulary: Vocabulary, texts: Sequence[str]) -> Int64Array:
    """Return how often each token occurs in texts, shape (n_vocabulary,)."""
    parsed: Any = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    counts = np.zeros(len(vocabulary.surfaces), dtype=np.int64)
    unknown = unknown_token(parsed)
    for slab in slabs(texts):
        bags = bag_tokens(parsed, slab, unknown_id=unknown)
        counts += np.bincount(bags.ids, minlength=len(counts))
    return counts
