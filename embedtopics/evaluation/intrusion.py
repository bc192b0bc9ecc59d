"""Sheets that ask people which of several words, texts or topics does not belong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.cooccurrence import refuse_strings
from embedtopics.evaluation.sheets import ANSWER, Sheet, question_id, shown
from embedtopics.results import NOISE

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["document_intrusion", "topic_intrusion", "word_intrusion"]

LOW = 0.1
"""An intruder's weight in the topic is at most this share of that of the weakest word shown."""

LEAST_SHARE = 0.05
"""Share from which a topic counts as one of a document's own."""


class _Question(NamedTuple):
    """What is shown together, and what of it does not belong; `about` stands above it."""

    topic: int
    options: list[str]
    intruder: str
    intruder_topic: int
    about: str = ""
    shares: tuple[float, ...] = ()


def word_intrusion(
    topics: Sequence[Sequence[str]],
    weights: npt.ArrayLike | csr_matrix | None = None,
    terms: Sequence[str] = (),
    *,
    n_questions: int | None = None,
    n_words: int = 5,
    seed: int = 0,
) -> Sheet:
    """Ask which of six words does not belong with the others.

    Five are the best of a topic; the intruder is one of the best of another topic and of little
    weight in this one, so that it stands out only where the topic makes sense (Chang et al. 2009,
    "Reading tea leaves: how humans interpret topic models").

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first; more than `n_words`, for no intruder is among them.
    weights : array_like or sparse matrix of shape (n_topics, n_terms), optional
        With it, an intruder also weighs at most a tenth of the weakest word shown.
    terms : sequence of str of length n_terms
        Columns of `weights`.
    n_questions : int, optional
        By default one a topic. Of fewer, the topics are drawn at random; of more, further
        questions on a topic draw their words from twice as many.
    n_words : int
        Words of the topic that are shown, at least 2.
    seed : int

    Returns
    -------
    Sheet
        Topics with fewer than `n_words` words have no question, nor those for which no other topic
        has an intruder; the key's topics are those that have.

    Raises
    ------
    InputError
        Where fewer than two topics have words enough, or a parameter is bad.
    """
    refuse_strings(topics)
    lists = [list(dict.fromkeys(topic)) for topic in topics]
    able = [topic for topic, words in enumerate(lists) if len(words) >= n_words]
    _check(n_words, n_questions, able, f"of at least {n_words} words")
    weight = _weigher(weights, terms, len(lists))

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        words = lists[topic]
        of_topic = words[:n_words]
        if turn and len(words) > n_words:
            of_topic = rng.permutation(words[: 2 * n_words])[:n_words].tolist()
        limit = LOW * min(weight(topic, word) for word in of_topic)
        others = [other for other in rng.permutation(able).tolist() if other != topic]
        for other in others:
            intruders = [
                word
                for word in lists[other][:n_words]
                if weight(topic, word) <= limit and not _is_near(word, words)
            ]
            if intruders:
                intruder = intruders[int(rng.integers(len(intruders)))]
                return _Question(topic, [*of_topic, intruder], intruder, other)
        return None

    return _sheet("word_intrusion", able, n_questions, seed, ask, n_characters=80)


