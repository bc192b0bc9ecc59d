"""New words in the vocabulary of an encoder, and the vectors that they start with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics._utils.progress import progress_bar
from embedtopics.corpus._corpus import Corpus
from embedtopics.decisions import Decision, counted
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_json
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary, silent_transformers
from embedtopics.errors import InputError
from embedtopics.pretraining._report import cut_words, folds_case, tokenizer_report
from embedtopics.pretraining.results import ExtendedVocabulary, TokenizerReport
from embedtopics.protocols import Float64Array
from embedtopics.training.objectives._trainable import KIND, model_of, transformer_of

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

FEWEST_DOCUMENTS = 5
"""Texts that a word must be in before it gets a vector of its own."""

LEAST_LETTERS = 3
N_SIMILAR, N_CONTEXTS, FEWEST_USES = 5, 5000, 10
"""Similar words whose mean a word starts with; known words among which these are looked for, the
most frequent of the corpus; and uses that these have at least."""

N_USES, MOST_TEXTS, DEPTH = 20, 2000, 3
"""Uses that a contextual vector is the mean of; texts that are read for known words; and the part
of the layers after which it is taken. Of 500 words added for abstracts, texts keep a cosine of .982
with their former vectors where it is taken after a third of the layers, and .978 after all."""

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
        Needed without `words`, and for a `start` by contexts.
    out : path
        Folder for the encoder, which transformers and sentence-transformers read too.
    n_words : int
        Most words that are taken from the corpus.
    start : {"pieces", "context", "states"} or mapping of word to sequence of words
        What a vector starts as: the mean of those of its pieces; of those of the known words
        that the encoder reads most similarly in the corpus; the mean of the word's own contextual
        vectors there, moved to where token vectors are; or the mean of those of the similar words
        that you name (Timoneda and Vallejo Vera 2025). Where there are none, its pieces'.

    Returns
    -------
    ExtendedVocabulary

    Raises
    ------
    InputError
        If a word is blank, repeated or no string (with its row), if none is new, or a parameter is
        bad. Nothing is written.

    Examples
    --------
    >>> made = extend_vocabulary("all-MiniLM-L6-v2", ["graphene"], out="mine")  # doctest: +SKIP
    >>> made.words.pieces[0]  # doctest: +SKIP
    'graph ##ene'
    """
    checked_count(n_words, "n_words")
    asked = transformer_of(encoder)
    folder = check_output_folder(Path(out), KIND)
    vocabulary = load_vocabulary(asked.recipe.checkpoint, asked.recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    texts = None if corpus is None else Corpus.of(corpus)
    if start in ("context", "states") and texts is None:
        raise InputError("corpus", "texts, for a start by contexts", None)
    decisions: list[Decision] = []
    read = None if texts is None else tokenizer_report(texts, asked)
    if words is None:
        new_words = _costly(read, n_words)
    else:
        new_words, decisions = _checked_words(words, tokenizer, vocabulary.unknown_id)
    similar, states = _named(new_words, start, tokenizer), None
    if texts is not None and start == "context":
        similar = _most_similar(new_words, texts, asked, tokenizer)
    elif texts is not None and start == "states":
        states = _directions(new_words, texts, asked, tokenizer, len(new_words))
    # The ids whose means, one for each similar word, the new vector is the mean of.
    rows = [[_cut(one, tokenizer).ids for one in similar.get(w) or [w]] for w in new_words]
    _write(asked, folder, new_words, rows, states)
    extended = SentenceEncoder(folder, precision=asked.recipe.precision)
    import pandas as pd

    table = pd.DataFrame({
        "word": new_words,
        "pieces": [" ".join(_cut(word, tokenizer).tokens) for word in new_words],
        "similar": [", ".join(similar.get(word, ())) for word in new_words],
    })  # fmt: skip
    known_words = _known_words(tokenizer, texts, N_COMPARED)
    table["neighbors_before"] = _neighbors(asked, new_words, known_words)
    table["neighbors_after"] = _neighbors(extended, new_words, known_words)
    fertility = None
    if texts is not None and read is not None:
        fertility = (read.fertility, tokenizer_report(texts, extended).fertility)
    return ExtendedVocabulary(extended, table, fertility, tuple(decisions))


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
        got = f"none that is new of {len(seen)}" if seen else "none"
        raise InputError("words", "words that the tokenizer does not know yet", found=got)
    message = "of the words are known already, each as one piece."
    return new, list(_counted("known_words", len(seen) - len(new), message))


def _costly(report: TokenizerReport | None, n_words: int) -> list[str]:
    """Return the words of a corpus whose pieces cost most."""
    if report is None:
        raise InputError("words", "words, or a corpus to take them from", None)
    words = report.words
    is_word = words["word"].str.fullmatch(rf"[^\W\d_]{{{LEAST_LETTERS},}}")
    enough = (words["n_documents"] >= FEWEST_DOCUMENTS) & (words["cost"] > 0) & is_word
    costly: list[str] = words.loc[enough, "word"].head(n_words).tolist()
    if not costly:
        expected = f"words of several pieces in {FEWEST_DOCUMENTS} texts or more"
        raise InputError("corpus", expected, found="none")
    return costly


def _is_spaced(tokenizer: Tokenizer) -> bool:
    """Return whether the space before a word is part of its first piece."""
    one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "a a"))
    return one.tokens != two.tokens[1:] or not one.tokens[0].isalnum()


