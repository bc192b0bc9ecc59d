"""What can be asked of whole sentences, answered from their words and trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from embedtopics.errors import InputError
from embedtopics.probing.tasks.dealing import content_digest, key_of
from embedtopics.results import Sentence

__all__ = ["Answer", "Asked", "depth", "main_verb", "shifted", "tokens_of"]

_LEAST_LETTERS = 4
_MOST_FREQUENT = 50
_CANDIDATES = 10
_OTHER = "other"
_TENSES = {"Past": "Past", "Imp": "Past", "Pqp": "Past", "Pres": "Pres"}
_XPOS_TENSES = {"VBD": "Past", "VBP": "Pres", "VBZ": "Pres"}
_XPOS_NUMBERS = {"NN": "Sing", "NNS": "Plur"}
_NUMBERS = ("Sing", "Plur")


@dataclass(frozen=True)
class Answer:
    """The label of a sentence.

    Parameters
    ----------
    label : str
    target : str
        The word that it is about, if there is one.
    stratum : int
        Classes are given as many sentences in each stratum.
    text : str or None
        What is read instead of the sentence.
    """

    label: str
    target: str = ""
    stratum: int = 0
    text: str | None = None


@dataclass(frozen=True)
class Asked:
    """What a question is asked of.

    Parameters
    ----------
    sentences : sequence of Sentence
    parts : sequence of str
    n_classes : int
    lengths : (int, int)
        Fewest and most words.
    seed : int
    """

    sentences: Sequence[Sentence]
    parts: Sequence[str]
    n_classes: int
    lengths: tuple[int, int]
    seed: int


def length(asked: Asked) -> list[Answer | None]:
    """Ask for the number of words, in bins of one width."""
    shortest, longest = asked.lengths
    width = (longest - shortest + 1) // asked.n_classes
    if width < 1 or width * asked.n_classes != longest - shortest + 1:
        raise InputError(
            f"expected lengths that fall into {asked.n_classes} bins of one width; {shortest} to "
            f"{longest} words do not; change lengths= or n_classes="
        )
    made = []
    for sentence in asked.sentences:
        begin = shortest + (len(sentence.words) - shortest) // width * width
        made.append(Answer(f"{begin:02d}-{begin + width - 1:02d}"))
    return list(made)


def word_content(asked: Asked) -> list[Answer | None]:
    """Ask which of some mid-frequency words is there; exactly one of them is."""
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence, part in zip(asked.sentences, asked.parts, strict=True):
        forms = {word.casefold() for word in sentence.words}
        counted[part].update(f for f in forms if f.isalpha() and len(f) >= _LEAST_LETTERS)
    train = counted["train"]
    ranked = sorted(train, key=lambda form: (-train[form], form))
    middle = ranked[_MOST_FREQUENT : _MOST_FREQUENT + _CANDIDATES * asked.n_classes]
    if len(middle) < asked.n_classes:
        raise InputError(
            f"expected {_MOST_FREQUENT + asked.n_classes} different words of {_LEAST_LETTERS} "
            f"letters or more in the training, got {len(ranked)}; give more sentences"
        )
    # Those that are rare in one part would leave few sentences of all others.
    middle.sort(key=lambda form: -min(of_part[form] for of_part in counted.values()))
    chosen = set(middle[: asked.n_classes])
    made: list[Answer | None] = []
    for sentence in asked.sentences:
        found = [word.casefold() for word in sentence.words if word.casefold() in chosen]
        made.append(Answer(found[0]) if len(found) == 1 else None)
    return made


def tree_depth(asked: Asked) -> list[Answer | None]:
    """Ask how many words lie between the root and the word that is farthest from it, and that one.

    Lengths are the strata, so that they say nothing of the depth.
    """
    depths = [depth(sentence.heads) for sentence in asked.sentences]
    by_length: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for sentence, own, part in zip(asked.sentences, depths, asked.parts, strict=True):
        if part == "train":
            by_length[len(sentence.words)][own] += 1

    def kept(first: int) -> int:
        """Return how many sentences of each class are left when all lengths are matched."""
        classes = range(first, first + asked.n_classes)
        return sum(min(counted[one] for one in classes) for counted in by_length.values())

    first = max(range(1, max(depths, default=1) + 1), key=lambda one: (kept(one), -one))
    return [
        Answer(str(own), stratum=len(sentence.words))
        if first <= own < first + asked.n_classes
        else None
        for sentence, own in zip(asked.sentences, depths, strict=True)
    ]


def depth(heads: Sequence[int]) -> int:
    """Return the most steps from the root to a word.

    Examples
    --------
    >>> depth([2, 0, 4, 2])
    2
    """
    known = {0: -1}
    for word in range(1, len(heads) + 1):
        way = []
        while word not in known:
            way.append(word)
            word = heads[word - 1]
        for steps, one in enumerate(reversed(way), start=known[word] + 1):
            known[one] = steps
    return max(known.values())


def root_dependents(asked: Asked) -> list[Answer | None]:
    """Ask which relations hang on the root, in their order; the rarer sequences are "other"."""
    sequences = [_sequence(sentence) for sentence in asked.sentences]
    counted = Counter(
        one for one, part in zip(sequences, asked.parts, strict=True) if part == "train"
    )
    ranked = sorted(counted, key=lambda one: (-counted[one], one))
    chosen = set(ranked[: asked.n_classes - 1])
    return [Answer(one if one in chosen else _OTHER) for one in sequences]


def _sequence(sentence: Sentence) -> str:
    root = sentence.heads.index(0)
    found = []
    for place, (head, relation) in enumerate(
        zip(sentence.heads, sentence.columns["deprel"], strict=True)
    ):
        if place == root:
            found.append("ROOT")
        elif head == root + 1 and _universal(relation) != "punct":
            found.append(_universal(relation))
    return " ".join(found)


def bigram_shift(asked: Asked) -> list[Answer | None]:
    """Ask whether two neighbouring words have changed places; every second time they have."""
    taken = {key_of(tokens_of(sentence)) for sentence in asked.sentences}
    made: list[Answer | None] = [None] * len(asked.sentences)
    able = []
    for place, sentence in enumerate(asked.sentences):
        tokens = tokens_of(sentence)
        changed = shifted(tokens, taken, asked.seed)
        if changed is not None:
            order = content_digest(key_of(tokens), asked.seed, "shifted")
            able.append((order, place, tokens, changed))
    for nth, (_, place, tokens, changed) in enumerate(sorted(able)):
        is_shifted = nth % 2 == 1
        text = " ".join(changed if is_shifted else tokens)
        made[place] = Answer("shifted" if is_shifted else "intact", text=text)
    return made


def tokens_of(sentence: Sentence) -> tuple[str, ...]:
    """Return what is written between blanks and punctuation: multi-word tokens are one."""
    inside = {place for begin, end in sentence.ranges for place in range(begin + 1, end)}
    return tuple(
        sentence.text[begin:end]
        for place, (begin, end) in enumerate(sentence.spans)
        if place not in inside
    )


def shifted(tokens: Sequence[str], taken: set[str], seed: int) -> tuple[str, ...] | None:
    """Exchange two neighbours, chosen by the content; None where no two can be.

    The first word stays where it is, and so does punctuation: a small letter at the beginning, or
    a full stop inside, would give the shift away. What comes out is no other sentence.
    """
    key = key_of(tokens)
    places = [
        place
        for place in range(1, len(tokens) - 1)
        if all(any(map(str.isalpha, token)) for token in tokens[place : place + 2])
    ]
    places.sort(key=lambda place: content_digest(f"{place} {key}", seed, "place"))
    for place in places:
        made = (*tokens[:place], tokens[place + 1], tokens[place], *tokens[place + 2 :])
        if key_of(made) != key and key_of(made) not in taken:
            return made
    return None


def tense(asked: Asked) -> list[Answer | None]:
    """Ask for the tense of the finite verb of the main clause: past or present."""
    made: list[Answer | None] = []
    for sentence in asked.sentences:
        found = main_verb(sentence)
        made.append(
            None if found is None else Answer(found[1], target=sentence.words[found[0]].casefold())
        )
    return made


def main_verb(sentence: Sentence) -> tuple[int, str] | None:
    """Return the finite verb of the main clause and its tense: the root, or its auxiliary."""
    root = sentence.heads.index(0)
    helpers = [
        place
        for place, head in enumerate(sentence.heads)
        if head == root + 1 and _universal(sentence.columns["deprel"][place]) in ("aux", "cop")
    ]
    for place in (root, *helpers):
        found = _tense(sentence, place)
        if found:
            return place, found
    return None


def _tense(sentence: Sentence, place: int) -> str:
    features = _features(sentence, place)
    if features is None:
        return _XPOS_TENSES.get(_cell(sentence, "xpos", place), "")
    if features.get("VerbForm") != "Fin":
        return ""
    return _TENSES.get(features.get("Tense", ""), "")


def subject_number(asked: Asked) -> list[Answer | None]:
    """Ask whether the subject of the main clause is singular or plural."""
    return [_number_of(sentence, "nsubj") for sentence in asked.sentences]


def object_number(asked: Asked) -> list[Answer | None]:
    """Ask whether the object of the main clause is singular or plural."""
    return [_number_of(sentence, "obj") for sentence in asked.sentences]


def _number_of(sentence: Sentence, relation: str) -> Answer | None:
    """Return the number of the one noun in a relation to the root, unless others are joined."""
    root = sentence.heads.index(0)
    relations = [_universal(one) for one in sentence.columns["deprel"]]
    found = [
        place
        for place, head in enumerate(sentence.heads)
        if head == root + 1 and relations[place] == relation
    ]
    if len(found) != 1:
        return None
    place = found[0]
    joined = any(
        head == place + 1 and one == "conj"
        for head, one in zip(sentence.heads, relations, strict=True)
    )
    if joined or _cell(sentence, "upos", place) not in ("NOUN", ""):
        return None
    features = _features(sentence, place)
    if features is None:
        number = _XPOS_NUMBERS.get(_cell(sentence, "xpos", place), "")
    else:
        number = features.get("Number", "")
    if number not in _NUMBERS:
        return None
    return Answer(number, target=sentence.words[place].casefold())


def _universal(relation: str) -> str:
    """Return a relation without its subtype."""
    return relation.partition(":")[0]


def _features(sentence: Sentence, place: int) -> dict[str, str] | None:
    """Return the features of a word; None where the treebank has none."""
    if "feats" not in sentence.columns:
        return None
    cells = sentence.columns["feats"][place].split("|")
    return {name: value for name, sign, value in (one.partition("=") for one in cells) if sign}


def _cell(sentence: Sentence, column: str, place: int) -> str:
    return sentence.columns[column][place] if column in sentence.columns else ""
