"""Add words to the vocabulary of an encoder, with initial vectors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.display import progress_bar
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.corpus._corpus import Corpus
from embedtopics.decisions import Decision, counted
from embedtopics.encoders._base import require_torch
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_json
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.encoders.sentence._torch import silent_transformers
from embedtopics.errors import InputError
from embedtopics.pretraining._report import cut_words, folds_case, tokenizer_report
from embedtopics.pretraining.results import ExtendedVocabulary, TokenizerReport
from embedtopics.protocols import Float64Array
from embedtopics.training.objectives._trainable import KIND, model_of, transformer_of

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

FEWEST_DOCUMENTS = 5
"""Fewest texts of a word that gets a vector of its own."""

LEAST_LETTERS = 3
N_SIMILAR, N_CONTEXTS, FEWEST_USES = 5, 5000, 10
"""Similar words whose mean is the initial vector; known words of the corpus to search, the most
frequent first; and the fewest uses of a known word."""

N_USES, MOST_TEXTS, DEPTH = 20, 2000, 3
"""Uses in the mean of a contextual vector; texts that are read for known words; and the fraction of
the layers. With 500 words added for abstracts, texts keep a cosine of .982 with their former
vectors after a third of the layers, and .978 after all."""

N_NEIGHBORS, N_COMPARED = 5, 2000
"""Neighbours to show, and known words that are searched for them."""

_FORMAT = 1
_counted = partial(counted, "pretraining")


def extend_vocabulary(
    encoder: Any,
    words: Sequence[str] | None = None,
    corpus: Any = None,
    *,
    out: str | os.PathLike[str],
    n_words: int = 500,
    start: str = "pieces",
) -> ExtendedVocabulary:
    """Add words to an encoder's vocabulary, each as one piece with a new vector.

    The tokenizer recognizes a new word only as a whole word, not within a longer word; of two new
    words that overlap, the longer one wins. Texts without new words keep their vectors. A new
    vector keeps its initial value until further pre-training.

    Parameters
    ----------
    encoder : SentenceEncoder or str
        Encoder, or name or folder of a checkpoint. A head for masked words is extended too.
    words : sequence of str, optional
        Words to add; known words are left out. By default the words of the corpus that cost the
        most pieces.
    corpus : Corpus, or what `Corpus.of` takes, optional
        Required without `words`, and for a `start` from contexts.
    out : path
        Folder for the encoder, in the format of sentence-transformers.
    n_words : int
        Maximum number of words from the corpus.
    start : {"pieces", "context"}
        Initial vector: the mean of the word's pieces, or of the known words with the most similar
        contextual vectors in the corpus. The pieces are the fallback.

    Returns
    -------
    ExtendedVocabulary

    Raises
    ------
    InputError
        If a word is blank or repeated, if none is new, or a parameter is bad. Nothing is written.

    Examples
    --------
    >>> made = extend_vocabulary("all-MiniLM-L6-v2", ["graphene"], out="mine")  # doctest: +SKIP
    >>> made.words.pieces[0]  # doctest: +SKIP
    'graph ##ene'
    """
    require_torch("extend_vocabulary")
    asked = transformer_of(encoder)
    folder = check_output_folder(Path(out), KIND)
    vocabulary = load_vocabulary(asked.recipe.checkpoint, asked.recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    texts = None if corpus is None else Corpus.of(corpus)
    checked_choice(start, "start", ("pieces", "context"))
    if start == "context" and texts is None:
        raise InputError("corpus", "texts, for a start by contexts", None)
    decisions: list[Decision] = []
    read = None if texts is None else tokenizer_report(texts, asked)
    if words is None:
        new_words = _costly(read, n_words)
    else:
        new_words, decisions = _checked_words(words, tokenizer, vocabulary.unknown_id)
    similar: dict[str, tuple[str, ...]] = {}
    if texts is not None and start == "context":
        similar = _most_similar(new_words, texts, asked, tokenizer)
    # Ids of the pieces of the words whose mean is the initial vector.
    rows = [[_cut(one, tokenizer).ids for one in similar.get(w) or [w]] for w in new_words]
    _write(asked, folder, new_words, rows)
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
    """Return the new words as the tokenizer reads them."""
    folds, seen, new = folds_case(tokenizer), set(), []
    for row, word in enumerate(words):
        read = " ".join(word.split())
        read = read.lower() if folds else read
        if not read or read in seen:
            raise InputError("words", "words, each once", word, row=row)
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
    """Return the words of a corpus that cost the most pieces."""
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
    """Return whether the first piece of a word includes the space before it."""
    one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "a a"))
    return one.tokens != two.tokens[1:] or not one.tokens[0].isalnum()


def _cut(word: str, tokenizer: Tokenizer) -> Encoding:
    """Return the pieces of a word after a space, as within a text."""
    return tokenizer.encode(f" {word}", add_special_tokens=False)


def _known_words(
    tokenizer: Tokenizer, corpus: Corpus | None, most: int, fewest: int = 1
) -> list[str]:
    """Return words of one piece, the most frequent of the corpus or the first by id."""
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
    """Return the known words with contextual vectors nearest to each new word."""
    candidates = _known_words(tokenizer, corpus, N_CONTEXTS, FEWEST_USES)
    candidates = [word for word in candidates if word not in set(words)]
    states = _directions([*words, *candidates], corpus, encoder, tokenizer, len(words))
    # Words without uses have NaN cosines, which no comparison accepts.
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
    """Return directions of contextual vectors from their mean, (n_words, width), or NaN."""
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
            if n_texts >= MOST_TEXTS:  # then only for new words, which come first
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
    """Return the known words nearest to each word."""
    vectors = encoder.encode([*words, *candidates], show_progress=False)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = vectors[: len(words)] @ vectors[len(words) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :N_NEIGHBORS]
    return [", ".join(candidates[i] for i in row) for row in best]


def _write(
    encoder: SentenceEncoder, folder: Path, words: list[str], rows: list[list[list[int]]]
) -> None:
    """Write the encoder, and its head for masked words, with more rows."""
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
        _enlarge(transformer.model, n_before, rows)
        if (masked := _masked_model(checkpoint)) is not None:
            _enlarge(masked, n_before, rows)
        with replacing_folder(folder, KIND) as fresh:
            model.save(str(fresh), create_model_card=False)
            if masked is not None:
                for file in fresh.glob("model*.safetensors*"):
                    file.unlink()
                masked.save_pretrained(fresh)
            write_manifest(fresh, KIND, _FORMAT)


def _masked_model(checkpoint: Checkpoint) -> Any:
    """Return a checkpoint with its head for masked words; None if it has none."""
    import torch
    from transformers import AutoModelForMaskedLM

    names = read_json(checkpoint.folder / "config.json").get("architectures") or []
    if not any(str(name).endswith("ForMaskedLM") for name in names):
        return None
    return AutoModelForMaskedLM.from_pretrained(
        checkpoint.folder, dtype=torch.float32, use_safetensors=True, local_files_only=True
    )


def _enlarge(model: Any, n_tokens: int, rows: list[list[list[int]]]) -> None:
    """Add a row for each new word: the mean over similar words of their mean pieces."""
    import torch

    size = n_tokens + len(rows)  # spare rows of the table are used first
    if size > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(size, mean_resizing=False)
    tables = [model.get_input_embeddings().weight]
    if (outputs := model.get_output_embeddings()) is not None:
        # Tied weights are one table; a bias is another.
        if outputs.weight is not tables[0]:
            tables.append(outputs.weight)
        if getattr(outputs, "bias", None) is not None:
            tables.append(outputs.bias)
    with torch.no_grad():
        for table in tables:
            for place, ids in enumerate(rows, n_tokens):
                table[place] = torch.stack([table[one].mean(dim=0) for one in ids]).mean(dim=0)
