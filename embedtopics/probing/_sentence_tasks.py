"""Tasks on each sentence, after SentEval's probing tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.probing._tasks import (
    Treebanks,
    content_digest,
    gathered,
    key_of,
    split,
)
from embedtopics.probing.results import ProbeTask, Sentence
from embedtopics.protocols import RandomState


class SentenceLabel(NamedTuple):
    """A sentence's label; each `stratum` has classes of equal size."""

    label: str
    stratum: int = 0
    text: str | None = None


class LabelPool(NamedTuple):
    """The sentences to be labelled, and their parts."""

    sentences: Sequence[Sentence]
    parts: Sequence[str]
    seed: int


SHORTEST, LONGEST = 5, 28
"""Words of a sentence."""
BIN, N_DEPTHS = 4, 3
"""Lengths in a bin, and number of classes of depth."""


Answers = list[SentenceLabel | None]


def sentence_task(
    treebanks: Treebanks,
    task: str,
    *,
    random_state: RandomState = 0,
) -> ProbeTask:
    """Make a task with one label for every sentence of a treebank.

    All classes have the same size in each part, and no sentence occurs twice. A hash of the
    content selects the sentences that are left out. Sentences have 5 to 28 words, as those of
    SentEval, and the text of the treebank.

    Parameters
    ----------
    treebanks : Treebank, sequence of Treebank, or mapping of str to Treebank
        By part: "train", "test", and optionally "dev". Without parts, a hash of the content splits
        the sentences: 80 % to train, 10 % each to dev and test.
    task : str
        "sentence length" : number of words, in six bins of equal width.

        "tree depth" : maximum number of steps from the root of the dependency tree to a word, for
        the three consecutive depths that keep most sentences. In each part all classes have
        the same distribution of lengths, which would otherwise predict the depth.

        "bigram shift" : whether two neighboring words are exchanged. Each sentence occurs once,
        intact or shifted, with spaces between words; the first word and punctuation keep their
        places.
    random_state : int, Generator or None
        Seed of the hashes.

    Returns
    -------
    ProbeTask
        With the unit "text".

    Raises
    ------
    InputError
        If the task does not exist, the treebank lacks heads, or a class has no sentence in a part.

    References
    ----------
    Conneau, Kruszewski, Lample, Barrault and Baroni, "What you can cram into a single $&!#* vector:
    Probing sentence embeddings for linguistic properties", ACL 2018, section 2.
    """
    seed = resolve_seed(random_state)
    label = _TASKS[checked_choice(task, "task", SENTENCE_TASKS)]
    pool, decisions = _pool(treebanks, seed, needs_heads=task == "tree depth")
    labelled = [
        (answer, part, sentence)
        for answer, part, sentence in zip(label(pool), pool.parts, pool.sentences, strict=True)
        if answer is not None
    ]
    answers = [answer for answer, _, _ in labelled]
    parts = [part for _, part, _ in labelled]
    keys = [key_of(sentence.words) for _, _, sentence in labelled]
    expected = set(pool.parts)
    classes = sorted({answer.label for answer in answers})
    rows = _balanced(answers, keys, parts, classes, seed)
    present = {(parts[one], answers[one].label) for one in rows}
    lacking = [part for part in sorted(expected) if {(part, one) for one in classes} - present]
    if len(classes) < 2 or lacking:
        in_parts = f" in {', '.join(lacking)}" if lacking else ""
        remedy = "give more sentences"
        required = f"with sentences of two classes or more of {task!r}{in_parts}"
        raise InputError("treebanks", required, remedy=remedy, found=", ".join(classes) or "none")
    message = (
        f"{task}: {len(rows):,} of {len(pool.sentences):,} sentences of {SHORTEST} to "
        f"{LONGEST} words are labelled, with {len(classes)} classes of equal size in each part."
    )
    texts = []
    for one in rows:
        answer, _, sentence = labelled[one]
        texts.append(sentence.text if answer.text is None else answer.text)
    return ProbeTask(
        name=task,
        unit="text",
        texts=tuple(texts),
        labels=tuple((answers[one].label,) for one in rows),
        parts=tuple(parts[one] for one in rows),
        decisions=(*decisions, Decision("probing", "balanced", len(rows), message)),
    )


