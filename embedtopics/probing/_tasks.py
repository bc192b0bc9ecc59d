"""Tasks on words, sentences (after SentEval) and texts, and which part each sentence is in."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.evaluation._files import TableFile
from embedtopics.probing.results import ProbeTask, Sentence, Treebank
from embedtopics.protocols import RandomState
from embedtopics.results import Decision, counted

PARTS = ("train", "dev", "test")
SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""Share of the contents in each part where the parts are not given."""

Treebanks = Sequence[tuple[str, Treebank]]
Files = Sequence[tuple[str, str | os.PathLike[str]]]
T = TypeVar("T")


def gathered(
    treebanks: Treebanks,
) -> tuple[list[Sentence], list[str], tuple[Decision, ...]]:
    """Return all sentences, their parts ("" where none are given) and the readers' decisions."""
    sentences = [sentence for _, bank in treebanks for sentence in bank.sentences]
    parts = [part for part, bank in treebanks for _ in bank.sentences]
    if not sentences:
        raise InputError("source", "treebanks with sentences", found="none")
    return sentences, parts, tuple(decision for _, bank in treebanks for decision in bank.decisions)


def by_part(items: Mapping[str, T], parameter: str) -> list[tuple[str, T]]:
    """Return the item of each part, in the order train, dev, test."""
    if not {"train", "test"} <= set(items) <= set(PARTS):
        raise InputError(parameter, 'by part "train", "test" and perhaps "dev"', list(items))
    return [(part, items[part]) for part in PARTS if part in items]


def key_of(text: str | Sequence[str]) -> str:
    """Return the form in which two sentences are the same: case and white space do not count."""
    whole = text if isinstance(text, str) else " ".join(text)
    return normalize_text(whole).casefold()


def content_digest(key: str, seed: int, purpose: str = "") -> bytes:
    """Return a hash of a content, by which choices depend on it and the seed alone."""
    salt = f"{seed} {purpose}".encode()[:64]
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, key=salt).digest()


def split(
    keys: Sequence[str],
    parts: Sequence[str],
    random_state: RandomState,
    what: str = "sentences",
    unique: bool = False,
) -> tuple[list[int], list[str], list[Decision]]:
    """Return which contents remain, and their parts: those of the caller, or by their hash.

    Contents that are in a later part too are left out, against leakage; if `unique`, repeats too.
    """
    order = ("", *PARTS)
    last: dict[str, str] = {}
    for part, key in sorted(zip(parts, keys, strict=True), key=lambda one: order.index(one[0])):
        last[key] = part
    rows = [row for row, key in enumerate(keys) if parts[row] == last[key]]
    across = Counter(parts) - Counter(parts[row] for row in rows)
    if emptied := sorted(set(parts) - {parts[row] for row in rows}):
        expected = "with content of its own"
        raise InputError(f"the part {emptied[0]}", expected, found="that of later parts")
    decisions = []
    if across:
        listed = " and ".join(f"{n:,} of {part}" for part, n in sorted(across.items()))
        message = f"Sentences that also occur in later parts are left out: {listed}."
        decisions.append(Decision("probing", "repeats_across_parts", across.total(), message))
    if unique:
        firsts = sorted({keys[row]: row for row in reversed(rows)}.values())
        n_repeats, rows = len(rows) - len(firsts), firsts
        decisions += counted("probing", "repeats", n_repeats, "repeated sentences are left out.")
    part_of = [parts[row] for row in rows]
    if not any(part_of):
        seed = resolve_seed(random_state)
        part_of, decision = split_contents([keys[row] for row in rows], seed, what)
        decisions.append(decision)
    return rows, part_of, decisions


def split_contents(keys: Sequence[str], seed: int, what: str) -> tuple[list[str], Decision]:
    """Assign contents to parts by their hash: equal ones to one part, in whatever order."""
    order = sorted(set(keys), key=lambda key: content_digest(key, seed, "part"))
    n = len(order)
    least = 1 if n >= len(PARTS) else 0
    n_test, n_dev = (max(least, round(SHARES[part] * n)) for part in ("test", "dev"))
    part_of = dict.fromkeys(order, "train")
    part_of |= dict.fromkeys(order[: n_test + n_dev], "dev")
    part_of |= dict.fromkeys(order[:n_test], "test")
    parts = [part_of[key] for key in keys]
    n_in = Counter(parts)
    sizes = ", ".join(f"{part} ({n_in[part]:,})" for part in PARTS)
    message = f"The {what} were split by the hash of their content: {sizes}; random_state {seed}."
    return parts, Decision("probing", "parts", "split", message)


def token_task(treebanks: Treebanks, task: str, *, random_state: RandomState = 0) -> ProbeTask:
    """Make a task with a label for every word of treebanks, (part, treebank) each."""
    sentences, parts, decisions = gathered(treebanks)
    labels_of = _labeller(sentences, task)
    rows, parts, more = split([key_of(one.words) for one in sentences], parts, random_state)
    labels = tuple(tuple(labels_of(sentences[place])) for place in rows)
    labelled = {part for part, of_sentence in zip(parts, labels, strict=True) if any(of_sentence)}
    if lacking := sorted(set(parts) - labelled):
        raise InputError("task", f"a column with labels in {lacking[0]}", task)
    if len({label for of_sentence in labels for label in of_sentence if label}) < 2:
        raise InputError("task", "a column of two labels or more", task)
    return ProbeTask(
        name=task,
        unit="word",
        texts=tuple(sentences[place].words for place in rows),
        labels=labels,
        parts=tuple(parts),
        decisions=(*decisions, *more),
    )