def _cut(word: str, tokenizer: Tokenizer) -> Encoding:
    """Return the pieces of a word as within a text, where most words follow a space."""
    return tokenizer.encode(f" {word}", add_special_tokens=False)


def _named(words: list[str], start: Any, tokenizer: Tokenizer) -> dict[str, tuple[str, ...]]:
    """Return the words that the user says new words are like."""
    if not isinstance(start, Mapping):
        checked_choice(start, "start", ("pieces", "context", "states"))
        return {}
    folds = folds_case(tokenizer)
    similar: dict[str, tuple[str, ...]] = {}
    for word, others in start.items():
        named = (others,) if isinstance(others, str) else tuple(others)
        key = str(word).lower() if folds else str(word)
        if key not in words:
            raise InputError("start", "a mapping of the words that are added", word)
        if not named or not all(isinstance(one, str) and one.strip() for one in named):
            raise InputError("start", f"words that are like {word!r}", others)
        similar[key] = named
    return similar


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
    words_of_one_piece: list[str] = []
    for word in dict.fromkeys(ranked):
        if len(words_of_one_piece) == most:
            break
        if word.isalpha() and len(word) >= LEAST_LETTERS:
            if len(_cut(word, tokenizer).ids) == 1:
                words_of_one_piece.append(word)
    return words_of_one_piece


def _most_similar(
    words: list[str], corpus: Corpus, encoder: SentenceEncoder, tokenizer: Tokenizer
) -> dict[str, tuple[str, ...]]:
    """Return the known words whose contextual vectors are nearest to those of each new word."""
    candidates = _known_words(tokenizer, corpus, N_CONTEXTS, FEWEST_USES)
    candidates = [word for word in candidates if word not in set(words)]
    states = _directions([*words, *candidates], corpus, encoder, tokenizer, len(words))
    # Of words without uses all cosines are NaN, which no comparison takes.
    cosines = states[: len(words)] @ states[len(words) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :N_SIMILAR]
    near = [
        tuple(candidates[i] for i in some if row[i] > 0)
        for some, row in zip(best, cosines, strict=True)
    ]
    return {word: some for word, some in zip(words, near, strict=True) if some}


