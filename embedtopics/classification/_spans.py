"""Entities as spans of BIO labels, their scores, and words with labels as lists and files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import replacing_file
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    import pandas as pd

OUTSIDE = "O"


def checked_words(X: Any, may_be_empty: bool = False) -> list[list[str]]:
    """Return sentences as lists of words, or name the one that is none."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise InputError("X", "a list of sentences, each a list of words", X)
    sentences = []
    for row, words in enumerate(X):
        is_list = hasattr(words, "__iter__") and not isinstance(words, (str, bytes))
        made = list(words) if is_list else []
        if not is_list or not all(isinstance(word, str) for word in made):
            raise InputError("X", "a list of words for each sentence", words, row=row)
        if not may_be_empty and (not made or not all(word.strip() for word in made)):
            found = "no words" if not made else "a word without characters"
            raise InputError("X", "words in each sentence", found=found, row=row)
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
            found = f"{len(given)} labels for {len(words)} words"
            found = found if len(words) != len(given) else "an empty one"
            raise InputError("y", "a label for each word", found=found, row=row)
    return labels


def spans_of(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the entities of one sentence's BIO labels.

    An entity begins at "B-", and where "I-" follows another type or "O": as the evaluation of
    CoNLL-2003 has it (Tjong Kim Sang and De Meulder 2003), which `seqeval` follows.

    Parameters
    ----------
    labels : sequence of str
        "O", or "B-" or "I-" and a type.

    Returns
    -------
    list of tuple
        First word, word after the last, and type.

    Examples
    --------
    >>> spans_of(["B-person", "I-person", "O", "B-place"])
    [(0, 2, 'person'), (3, 4, 'place')]
    """
    found: list[tuple[int, int, str]] = []
    begin, kind = 0, ""
    for place, label in enumerate([*labels, OUTSIDE]):
        mark, _, name = label.partition("-")
        if kind and (mark != "I" or name != kind):
            found.append((begin, place, kind))
            kind = ""
        if mark in ("B", "I") and name and not kind:
            begin, kind = place, name
    return found


def labels_of(spans: Iterable[tuple[int, int, str]], n_words: int) -> list[str]:
    """Return the BIO labels of entities that do not overlap; `spans_of` the other way round."""
    labels = [OUTSIDE] * n_words
    for begin, end, kind in spans:
        if not 0 <= begin < end <= n_words or set(labels[begin:end]) != {OUTSIDE}:
            found = f"({begin}, {end}, {kind!r}) among {n_words} words"
            raise InputError("spans", "words of the sentence, each in one entity", found=found)
        labels[begin:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - begin - 1)]
    return labels


def is_bio(labels: Iterable[Sequence[str]]) -> bool:
    """Return whether all labels are "O", or "B-" or "I-" and a type."""
    names = {label for row in labels for label in row}
    return OUTSIDE in names and all(name == OUTSIDE or name[:2] in ("B-", "I-") for name in names)


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
    n_resamples : int
        Resamples of sentences for the intervals; 0 for none.
    random_state : int

    Returns
    -------
    DataFrame
        A row a type of entity, and one for all, with precision, recall and F1 of entities whose
        first and last word and type are all right, the 95 % interval of F1, and how many there
        are. Of labels that are not BIO, the same of words: F1 of all is then the share of right
        words. Intervals are of sentences drawn with replacement.
    """
    import pandas as pd

    truth = checked_words(y_true, may_be_empty=True)
    found = checked_labels(y_pred, truth)
    as_entities = is_bio(truth)
    counts: list[tuple[Counter[str], ...]] = []
    for wanted, given in zip(truth, found, strict=True):
        sets = [
            set(spans_of(row)) if as_entities else {(at, at, label) for at, label in enumerate(row)}
            for row in (wanted, given)
        ]
        both = sets[0] & sets[1]
        counts.append(tuple(Counter(each[-1] for each in one) for one in (both, *sets)))
    names = sorted({name for row in counts for one in row[1:] for name in one})
    table = np.array(
        [[[one[name] for name in names] + [sum(one.values())] for one in row] for row in counts],
        dtype=np.float64,
    ).reshape(len(counts), 3, -1)  # sentences, (both, by hand, predicted), labels and all
    rows = []
    totals = table.sum(axis=0)
    drawn = np.zeros((0, *totals.shape))
    if n_resamples and len(counts) > 1:
        flat = table.reshape(len(table), -1)
        drawn = resampled_sums(flat, n_resamples, random_state).reshape(-1, *totals.shape)
    for place, name in enumerate([*names, "all"]):
        both, wanted, given = totals[:, place]
        row: dict[str, Any] = {"label": name, "n": int(wanted)}
        row |= {"precision": _ratio(both, given), "recall": _ratio(both, wanted)}
        value = _f1(totals[:, place])
        low = high = np.nan
        if len(drawn):
            low, high = bounded_interval(value, _f1(drawn[:, :, place].T), len(counts))
        rows.append(row | {"f1": float(value), "low": float(low), "high": float(high)})
    return pd.DataFrame(rows).set_index("label")


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _f1(sums: Float64Array) -> Any:
    """Return F1 of numbers that are right, wanted and given, (3, ...)."""
    both, wanted, given = sums
    return np.where(wanted + given > 0, 2 * both / np.maximum(wanted + given, 1), 0.0)


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
    """Write one word and its label a line, an empty line after each sentence.

    `embedtopics.probing.read_token_table` reads such files.

    Parameters
    ----------
    path : path
    sentences, labels : sequence of sequences of str
        Words, and a label for each; without tabs and line breaks.
    """
    words = checked_words(sentences, may_be_empty=True)
    given = checked_labels(labels, words)
    for row, cells in enumerate(zip(words, given, strict=True)):
        if any(set(cell) & set("\t\n\r") for column in cells for cell in column):
            raise InputError("sentences", "words without tabs and line breaks", row=row)
    with replacing_file(Path(path)) as fresh, fresh.open("w", encoding="utf-8") as file:
        file.write("token\tlabel\n")
        for one, other in zip(words, given, strict=True):
            file.writelines(f"{word}\t{label}\n" for word, label in zip(one, other, strict=True))
            file.write("\n")