def _labeller(sentences: Sequence[Sentence], task: str) -> Callable[[Sentence], list[str]]:
    column, _, key = task.partition(":")
    if all(task in sentence.columns for sentence in sentences):
        column, key = task, ""
    lacking = next((one for one in sentences if column not in one.columns), None)
    if lacking is not None:
        raise InputError("task", f"one of {', '.join(lacking.columns)}", task)

    def labels_of(sentence: Sentence) -> list[str]:
        cells = [
            # An underscore is the lemma of an underscore.
            cell if cell != "_" or (column == "lemma" and word == "_") else ""
            for word, cell in zip(sentence.words, sentence.columns[column], strict=True)
        ]
        return [features_of(cell).get(key, "") for cell in cells] if key else cells

    return labels_of


def features_of(cell: str) -> dict[str, str]:
    """Return the keys and values of a cell such as "Case=Nom|Number=Sing"."""
    parts = [one.partition("=") for one in reversed(cell.split("|"))]  # the first of equal keys
    return {name: value for name, sign, value in parts if sign}


def text_task(files: Files, *, label: str, random_state: RandomState = 0) -> ProbeTask:
    """Make a task with a label for every text of tables, (part, path) each, by a column."""
    texts: list[str] = []
    labels: list[str] = []
    parts: list[str] = []

    for part, path in files:
        table = TableFile(Path(path).expanduser())
        texts += table.texts("text")
        labels += [str(spell_class(cell)) for cell in table.cells(label, _is_label, "a label")]
        parts += [part] * len(table)

    keys = [key_of(text) for text in texts]
    rows, parts, decisions = split(keys, parts, random_state, "texts")
    labels = [labels[place] for place in rows]
    if len(set(labels)) < 2:
        raise InputError("task", "a column of two labels or more", sorted(set(labels)))

    return ProbeTask(
        name=label,
        unit="text",
        texts=tuple(texts[place] for place in rows),
        labels=tuple((label_of_text,) for label_of_text in labels),
        parts=tuple(parts),
        decisions=tuple(decisions),
    )


def _is_label(cell: Any) -> bool:
    return spell_class(cell) is not None


class SentenceLabel(NamedTuple):
    """A sentence's label; each `stratum` has classes of equal size."""

    label: str
    stratum: int = 0
    text: str | None = None


SHORTEST, LONGEST = 5, 28
"""Words of a sentence."""
BIN, N_DEPTHS = 4, 3
"""Lengths in a bin, and number of classes of depth."""

Labels = dict[int, SentenceLabel]
"""The labels of sentences by their place; those without are left out."""


def sentence_task(treebanks: Treebanks, task: str, *, random_state: RandomState = 0) -> ProbeTask:
    """Make a task with one label for every sentence of treebanks, (part, treebank) each.

    All classes have the same size in each part, and no sentence occurs twice. A hash of the
    content selects the sentences that are left out.
    """
    seed = resolve_seed(random_state)
    label = _TASKS[checked_choice(task, "task", SENTENCE_TASKS)]
    sentences, parts, decisions = _distinct(treebanks, seed, needs_heads=task == "tree depth")
    labels = label(sentences, parts, seed)
    keys = [key_of(sentence.words) for sentence in sentences]
    order = sorted(labels, key=lambda row: content_digest(keys[row], seed, "balanced"))
    classes = sorted({one.label for one in labels.values()})
    cells: defaultdict[tuple[str, int, str], list[int]] = defaultdict(list)
    for row in order:
        cells[parts[row], labels[row].stratum, labels[row].label].append(row)
    # As many of each class in each stratum of each part.
    rows = []
    for part, stratum in {cell[:2] for cell in cells}:
        of_classes = [cells[part, stratum, name] for name in classes]
        n = min(map(len, of_classes))
        rows += [row for of_class in of_classes for row in of_class[:n]]
    rows.sort()
    present = {(parts[row], labels[row].label) for row in rows}
    lacking = [part for part in sorted(set(parts)) if {(part, one) for one in classes} - present]
    if len(classes) < 2 or lacking:
        in_parts = f" in {', '.join(lacking)}" if lacking else ""
        remedy = "give more sentences"
        required = f"treebanks with sentences of two classes or more of {task!r}{in_parts}"
        raise InputError("source", required, remedy=remedy, found=", ".join(classes) or "none")
    message = (
        f"{task}: {len(rows):,} of {len(sentences):,} sentences of {SHORTEST} to "
        f"{LONGEST} words are labelled, with {len(classes)} classes of equal size in each part."
    )
    return ProbeTask(
        name=task,
        unit="text",
        texts=tuple(labels[row].text or sentences[row].text for row in rows),
        labels=tuple((labels[row].label,) for row in rows),
        parts=tuple(parts[row] for row in rows),
        decisions=(*decisions, Decision("probing", "balanced", len(rows), message)),
    )


