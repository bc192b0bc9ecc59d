"""Tasks that ask something of each sentence, after SentEval's probing tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embedtopics._checks import is_count, optional_count
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.probing.tasks import questions
from embedtopics.probing.tasks.dealing import (
    PARTS,
    SHARES,
    Treebanks,
    content_digest,
    dealt,
    gathered,
    key_of,
    told_parts,
    without_repeats,
)
from embedtopics.probing.tasks.questions import Answer, Asked
from embedtopics.results import Decision, ProbeTask, Sentence

__all__ = ["SENTENCE_TASKS", "sentence_task"]


@dataclass(frozen=True)
class _Question:
    answers: Callable[[Asked], list[Answer | None]]
    n_classes: int
    is_fixed: bool = True
    needs: tuple[str, ...] = ()
    has_target: bool = False


_TREE = ("heads", "deprel")
_WORDS = (*_TREE, "feats or xpos")
_QUESTIONS = {
    "sentence length": _Question(questions.length, 6, False),
    "word content": _Question(questions.word_content, 10, False),
    "tree depth": _Question(questions.tree_depth, 3, False, ("heads",)),
    "root dependents": _Question(questions.root_dependents, 6, False, _TREE),
    "bigram shift": _Question(questions.bigram_shift, 2),
    "tense": _Question(questions.tense, 2, True, _WORDS, True),
    "subject number": _Question(questions.subject_number, 2, True, _WORDS, True),
    "object number": _Question(questions.object_number, 2, True, _WORDS, True),
}

SENTENCE_TASKS = tuple(_QUESTIONS)
"""What `sentence_task` can ask."""


def sentence_task(
    treebanks: Treebanks,
    what: str,
    *,
    n_classes: int | None = None,
    lengths: tuple[int, int] = (5, 28),
    most: int | None = None,
    disjoint_targets: bool = True,
    seed: int = 0,
) -> ProbeTask:
    """Ask a question of every sentence of a treebank.

    Classes are of one size in each part, so that the share of the largest is 1 in `n_classes`; no
    sentence occurs twice, in one part or in two. What is left out for that is chosen by the hash
    of the content. Sentences are read as they were written where the treebank says how.

    Parameters
    ----------
    treebanks : Treebank, sequence of Treebank, or mapping of str to Treebank
        By part: "train", perhaps "dev", and "test". Without parts, sentences are dealt out by the
        hash of their content: 80 % to train, 10 % each to dev and test.
    what : str
        "sentence length" : number of words, in `n_classes` bins of one width.

        "word content" : which of `n_classes` words is in the sentence, with exactly one of them
        there. They have four letters or more, come in frequency behind the 50 most frequent ones
        of the training, and are those of the next 10 * `n_classes` that all parts have most of;
        SentEval takes a thousand of the ranks 2,000 to 3,000, for which a treebank is too small.

        "tree depth" : most steps from the root of the dependency tree to a word; the `n_classes`
        neighbouring depths by which most sentences are kept. In each part all classes have the
        same lengths, exactly: SentEval makes depth and length uncorrelated, since length alone
        would tell the depth.

        "root dependents" : the relations that hang on the root, without subtypes and punctuation,
        in their order with the root ("nsubj ROOT obj"): the most frequent ones of the training,
        and "other". It stands in for SentEval's top constituents, where there are no phrases.

        "bigram shift" : whether two neighbouring words were exchanged. Each sentence is there
        once, intact or shifted, so that the two forms of one are never compared. Words have blanks
        between them in both classes; the first word and punctuation stay in place.

        "tense" : "Past" or "Pres", of the finite verb of the main clause: the root, or its
        auxiliary or copula. By the features VerbForm and Tense (imperfect and pluperfect are
        past), or, where a treebank has no features, the tags VBD, VBP and VBZ. "has seen" is
        present by its finite verb.

        "subject number", "object number" : "Sing" or "Plur", of the one common noun that is nsubj
        or obj of the root and has no conjuncts; by the feature Number, or the tags NN and NNS.
    n_classes : int, optional
        Of the first four; 6, 10, 3 and 6 by default.
    lengths : (int, int)
        Fewest and most words of a sentence; as in SentEval.
    most : int, optional
        Sentences of each class in each part, at most.
    disjoint_targets : bool
        For the last three: whether no form of the verb or noun asked for occurs in two parts, as
        in SentEval, so that its tense or number cannot be known by heart. The sentences of all
        parts are then dealt out anew, by these forms; the most frequent ones are in the training.
    seed : int
        Of all choices by hashes.

    Returns
    -------
    ProbeTask
        With the unit "text".

    Raises
    ------
    InputError
        If there is no such question, the treebank lacks what it needs, or a class has no sentence
        in a part.

    References
    ----------
    Conneau, Kruszewski, Lample, Barrault and Baroni, "What you can cram into a single $&!#* vector:
    Probing sentence embeddings for linguistic properties", ACL 2018, section 2.
    """
    seed = resolve_seed(seed)
    question = _known(what)
    asked, parts, decisions = _asked(treebanks, question, what, n_classes, lengths, seed)
    answers = question.answers(asked)
    able = [place for place, answer in enumerate(answers) if answer is not None]
    given = [answer for answer in answers if answer is not None]
    keys = [key_of(asked.sentences[place].words) for place in able]
    own = [parts[place] for place in able]
    expected = set(parts)
    if question.has_target and disjoint_targets:
        expected = set(PARTS)
        own = _dealt_by_target(given, seed)
        message = (
            f"{what}: the sentences of all parts were dealt out anew, so that no form of the word "
            "asked for is in two parts."
        )
        decisions += (Decision("probing", "disjoint_targets", True, message),)
    classes = sorted({answer.label for answer in given})
    kept = _balanced(given, keys, own, classes, optional_count(most, "most"), seed)
    _check_classes(what, classes, {(own[one], given[one].label) for one in kept}, expected)
    message = (
        f"{what}: {len(kept):,} of {len(asked.sentences):,} sentences of {lengths[0]} to "
        f"{lengths[1]} words are asked, as many of each of {len(classes)} classes in each part."
    )
    decisions += (Decision("probing", "balanced", len(kept), message),)
    texts = []
    for one in kept:
        text = given[one].text
        texts.append(asked.sentences[able[one]].text if text is None else text)
    return ProbeTask(
        name=what, unit="text", texts=tuple(texts),
        labels=tuple((given[one].label,) for one in kept), parts=tuple(own[one] for one in kept),
        decisions=decisions,
    )  # fmt: skip


def _known(what: str) -> _Question:
    if what not in _QUESTIONS:
        raise InputError(f"expected a question among {', '.join(SENTENCE_TASKS)}; got {what!r}")
    return _QUESTIONS[what]


def _asked(
    treebanks: Treebanks,
    question: _Question,
    what: str,
    n_classes: int | None,
    lengths: tuple[int, int],
    seed: int,
) -> tuple[Asked, list[str], tuple[Decision, ...]]:
    """Return distinct sentences of the lengths, and the part of each."""
    wanted = question.n_classes if n_classes is None else n_classes
    if not is_count(wanted, 2) or (question.is_fixed and wanted != question.n_classes):
        possible = str(question.n_classes) if question.is_fixed else "an integer from 2 up"
        raise InputError(f"expected as n_classes of {what!r} {possible}; got {n_classes!r}")
    shortest, longest = _checked_lengths(lengths)
    sentences, parts, decisions = gathered(treebanks)
    _check_needs(sentences, question, what)
    fitting = [n for n, one in enumerate(sentences) if shortest <= len(one.words) <= longest]
    if not fitting:
        raise InputError(f"expected sentences of {shortest} to {longest} words, got none")
    # Of sentences that differ in case alone, the same one stays whatever the order of the rows.
    in_order = sorted(fitting, key=lambda n: (sentences[n].words, sentences[n].heads))
    keys = [key_of(sentences[place].words) for place in in_order]
    kept, repeats = without_repeats(keys, [parts[place] for place in in_order], within=True)
    decisions += repeats
    places = sorted(in_order[place] for place in kept)
    chosen = [sentences[place] for place in places]
    own = [parts[place] for place in places]
    if not any(own):
        own = list(dealt([key_of(one.words) for one in chosen], seed))
        decisions += (told_parts(own, seed),)
    return Asked(chosen, own, wanted, lengths, seed), own, decisions


def _checked_lengths(lengths: object) -> tuple[int, int]:
    if isinstance(lengths, Sequence) and len(lengths) == 2 and all(map(is_count, lengths)):
        shortest, longest = map(int, lengths)
        if shortest <= longest:
            return shortest, longest
    raise InputError(f"expected lengths as the fewest and the most words; got {lengths!r}")


def _check_needs(sentences: Sequence[Sentence], question: _Question, what: str) -> None:
    for need in question.needs:
        columns = need.split(" or ")
        for one in sentences:
            if one.heads if need == "heads" else any(name in one.columns for name in columns):
                continue
            raise InputError(
                f"{what!r} needs {need} of every sentence; the sentence {one.id!r} has none; give "
                "a treebank that has them"
            )


def _dealt_by_target(answers: Sequence[Answer], seed: int) -> list[str]:
    """Deal answers out so that each target is in one part; what is too frequent is in train."""
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        counted[answer.target][answer.label] += 1
    totals = Counter(answer.label for answer in answers)
    room = {
        part: {label: SHARES[part] * n for label, n in totals.items()} for part in ("test", "dev")
    }
    part_of = {}
    for target in sorted(counted, key=lambda one: content_digest(one, seed, "target")):
        own = counted[target]
        part_of[target] = "train"
        for part, left in room.items():
            if all(n <= left[label] for label, n in own.items()):
                part_of[target] = part
                for label, n in own.items():
                    left[label] -= n
                break
    return [part_of[answer.target] for answer in answers]


def _balanced(
    answers: Sequence[Answer],
    keys: Sequence[str],
    parts: Sequence[str],
    classes: Sequence[str],
    most: int | None,
    seed: int,
) -> list[int]:
    """Choose as many of each class in each stratum of each part, by the hash of their content."""
    cells: defaultdict[tuple[str, int], defaultdict[str, list[int]]]
    cells = defaultdict(lambda: defaultdict(list))
    order = sorted(range(len(answers)), key=lambda one: content_digest(keys[one], seed, "balanced"))
    for one in order:
        cells[parts[one], answers[one].stratum][answers[one].label].append(one)
    chosen: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (part, _), of_class in sorted(cells.items()):
        n = min(len(of_class[label]) for label in classes)
        for label in classes:
            chosen[part, label] += of_class[label][:n]
    if most is not None and any(answer.stratum for answer in answers):
        return sorted(one for group in _thinned(chosen, answers, most) for one in group)
    return sorted(one for group in chosen.values() for one in group[:most])


def _thinned(
    chosen: dict[tuple[str, str], list[int]], answers: Sequence[Answer], most: int
) -> list[list[int]]:
    """Take every n-th of each class, ordered by stratum: the strata stay as they are matched."""
    thinned = []
    for group in chosen.values():
        ordered = sorted(group, key=lambda one: answers[one].stratum)
        step = max(1.0, len(ordered) / most)
        thinned.append([ordered[int(nth * step)] for nth in range(min(most, len(ordered)))])
    return thinned


def _check_classes(
    what: str,
    classes: Sequence[str],
    found: set[tuple[str, str]],
    expected: set[str],
) -> None:
    if len(classes) < 2:
        raise InputError(
            f"expected at least two classes of {what!r}, got {', '.join(classes) or 'none'}; give "
            "more sentences"
        )
    for part in sorted(expected):
        lacking = [label for label in classes if (part, label) not in found]
        if lacking:
            raise InputError(
                f"{what}: expected sentences of each class in {part}, got none that can be matched "
                f"({', '.join(classes)}); give more sentences, or fewer classes"
            )