def _pool(
    treebanks: Treebanks, seed: int, *, needs_heads: bool
) -> tuple[LabelPool, tuple[Decision, ...]]:
    """Return distinct sentences, and the part of each."""
    sentences, parts, decisions = gathered(treebanks)
    if needs_heads and (bare := [one.id for one in sentences if not one.heads]):
        raise InputError("treebanks", "with heads", found=f"sentence {bare[0]!r} without")
    # Of sentences that differ in case alone, the same one stays whatever the order of the rows.
    in_order = sorted(
        (n for n, one in enumerate(sentences) if SHORTEST <= len(one.words) <= LONGEST),
        key=lambda n: (sentences[n].words, sentences[n].heads),
    )
    if not in_order:
        expected = f"with sentences of {SHORTEST} to {LONGEST} words"
        raise InputError("treebanks", expected, found="none")
    keys = [key_of(sentences[n].words) for n in in_order]
    places, part_of, notes = split(keys, [parts[n] for n in in_order], seed, within=True)
    pairs = sorted(zip([in_order[place] for place in places], part_of, strict=True))
    pool = LabelPool([sentences[n] for n, _ in pairs], [part for _, part in pairs], seed)
    return pool, (*decisions, *notes)


def _balanced(
    answers: Sequence[SentenceLabel],
    keys: Sequence[str],
    parts: Sequence[str],
    classes: Sequence[str],
    seed: int,
) -> list[int]:
    """Choose as many of each class in each stratum of each part, by the hash of their content."""
    cells: defaultdict[tuple[str, int], defaultdict[str, list[int]]]
    cells = defaultdict(lambda: defaultdict(list))
    order = sorted(range(len(answers)), key=lambda one: content_digest(keys[one], seed, "balanced"))
    for one in order:
        cells[parts[one], answers[one].stratum][answers[one].label].append(one)
    rows: list[int] = []
    for of_class in cells.values():
        n = min(len(of_class[label]) for label in classes)
        for label in classes:
            rows += of_class[label][:n]
    return sorted(rows)


def length(pool: LabelPool) -> Answers:
    """Return the number of words, in bins of one width."""
    begins = [SHORTEST + (len(one.words) - SHORTEST) // BIN * BIN for one in pool.sentences]
    return [SentenceLabel(f"{begin:02d}-{begin + BIN - 1:02d}") for begin in begins]


def tree_depth(pool: LabelPool) -> Answers:
    """Return the depth of the tree; lengths are the strata, so that they do not predict it."""
    depths = [depth(sentence.heads) for sentence in pool.sentences]
    by_length: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for sentence, value, part in zip(pool.sentences, depths, pool.parts, strict=True):
        if part == "train":
            by_length[len(sentence.words)][value] += 1

    def n_matched(first: int) -> int:
        """Return how many sentences of each class remain when all lengths are matched."""
        classes = range(first, first + N_DEPTHS)
        return sum(min(counts[one] for one in classes) for counts in by_length.values())

    first = max(range(1, max(depths, default=1) + 1), key=lambda one: (n_matched(one), -one))
    return [
        SentenceLabel(str(value), stratum=len(sentence.words))
        if first <= value < first + N_DEPTHS
        else None
        for sentence, value in zip(pool.sentences, depths, strict=True)
    ]


def depth(heads: Sequence[int]) -> int:
    """Return the most steps from the root to a word."""
    depth_of = {0: -1}
    for word in range(1, len(heads) + 1):
        way = []
        while word not in depth_of:
            way.append(word)
            word = heads[word - 1]
        for steps, one in enumerate(reversed(way), start=depth_of[word] + 1):
            depth_of[one] = steps
    return max(depth_of.values())


def bigram_shift(pool: LabelPool) -> Answers:
    """Return whether two neighbouring words were exchanged; every second time they were."""
    existing = {key_of(tokens_of(sentence)) for sentence in pool.sentences}
    answers: Answers = [None] * len(pool.sentences)
    shiftable = []
    for place, sentence in enumerate(pool.sentences):
        tokens = tokens_of(sentence)
        changed = shifted(tokens, existing, pool.seed)
        if changed is not None:
            order = content_digest(key_of(tokens), pool.seed, "shifted")
            shiftable.append((order, place, tokens, changed))
    for nth, (_, place, tokens, changed) in enumerate(sorted(shiftable)):
        is_shifted = nth % 2 == 1
        text = " ".join(changed if is_shifted else tokens)
        answers[place] = SentenceLabel("shifted" if is_shifted else "intact", text=text)
    return answers


def tokens_of(sentence: Sentence) -> tuple[str, ...]:
    """Return the tokens as they are written: multi-word tokens are one."""
    inside = {place for begin, end in sentence.ranges for place in range(begin + 1, end)}
    return tuple(
        sentence.text[begin:end]
        for place, (begin, end) in enumerate(sentence.spans)
        if place not in inside
    )


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
