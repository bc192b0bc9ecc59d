"""New words in the vocabulary of an encoder, and the vectors that they start with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from embedtopics._utils.checks import checked_count
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._readers import counted
from embedtopics.corpus.results import Decision
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_json
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary, silent_transformers
from embedtopics.errors import InputError
from embedtopics.pretraining._report import cut_words, folds_case, tokenizer_report
from embedtopics.pretraining.results import ExtendedVocabulary
from embedtopics.training.objectives._trainable import KIND, model_of

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

FEWEST_DOCUMENTS = 5
"""Texts that a word must be in before it gets a vector of its own."""

LEAST_LETTERS = 3
WINDOW, N_SIMILAR, N_CONTEXTS = 5, 5, 5000
"""Words on either side that are the context of a word; similar words whose mean it starts with; and
known words among which these are looked for, the most frequent of the corpus."""

FEWEST_USES, SMOOTHING = 10, 0.75
"""Of a known word that lends its vector; and the power of the counts of contexts, without which
rare words seem similar (Levy, Goldberg and Dagan 2015, section 3.2)."""

N_NEIGHBORS, N_COMPARED = 5, 2000
"""Neighbours that are shown, of so many of the most frequent known words."""

_FORMAT = 1
_counted = partial(counted, "pretraining")


def extend_vocabulary(
    encoder: Any,
    words: Sequence[str] | None = None,
    corpus: Any = None,
    *,
    out: str | os.PathLike[str],
    n_words: int = 500,
    start: str | Mapping[str, Sequence[str]] = "pieces",
) -> ExtendedVocabulary:
    """Add words to an encoder's vocabulary, each as one piece with a vector of its own.

    A new word is read as one piece where it stands alone, not within a longer word; where two are
    possible the longer is taken; texts without new words keep their pieces and vectors. Before
    further pre-training, a new vector says no more than what it starts with.

    Parameters
    ----------
    encoder : SentenceEncoder or str
        Or the name or folder of a checkpoint. A head for masked words is kept, and extended.
    words : sequence of str, optional
        Those that the tokenizer knows already are left out; by default the words of the corpus
        whose pieces cost most.
    corpus : Corpus, or what `Corpus.of` takes, optional
        Needed without `words`, and for ``start="context"``.
    out : path
        Folder for the encoder, which transformers and sentence-transformers read too.
    n_words : int
        Most words that are taken from the corpus.
    start : {"pieces", "context"} or mapping of word to sequence of words
        A vector starts as the mean of those of its pieces; or of the known words with the most
        similar contexts in the corpus; or of the similar words that you name (Timoneda and Vallejo
        Vera 2025), and of its pieces where you name none.

    Returns
    -------
    ExtendedVocabulary

    Raises
    ------
    InputError
        If a word is blank, repeated or no string (with its row), if none is new, or a parameter is
        bad. Nothing is written.

    Notes
    -----
    "context": positive pointwise mutual information of the words within five of each other, its
    contexts smoothed (Levy, Goldberg and Dagan 2015), compared by their cosine.

    Examples
    --------
    >>> made = extend_vocabulary("all-MiniLM-L6-v2", ["graphene"], out="mine")  # doctest: +SKIP
    >>> made.words.pieces[0]  # doctest: +SKIP
    'graph ##ene'
    """
    checked_count(n_words, "n_words")
    asked = _sentence_encoder(encoder)
    folder = check_output_folder(Path(out), KIND)
    vocabulary = load_vocabulary(asked.recipe.checkpoint, asked.recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    texts = None if corpus is None else Corpus.of(corpus)
    if start == "context" and texts is None:
        raise InputError("corpus", 'texts, for start="context"', None)
    decisions: list[Decision] = []
    if words is None:
        chosen = _costly(texts, asked, n_words)
    else:
        chosen, decisions = _checked_words(words, tokenizer, vocabulary.unknown_id)
    similar = _similar(chosen, start, texts, tokenizer)
    # The ids whose means, one for each similar word, the new vector is the mean of.
    rows = [[_cut(one, tokenizer).ids for one in similar.get(w) or [w]] for w in chosen]
    _write(asked, folder, chosen, rows, is_spaced=_is_spaced(tokenizer))
    extended = SentenceEncoder(folder, precision=asked.recipe.precision)
    import pandas as pd

    table = pd.DataFrame({
        "word": chosen,
        "pieces": [" ".join(_cut(word, tokenizer).tokens) for word in chosen],
        "similar": [", ".join(similar.get(word, ())) for word in chosen],
    })  # fmt: skip
    known = _known_words(tokenizer, texts, N_COMPARED)
    table["neighbors_before"] = _neighbors(asked, chosen, known)
    table["neighbors_after"] = _neighbors(extended, chosen, known)
    return ExtendedVocabulary(extended, table, tuple(decisions))


def _sentence_encoder(encoder: Any) -> SentenceEncoder:
    found: Any = resolve_exact(encoder)
    while isinstance(found, CachedEncoder):
        found = found.uncached
    if not isinstance(found, SentenceEncoder):
        raise InputError("encoder", "a SentenceEncoder, or its name or folder", found)
    return found


def _checked_words(
    words: Any, tokenizer: Tokenizer, unknown_id: int
) -> tuple[list[str], list[Decision]]:
    """Return the words that are new, as the tokenizer reads them."""
    if isinstance(words, str):
        raise InputError("words", "a sequence of strings", words)
    folds, seen, new = folds_case(tokenizer), set(), []
    for row, word in enumerate(words):
        if not isinstance(word, str) or not word.strip():
            raise InputError("words", "words that are not blank", word, row=row)
        read = " ".join(word.split())
        read = read.lower() if folds else read
        if read in seen:
            raise InputError("words", "words that come once", word, row=row)
        seen.add(read)
        ids = _cut(read, tokenizer).ids
        if len(ids) != 1 or ids[0] == unknown_id:
            new.append(read)
    if not new:
        found = f"none that is new of {len(seen)}" if seen else "none"
        raise InputError("words", "words that the tokenizer does not know yet", found=found)
    message = "of the words are known already, each as one piece."
    return new, list(_counted("known_words", len(seen) - len(new), message))


def _costly(corpus: Corpus | None, encoder: SentenceEncoder, n_words: int) -> list[str]:
    """Return the words of a corpus whose pieces cost most."""
    if corpus is None:
        raise InputError("words", "words, or a corpus to take them from", None)
    found = tokenizer_report(corpus, encoder).words
    is_word = found["word"].str.fullmatch(rf"[^\W\d_]{{{LEAST_LETTERS},}}")
    enough = (found["n_documents"] >= FEWEST_DOCUMENTS) & (found["cost"] > 0) & is_word
    chosen: list[str] = found.loc[enough, "word"].head(n_words).tolist()
    if not chosen:
        expected = f"words of several pieces in {FEWEST_DOCUMENTS} texts or more"
        raise InputError("corpus", expected, found="none")
    return chosen


def _is_spaced(tokenizer: Tokenizer) -> bool:
    """Return whether the space before a word is part of its first piece."""
    one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "a a"))
    return one.tokens != two.tokens[1:] or not one.tokens[0].isalnum()


def _cut(word: str, tokenizer: Tokenizer) -> Encoding:
    """Return the pieces of a word as within a text, where most words follow a space."""
    return tokenizer.encode(f" {word}", add_special_tokens=False)


def _similar(
    words: list[str], start: Any, corpus: Corpus | None, tokenizer: Tokenizer
) -> dict[str, tuple[str, ...]]:
    """Return the words that each new word starts with the mean of; none where with its pieces."""
    if isinstance(start, Mapping):
        folds = folds_case(tokenizer)
        given: dict[str, tuple[str, ...]] = {}
        for word, others in start.items():
            named = (others,) if isinstance(others, str) else tuple(others)
            key = str(word).lower() if folds else str(word)
            if key not in words:
                raise InputError("start", "a mapping of the words that are added", word)
            if not named or not all(isinstance(one, str) and one.strip() for one in named):
                raise InputError("start", f"words that are like {word!r}", others)
            given[key] = named
        return given
    if start == "pieces":
        return {}
    if start != "context" or corpus is None:
        raise InputError("start", '"pieces", "context" or a mapping of words', start)
    return _by_context(words, corpus, tokenizer)


def _known_words(
    tokenizer: Tokenizer, corpus: Corpus | None, most: int, fewest: int = 1
) -> list[str]:
    """Return words of one piece: the most frequent of a corpus, else the first by their ids."""
    folds, counts = folds_case(tokenizer), Counter[str]()
    if corpus is not None:
        for _, words, _, _ in cut_words(corpus.document_texts(), tokenizer):
            counts.update(word.lower() if folds else word for word in words)
        ranked = [word for word, n in counts.items() if n >= fewest]
        ranked.sort(key=lambda word: (-counts[word], word))
    else:
        by_id = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda one: one[1])
        ranked = [piece.lstrip("\u0120\u2581") for piece, _ in by_id]
    known: list[str] = []
    for word in dict.fromkeys(ranked):
        if len(known) == most:
            break
        if word.isalpha() and len(word) >= LEAST_LETTERS:
            if len(_cut(word, tokenizer).ids) == 1:
                known.append(word)
    return known


def _by_context(
    words: list[str], corpus: Corpus, tokenizer: Tokenizer
) -> dict[str, tuple[str, ...]]:
    """Return the known words whose contexts in the corpus are most like those of each word."""
    folds = folds_case(tokenizer)
    known = _known_words(tokenizer, corpus, N_CONTEXTS, FEWEST_USES)
    names = [*words, *(word for word in known if word not in set(words))]
    number = {word: i for i, word in enumerate(names)}
    pairs: list[np.ndarray] = []
    for _, found, _, _ in cut_words(corpus.document_texts(), tokenizer):
        ids = np.array([number.get(w.lower() if folds else w, -1) for w in found], dtype=np.int64)
        for away in range(1, WINDOW + 1):
            both = np.stack([ids[:-away], ids[away:]])
            pairs.append(both[:, (both >= 0).all(axis=0)])
    first, second = np.concatenate(pairs, axis=1) if pairs else np.empty((2, 0), np.int64)
    shape = (len(names), len(names))
    counts = coo_matrix((np.ones(len(first)), (first, second)), shape).tocsr()
    vectors = _informative(csr_matrix(counts + counts.T))
    # Only known words lend their vectors.
    cosines = (vectors[: len(words)] @ vectors[len(words) :].T).toarray()
    chosen: dict[str, tuple[str, ...]] = {}
    for word, row in zip(words, cosines, strict=True):
        best = np.argsort(-row, kind="stable")[:N_SIMILAR]
        near = tuple(names[len(words) + place] for place in best if row[place] > 0)
        if near:
            chosen[word] = near
    return chosen


def _informative(counts: csr_matrix) -> csr_matrix:
    """Return positive pointwise mutual information, rows of length 1."""
    from sklearn.preprocessing import normalize

    both = counts.tocoo()
    sums = np.asarray(counts.sum(axis=1)).ravel()
    contexts = sums**SMOOTHING
    value = np.log(both.data * contexts.sum() / (sums[both.row] * contexts[both.col]))
    kept = csr_matrix((np.maximum(value, 0.0), (both.row, both.col)), counts.shape)
    return csr_matrix(normalize(kept))


def _neighbors(encoder: SentenceEncoder, words: list[str], known: list[str]) -> list[str]:
    """Return the known words whose vectors are nearest to that of each word."""
    vectors = encoder.encode([*words, *known], show_progress=False)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = vectors[: len(words)] @ vectors[len(words) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :N_NEIGHBORS]
    return [", ".join(known[i] for i in row) for row in best]


def _write(
    encoder: SentenceEncoder, folder: Path, words: list[str], rows: list[Any], *, is_spaced: bool
) -> None:
    """Write the encoder with more rows, its head for masked words too where it has one."""
    from tokenizers import AddedToken

    checkpoint = encoder.recipe.checkpoint
    model = model_of(encoder.recipe)
    transformer: Any = model[0]
    tokens = [
        AddedToken(word, single_word=True, lstrip=is_spaced, normalized=True) for word in words
    ]
    with silent_transformers():
        n_before = len(transformer.tokenizer)
        transformer.tokenizer.add_tokens(tokens)
        if len(transformer.tokenizer) != n_before + len(words):
            found = f"{len(transformer.tokenizer) - n_before} of {len(words)} could be added"
            raise InputError("words", "words that the tokenizer can take", found=found)
        _enlarge(transformer.model, n_before, rows)
        masked = _masked_model(checkpoint)
        if masked is not None:
            _enlarge(masked, n_before, rows)
        with replacing_folder(folder, KIND) as fresh:
            model.save(str(fresh), create_model_card=False)
            if masked is not None:
                for file in fresh.glob("model*.safetensors*"):
                    file.unlink()
                masked.save_pretrained(fresh)
            write_manifest(fresh, KIND, _FORMAT)


def _masked_model(checkpoint: Checkpoint) -> Any:
    """Return a checkpoint with its head for masked words; None where it has none."""
    import torch
    from transformers import AutoModelForMaskedLM

    names = read_json(checkpoint.folder / "config.json").get("architectures") or []
    if not any(str(name).endswith("ForMaskedLM") for name in names):
        return None
    return AutoModelForMaskedLM.from_pretrained(
        checkpoint.folder, dtype=torch.float32, use_safetensors=True, local_files_only=True
    )


def _enlarge(model: Any, n_tokens: int, rows: list[list[list[int]]]) -> None:
    """Give a model a row for each new word: the mean over similar words of their mean pieces.

    Rows that a table has beyond its tokens are used first, as the ids go on from the tokens.
    """
    import torch

    size = n_tokens + len(rows)
    if size > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(size, mean_resizing=False)
    outputs = model.get_output_embeddings()
    tables = [model.get_input_embeddings().weight]
    if outputs is not None:
        # Tied weights are one table; a bias is a table of its own.
        if outputs.weight is not tables[0]:
            tables.append(outputs.weight)
        if getattr(outputs, "bias", None) is not None:
            tables.append(outputs.bias)
    with torch.no_grad():
        for table in tables:
            for place, ids in enumerate(rows, n_tokens):
                table[place] = torch.stack([table[one].mean(dim=0) for one in ids]).mean(dim=0)
