"""Entities in the labels of words, and scores of labels.

A tag is a mark and the type of the entity, such as "B-person" or "B_person"; words outside of
entities have "O". Four schemes are read: IOB and BIO (Ramshaw and Marcus 1995), BIOES, BILOU
(Ratinov and Roth 2009) and BMES, with "W" or "S" for an entity of a single word. Sequences that
break the rules of a scheme are read as in conlleval (Tjong Kim Sang and De Meulder 2003).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification._heads import precision_recall_f1
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums

if TYPE_CHECKING:
    import pandas as pd

OUTSIDE = "O"
SCHEMES = ("BI", "BIES", "BILU", "BMES", "BMEW")
"""Marks that occur together; `_ROLES` says what each means."""

_ROLES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}
"""Marks of all schemes by those of BIOES: begin, inside, end, single."""

_TAG = re.compile(r"([A-Za-z])([-_])(.+)", re.DOTALL)
_TYPE_FIRST = re.compile(r"(.+)[-_]([BIMELSUW])", re.DOTALL)


def are_entity_tags(labels: Sequence[Sequence[str]], parameter: str) -> bool:
    """Return whether labels are tags of entities in one scheme.

    Labels that are tags in part, or of a scheme that is not read, are refused: as classes of words
    they would be scored word by word.
    """
    used = sorted({label for row in labels for label in row})
    tags = [label for label in used if label.upper() != OUTSIDE]
    has_outside = len(tags) < len(used)
    if not tags:
        return has_outside

    forms = [_TAG.fullmatch(label) for label in tags]
    marks = {form[1].upper() for form in forms if form is not None}
    separators = {form[2] for form in forms if form is not None}
    is_every_tag = all(form is not None for form in forms)
    is_one_scheme = any(marks <= set(scheme) for scheme in SCHEMES) and len(separators) == 1
    if is_every_tag and is_one_scheme and (has_outside or {"B", "I"} & marks):
        return True

    # Bare marks, marks after the type, and marks of no scheme are tags of entities, too.
    bare = [label for label in tags if label.upper() in _ROLES]
    type_first = [label for label in tags if _TYPE_FIRST.fullmatch(label)]
    looks_like_tags = (has_outside and (marks or bare or type_first)) or "B" in marks
    if looks_like_tags:
        shown = ", ".join(tags[:6])
        expected = 'tags of one scheme, IOB, BIOES, BILOU or BMES, such as "B-person" and "O"'
        remedy = "write them in one of these, or rename the classes of words"
        raise InputError(parameter, expected, remedy=remedy, found=shown)
    return False


def spans_of(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of each entity in the tags of one sentence."""
    spans: list[tuple[int, int, str]] = []
    begin = 0
    kind = ""
    previous = OUTSIDE
    for place, label in enumerate([*labels, OUTSIDE]):
        form = _TAG.fullmatch(label)
        role = OUTSIDE
        name = ""
        if form is not None and form[1].upper() in _ROLES:
            role = _ROLES[form[1].upper()]
            name = form[3]

        # An entity goes on only from a begin or inside to an inside or end of its type.
        goes_on = previous in "BI" and role in "IE" and name == kind
        if not goes_on:
            if previous != OUTSIDE:
                spans.append((begin, place, kind))
            begin = place
            kind = name
        previous = role
    return spans


def _items_of(labels: Sequence[str], are_tags: bool) -> set[Any]:
    """Return what is scored: entities as (start, end, type), else words as (place, label)."""
    return set(spans_of(labels)) if are_tags else set(enumerate(labels))


