"""Sheets that ask people which of several words, texts or topics does not belong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._table_files import write_csv
from embedtopics.errors import InputError
from embedtopics.evaluation._coherence import refuse_strings
from embedtopics.protocols import RandomState

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

    Ask = Callable[[int, int, np.random.Generator], "_Question | None"]

ANSWER = "answer"
KEYS = "keys"
"""Folder of the keys, below that of the sheets, so that a coder is given the one without them."""

LOW = 0.1
"""An intruder's weight in the topic is at most this share of that of the weakest word shown."""

LEAST_SHARE = 0.05
"""Share from which a topic counts as one of a document's own."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """Questions for coders, and their key in a table of its own."""

    task: str
    questions: pd.DataFrame
    key: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.questions)

    def __repr__(self) -> str:
        """Return the task and the number of questions."""
        return f"Sheet({self.task!r}, {len(self)} questions)"

    def _repr_html_(self) -> str:
        from embedtopics._utils.display import html_table

        return html_table(self.questions, repr(self))

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write the questions, and the key into a folder of its own below.

        Each coder fills in the column answer of a copy. Nothing in the files is run as a formula.
        """
        folder = Path(folder)
        paths = folder / f"{self.task}.csv", folder / KEYS / f"{self.task}.csv"
        for path, table in zip(paths, (self.questions, self.key), strict=True):
            if path.exists():
                raise InputError(f"{path} exists, and may hold answers; name another folder")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8-sig", newline="") as stream:
                    write_csv(stream, table)
            except OSError as error:
                raise InputError(
                    f"cannot write {path}: {error.strerror or error}; name another folder"
                ) from error
        return paths


class _Question(NamedTuple):
    """Options that are shown together, the intruder last; `about` stands above them."""

    topic: int
    options: list[str]
    intruder_topic: int
    about: str = ""
    shares: tuple[float, ...] = ()