def _distinct(
    treebanks: Treebanks, seed: int, *, needs_heads: bool
) -> tuple[list[Sentence], list[str], tuple[Decision, ...]]:
    """Return distinct sentences of common lengths, and the part of each."""
    sentences, parts, decisions = gathered(treebanks)
    if needs_heads and (bare := [one.id for one in sentences if not one.heads]):
        raise InputError("source", "treebanks with heads", found=f"sentence {bare[0]!r} without")
    # Of sentences that differ in case alone, the same one stays whatever the order of the rows.
    in_order = sorted(
        (n for n, one in enumerate(sentences) if SHORTEST <= len(one.words) <= LONGEST),
        key=lambda n: (sentences[n].words, sentences[n].heads),
    )
    if not in_order:
        expected = f"treebanks with sentences of {SHORTEST} to {LONGEST} words"
        raise InputError("source", expected, found="none")
    keys = [key_of(sentences[n].words) for n in in_order]
    places, part_of, notes = split(keys, [parts[n] for n in in_order], seed, unique=True)
    part_of_row = dict(zip([in_order[place] for place in places], part_of, strict=True))
    rows = sorted(part_of_row)
    distinct = [sentences[row] for row in rows]
    return distinct, [part_of_row[row] for row in rows], (*decisions, *notes)


def length(sentences: Sequence[Sentence], parts: Sequence[str], seed: int) -> Labels:
    """Return the number of words, in bins of one width."""
    begins = [SHORTEST + (len(one.words) - SHORTEST) // BIN * BIN for one in sentences]
    return {
        row: SentenceLabel(f"{begin:02d}-{begin + BIN - 1:02d}") for row, begin in enumerate(begins)
    }


def tree_depth(sentences: Sequence[Sentence], parts: Sequence[str], seed: int) -> Labels:
    """Return the depth of the tree; lengths are the strata, so that they do not predict it."""
    depths = [depth(sentence.heads) for sentence in sentences]
    by_length: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for sentence, value, part in zip(sentences, depths, parts, strict=True):
        if part == "train":
            by_length[len(sentence.words)][value] += 1

    def n_matched(first: int) -> int:
        """Return how many sentences of each class remain when all lengths are matched."""
        classes = range(first, first + N_DEPTHS)
        return sum(min(counts[one] for one in classes) for counts in by_length.values())

    first = max(range(1, max(depths, default=1) + 1), key=lambda one: (n_matched(one), -one))
    return {
        row: SentenceLabel(str(value), stratum=len(sentence.words))
        for row, (sentence, value) in enumerate(zip(sentences, depths, strict=True))
        if first <= value < first + N_DEPTHS
    }


def depth(heads: Sequence[int]) -> int:
    """Return the most steps from the root to a word."""
    most = 0
    for head in heads:
        steps = 0
        while head:
            head, steps = heads[head - 1], steps + 1
        most = max(most, steps)
    return most


def bigram_shift(sentences: Sequence[Sentence], parts: Sequence[str], seed: int) -> Labels:
    """Return whether two neighbouring words were exchanged; every second time they were."""
    tokens = [tokens_of(sentence) for sentence in sentences]
    keys = list(map(key_of, tokens))
    existing = set(keys)
    changed = {
        row: swapped
        for row, one in enumerate(tokens)
        if (swapped := shifted(one, existing, seed)) is not None
    }
    labels = {}
    order = sorted(changed, key=lambda row: content_digest(keys[row], seed, "shifted"))
    for nth, row in enumerate(order):
        is_shifted = nth % 2 == 1
        text = " ".join(changed[row] if is_shifted else tokens[row])
        labels[row] = SentenceLabel("shifted" if is_shifted else "intact", text=text)
    return labels


def tokens_of(sentence: Sentence) -> tuple[str, ...]:
    """Return the tokens as they are written: the words of a multi-word token have one span."""
    return tuple(sentence.text[begin:end] for begin, end in dict.fromkeys(sentence.spans))


def shifted(tokens: Sequence[str], existing: set[str], seed: int) -> tuple[str, ...] | None:
    """Exchange two neighbours, chosen by the content; None if no two can be."""
    key = key_of(tokens)
    # A small first letter, or a full stop inside, would reveal it: these keep their places.
    places = [
        place
        for place in range(1, len(tokens) - 1)
        if all(any(map(str.isalpha, token)) for token in tokens[place : place + 2])
    ]
    places.sort(key=lambda place: content_digest(f"{place} {key}", seed, "place"))
    for place in places:
        swapped = (*tokens[:place], tokens[place + 1], tokens[place], *tokens[place + 2 :])
        if key_of(swapped) != key and key_of(swapped) not in existing:
            return swapped
    return None


_TASKS = {"sentence length": length, "tree depth": tree_depth, "bigram shift": bigram_shift}

SENTENCE_TASKS = tuple(_TASKS)
"""What `sentence_task` can label."""
