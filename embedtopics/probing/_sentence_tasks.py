"""Tasks on each sentence, after SentEval's probing tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from embedtopics._utils.checks import checked_choice, is_count, resolve_seed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.probing._tasks import (
    Treebanks,
    content_digest,
    gathered,
    key_of,
    split_contents,
    without_repeats,
)
from embedtopics.probing.results import ProbeTask, Sentence
from embedtopics.protocols import RandomState


class SentenceLabel(NamedTuple):
    """A sentence's label; each `stratum` has classes of equal size."""

    label: str
    stratum: int = 0
    text: str | None = None


class LabelPool(NamedTuple):
    """The sentences to be labelled, their parts, and the fewest and most words."""

    sentences: Sequence[Sentence]
    parts: Sequence[str]
    n_classes: int
    lengths: tuple[int, int]
    seed: int


Answers = list[SentenceLabel | None]


def sentence_task(
    treebanks: Treebanks,
    task: str,
    *,
    n_classes: int | None = None,
    lengths: tuple[int, int] = (5, 28),
    random_state: RandomState = 0,
) -> ProbeTask:
    """Make a task with one label for every sentence of a treebank.

    All classes have the same size in each part, and no sentence occurs twice. A hash of the
    content selects the sentences that are left out. Sentences have the text of the treebank.

    Parameters
    ----------
    treebanks : Treebank, sequence of Treebank, or mapping of str to Treebank
        By part: "train", "test", and optionally "dev". Without parts, a hash of the content splits
        the sentences: 80 % to train, 10 % each to dev and test.
    task : str
        "sentence length" : number of words, in `n_classes` bins of equal width.

        "tree depth" : maximum number of steps from the root of the dependency tree to a word, for
        the `n_classes` consecutive depths that keep most sentences. In each part all classes have
        the same distribution of lengths, which would otherwise predict the depth.

        "bigram shift" : whether two neighboring words are exchanged. Each sentence occurs once,
        intact or shifted, with spaces between words; the first word and punctuation keep their
        places.
    n_classes : int, optional
        Number of classes of "sentence length" (default 6) and "tree depth" (default 3).
    lengths : (int, int)
        Minimum and maximum number of words; by default those of SentEval.
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
    kind = _TASKS[checked_choice(task, "task", SENTENCE_TASKS)]
    if n_classes is not None and n_classes != kind.n_classes:
        if kind.is_fixed or not is_count(n_classes, 2):
            possible = str(kind.n_classes) if kind.is_fixed else "an integer from 2 up"
            raise InputError("n_classes", f"{possible} for {task!r}", n_classes)
    pool, decisions = _pool(treebanks, kind, n_classes or kind.n_classes, lengths, seed)
    labelled = [
        (answer, part, sentence)
        for answer, part, sentence in zip(kind.label(pool), pool.parts, pool.sentences, strict=True)
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
        remedy = "give more sentences, or fewer classes"
        required = f"with sentences of two classes or more of {task!r}{in_parts}"
        raise InputError("treebanks", required, remedy=remedy, found=", ".join(classes) or "none")
    message = (
        f"{task}: {len(rows):,} of {len(pool.sentences):,} sentences of {lengths[0]} to "
        f"{lengths[1]} words are labelled, with {len(classes)} classes of equal size in each part."
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
    treebanks: Treebanks, kind: _SentenceTask, n_classes: int, lengths: tuple[int, int], seed: int
) -> tuple[LabelPool, tuple[Decision, ...]]:
    """Return distinct sentences of the lengths, and the part of each."""
    is_pair = isinstance(lengths, Sequence) and len(lengths) == 2 and all(map(is_count, lengths))
    if not is_pair or lengths[0] > lengths[1]:
        raise InputError("lengths", "the fewest and the most words", lengths)
    sentences, parts, decisions = gathered(treebanks)
    if kind.needs_heads:
        for one in sentences:
            if not one.heads:
                missing = f"sentence {one.id!r} without"
                raise InputError("treebanks", "with heads for every sentence", found=missing)
    fitting = [n for n, one in enumerate(sentences) if lengths[0] <= len(one.words) <= lengths[1]]
    if not fitting:
        raise InputError("lengths", "those of some sentences", lengths)
    # Of sentences that differ in case alone, the same one stays whatever the order of the rows.
    in_order = sorted(fitting, key=lambda n: (sentences[n].words, sentences[n].heads))
    keys = [(key_of(sentences[place].words),) for place in in_order]
    part_of = [parts[place] for place in in_order]
    unique, repeats = without_repeats(keys, part_of, "Sentences", within=True)
    decisions += repeats
    places = sorted(in_order[place] for place in unique)
    selected = [sentences[place] for place in places]
    part_of = [parts[place] for place in places]
    if not any(part_of):
        part_of, split = split_contents([key_of(one.words) for one in selected], seed, "sentences")
        decisions += split
    return LabelPool(selected, part_of, n_classes, lengths, seed), decisions


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
    shortest, longest = pool.lengths
    width = (longest - shortest + 1) // pool.n_classes
    if width < 1 or width * pool.n_classes != longest - shortest + 1:
        expected = f"a range of {pool.n_classes} bins of one width"
        raise InputError("lengths", expected, pool.lengths, "change it, or n_classes")
    begins = [shortest + (len(one.words) - shortest) // width * width for one in pool.sentences]
    return [SentenceLabel(f"{begin:02d}-{begin + width - 1:02d}") for begin in begins]


def tree_depth(pool: LabelPool) -> Answers:
    """Return the depth of the tree; lengths are the strata, so that they do not predict it."""
    depths = [depth(sentence.heads) for sentence in pool.sentences]
    by_length: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for sentence, value, part in zip(pool.sentences, depths, pool.parts, strict=True):
        if part == "train":
            by_length[len(sentence.words)][value] += 1

    def n_matched(first: int) -> int:
        """Return how many sentences of each class remain when all lengths are matched."""
        classes = range(first, first + pool.n_classes)
        return sum(min(counts[one] for one in classes) for counts in by_length.values())

    first = max(range(1, max(depths, default=1) + 1), key=lambda one: (n_matched(one), -one))
    return [
        SentenceLabel(str(value), stratum=len(sentence.words))
        if first <= value < first + pool.n_classes
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


@dataclass(frozen=True)
class _SentenceTask:
    """How sentences are labelled, and what that needs of a treebank."""

    label: Callable[[LabelPool], Answers]
    n_classes: int
    is_fixed: bool = True
    needs_heads: bool = False


_TASKS = {
    "sentence length": _SentenceTask(length, 6, False),
    "tree depth": _SentenceTask(tree_depth, 3, False, needs_heads=True),
    "bigram shift": _SentenceTask(bigram_shift, 2),
}

SENTENCE_TASKS = tuple(_TASKS)
"""What `sentence_task` can label."""
