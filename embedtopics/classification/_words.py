"""Labels of words: a classifier of them, entities as BIO labels, their scores, and files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics._utils.folders import replacing_file
from embedtopics.classification._heads import (
    USUAL_STRENGTH,
    LinearHead,
    cross_fit,
    fit_head,
    grouped_folds,
    rates,
)
from embedtopics.classification._pairs import OF_BOTH, learn_batches, settings_of
from embedtopics.classification._storage import damage, read_saved, written
from embedtopics.encoders._base import readable
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.encoders.sentence._alignment import align
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_checkpoint
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_model, load_vocabulary, silent_transformers
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.training.objectives._trainable import transformer_of

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("frozen", "fine_tune")
KIND, MODEL = "word classifier", "model"

FINE_TUNE = {"batch_size": 16, "learning_rate": 5e-5}
"""Beside the usual settings: 3 epochs, weight decay of 0.01."""

WORDS_OF_FOLDS = 8_000
"""Words that choose the strength of a "frozen" head, in whole sentences: more change nothing."""

SENTENCES_AT_ONCE = 64

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
        strength = USUAL_STRENGTH
        order = np.random.default_rng(seed).permutation(len(codes))
        n_chosen = max(2, int(np.searchsorted(np.cumsum(sizes[order]), WORDS_OF_FOLDS)))
        rows = np.flatnonzero(np.isin(row, order[:n_chosen]))
        folds = grouped_folds(of_word[rows], row[rows], 3, seed)
        if len(np.unique(folds)) > 1:
            strength, _ = cross_fit("softmax", vectors[rows], of_word[rows], folds)
        self.head_: LinearHead = fit_head("softmax", vectors, of_word, strength)

    def _fine_tune(self, sentences: list[list[str]], codes: list[Int64Array], seed: int) -> None:
        import torch

        given = {**FINE_TUNE, "random_state": seed, **(self.training or {})}
        settings = settings_of(given, OF_BOTH)
        recipe, names = self.encoder_.recipe, dict(enumerate(self.classes_.tolist()))
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            reader = self._reader = _trained_reader(
                recipe.checkpoint, recipe.max_length, num_labels=len(names), id2label=names,
                label2id={name: place for place, name in names.items()},
            )  # fmt: skip
        parts, wanted = list(reader.parts(sentences)), []
        for part in parts:
            labels, first = np.full(len(part.ids), -100), part.first_tokens()  # -100: no loss
            labels[first] = codes[part.row][part.start + part.owners[first]]
            wanted.append(labels)

        def loss_of(rows: list[int], device: str) -> Any:
            columns = reader.batch([parts[row].ids for row in rows], [wanted[row] for row in rows])
            return reader.model(**{k: v.to(device) for k, v in columns.items()}).loss

        learn_batches(reader.model, [len(part.ids) for part in parts], loss_of, settings)

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
            scores = list(map(self.head_.scores, self._reader.vectors(sentences)))
        else:
            scores = self._reader.logits(sentences, len(self.classes_))
        return [softmax(each, axis=1) for each in scores]

    def predict(self, X: Sequence[Words]) -> list[list[str]]:
        """Return the likeliest label of each word, a list a sentence."""
        return [self.classes_[found.argmax(axis=1)].tolist() for found in self.predict_proba(X)]

    def score(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> float:
        """Return F1 over whole entities where labels are BIO, else the share of right words."""
        return float(word_scores(y, self.predict(X), n_resamples=0)["f1"].iloc[-1])

    def evaluate(self, X: Sequence[Words], y: Sequence[Sequence[str]]) -> pd.DataFrame:
        """Compare with labels by hand; see `word_scores`."""
        return word_scores(y, self.predict(X))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write arrays and JSON, and for "fine_tune" a checkpoint; `TokenClassifier.load` reads it.

        ``AutoModelForTokenClassification`` loads the subfolder "model" of the latter.
        """
        from sklearn.utils.validation import check_is_fitted
        from transformers import AutoTokenizer

        check_is_fitted(self, "classes_")
        reader, is_frozen = self._reader, self.method == "frozen"
        about = {
            "method": self.method, "training": self.training and dict(self.training),
            "random_state": self.random_state if isinstance(self.random_state, int) else None,
            "classes": self.classes_.tolist(), "max_length": reader.max_length,
            "encoder": self.encoder_.settings if is_frozen else None,
        }  # fmt: skip
        head = {"weights": self.head_.weights, "bias": self.head_.bias} if is_frozen else {}
        with written(folder, KIND, about, head) as fresh:
            if not is_frozen:
                with silent_transformers():
                    reader.model.save_pretrained(fresh / MODEL)
                    AutoTokenizer.from_pretrained(
                        reader.checkpoint.folder, local_files_only=True, trust_remote_code=False
                    ).save_pretrained(fresh / MODEL)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TokenClassifier:
        """Read a classifier that `save` wrote.

        Raises
        ------
        CorruptFileError
            Where the folder is damaged, of a newer version, or no classifier of words.
        """
        path = Path(folder).expanduser()
        about, arrays = read_saved(path, KIND)
        with damage(path):
            model = cls(method=about["method"], training=about["training"],
                        random_state=about["random_state"])  # fmt: skip
            model.classes_ = np.array([str(name) for name in about["classes"]])
            length = int(about["max_length"])
            if model.method == "frozen":
                model.head_ = LinearHead("softmax", arrays["weights"], arrays["bias"])
                if model.head_.bias.shape != model.classes_.shape:
                    raise ValueError("its head does not fit its classes")
                encoder = encoder_from_settings(about["encoder"])
                model.encoder_ = model.encoder = transformer_of(encoder)
        if model.method == "frozen":
            model._reader = _reader_of(model.encoder_)
        else:
            model.encoder = path / MODEL
            model._reader = _trained_reader(read_checkpoint(path / MODEL), length)
        return model


