"""Label words: a token classifier; see `_entities` for entities and their scores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics.classification._entities import checked_labels, checked_words, evaluate_tokens
from embedtopics.classification._heads import (
    DEFAULT_STRENGTH,
    LinearHead,
    cross_fit,
    fit_head,
    grouped_folds,
)
from embedtopics.classification._pairs import (
    RATE_OF_WIDTH,
    learn_batches,
    settings_mapping,
    step_settings,
)
from embedtopics.classification._records import TokenClassifierRecord
from embedtopics.classification._storage import (
    TOKEN_KIND,
    checked_head,
    part_of,
    read_folder,
    recorded_settings,
    refuse_damage,
    refuse_other_kind,
    write_folder,
)
from embedtopics.encoders._base import readable, require_torch
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_checkpoint
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.encoders.sentence._running import align
from embedtopics.encoders.sentence._torch import load_model, silent_transformers
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.training.objectives._trainable import transformer_of

if TYPE_CHECKING:
    from embedtopics.training._settings import TrainingSettings

METHODS = ("frozen", "fine_tune")
MODEL = "model"

BATCH, EPOCHS, LEAST_STEPS = 16, 3, 240
"""Sentences in a batch, passes over them, and minimum number of steps. With 320 sentences of
WNUT-17, the F1 of entities was 0 after 60 steps at 5e-5 and .32 after 240 at 1e-4 (one draw)."""

CROSS_FIT_WORDS = 8_000
"""Words for the cross-validation of a "frozen" head, in whole sentences: more change nothing."""

SENTENCES_AT_ONCE = 64

Words = Sequence[str]


class TokenClassifier(BaseEstimator):  # type: ignore[misc]
    """Predict a label for each word of a sentence, such as its part of speech or entity.

    Parameters
    ----------
    encoder : str, path or SentenceEncoder
        A checkpoint of the BERT family.
    method : {"frozen", "fine_tune"}
        "frozen" fits a logistic regression on word vectors: the means of the tokens of a word in
        the first, the middle and the last layer. Cross-validation over sentences chooses the
        strength of its penalty. "fine_tune" trains all weights with a head on the first token of
        each word (Devlin et al. 2019, section 5.3).
    settings : TrainingSettings or mapping, optional
        Settings of training for "fine_tune", such as ``{"epochs": 4, "learning_rate": 3e-5}``. By
        default it takes 3 epochs, but at least 240 steps, at a peak learning rate of 1e-4 for
        vectors of 384 dimensions, in inverse proportion to the width.
    random_state : int, Generator or None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> words = [["Ada", "lives", "in", "Paris"], ["Bo", "left", "Rome"], ["Ada", "left", "Paris"]]
    >>> tags = [["B-person", "O", "O", "B-place"], ["B-person", "O", "B-place"]]
    >>> tags.append(["B-person", "O", "B-place"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tokenizer = et.pretraining.train_tokenizer([" ".join(s) for s in words], vocab_size=100)
    ...     encoder = et.pretraining.new_encoder(tokenizer, out=f"{folder}/small")
    ...     tagger = et.TokenClassifier(f"{folder}/small").fit(words, tags)
    ...     tagger.predict([["Bo", "left", "Paris"]])
    [['B-person', 'O', 'B-place']]
    """

    def __init__(
        self,
        encoder: Any = "all-MiniLM-L6-v2",
        *,
        method: str = "frozen",
        settings: TrainingSettings | Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.encoder = encoder
        self.method = method
        self.settings = settings
        self.random_state = random_state

    def fit(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> Self:
        """Learn from labelled sentences.

        Parameters
        ----------
        X : sequence of sequences of str
            The words of each sentence.
        y : sequence of sequences of str
            One label for each word, such as "NOUN" or "B-person".

        Returns
        -------
        TokenClassifier

        Raises
        ------
        InputError
            If words or labels are invalid; the message names the row.
        """
        checked_choice(self.method, "method", METHODS)
        if self.method == "frozen" and self.settings:
            raise InputError("settings", 'left out for method="frozen"')
        sentences = checked_words(X)
        labels = checked_labels(y, sentences)
        seed = resolve_seed(self.random_state)
        self.classes_ = np.unique([label for row in labels for label in row])
        if len(self.classes_) < 2:
            raise InputError("y", "labels of at least 2 classes", self.classes_.tolist())
        codes = [np.searchsorted(self.classes_, row) for row in labels]
        self.encoder_ = transformer_of(self.encoder)
        if self.method == "frozen":
            self._fit_frozen(sentences, codes, seed)
        else:
            self._fine_tune(sentences, codes, seed)
        return self

    def _fit_frozen(self, sentences: list[list[str]], codes: list[Int64Array], seed: int) -> None:
        self._reader = _reader_of(self.encoder_)
        vectors = np.concatenate(self._reader.vectors(sentences))
        sizes = np.array(list(map(len, codes)))
        of_word, row = np.concatenate(codes), np.repeat(np.arange(len(codes)), sizes)
        strength = DEFAULT_STRENGTH
        order = np.random.default_rng(seed).permutation(len(codes))
        n_sentences = max(2, int(np.searchsorted(np.cumsum(sizes[order]), CROSS_FIT_WORDS)))
        rows = np.flatnonzero(np.isin(row, order[:n_sentences]))
        folds = grouped_folds(of_word[rows], row[rows], 3, seed)
        if len(np.unique(folds)) > 1:
            strength, _ = cross_fit("softmax", vectors[rows], of_word[rows], folds)
        self.head_: LinearHead = fit_head("softmax", vectors, of_word, strength)

    def _fine_tune(self, sentences: list[list[str]], codes: list[Int64Array], seed: int) -> None:
        torch = require_torch('method="fine_tune"')
        recipe, names = self.encoder_.recipe, dict(enumerate(self.classes_.tolist()))
        options = {"batch_size": BATCH, "random_state": seed, **settings_mapping(self.settings)}
        if "epochs" not in options:
            n_steps = round(EPOCHS * len(sentences) / options["batch_size"])
            options.setdefault("max_steps", max(LEAST_STEPS, n_steps))
        options.setdefault("learning_rate", RATE_OF_WIDTH / (recipe.checkpoint.width or 768))
        settings = step_settings(options)
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            config = {"num_labels": len(names), "id2label": names}
            config["label2id"] = {name: code for code, name in names.items()}
            reader = _trained_reader(recipe.checkpoint, recipe.max_length, **config)
        self._reader = reader
        parts, labels = list(reader.parts(sentences)), []
        for part in parts:
            of_tokens, first = np.full(len(part.ids), -100), part.first_tokens()  # -100: no loss
            of_tokens[first] = codes[part.row][part.start + part.word_of[first]]
            labels.append(of_tokens)

        def loss_of(rows: list[int], device: str) -> Any:
            columns = reader.batch([parts[row].ids for row in rows], [labels[row] for row in rows])
            return reader.model(**{k: v.to(device) for k, v in columns.items()}).loss

        learn_batches(reader.model, [len(part.ids) for part in parts], loss_of, settings)

    def predict_proba(self, X: Sequence[Words]) -> list[Float64Array]:
        """Return the probability of each class, an array (n_words, n_classes) for each sentence.

        The probabilities are not calibrated. A sentence beyond the encoder's maximum length is
        encoded in parts.
        """
        from scipy.special import softmax

        check_is_fitted(self, "classes_")
        sentences = checked_words(X, may_be_empty=True)
        if self.method == "frozen":
            scores = list(map(self.head_.scores, self._reader.vectors(sentences)))
        else:
            scores = self._reader.logits(sentences, len(self.classes_))
        return [softmax(each, axis=1) for each in scores]

    def predict(self, X: Sequence[Words]) -> list[list[str]]:
        """Return the most probable label of each word, a list for each sentence."""
        return [self.classes_[p.argmax(axis=1)].tolist() for p in self.predict_proba(X)]

    def score(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> float:
        """Return the F1 of entities if labels are their tags, otherwise the accuracy of words."""
        return float(evaluate_tokens(y, self.predict(X), n_resamples=0)["f1"].iloc[-1])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write arrays and JSON, and a checkpoint for "fine_tune"; `load` reads the folder.

        ``AutoModelForTokenClassification`` loads the checkpoint from the subfolder "model".
        """
        from transformers import AutoTokenizer

        check_is_fitted(self, "classes_")
        reader, is_frozen = self._reader, self.method == "frozen"
        about = {
            "method": self.method,
            "training": settings_mapping(self.settings) or None,
            "random_state": self.random_state if isinstance(self.random_state, int) else None,
            "classes": self.classes_.tolist(),
            "max_length": reader.max_length,
            "encoder": self.encoder_.settings if is_frozen else None,
        }
        head = {"weights": self.head_.weights, "bias": self.head_.bias} if is_frozen else {}
        with write_folder(folder, TOKEN_KIND, about, head) as fresh:
            if not is_frozen:
                with silent_transformers():
                    reader.model.save_pretrained(fresh / MODEL)
                    AutoTokenizer.from_pretrained(
                        reader.checkpoint.folder, local_files_only=True, trust_remote_code=False
                    ).save_pretrained(fresh / MODEL)

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, encoder: str | os.PathLike[str] | Any = None
    ) -> Self:
        """Read a classifier that `save` wrote.

        Parameters
        ----------
        folder : path
        encoder : str, path or SentenceEncoder, optional
            The encoder of a "frozen" fit, if it is not on this machine or runs its own code.

        Raises
        ------
        InputError
            If the folder holds a `TextClassifier`.
        CorruptFileError
            If the folder is damaged, was written by a newer version, or holds no token classifier.
        """
        path = Path(folder).expanduser()
        refuse_other_kind(path, "TokenClassifier")
        about, arrays = read_folder(path, TOKEN_KIND, TokenClassifierRecord)
        settings = recorded_settings(about.training)
        model = cls(method=about.method, settings=settings, random_state=about.random_state)
        model.classes_ = np.array(about.classes)

        if model.method == "frozen":
            with refuse_damage(path):
                model.head_ = checked_head("softmax", len(about.classes), arrays)
            encoder = encoder_from_settings(about.encoder) if encoder is None else encoder
            model.encoder = model.encoder_ = transformer_of(encoder)
            model._reader = _reader_of(model.encoder_)
        else:
            model.encoder = part_of(path, MODEL)
            checkpoint = read_checkpoint(model.encoder)
            limit = checkpoint.position_limit
            model._reader = _trained_reader(checkpoint, about.max_length)
            with refuse_damage(path):
                if model._reader.model.config.num_labels != len(about.classes):
                    raise ValueError("its model does not fit its classes")
                if limit is not None and about.max_length > limit:
                    raise ValueError(f"its model reads at most {limit} tokens")

        return model


def _reader_of(encoder: SentenceEncoder) -> _Reader:
    recipe = encoder.recipe
    model = load_model(recipe.checkpoint, trust_remote_code=recipe.trusts_code)
    return _Reader(recipe.checkpoint, recipe.max_length, model, recipe.trusts_code)


def _trained_reader(checkpoint: Checkpoint, max_length: int, **config: Any) -> _Reader:
    """Load a checkpoint with a head on tokens; a new head is initialized at random."""
    from transformers import AutoModelForTokenClassification

    with silent_transformers():
        options: Any = {"local_files_only": True, "trust_remote_code": False, **config}
        model: Any = AutoModelForTokenClassification.from_pretrained(
            checkpoint.folder, use_safetensors=True, **options
        )
    return _Reader(checkpoint, max_length, model.eval())


@dataclass(frozen=True)
class _Part:
    """Words of a sentence that are encoded together: their tokens, and the word of each or -1."""

    row: int
    start: int
    ids: list[int]
    word_of: Int64Array

    def first_tokens(self) -> Int64Array:
        """Return the position of the first token of each word."""
        values, first = np.unique(self.word_of, return_index=True)
        return np.asarray(first[values >= 0])


class _Reader:
    """Encode the words of sentences with a checkpoint."""

    def __init__(
        self, checkpoint: Checkpoint, max_length: int, model: Any, trusts_code: bool = False
    ) -> None:
        vocabulary = load_vocabulary(checkpoint, trusts_code)
        self.checkpoint, self.max_length, self.model = checkpoint, max_length, model
        self.tokenizer, self.pad_id = vocabulary.tokenizer, vocabulary.pad_id

    def parts(self, sentences: Sequence[Words]) -> Iterator[_Part]:
        """Split sentences into parts that fit the maximum length, and tokenize them."""
        pending = [(row, 0, list(words)) for row, words in enumerate(sentences) if words]
        while pending:
            texts = [" ".join(map(readable, words)) for *_, words in pending]
            halves = []
            for (row, start, words), encoding in zip(
                pending, self.tokenizer.encode_batch(texts), strict=True
            ):
                if len(encoding.ids) > self.max_length and len(words) > 1:
                    half = len(words) // 2
                    halves += [(row, start, words[:half]), (row, start + half, words[half:])]
                else:
                    yield self._part(row, start, words, encoding)
            pending = halves

    def _part(self, row: int, start: int, words: list[str], encoding: Any) -> _Part:
        ends = np.cumsum([len(readable(word)) + 1 for word in words])
        spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends - 1])
        positions = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
        word_of = np.full(len(encoding.ids), -1, dtype=np.int64)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        word_ids = encoding.word_ids
        word_of[positions] = align(spans, offsets[positions], [word_ids[i] for i in positions])
        tokens = np.arange(len(word_of))
        if len(tokens) > self.max_length:  # one endless word: encode its beginning
            tokens = np.concatenate([tokens[: self.max_length - 1], tokens[-1:]])
        return _Part(row, start, [encoding.ids[i] for i in tokens], word_of[tokens])

    def batch(self, ids: Sequence[Any], labels: Sequence[Any] = ()) -> dict[str, Any]:
        """Return padded tensors of tokens, and of labels if there are any."""
        import torch

        def padded(rows: Sequence[Any], fill: int) -> Any:
            columns = [torch.as_tensor(row) for row in rows]
            return torch.nn.utils.rnn.pad_sequence(columns, True, fill)

        columns = {
            "input_ids": padded(ids, self.pad_id),
            "attention_mask": padded([[1] * len(row) for row in ids], 0),
        }
        return columns | ({"labels": padded(labels, -100)} if len(labels) else {})

    def _encode(
        self, sentences: Sequence[Words], width: int, of_tokens: Callable[[Any], Any], first: bool
    ) -> list[Float64Array]:
        """Return values of words, (n_words, width): of their first tokens, or means of all."""
        import torch

        of_words = [np.zeros((len(words), width)) for words in sentences]
        parts = sorted(self.parts(sentences), key=lambda part: len(part.ids))
        device = next(self.model.parameters()).device
        for begin in range(0, len(parts), SENTENCES_AT_ONCE):
            batch = parts[begin : begin + SENTENCES_AT_ONCE]
            columns = self.batch([part.ids for part in batch])
            inputs = {name: column.to(device) for name, column in columns.items()}
            with torch.inference_mode():
                values = of_tokens(self.model(**inputs, output_hidden_states=not first))
            for part, rows in zip(batch, values.double().cpu().numpy(), strict=True):
                tokens = part.first_tokens() if first else np.flatnonzero(part.word_of >= 0)
                words = part.word_of[tokens]
                shares = rows[tokens] / np.bincount(words)[words, None]
                np.add.at(of_words[part.row], part.start + words, shares)
        return of_words

    def vectors(self, sentences: Sequence[Words]) -> list[Float64Array]:
        """Return the concatenated mean token vectors of each word in three layers."""
        import torch

        def layers(output: Any) -> Any:
            states = output.hidden_states
            return torch.cat([states[0], states[len(states) // 2], states[-1]], dim=-1)

        return self._encode(sentences, 3 * self.model.config.hidden_size, layers, first=False)

    def logits(self, sentences: Sequence[Words], n_classes: int) -> list[Float64Array]:
        """Return the scores at the first token of each word; zeros for a word without tokens."""
        return self._encode(sentences, n_classes, lambda output: output.logits, first=True)