def word_intrusion(
    topics: Sequence[Sequence[str]],
    weights: npt.ArrayLike | csr_matrix | None = None,
    terms: Sequence[str] = (),
    *,
    n_questions: int | None = None,
    n_terms: int = 5,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of six words does not belong with the others.

    Five are the first of a topic; the intruder is one of the first of another topic and of little
    weight in this one, so that it stands out only where the topic makes sense (Chang et al. 2009,
    "Reading tea leaves: how humans interpret topic models").

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first; more than `n_terms`, as no intruder is among them.
    weights : array_like or sparse matrix of shape (n_topics, n_terms), optional
        With it, an intruder also weighs at most a tenth of the weakest word shown.
    terms : sequence of str
        Columns of `weights`.
    n_questions : int, optional
        By default one a topic. Of fewer, the topics are drawn at random; of more, further
        questions on a topic draw their words from twice as many.
    n_terms : int
        Words of the topic that are shown, at least 2.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        Topics with fewer than `n_terms` words, or without an intruder, have no question.

    Raises
    ------
    InputError
        Where fewer than two topics have words enough, or a parameter is bad.
    """
    refuse_strings(topics)
    lists = [list(dict.fromkeys(topic)) for topic in topics]
    able = [topic for topic, words in enumerate(lists) if len(words) >= n_terms]
    checked_count(n_terms, "n_terms", 2)
    _check_topics(able, f"two with at least {n_terms} words")
    weight = _weight_function(weights, terms, len(lists))

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        words = lists[topic]
        of_topic = words[:n_terms]
        if turn and len(words) > n_terms:
            of_topic = rng.permutation(words[: 2 * n_terms])[:n_terms].tolist()
        limit = LOW * min(weight(topic, word) for word in of_topic)
        others = [other for other in rng.permutation(able).tolist() if other != topic]
        for other in others:
            intruders = [
                word
                for word in lists[other][:n_terms]
                if weight(topic, word) <= limit and not _is_near(word, words)
            ]
            if intruders:
                intruder = intruders[int(rng.integers(len(intruders)))]
                return _Question(topic, [*of_topic, intruder], other)
        return None

    return _sheet("word_intrusion", able, n_questions, resolve_seed(random_state), ask, 80)


def document_intrusion(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    *,
    n_questions: int | None = None,
    n_documents: int = 4,
    n_characters: int = 300,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of five texts does not belong with the others.

    Four are drawn from a topic, one from another.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topic ids; texts of -1 are not shown.
    probabilities : array_like of shape (n_texts,), optional
        Of each text in its topic: with it, texts come from the more probable half.
    n_questions : int, optional
        By default one a topic.
    n_documents : int
        Texts of the topic that are shown, at least 2.
    n_characters : int
        Length at which texts are cut.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet

    Raises
    ------
    InputError
        Where fewer than two topics have texts enough, or a parameter is bad.
    """
    topic_of = np.asarray(labels)
    has_order = probabilities is not None
    deep = np.asarray(probabilities, dtype=float) if has_order else np.zeros(len(topic_of))
    if len(texts) != len(topic_of) or deep.shape != topic_of.shape:
        raise InputError(
            "labels", "as long as texts, as must be probabilities",
            found=f"{len(texts)} texts, {len(topic_of)} labels and {len(deep)} probabilities",
        )  # fmt: skip
    members: dict[int, list[int]] = {}
    for topic in np.unique(topic_of[topic_of != NOISE]).tolist():
        own = np.flatnonzero(topic_of == topic)
        order = own[np.argsort(-deep[own], kind="stable")]
        enough = max(n_documents, -(-len(own) // 2)) if has_order else len(own)
        members[topic] = order[:enough].tolist()
    able = [topic for topic, own in members.items() if len(own) >= n_documents]
    checked_count(n_documents, "n_documents", 2)
    _check_topics(able, f"two with at least {n_documents} texts", "labels")

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        chosen = rng.choice(members[topic], n_documents, replace=False).tolist()
        other = _draw([one for one in able if one != topic], rng)
        intruder = int(rng.choice(members[other]))
        cuts = [shown(texts[row], n_characters) for row in (*chosen, intruder)]
        if len(set(cuts)) <= n_documents:  # equal texts cannot be distinguished
            return None
        return _Question(topic, cuts, other)

    seed = resolve_seed(random_state)
    return _sheet("document_intrusion", able, n_questions, seed, ask, n_characters)


def topic_intrusion(
    texts: Sequence[str],
    memberships: npt.ArrayLike | csr_matrix,
    topics: Sequence[Sequence[str]],
    *,
    n_questions: int = 50,
    n_topics: int = 3,
    n_terms: int = 8,
    n_characters: int = 600,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of several topics does not belong to a text.

    Up to three have the largest shares of the text, one has a small one (Chang et al. 2009). It is
    scored by the topic log odds.

    Parameters
    ----------
    texts : sequence of str
    memberships : array_like or sparse matrix of shape (n_texts, n_topics)
        Share of each topic in each text.
    topics : sequence of sequence of str
        Words of each topic, best first.
    n_questions : int
        Texts, drawn evenly over their main topics; fewer where there are no more.
    n_topics : int
        Topics of a text that are shown at most; only those with a share of 0.05 or more are.
    n_terms : int
        Words by which a topic is shown.
    n_characters : int
        Length at which texts are cut.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        A text with large shares of all topics has no question.

    Raises
    ------
    InputError
        Where there are fewer than two topics, or the shapes do not match.
    """
    from scipy.sparse import csr_matrix

    refuse_strings(topics)
    seed = resolve_seed(random_state)
    given: Any = memberships
    shares = csr_matrix(given, dtype=np.float64)
    if shares.shape != (len(texts), len(topics)):
        raise InputError(
            "memberships", f"of shape ({len(texts)}, {len(topics)}), texts by topics",
            found=f"shape {shares.shape}",
        )  # fmt: skip
    names = [", ".join(topic[:n_terms]) for topic in topics]
    main = np.asarray(shares.argmax(axis=1)).ravel()
    is_member = np.asarray(shares.max(axis=1).toarray()).ravel() >= LEAST_SHARE
    able = [k for k in range(len(topics)) if (is_member & (main == k)).any()]
    _check_topics(able, "two that are the main one of a text")
    waiting = {
        k: np.random.default_rng([seed, k]).permutation(np.flatnonzero(is_member & (main == k)))
        for k in able
    }

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        if turn >= len(waiting[topic]):
            return None
        row = int(waiting[topic][turn])
        share = shares[row].toarray().ravel()
        order = np.argsort(-share, kind="stable")
        own = [int(k) for k in order[:n_topics] if share[k] >= LEAST_SHARE]
        low = [int(k) for k in order[max(len(own), len(order) // 2) :] if share[k] < LEAST_SHARE]
        if not low:
            return None
        intruder = _draw(low, rng)
        options = [*own, intruder]
        if len({names[k] for k in options}) < len(options):
            return None
        text, of_text = shown(texts[row], n_characters), tuple(float(share[k]) for k in options)
        return _Question(topic, [names[k] for k in options], intruder, text, of_text)

    return _sheet("topic_intrusion", able, n_questions, seed, ask, 200)


def coding_sample(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    topics: Sequence[Sequence[str]],
    *,
    n_per_topic: int = 10,
    n_decoys: int = 5,
    n_terms: int = 8,
    n_characters: int = 1000,
    random_state: RandomState = 0,
) -> Sheet:
    """Draw texts with topics, some of them not their own, for blind coding.

    For each topic some of its texts and, as decoys, texts that are not in it. The share of the
    topic's texts that are coded "yes" is its precision, and the share of the decoys is the rate of
    false positives.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topic ids; -1 for none, whose texts can be decoys.
    topics : sequence of sequence of str
        Words of each topic, best first.
    n_per_topic, n_decoys : int
        Texts of each topic, and decoys beside them; all where there are no more.
    n_terms : int
        Words by which a topic is shown.
    n_characters : int
        Length at which texts are cut.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        Task "coding": is the text about the topic, "yes" or "no"? The key holds `row` (of the
        text), `topic`, `in_topic`, and `topic_size`, by which topics are weighted.

    Raises
    ------
    InputError
        Where there is no topic, or the lengths do not match.
    """
    import pandas as pd

    refuse_strings(topics)
    seed = resolve_seed(random_state)
    topic_of = np.asarray(labels)
    if len(topic_of) != len(texts):
        raise InputError("labels", f"one for each of {len(texts)} texts", found=f"{len(topic_of)}")
    checked_count(n_per_topic, "n_per_topic")
    checked_count(n_decoys, "n_decoys", 0)
    present = np.unique(topic_of[topic_of != NOISE]).tolist()
    if not present or present[0] < 0 or present[-1] >= len(topics):
        raise InputError("labels", f"some of the {len(topics)} topics", present[:5])
    pairs: list[tuple[int, int]] = []
    for topic in present:
        rng = np.random.default_rng([seed, topic])
        inside, outside = np.flatnonzero(topic_of == topic), np.flatnonzero(topic_of != topic)
        pairs += [(int(row), topic) for row in rng.permutation(inside)[:n_per_topic]]
        pairs += [(int(row), topic) for row in rng.permutation(outside)[:n_decoys]]
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    names = [", ".join(shown(word, 40) for word in topic[:n_terms]) for topic in topics]
    questions: list[dict[str, Any]] = []
    key: list[dict[str, Any]] = []
    for number, place in enumerate(order, start=1):
        row, topic = pairs[place]
        text = shown(texts[row], n_characters)
        head = {"task": "coding", "question": _question_id(number, "coding", text, names[topic])}
        questions.append(head | {"text": text, "topic": names[topic], ANSWER: ""})
        in_topic = "yes" if topic_of[row] == topic else "no"
        topic_size = int((topic_of == topic).sum())
        key.append(
            head | {"row": row, "topic": topic, "in_topic": in_topic, "topic_size": topic_size}
        )
    return Sheet("coding", pd.DataFrame(questions), pd.DataFrame(key))


def _sheet(
    task: str, able: Sequence[int], n_questions: int | None, seed: int, ask: Ask, n_characters: int
) -> Sheet:
    """Ask about the topics in turn, and shuffle questions and options."""
    import pandas as pd

    wanted = len(able) if n_questions is None else checked_count(n_questions, "n_questions")
    rng = np.random.default_rng(seed)
    found = _rounds(able, wanted, seed, ask, rng)
    rng.shuffle(found)  # type: ignore[arg-type]
    n_options = max((len(question.options) for question in found), default=0)
    questions, key = [], []
    for number, question in enumerate(found, start=1):
        order = rng.permutation(len(question.options)).tolist()
        options = [shown(question.options[place], n_characters) for place in order]
        head: dict[str, Any] = {
            "task": task, "question": _question_id(number, task, question.about, *options)
        }  # fmt: skip
        padding = [""] * (n_options - len(options))
        columns = {f"option_{i}": one for i, one in enumerate([*options, *padding], start=1)}
        about = {"text": question.about} if question.about else {}
        questions.append(head | about | columns | {ANSWER: ""})
        solution = head | {
            "topic": question.topic, "intruder": order.index(len(options) - 1) + 1,
            "intruder_topic": question.intruder_topic, "n_options": len(options),
        }  # fmt: skip
        solution |= columns
        if question.shares:
            shares = [question.shares[place] for place in order]
            shares += [float("nan")] * len(padding)
            solution |= {f"share_{i}": share for i, share in enumerate(shares, start=1)}
        key.append(solution)
    return Sheet(task, pd.DataFrame(questions), pd.DataFrame(key))


def _rounds(
    able: Sequence[int], wanted: int, seed: int, ask: Ask, rng: np.random.Generator
) -> list[_Question]:
    """Ask one question a topic and round, of drawn topics in the last, until there are enough."""
    found: list[_Question] = []
    asked: set[tuple[Any, ...]] = set()
    for turn in range(wanted):
        added = 0
        for topic in rng.permutation(able).tolist():
            if len(found) == wanted:
                return found
            question = ask(topic, turn, np.random.default_rng([seed, topic, turn]))
            if question is None:
                continue
            content = topic, question.about, *sorted(question.options)
            if content not in asked:
                asked.add(content)
                found.append(question)
                added += 1
        if not added and turn:
            break
    return found


def _question_id(number: int, *content: str) -> str:
    """Return an id that no question of another sheet has."""
    digest = hashlib.blake2b("\x1f".join(content).encode("utf-8", "replace"), digest_size=2)
    return f"q{number:03}-{digest.hexdigest()}"


def shown(text: str, n_characters: int) -> str:
    """Return a text on one line, without control characters, cut at a length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"


def _check_topics(able: Sequence[int], expected: str, parameter: str = "topics") -> None:
    if len(able) < 2:
        raise InputError(parameter, expected, found=f"{len(able)}")


def _weight_function(
    weights: Any, terms: Sequence[str], n_topics: int
) -> Callable[[int, str], float]:
    """Return the weight of a word in a topic as a function; without weights it is 0."""
    from scipy.sparse import csr_matrix

    if weights is None:
        return lambda topic, word: 0.0
    matrix = csr_matrix(weights, dtype=np.float64)
    if matrix.shape != (n_topics, len(terms)):
        expected = f"of shape ({n_topics}, {len(terms)}), topics by terms"
        raise InputError("weights", expected, found=f"shape {matrix.shape}")
    column = {term: i for i, term in enumerate(terms)}
    return lambda topic, word: float(matrix[topic, column[word]]) if word in column else 0.0


def _is_near(word: str, words: Iterable[str]) -> bool:
    """Return whether a word is one of others, or a part of one: "taxes" gives "tax" away."""
    low = word.casefold()
    return any(low in other or other in low for other in (w.casefold() for w in words))


def _draw(items: Sequence[int], rng: np.random.Generator) -> int:
    return int(items[int(rng.integers(len(items)))])