def _directions(
    words: list[str], corpus: Corpus, encoder: SentenceEncoder, tokenizer: Tokenizer, n_new: int
) -> Float64Array:
    """Return where mean contextual vectors lie from the mean of all, (n_words, width), or NaN."""
    import torch

    model: Any = model_of(encoder.recipe)
    transformer = model[0].model.eval()
    folds, number = folds_case(tokenizer), {word: i for i, word in enumerate(words)}
    limit = encoder.recipe.max_length - tokenizer.num_special_tokens_to_add(False)
    sums, n_uses = np.zeros((len(words), transformer.config.hidden_size)), np.zeros(len(words))
    total, n_tokens, n_texts = np.zeros(sums.shape[1]), 0, 0
    texts = corpus.document_texts()
    bar = progress_bar(total=len(texts), unit="text", description="reading uses", show=None)
    with bar, torch.no_grad():
        for _, words_of_text, encoding, of_word in cut_words(texts, tokenizer):
            bar.update()
            names = [number.get(word.lower() if folds else word, -1) for word in words_of_text]
            of_piece = np.array([*names, -1])[of_word[:limit]]
            sought = of_piece[of_piece >= 0]
            if n_texts >= MOST_TEXTS:  # only until the new words, which come first, have their uses
                sought = sought[sought < n_new]
            if not (n_uses[sought] < N_USES).any():
                continue
            encoding.truncate(limit)
            whole = tokenizer.post_process(encoding)
            layers = transformer(torch.tensor([whole.ids]), output_hidden_states=True).hidden_states
            states = layers[max(1, (len(layers) - 1) // DEPTH)][0].double().numpy()
            states = states[np.array(whole.special_tokens_mask) == 0]
            total += states.sum(axis=0)
            n_tokens += len(states)
            n_texts += 1
            for word in np.unique(of_piece[of_piece >= 0]):
                sums[word] += states[of_piece == word].mean(axis=0)
                n_uses[word] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = sums / n_uses[:, None] - total / n_tokens
        return apart / np.linalg.norm(apart, axis=1, keepdims=True)  # type: ignore[no-any-return]


def _neighbors(encoder: SentenceEncoder, words: list[str], candidates: list[str]) -> list[str]:
    """Return the known words whose vectors are nearest to that of each word."""
    vectors = encoder.encode([*words, *candidates], show_progress=False)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = vectors[: len(words)] @ vectors[len(words) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :N_NEIGHBORS]
    return [", ".join(candidates[i] for i in row) for row in best]


def _write(
    encoder: SentenceEncoder,
    folder: Path,
    words: list[str],
    rows: list[list[list[int]]],
    states: Float64Array | None,
) -> None:
    """Write the encoder with more rows, its head for masked words too where it has one."""
    from tokenizers import AddedToken

    checkpoint = encoder.recipe.checkpoint
    model = model_of(encoder.recipe)
    transformer: Any = model[0]
    is_spaced = _is_spaced(load_vocabulary(checkpoint, encoder.recipe.trusts_code).tokenizer)
    tokens = [
        AddedToken(word, single_word=True, lstrip=is_spaced, normalized=True) for word in words
    ]
    with silent_transformers():
        n_before = len(transformer.tokenizer)
        transformer.tokenizer.add_tokens(tokens)
        if len(transformer.tokenizer) != n_before + len(words):
            got = f"{len(transformer.tokenizer) - n_before} of {len(words)} could be added"
            raise InputError("words", "words that the tokenizer can take", found=got)
        _enlarge(transformer.model, n_before, rows, states)
        masked = _masked_model(checkpoint)
        if masked is not None:
            _enlarge(masked, n_before, rows, states)
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


def _enlarge(
    model: Any, n_tokens: int, rows: list[list[list[int]]], states: Float64Array | None
) -> None:
    """Give a model a row for each new word: the mean over similar words of their mean pieces."""
    import torch

    size = n_tokens + len(rows)  # rows that a table has beyond its tokens are used first
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
        if states is not None:
            embeddings = tables[0][:n_tokens]
            if states.shape[1] != embeddings.shape[1]:
                expected = "an encoder whose hidden states are as wide as its token vectors"
                raise InputError("start", expected, "states")
            # As far from the mean token as tokens are, in the direction of the contextual vectors.
            middle = embeddings.mean(dim=0)
            spread = (embeddings - middle).norm(dim=1).mean()
            used = np.flatnonzero(~np.isnan(states[:, 0]))
            moved = middle + spread * torch.from_numpy(states[used]).to(embeddings)
            tables[0][torch.from_numpy(n_tokens + used)] = moved