def document_intrusion(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    strengths: npt.ArrayLike | None = None,
    *,
    n_questions: int | None = None,
    n_texts: int = 4,
    n_characters: int = 300,
    seed: int = 0,
) -> Sheet:
    """Ask which of five texts does not belong with the others.

    Four are drawn from a topic, one from another.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topics; those of -1 are not shown.
    strengths : array_like of shape (n_texts,), optional
        How deep each text is in its topic: with it, texts come from the deeper half.
    n_questions : int, optional
        By default one a topic.
    n_texts : int
        Texts of the topic that are shown, at least 2.
    n_characters : int
        Length at which texts are cut.
    seed : int

    Returns
    -------
    Sheet

    Raises
    ------
    InputError
        Where fewer than two topics have texts enough, or a parameter is bad.
    """
    topic_of = np.asarray(labels)
    deep = np.zeros(len(topic_of)) if strengths is None else np.asarray(strengths, dtype=float)
    if len(texts) != len(topic_of) or deep.shape != topic_of.shape:
        raise InputError(
            f"texts, labels and strengths must be of one length; got {len(texts)}, "
            f"{len(topic_of)} and {len(deep)}"
        )
    members: dict[int, list[int]] = {}
    for topic in np.unique(topic_of[topic_of != NOISE]).tolist():
        own = np.flatnonzero(topic_of == topic)
        order = own[np.argsort(-deep[own], kind="stable")]
        enough = max(n_texts, -(-len(own) // 2)) if strengths is not None else len(own)
        members[topic] = order[:enough].tolist()
    able = [topic for topic, own in members.items() if len(own) >= n_texts]
    _check(n_texts, n_questions, able, f"of at least {n_texts} texts")

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        chosen = rng.choice(members[topic], n_texts, replace=False).tolist()
        other = _draw([one for one in able if one != topic], rng)
        intruder = int(rng.choice(members[other]))
        cuts = [shown(texts[row], n_characters) for row in (*chosen, intruder)]
        if len(set(cuts)) <= n_texts:  # two that look alike cannot be told apart
            return None
        return _Question(topic, cuts, cuts[-1], other)

    return _sheet("document_intrusion", able, n_questions, seed, ask, n_characters)


def topic_intrusion(
    texts: Sequence[str],
    memberships: npt.ArrayLike | csr_matrix,
    topics: Sequence[Sequence[str]],
    *,
    n_questions: int = 50,
    n_topics: int = 3,
    n_words: int = 8,
    n_characters: int = 600,
    seed: int = 0,
) -> Sheet:
    """Ask which of several topics does not belong to a text.

    Up to three are those of which most is in the text, one is a topic of which little is (Chang et
    al. 2009). Its score is the topic log odds.

    Parameters
    ----------
    texts : sequence of str
    memberships : array_like or sparse matrix of shape (n_texts, n_topics)
        Share of each topic in each text.
    topics : sequence of sequence of str
        Words of each topic, best first.
    n_questions : int
        Texts, drawn evenly over the topics that are their main one; fewer where there are no more.
    n_topics : int
        Topics of a text that are shown at most; only those with a twentieth of it or more are.
    n_words : int
        Words by which a topic is shown.
    n_characters : int
        Length at which texts are cut.
    seed : int

    Returns
    -------
    Sheet
        A text that has much of all topics has no question.

    Raises
    ------
    InputError
        Where there are fewer than two topics, or the shapes do not match.
    """
    from scipy.sparse import csr_matrix

    refuse_strings(topics)
    given: Any = memberships
    shares = csr_matrix(given, dtype=np.float64)
    if shares.shape != (len(texts), len(topics)):
        raise InputError(
            f"memberships must have a row for each of the {len(texts)} texts and a column for "
            f"each of the {len(topics)} topics; got shape {shares.shape}"
        )
    names = [", ".join(topic[:n_words]) for topic in topics]
    main = np.asarray(shares.argmax(axis=1)).ravel()
    is_member = np.asarray(shares.max(axis=1).toarray()).ravel() >= LEAST_SHARE
    able = [k for k in range(len(topics)) if (is_member & (main == k)).any()]
    _check(2, n_questions, able, "that are the main one of a text")
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
        return _Question(
            topic,
            [names[k] for k in options],
            names[intruder],
            intruder,
            shown(texts[row], n_characters),
            tuple(float(share[k]) for k in options),
        )

    return _sheet("topic_intrusion", able, n_questions, seed, ask, n_characters=200)


def _sheet(
    task: str,
    able: Sequence[int],
    n_questions: int | None,
    seed: int,
    ask: Callable[[int, int, np.random.Generator], _Question | None],
    n_characters: int,
) -> Sheet:
    """Ask about the topics in turn, and shuffle questions and options."""
    import pandas as pd

    wanted = len(able) if n_questions is None else n_questions
    rng = np.random.default_rng(seed)
    found = _rounds(able, wanted, seed, ask, rng)
    rng.shuffle(found)  # type: ignore[arg-type]
    n_options = max((len(question.options) for question in found), default=0)
    questions, key = [], []
    for number, question in enumerate(found, start=1):
        order = rng.permutation(len(question.options)).tolist()
        options = [shown(question.options[place], n_characters) for place in order]
        name = question_id(number, task, question.about, *options)
        padded = options + [""] * (n_options - len(options))
        row: dict[str, Any] = {"task": task, "question": name}
        if question.about:
            row["text"] = question.about
        row |= {f"option_{i}": option for i, option in enumerate(padded, start=1)}
        questions.append(row | {ANSWER: ""})
        answer = order.index(len(question.options) - 1) + 1
        solution: dict[str, Any] = {
            "task": task, "question": name, "topic": question.topic, "intruder": answer,
            "intruder_topic": question.intruder_topic, "n_options": len(options),
        }  # fmt: skip
        solution |= {f"option_{i}": option for i, option in enumerate(padded, start=1)}
        if question.shares:
            given = [question.shares[place] for place in order]
            padding = [float("nan")] * (n_options - len(given))
            solution |= {f"share_{i}": v for i, v in enumerate([*given, *padding], start=1)}
        key.append(solution)
    return Sheet(task, pd.DataFrame(questions), pd.DataFrame(key))


def _rounds(
    able: Sequence[int],
    wanted: int,
    seed: int,
    ask: Callable[[int, int, np.random.Generator], _Question | None],
    rng: np.random.Generator,
) -> list[_Question]:
    """Ask one question a topic and round, of drawn topics in the last, until there are enough."""
    found: list[_Question] = []
    asked: set[tuple[Any, ...]] = set()
    for turn in range(max(1, wanted)):
        added = 0
        for topic in rng.permutation(able).tolist():
            if len(found) == wanted:
                return found
            question = ask(topic, turn, np.random.default_rng([seed, topic, turn]))
            content = question and (topic, question.about, *sorted(question.options))
            if question is not None and content not in asked:
                asked.add(content)  # type: ignore[arg-type]
                found.append(question)
                added += 1
        if not added and turn:
            break
    return found


def _check(n_shown: int, n_questions: int | None, able: Sequence[int], which: str) -> None:
    if n_shown < 2:
        raise InputError(f"at least 2 of a topic must be shown; got {n_shown}")
    if n_questions is not None and n_questions < 1:
        raise InputError(f"n_questions must be at least 1; got {n_questions}")
    if len(able) < 2:
        raise InputError(f"an intruder needs at least two topics {which}; there are {len(able)}")


def _weigher(weights: Any, terms: Sequence[str], n_topics: int) -> Callable[[int, str], float]:
    """Return a function of topic and word; without weights all words weigh nothing."""
    from scipy.sparse import csr_matrix

    if weights is None:
        return lambda topic, word: 0.0
    matrix = csr_matrix(weights, dtype=np.float64)
    if matrix.shape != (n_topics, len(terms)):
        raise InputError(
            f"weights must have a row for each of the {n_topics} topics and a column for each of "
            f"the {len(terms)} terms; got shape {matrix.shape}"
        )
    column = {term: i for i, term in enumerate(terms)}
    return lambda topic, word: float(matrix[topic, column[word]]) if word in column else 0.0


def _is_near(word: str, words: Iterable[str]) -> bool:
    """Tell whether a word is one of others, or a part of one: *taxes* gives *tax* away."""
    low = word.casefold()
    return any(low in other or other in low for other in (w.casefold() for w in words))


def _draw(items: Sequence[int], rng: np.random.Generator) -> int:
    return int(items[int(rng.integers(len(items)))])
