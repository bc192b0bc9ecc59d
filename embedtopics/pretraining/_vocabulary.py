"""Add words to the vocabulary of an encoder, and fit their vectors.

The vector of a new word starts as the mean of the vectors of its pieces. With a corpus, the vectors
of the new words are fitted by Adam, all other weights frozen, so that the texts keep the vectors
that they had before. Held-out texts measure how well they do.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import progress_bar
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics._utils.records import ForeignRecord
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.encoders._base import require_torch, slabs
from embedtopics.encoders.sentence._checkpoint import Checkpoint
from embedtopics.encoders.sentence._configuration import read_file
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.encoders.sentence._torch import silent_transformers
from embedtopics.errors import InputError, Remedy
from embedtopics.pretraining._report import cut_words, folds_case, tokenizer_report
from embedtopics.pretraining.results import ExtendedVocabulary, TokenizerReport
from embedtopics.results import Decision, counted
from embedtopics.training.objectives._trainable import KIND, model_of, transformer_of

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Fewest letters of a word that is taken from the corpus, and fewest texts that use it.
LEAST_LETTERS = 3
FEWEST_DOCUMENTS = 5

# The fit, by Adam. With 100 words added, the mean of the pieces cost 0.033 of 10-NN accuracy on
# titles of biomedicine (AMI 0.423 to 0.377), fitted vectors 0.006 (0.415); on four corpora, neither
# cost more than noise. Three times as many steps, and a third of the rate, were no better.
STEPS_PER_WORD = 2
MOST_STEPS = 1000
BATCH_SIZE = 16
LEARNING_RATE = 3e-3

# The fit reads the first words of texts that are drawn at random and contain a new word. A fifth
# of these texts, within bounds, is held out.
MOST_TEXTS = 20_000
WORDS_READ = 40
LEAST_HELD_OUT = 4
MOST_HELD_OUT = 200

LEAST_COSINE = 0.95
"""Mean cosine of held-out texts with their former vectors below which a decision warns of worse
results. It was 0.90 with the mean of the pieces where this cost accuracy, and 0.97 once fitted."""

N_NEIGHBORS = 5
"""Neighbors of a new word in the table."""

N_COMPARED = 2000
"""Words of one piece that are searched for these neighbors, the most frequent ones."""

_FORMAT = 1
"""Version of the files in the folder."""


def extend_vocabulary(
    encoder: Any,
    words: Sequence[str] | None = None,
    corpus: Any = None,
    *,
    out: str | os.PathLike[str],
    n_words: int = 500,
) -> ExtendedVocabulary:
    """Add words to an encoder's vocabulary, each as one piece with a new vector.

    The tokenizer recognizes a new word only as a whole word, not within a longer word; of two new
    words that overlap, the longer one wins. Texts without new words keep their vectors. New vectors
    start as the mean of the word's pieces. With a corpus, they are then fitted, all other weights
    frozen, so that its texts keep their former vectors; `agreement` is the cosine that other texts
    of the corpus keep.

    Parameters
    ----------
    encoder : SentenceEncoder or str
        Encoder, or name or folder of a checkpoint. A head for masked words is extended too.
    words : sequence of str, optional
        Words to add; known words are left out. By default the words of the corpus that cost the
        most pieces.
    corpus : Corpus, or what `Corpus` takes, optional
        Required without `words`. Without it, new vectors are not fitted.
    out : path
        Folder for the encoder, in the format of sentence-transformers.
    n_words : int
        Maximum number of words from the corpus.

    Returns
    -------
    ExtendedVocabulary

    Raises
    ------
    InputError
        If a word is blank or repeated, if none is new, or a parameter is bad. Nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb}" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> extended = et.pretraining.extend_vocabulary(
    ...     encoder, ["graphene"], out=f"{folder.name}/more"
    ... )
    >>> extended.words["word"].tolist()
    ['graphene']
    >>> folder.cleanup()
    """
    require_torch("extend_vocabulary")
    asked = transformer_of(encoder)
    folder = check_output_folder(Path(out), KIND)
    vocabulary = load_vocabulary(asked.recipe.checkpoint, asked.recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    texts = None if corpus is None else as_corpus(corpus)
    decisions: list[Decision] = []
    read = None if texts is None else tokenizer_report(asked, texts)
    if words is None:
        new_words = _costly(read, n_words)
    else:
        new_words, decisions = _checked_words(words, tokenizer, vocabulary.unknown_id)
    rows = [_cut(word, tokenizer).ids for word in new_words]
    agreement = _write(
        asked, folder, new_words, rows, list(texts.document_texts()) if texts else []
    )
    if agreement and agreement[1] < LEAST_COSINE:
        message = (
            f"Texts with new words changed (cosine {agreement[1]:.2f} with their former vectors): "
            "the encoder may be worse; see embedtopics.comparison.evaluate_encoders."
        )
        decisions.append(Decision("pretraining", "agreement", agreement[1], message))
    extended = SentenceEncoder(folder, precision=asked.recipe.precision)
    import pandas as pd

    table = pd.DataFrame({
        "word": new_words,
        "pieces": [" ".join(_cut(word, tokenizer).tokens) for word in new_words],
    })  # fmt: skip
    known_words = _known_words(tokenizer, texts, N_COMPARED)
    table["neighbors_before"] = _neighbors(asked, new_words, known_words)
    table["neighbors_after"] = _neighbors(extended, new_words, known_words)
    fertility = None
    if texts is not None and read is not None:
        fertility = (read.fertility, tokenizer_report(extended, texts).fertility)
    return ExtendedVocabulary(extended, table, fertility, tuple(decisions), agreement)


def _checked_words(
    words: Any, tokenizer: Tokenizer, unknown_id: int
) -> tuple[list[str], list[Decision]]:
    """Return the words that are new to the tokenizer, as it reads them, and how many are known."""
    folds = folds_case(tokenizer)
    seen: set[str] = set()
    new = []
    for row, word in enumerate(words):
        read = " ".join(word.split())
        if folds:
            read = read.lower()
        if not read:
            raise InputError("words", "words that are not blank", word, row=row)
        if read in seen:
            raise InputError("words", "distinct words", word, row=row)
        seen.add(read)

        ids = _cut(read, tokenizer).ids
        if len(ids) != 1 or ids[0] == unknown_id:
            new.append(read)

    if not new:
        expected = "a list with at least one word that is new to the tokenizer"
        got = f"{len(seen)} known words" if seen else "an empty list"
        raise InputError("words", expected, found=got)
    n_known = len(seen) - len(new)
    message = "of the words are known already, each as one piece."
    return new, counted("pretraining", "known_words", n_known, message)


def _costly(report: TokenizerReport | None, n_words: int) -> list[str]:
    """Return the words of a corpus that cost the most pieces."""
    if report is None:
        remedy = Remedy("corpus", alternative="list the words")
        raise InputError("words", "a list of words if there is no corpus", None, remedy)

    words = report.words
    is_word = words["word"].str.fullmatch(rf"[^\W\d_]{{{LEAST_LETTERS},}}")
    is_frequent = words["n_documents"] >= FEWEST_DOCUMENTS
    is_cut = words["cost"] > 0
    costly: list[str] = words.loc[is_frequent & is_cut & is_word, "word"].head(n_words).tolist()
    if not costly:
        expected = f"texts with a word of several pieces in at least {FEWEST_DOCUMENTS} of them"
        raise InputError("corpus", expected, found="none")
    return costly


def _is_spaced(tokenizer: Tokenizer) -> bool:
    """Return whether the first piece of a word includes the space before it."""
    one, two = (tokenizer.encode(text, add_special_tokens=False) for text in ("a", "a a"))
    return one.tokens != two.tokens[1:] or not one.tokens[0].isalnum()


def _cut(word: str, tokenizer: Tokenizer) -> Encoding:
    """Return the pieces of a word after a space, as within a text."""
    return tokenizer.encode(f" {word}", add_special_tokens=False)


def _known_words(tokenizer: Tokenizer, corpus: Corpus | None, most: int) -> list[str]:
    """Return words of one piece, the most frequent of the corpus or the first by id."""
    folds, counts = folds_case(tokenizer), Counter[str]()
    if corpus is not None:
        for _, words, _, _ in cut_words(corpus.document_texts(), tokenizer):
            counts.update(word.lower() if folds else word for word in words)
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
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


def _neighbors(encoder: SentenceEncoder, words: list[str], candidates: list[str]) -> list[str]:
    """Return the known words nearest to each word."""
    vectors = encoder.encode([*words, *candidates], show_progress=False)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = vectors[: len(words)] @ vectors[len(words) :].T
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :N_NEIGHBORS]
    return [", ".join(candidates[i] for i in row) for row in best]


def _write(
    encoder: SentenceEncoder,
    folder: Path,
    words: list[str],
    rows: list[list[int]],
    texts: list[str],
) -> tuple[float, float] | None:
    """Write the encoder, and its head for masked words, with more rows; see `_fit_rows`."""
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
            n_added = len(transformer.tokenizer) - n_before
            n_refused = len(words) - n_added
            expected = "words that the tokenizer accepts as new tokens"
            raise InputError("words", expected, found=f"{n_refused} that it refuses")

        _enlarge(transformer.model, n_before, rows)
        agreement = _fit_rows(model_of(encoder.recipe), model, n_before, len(words), texts)
        if (masked := _masked_model(checkpoint)) is not None:
            _enlarge(masked, n_before, rows)
            fitted = transformer.model.get_input_embeddings().weight.data[n_before:]
            masked.get_input_embeddings().weight.data[n_before:] = fitted

        with replacing_folder(folder, KIND) as fresh:
            model.save(str(fresh), create_model_card=False)
            if masked is not None:
                for file in fresh.glob("model*.safetensors*"):
                    file.unlink()
                masked.save_pretrained(fresh)
            write_manifest(fresh, KIND, _FORMAT)
    return agreement


def _fit_rows(
    former: Any, model: Any, n_before: int, n_words: int, texts: list[str]
) -> tuple[float, float] | None:
    """Fit the rows of new words; return the cosine that held-out texts keep, before and after."""
    import torch

    def features(network: Any, batch: list[str]) -> Any:
        options = {"truncation": True, "max_length": min(network.max_seq_length or 512, 512)}
        return network[0].tokenizer(batch, padding=True, return_tensors="pt", **options)

    texts = list(dict.fromkeys(" ".join(text.split()[:WORDS_READ]) for text in texts))
    rng = np.random.default_rng(0)
    texts = [texts[row] for row in rng.permutation(len(texts))[:MOST_TEXTS]]
    texts = _with_new_tokens(texts, model, n_before)

    n_held_out = min(MOST_HELD_OUT, len(texts) // 5)
    if n_held_out < LEAST_HELD_OUT:
        return None

    table = model.requires_grad_(False).eval()[0].model.get_input_embeddings()
    rows = torch.nn.Parameter(table.weight[n_before : n_before + n_words].clone())

    def replace(_: Any, inputs: Any, output: Any) -> Any:
        new = inputs[0] - n_before
        return torch.where((new >= 0)[..., None], rows[new.clamp(min=0)], output)

    def cosine(batch: list[str]) -> Any:
        with torch.no_grad():
            kept = former.eval()(dict(features(former, batch)))["sentence_embedding"]
        vectors = model(dict(features(model, batch)))["sentence_embedding"]
        return torch.nn.functional.cosine_similarity(vectors, kept).mean()

    hook = table.register_forward_hook(replace)
    optimizer = torch.optim.Adam([rows], lr=LEARNING_RATE)
    held_out = texts[:n_held_out]
    learned = texts[n_held_out:]

    with torch.no_grad():
        before = float(cosine(held_out))

    n_steps = min(STEPS_PER_WORD * n_words, MOST_STEPS)
    with progress_bar(total=n_steps, unit="step", description="Fitting words", show=None) as bar:
        for step in range(n_steps):
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / n_steps)
            optimizer.zero_grad()
            batch = [learned[i] for i in rng.integers(len(learned), size=BATCH_SIZE)]
            loss = 1 - cosine(batch)
            loss.backward()
            optimizer.step()
            bar.update()

    with torch.no_grad():
        after = float(cosine(held_out))
        hook.remove()
        table.weight[n_before : n_before + n_words] = rows
    return before, after


def _with_new_tokens(texts: list[str], model: Any, n_before: int) -> list[str]:
    """Return the texts that have a token from `n_before` on, as far as they are read."""
    most = min(model.max_seq_length or 512, 512)
    found: list[str] = []
    for slab in slabs(texts):
        token_ids = model[0].tokenizer(list(slab), truncation=True, max_length=most)["input_ids"]
        for text, ids in zip(slab, token_ids, strict=True):
            if max(ids, default=-1) >= n_before:
                found.append(text)
    return found


class Architectures(ForeignRecord):
    """The classes that a model was saved from, in its ``config.json``."""

    architectures: list[str] | None = None


def _masked_model(checkpoint: Checkpoint) -> Any:
    """Return a checkpoint with its head for masked words; None if it has none."""
    import torch
    from transformers import AutoModelForMaskedLM

    names = read_file(Architectures, checkpoint.folder / "config.json").architectures or []
    if not any(name.endswith("ForMaskedLM") for name in names):
        return None
    return AutoModelForMaskedLM.from_pretrained(
        checkpoint.folder, dtype=torch.float32, use_safetensors=True, local_files_only=True
    )


def _enlarge(model: Any, n_tokens: int, rows: list[list[int]]) -> None:
    """Add a row for each new word: the mean of its pieces."""
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
                table[place] = table[ids].mean(dim=0)