def _reader_of(encoder: SentenceEncoder) -> _Reader:
    recipe = encoder.recipe
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

    def batch(self, ids: Sequence[Any], labels: Sequence[Any] = ()) -> dict[str, Any]:
        """Return padded tensors of the tokens of parts, and of their labels where there are any."""
        import torch

        def padded(rows: Sequence[Any], fill: int) -> Any:
            columns = [torch.as_tensor(row) for row in rows]
            return torch.nn.utils.rnn.pad_sequence(columns, True, fill)

        columns = {"input_ids": padded(ids, self.pad_id),
                   "attention_mask": padded([[1] * len(row) for row in ids], 0)}  # fmt: skip
        return columns | ({"labels": padded(labels, -100)} if len(labels) else {})

    def _read(
        self, sentences: Sequence[Words], width: int, of_tokens: Callable[[Any], Any], first: bool
    ) -> list[Float64Array]:
        """Return what is read of outputs, (n_words, width): of first tokens, or means of all."""
        import torch

        made = [np.zeros((len(words), width)) for words in sentences]
        parts = sorted(self.parts(sentences), key=lambda part: len(part.ids))
        device = next(self.model.parameters()).device
        for begin in range(0, len(parts), SENTENCES_AT_ONCE):
            some = parts[begin : begin + SENTENCES_AT_ONCE]
            columns = self.batch([part.ids for part in some])
            given = {name: column.to(device) for name, column in columns.items()}
            with torch.inference_mode():
                found = of_tokens(self.model(**given, output_hidden_states=not first))
            for part, values in zip(some, found.double().cpu().numpy(), strict=True):
                places = part.first_tokens() if first else np.flatnonzero(part.owners >= 0)
                owners = part.owners[places]
                shares = values[places] / np.bincount(owners)[owners, None]
                np.add.at(made[part.row], part.start + owners, shares)
        return made

    def vectors(self, sentences: Sequence[Words]) -> list[Float64Array]:
        """Return the mean vectors of the tokens of each word in three layers, end to end."""
        import torch

        def layers(output: Any) -> Any:
            found = output.hidden_states
            return torch.cat([found[0], found[len(found) // 2], found[-1]], dim=-1)

        return self._read(sentences, 3 * self.model.config.hidden_size, layers, first=False)

    def logits(self, sentences: Sequence[Words], n_classes: int) -> list[Float64Array]:
        """Return the scores at the first token of each word; of a word without one, zeros."""
        return self._read(sentences, n_classes, lambda output: output.logits, first=True)


def checked_words(X: Any, may_be_empty: bool = False) -> list[list[str]]:
    """Return sentences as lists of words, or name the one that is none."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise InputError("X", "a list of sentences, each a list of words", X)
    sentences = []
    for row, words in enumerate(X):
        is_list = hasattr(words, "__iter__") and not isinstance(words, (str, bytes))
        made: list[Any] = list(words) if is_list else [None]
        if not all(isinstance(word, str) for word in made):
            raise InputError("X", "a list of words for each sentence", words, row=row)
        if not may_be_empty and not (made and all(map(str.strip, made))):
            raise InputError("X", "words in each sentence, with characters", made, row=row)
        sentences.append(made)
    if not sentences and not may_be_empty:
        raise InputError("X", "at least one sentence", found="none")
    return sentences


def checked_labels(y: Any, sentences: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Return the labels of words, or name the sentence where there are others."""
    labels = checked_words(y, may_be_empty=True) if hasattr(y, "__len__") else []
    if len(labels) != len(sentences):
        found = f"{len(labels):,} for {len(sentences):,} sentences"
        raise InputError("y", "a list of labels for each sentence", found=found)
    for row, (words, given) in enumerate(zip(sentences, labels, strict=True)):
        if len(words) != len(given) or not all(given):
            found = f"the labels {given} for {len(words)} words"
            raise InputError("y", "a label for each word", found=found, row=row)
    return labels


def spans_of(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return first word, word after the last and type of the entities of one sentence's BIO labels.

    An entity begins at "B-", and where "I-" follows another type or "O": as the evaluation of
    CoNLL-2003 has it (Tjong Kim Sang and De Meulder 2003), which `seqeval` follows.
    """
    found: list[tuple[int, int, str]] = []
    begin, kind = 0, ""
    for place, label in enumerate([*labels, "O"]):
        mark, _, name = label.partition("-")
        if kind and (mark != "I" or name != kind):
            found.append((begin, place, kind))
            kind = ""
        if mark in ("B", "I") and name and not kind:
            begin, kind = place, name
    return found


def word_scores(
    y_true: Sequence[Sequence[str]],
    y_pred: Sequence[Sequence[str]],
    *,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compare labels of words with those by hand.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str
        A label for each word of each sentence.
    n_resamples, random_state : int
        Of the intervals, over sentences drawn with replacement; 0 resamples for none.

    Returns
    -------
    DataFrame
        A row a type of entity, and one for all, with precision, recall and F1 of entities whose
        first and last word and type are all right, the 95 % interval of F1, and how many there
        are. Of labels that are not BIO, the same of words: F1 of all is the share of right ones.
    """
    import pandas as pd

    truth = checked_words(y_true, may_be_empty=True)
    found = checked_labels(y_pred, truth)
    known = {label for row in truth for label in row}
    is_bio = "O" in known and all(label == "O" or label[:2] in ("B-", "I-") for label in known)
    counts: list[tuple[Counter[str], ...]] = []
    for pair in zip(truth, found, strict=True):
        wanted, given = (set(spans_of(row)) if is_bio else set(enumerate(row)) for row in pair)
        sets: tuple[set[Any], ...] = (wanted & given, wanted, given)
        counts.append(tuple(Counter(each[-1] for each in one) for one in sets))
    names = sorted({name for row in counts for one in row[1:] for name in one})
    table = np.array(
        [[[one[name] for name in names] + [sum(one.values())] for one in row] for row in counts],
        dtype=np.float64,
    ).reshape(len(counts), 3, -1)  # sentences, (both, by hand, predicted), labels and all
    totals = table.sum(axis=0)
    low = high = np.full(totals.shape[1], np.nan)
    if n_resamples and len(counts) > 1:
        drawn = resampled_sums(table.reshape(len(table), -1), n_resamples, random_state)
        of_drawn = rates(*np.moveaxis(drawn.reshape(-1, *totals.shape), 1, 0))["f1"]
        low, high = bounded_interval(rates(*totals)["f1"], of_drawn, len(counts))
    columns = {"n": totals[1].astype(int), **rates(*totals), "low": low, "high": high}
    return pd.DataFrame(columns, index=pd.Index([*names, "all"], name="label"))


def entities(sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Return a row for each entity: its sentence, words, type and text.

    Parameters
    ----------
    sentences, labels : sequence of sequences of str
        Words, and a BIO label for each.

    Returns
    -------
    DataFrame
        With the columns sentence, start, end (the word after the last), label and text.
    """
    import pandas as pd

    words = checked_words(sentences, may_be_empty=True)
    rows = [
        (row, begin, end, kind, " ".join(words[row][begin:end]))
        for row, given in enumerate(checked_labels(labels, words))
        for begin, end, kind in spans_of(given)
    ]
    return pd.DataFrame(rows, columns=["sentence", "start", "end", "label", "text"])


def write_conll(
    path: str | os.PathLike[str],
    sentences: Sequence[Sequence[str]],
    labels: Sequence[Sequence[str]],
) -> None:
    """Write words and their labels as columns, an empty line after each sentence.

    `embedtopics.probing.read_token_table` reads such files.

    Parameters
    ----------
    path : path
    sentences, labels : sequence of sequences of str
        Words, and a label for each; without tabs and line breaks.
    """
    words = checked_words(sentences, may_be_empty=True)
    lines = ["token\tlabel"]
    for row, (one, other) in enumerate(zip(words, checked_labels(labels, words), strict=True)):
        if set("".join([*one, *other])) & set("\t\n\r"):
            raise InputError("sentences", "words without tabs and line breaks", row=row)
        lines += [*map("\t".join, zip(one, other, strict=True)), ""]
    with replacing_file(Path(path)) as fresh:
        fresh.write_text("\n".join([*lines, ""]), "utf-8")
