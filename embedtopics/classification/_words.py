"""A classifier of words: tags, or entities as BIO labels, from an encoder's tokens."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics._utils.folders import open_saved, parse_json, replacing_folder, write_manifest
from embedtopics.classification._folds import grouped_folds
from embedtopics.classification._heads import USUAL_STRENGTH, LinearHead, cross_fit, fit_head
from embedtopics.classification._spans import checked_labels, checked_words, word_scores
from embedtopics.encoders._base import readable
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._registry import encoder_from_settings, resolve_encoder
from embedtopics.encoders.sentence._alignment import align
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_checkpoint
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_model, load_vocabulary, silent_transformers
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.training._settings import TrainingSettings, settings_from

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("frozen", "fine_tune")
KIND, FORMAT = "word classifier", 1
ABOUT, ARRAYS, MODEL = "classifier.json", "arrays.safetensors", "model"

FINE_TUNE = {"batch_size": 16, "learning_rate": 5e-5, "patience": None}
"""Beside the usual settings: 3 epochs, weight decay of 0.01."""

WORDS_OF_FOLDS = 8_000
"""Words that choose the strength of a "frozen" head, in whole sentences: more change nothing."""

SENTENCES_AT_ONCE = 64
LEFT_OUT = -100  # the label without a loss, as transformers has it

Words = Sequence[str]


class TokenClassifier(BaseEstimator):  # type: ignore[misc]
    """Gives the words of sentences the labels that it has learned from labelled ones.

    Parameters
    ----------
    encoder : str, path or SentenceEncoder
        A checkpoint of the BERT family.
    method : {"frozen", "fine_tune"}
        "frozen": logistic regression on the vectors of words, which are the means of their tokens
        in three layers (the first, the middle and the last); its strength is chosen by
        cross-validation over sentences. "fine_tune": all weights are trained with a head on the
        first token of each word (Devlin et al. 2019, section 5.3).
    training : mapping, optional
        Fields of `embedtopics.training.TrainingSettings` for "fine_tune", such as
        ``{"epochs": 4, "learning_rate": 3e-5}``.
    random_state : int, Generator or None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> words = [["Ada", "lives", "in", "Paris"], ["Bo", "left", "Rome"]]
    >>> labels = [["B-person", "O", "O", "B-place"], ["B-person", "O", "B-place"]]
    >>> model = TokenClassifier(method="fine_tune").fit(words, labels)  # doctest: +SKIP
    >>> model.predict([["Ada", "saw", "Rome"]])  # doctest: +SKIP
    [['B-person', 'O', 'B-place']]
    """

    def __init__(
        self,
        encoder: Any = "all-MiniLM-L6-v2",
        method: str = "frozen",
        *,
        training: Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.encoder = encoder
        self.method = method
        self.training = training
        self.random_state = random_state

    def fit(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> Self:
        """Learn from labelled sentences.

        Parameters
        ----------
        X : sequence of sequences of str
            The words of each sentence.
        y : sequence of sequences of str
            A label for each word, such as "NOUN" or "B-person".

        Returns
        -------
        TokenClassifier

        Raises
        ------
        InputError
            Where words or labels cannot be used: the message names the row.
        """
        checked_choice(self.method, "method", METHODS)
        if self.method == "frozen" and self.training:
            raise InputError("training", 'left out for method="frozen"')
        sentences = checked_words(X)
        labels = checked_labels(y, sentences)
        seed = resolve_seed(self.random_state)
        self.classes_ = np.unique([label for row in labels for label in row])
        if len(self.classes_) < 2:
            found = f"one class: {self.classes_.tolist()}"
            raise InputError("y", "labels of at least 2 classes", found=found)
        codes = [np.searchsorted(self.classes_, row) for row in labels]
        self.encoder_ = _encoder_of(self.encoder)
        if self.method == "frozen":
            self._fit_frozen(sentences, codes, seed)
        else:
            self._fine_tune(sentences, codes, seed)
        return self

    def _fit_frozen(self, sentences: list[list[str]], codes: list[Int64Array], seed: int) -> None:
        self._reader = _reader_of(self.encoder_)
        vectors = np.concatenate(self._reader.vectors(sentences))
        of_word, row = (
            np.concatenate(codes),
            np.repeat(np.arange(len(codes)), list(map(len, codes))),
        )
        strength = USUAL_STRENGTH
        order = np.random.default_rng(seed).permutation(len(codes))
        sizes = np.array([len(codes[place]) for place in order])
        chosen = order[: max(2, int(np.searchsorted(np.cumsum(sizes), WORDS_OF_FOLDS)))]
        rows = np.flatnonzero(np.isin(row, chosen))
        folds = grouped_folds(of_word[rows], row[rows], 3, seed)
        if len(np.unique(folds)) > 1:
            strength, _ = cross_fit("softmax", vectors[rows], of_word[rows], folds)
        self.head_: LinearHead = fit_head("softmax", vectors, of_word, strength)

    def _fine_tune(self, sentences: list[list[str]], codes: list[Int64Array], seed: int) -> None:
        import torch
        from transformers import PrinterCallback, Trainer

        from embedtopics.training.trainer._trainer import (
            arguments_for,
            device_and_precision,
            quiet_and_private,
        )

        given = {**FINE_TUNE, "random_state": seed, **(self.training or {})}
        settings: TrainingSettings = settings_from(TrainingSettings, given)
        recipe = self.encoder_.recipe
        names = dict(enumerate(self.classes_.tolist()))
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            self._reader = _trained_reader(
                recipe.checkpoint, recipe.max_length, num_labels=len(names), id2label=names,
                label2id={name: place for place, name in names.items()},
            )  # fmt: skip
        model = self._reader.model
        examples: list[dict[str, Any]] = []
        for part in self._reader.parts(sentences):
            wanted, first = np.full(len(part.ids), LEFT_OUT), part.first_tokens()
            wanted[first] = codes[part.row][part.start + part.owners[first]]
            examples.append({"input_ids": part.ids, "labels": wanted})
        device, precision = device_and_precision(settings)
        per_epoch = -(-len(examples) // (settings.batch_size * settings.accumulation))
        n_steps = settings.max_steps or max(1, round(settings.epochs * per_epoch))
        with tempfile.TemporaryDirectory() as folder, quiet_and_private():
            arguments = arguments_for(settings, n_steps, precision, device, Path(folder))
            arguments.remove_unused_columns = False
            arguments.train_sampling_strategy = "group_by_length"
            trainer = Trainer(
                model, arguments, data_collator=self._reader.batch, train_dataset=examples
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        model.to("cpu").eval()

    def predict_proba(self, X: Sequence[Words]) -> list[Float64Array]:
        """Return the chance of each class for each word, an array (n_words, n_classes) a sentence.

        They are those of the fit, not calibrated. A sentence that is longer than the encoder reads
        is read in parts.
        """
        from scipy.special import softmax
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "classes_")
        sentences = checked_words(X, may_be_empty=True)
        if self.method == "frozen":
            scores = [self.head_.scores(each) if len(each) else np.zeros((0, len(self.classes_)))
                      for each in self._reader.vectors(sentences)]  # fmt: skip
        else:
            scores = self._reader.logits(sentences, len(self.classes_))
        return [softmax(each, axis=1) for each in scores]

    def predict(self, X: Sequence[Words]) -> list[list[str]]:
        """Return the likeliest label of each word, a list a sentence."""
        return [self.classes_[found.argmax(axis=1)].tolist() for found in self.predict_proba(X)]

    def score(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> float:
        """Return F1 over whole entities where labels are BIO, else the share of right words."""
        return float(self.evaluate(X, y, n_resamples=0)["f1"].iloc[-1])

    def evaluate(
        self, X: Sequence[Words], y: Sequence[Sequence[str]], *, n_resamples: int = 1000
    ) -> pd.DataFrame:
        """Compare with labels by hand; see `word_scores`."""
        return word_scores(y, self.predict(X), n_resamples=n_resamples)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write arrays and JSON, and for "fine_tune" a checkpoint; `TokenClassifier.load` reads it.

        ``AutoModelForTokenClassification`` loads the subfolder "model" of the latter.
        """
        from safetensors.numpy import save_file
        from sklearn.utils.validation import check_is_fitted
        from transformers import AutoTokenizer

        check_is_fitted(self, "classes_")
        seed = self.random_state if isinstance(self.random_state, int) else None
        reader = self._reader
        about: dict[str, Any] = {
            "method": self.method, "training": self.training and dict(self.training),
            "random_state": seed, "classes": self.classes_.tolist(),
            "encoder": None, "max_length": reader.max_length,
        }  # fmt: skip
        with replacing_folder(Path(folder).expanduser(), KIND) as fresh:
            if self.method == "frozen":
                about["encoder"] = self.encoder_.settings
                save_file({"weights": self.head_.weights, "bias": self.head_.bias}, fresh / ARRAYS)
            else:
                with silent_transformers():
                    reader.model.save_pretrained(fresh / MODEL)
                    AutoTokenizer.from_pretrained(
                        reader.checkpoint.folder, local_files_only=True, trust_remote_code=False
                    ).save_pretrained(fresh / MODEL)
            (fresh / ABOUT).write_text(json.dumps(about, indent=1), "utf-8")
            write_manifest(fresh, KIND, FORMAT)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TokenClassifier:
        """Read a classifier that `save` wrote.

        Raises
        ------
        CorruptFileError
            Where the folder is damaged, of a newer version, or no classifier of words.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        path = Path(folder).expanduser()
        with open_saved(path, KIND, FORMAT) as saved:
            try:
                about = parse_json(saved.streams[ABOUT].read())
                model = cls(method=about["method"], training=about["training"],
                            random_state=about["random_state"])  # fmt: skip
                model.classes_ = np.array([str(name) for name in about["classes"]])
                if model.method == "frozen":
                    arrays = load(saved.streams[ARRAYS].read())
                    model.head_ = LinearHead("softmax", arrays["weights"], arrays["bias"])
                    if model.head_.bias.shape != model.classes_.shape:
                        raise ValueError("its head does not fit its classes")
                    model.encoder_ = model.encoder = _encoder_of(
                        encoder_from_settings(about["encoder"])
                    )
                length = int(about["max_length"])
            except (KeyError, TypeError, ValueError, AttributeError, SafetensorError) as error:
                raise CorruptFileError(f"{path} is damaged ({error}); save again") from error
        if model.method == "frozen":
            model._reader = _reader_of(model.encoder_)
        else:
            model.encoder = path / MODEL
            model._reader = _trained_reader(read_checkpoint(path / MODEL), length)
        return model


def _encoder_of(encoder: Any) -> SentenceEncoder:
    found: Any = resolve_encoder(encoder)
    found = found.uncached if isinstance(found, CachedEncoder) else found
    if not isinstance(found, SentenceEncoder):
        expected = "a checkpoint of a transformer, its folder or a SentenceEncoder"
        raise InputError("encoder", expected, found=type(found).__name__)
    return found


def _reader_of(encoder: SentenceEncoder, model: Any = None) -> _Reader:
    recipe = encoder.recipe
    if model is None:
        model = load_model(recipe.checkpoint, trust_remote_code=recipe.trusts_code)
    return _Reader(recipe.checkpoint, recipe.max_length, model, recipe.trusts_code)


def _trained_reader(checkpoint: Checkpoint, max_length: int, **config: Any) -> _Reader:
    """Load a checkpoint with a head on tokens; one that has none gets weights at random."""
    from transformers import AutoModelForTokenClassification

    with silent_transformers():
        model: Any = AutoModelForTokenClassification.from_pretrained(
            checkpoint.folder, use_safetensors=True, local_files_only=True,
            trust_remote_code=False, **config,
        )  # fmt: skip
    return _Reader(checkpoint, max_length, model.eval())


@dataclass(frozen=True)
class _Part:
    """Words of a sentence that are read at once: their tokens, and the word of each or -1."""

    row: int
    start: int
    ids: list[int]
    owners: Int64Array

    def first_tokens(self) -> Int64Array:
        """Return the place of the first token of each word that has any."""
        values, first = np.unique(self.owners, return_index=True)
        return np.asarray(first[values >= 0])


class _Reader:
    """A checkpoint that reads the words of sentences."""

    def __init__(
        self, checkpoint: Checkpoint, max_length: int, model: Any, trusts_code: bool = False
    ) -> None:
        vocabulary = load_vocabulary(checkpoint, trusts_code)
        self.checkpoint, self.max_length, self.model = checkpoint, max_length, model
        self.tokenizer, self.pad_id = vocabulary.tokenizer, vocabulary.pad_id

    def parts(self, sentences: Sequence[Words]) -> Iterator[_Part]:
        """Cut sentences into parts that the model can read, and these into tokens."""
        waiting = [(row, 0, list(words)) for row, words in enumerate(sentences) if words]
        while waiting:
            texts = [" ".join(map(readable, words)) for *_, words in waiting]
            halves = []
            for (row, start, words), encoding in zip(
                waiting, self.tokenizer.encode_batch(texts), strict=True
            ):
                if len(encoding.ids) > self.max_length and len(words) > 1:
                    half = len(words) // 2
                    halves += [(row, start, words[:half]), (row, start + half, words[half:])]
                else:
                    yield self._part(row, start, words, encoding)
            waiting = halves

    def _part(self, row: int, start: int, words: list[str], encoding: Any) -> _Part:
        ends = np.cumsum([len(readable(word)) + 1 for word in words])
        spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends - 1])
        is_own = np.array(encoding.special_tokens_mask) == 0
        places = np.flatnonzero(is_own)
        stretches = encoding.word_ids
        owners = np.full(len(encoding.ids), -1, dtype=np.int64)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        owners[places] = align(spans, offsets[places], [stretches[place] for place in places])
        kept = np.arange(len(owners))
        if len(kept) > self.max_length:  # one endless word: its beginning says enough
            kept = np.concatenate([kept[: self.max_length - 1], kept[-1:]])
        return _Part(row, start, [encoding.ids[place] for place in kept], owners[kept])

    def batch(self, parts: Sequence[Any]) -> dict[str, Any]:
        """Return padded tensors of parts, with the labels of those that have some."""
        import torch

        longest = max(len(part["input_ids"]) for part in parts)
        columns: dict[str, Any] = {
            name: torch.full((len(parts), longest), fill)
            for name, fill in (("input_ids", self.pad_id), ("attention_mask", 0), ("labels", -100))
        }
        for place, part in enumerate(parts):
            n = len(part["input_ids"])
            columns["input_ids"][place, :n] = torch.tensor(part["input_ids"])
            columns["attention_mask"][place, :n] = 1
            columns["labels"][place, :n] = torch.tensor(part["labels"])
        return columns

    def run(
        self,
        sentences: Sequence[Words],
        width: int,
        read: Callable[[Any, int, _Part], Float64Array],
    ) -> list[Float64Array]:
        """Return what is read of the outputs of parts, put together for each sentence."""
        import torch

        made = [np.zeros((len(words), width)) for words in sentences]
        parts = sorted(self.parts(sentences), key=lambda part: len(part.ids))
        for begin in range(0, len(parts), SENTENCES_AT_ONCE):
            some = parts[begin : begin + SENTENCES_AT_ONCE]
            columns = self.batch([{"input_ids": part.ids, "labels": part.owners} for part in some])
            del columns["labels"]
            device = next(self.model.parameters()).device
            with torch.inference_mode():
                output = self.model(
                    **{name: column.to(device) for name, column in columns.items()},
                    output_hidden_states=True,
                )
            for place, part in enumerate(some):
                n_words = int(part.owners.max(initial=-1)) + 1
                found = read(output, place, part)
                made[part.row][part.start : part.start + n_words] = found
        return made

    def vectors(self, sentences: Sequence[Words]) -> list[Float64Array]:
        """Return the mean vectors of the tokens of each word in three layers, end to end."""

        def means(output: Any, place: int, part: _Part) -> Float64Array:
            layers = output.hidden_states
            of_token = np.concatenate(
                [layer[place, : len(part.ids)].double().cpu().numpy()
                 for layer in (layers[0], layers[len(layers) // 2], layers[-1])], axis=1,
            )  # fmt: skip
            own = part.owners >= 0
            sums = np.zeros((int(part.owners.max(initial=-1)) + 1, of_token.shape[1]))
            np.add.at(sums, part.owners[own], of_token[own])
            sizes = np.bincount(part.owners[own], minlength=len(sums))
            return np.asarray(sums / np.maximum(sizes, 1)[:, None])

        return self.run(sentences, 3 * self.model.config.hidden_size, means)

    def logits(self, sentences: Sequence[Words], n_classes: int) -> list[Float64Array]:
        """Return the scores at the first token of each word; of a word without one, zeros."""

        def firsts(output: Any, place: int, part: _Part) -> Float64Array:
            found = np.zeros((int(part.owners.max(initial=-1)) + 1, n_classes))
            first = part.first_tokens()
            scores = output.logits[place, : len(part.ids)].double().cpu().numpy()
            found[part.owners[first]] = scores[first]
            return found

        return self.run(sentences, n_classes, firsts)