def evaluate_tokens(
    y_true: Sequence[Sequence[str]],
    y_pred: Sequence[Sequence[str]],
    *,
    n_resamples: int = 1000,
) -> pd.DataFrame:
    """Compare predicted labels of words with gold labels.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str
        One label for each word of each sentence.
    n_resamples : int
        Resamples of sentences for the intervals; 0 for no intervals.

    Returns
    -------
    DataFrame
        One row for each type of entity and one for all types: the number of gold entities,
        precision, recall and F1, and the 95 % interval of F1. An entity is correct if its span and
        type are. For labels that are no tags of entities, such as parts of speech, the figures are
        those of words, and the F1 of all is the accuracy.

    Raises
    ------
    InputError
        If labels are invalid, or tags of entities in several schemes or an unknown one.

    Examples
    --------
    >>> import embedtopics as et
    >>> gold = [["B-person", "I-person", "O", "B-person"], ["B-person", "O", "B-place"]]
    >>> predicted = [["B-person", "O", "O", "B-person"], ["B-person", "O", "B-place"]]
    >>> scores = et.classification.evaluate_tokens(gold, predicted)
    >>> scores[["n", "precision", "recall", "f1"]].round(2)
            n  precision  recall    f1
    label
    person  3       0.67    0.67  0.67
    place   1       1.00    1.00  1.00
    all     4       0.75    0.75  0.75
    """
    import pandas as pd

    truth = checked_words(y_true, may_be_empty=True)
    guess = checked_labels(y_pred, truth)
    are_tags = are_entity_tags([*truth, *guess], "y_true")
    counts: list[tuple[Counter[str], ...]] = []
    for true_labels, predicted_labels in zip(truth, guess, strict=True):
        true = _items_of(true_labels, are_tags)
        predicted = _items_of(predicted_labels, are_tags)
        sets: tuple[set[Any], ...] = (true & predicted, true, predicted)
        counts.append(tuple(Counter(item[-1] for item in items) for items in sets))

    # Items of each label and of all, (n_sentences, 3, n_labels + 1): hits, true, predicted.
    found: set[str] = set()
    for _, n_true, n_predicted in counts:
        found.update(n_true, n_predicted)
    names = sorted(found)
    table = np.array(
        [[_with_total(n_items, names) for n_items in row] for row in counts], dtype=np.float64
    ).reshape(len(counts), 3, -1)

    totals = table.sum(axis=0)
    figures = precision_recall_f1(*totals)
    low = high = np.full(totals.shape[1], np.nan)
    if n_resamples and len(counts) > 1:
        drawn = resampled_sums(table.reshape(len(table), -1), n_resamples, 0)
        resampled = precision_recall_f1(*np.moveaxis(drawn.reshape(-1, *totals.shape), 1, 0))["f1"]
        low, high = bounded_interval(figures["f1"], resampled, len(counts))

    columns = {"n": totals[1].astype(int), **figures, "low": low, "high": high}
    return pd.DataFrame(columns, index=pd.Index([*names, "all"], name="label"))


def _with_total(n_items: Counter[str], names: Sequence[str]) -> list[int]:
    """Return the numbers of items of each label, and of all."""
    return [*(n_items[name] for name in names), sum(n_items.values())]


def entities(sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Return one row for each entity.

    Parameters
    ----------
    sentences, labels : sequence of sequences of str
        Words, and one tag for each, such as "B-person", "I-person" and "O". IOB, BIOES, BILOU and
        BMES are read.

    Returns
    -------
    DataFrame
        Columns sentence, start, end (exclusive, in words), label and text.

    Raises
    ------
    InputError
        If labels are no tags of entities, or of several schemes or an unknown one.

    Examples
    --------
    >>> import embedtopics as et
    >>> words = [["Ada", "Lovelace", "met", "Babbage"]]
    >>> tags = [["B-person", "I-person", "O", "B-person"]]
    >>> et.classification.entities(words, tags)
       sentence  start  end   label          text
    0         0      0    2  person  Ada Lovelace
    1         0      3    4  person       Babbage
    """
    import pandas as pd

    words = checked_words(sentences, may_be_empty=True)
    tags = checked_labels(labels, words)
    if any(tags) and not are_entity_tags(tags, "labels"):
        label = next(label for row in tags for label in row if label.upper() != OUTSIDE)
        raise InputError("labels", 'tags of entities, such as "B-person" and "O"', label)

    rows = [
        (row, begin, end, kind, " ".join(words[row][begin:end]))
        for row, of_words in enumerate(tags)
        for begin, end, kind in spans_of(of_words)
    ]
    return pd.DataFrame(rows, columns=["sentence", "start", "end", "label", "text"])


def checked_words(X: Any, may_be_empty: bool = False) -> list[list[str]]:
    """Return sentences as lists of words, or refuse the first invalid one."""
    for row, words in enumerate(X):
        if isinstance(words, str):
            raise InputError("X", "a list of words for each sentence", words, row=row)
        if not may_be_empty and not (len(words) and all(word.strip() for word in words)):
            raise InputError("X", "words in each sentence, with characters", words, row=row)
    return [list(words) for words in X]


def checked_labels(y: Any, sentences: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Return the labels of words, or refuse the first sentence without one label per word."""
    labels = checked_words(y, may_be_empty=True)
    if len(labels) != len(sentences):
        lengths = f"{len(labels):,} for {len(sentences):,} sentences"
        raise InputError("y", "a list of labels for each sentence", found=lengths)
    for row, (words, of_words) in enumerate(zip(sentences, labels, strict=True)):
        if len(words) != len(of_words) or not all(of_words):
            lengths = f"the labels {of_words} for {len(words)} words"
            raise InputError("y", "one label for each word", found=lengths, row=row)
    return labels
