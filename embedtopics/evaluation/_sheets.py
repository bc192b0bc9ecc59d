"""Sheets with questions for people: intruding words, texts and topics, and topics of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import Displayed
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._table_files import write_csv
from embedtopics.errors import InputError
from embedtopics.evaluation._coherence import refuse_strings
from embedtopics.protocols import RandomState

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

ANSWER = "answer"
KEYS = "keys"
"""Folder of the keys, below that of the sheets: coders get the folder without it."""

LOW = 0.1
"""An intruder's weight in the topic is at most this share of that of the weakest word shown."""

LEAST_SHARE = 0.05
"""Share from which a topic counts as a topic of a document."""

N_DOCUMENTS, N_TOPICS, N_TERMS = 4, 3, 8
"""Texts of a topic and topics of a text, without the intruder, and words that name a topic."""


@dataclass(frozen=True, eq=False, repr=False)
class Sheet(Displayed):
    """Questions for coders, and their key in a second table.

    Parameters
    ----------
    task : {"word_intrusion", "document_intrusion", "topic_intrusion", "coding"}
    questions : DataFrame
        Columns task, question (an id), the options or the text and its topic, and answer (empty).
    key : DataFrame
        The solution of each question.
    """

    task: str
    questions: pd.DataFrame
    key: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.questions)

    def _summary(self) -> str:
        return f"{self.task!r}, {len(self)} questions"

    def to_frame(self) -> pd.DataFrame:
        """Return the questions."""
        return self.questions

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write the questions to a folder, and the key to the folder "keys" below it.

        Each coder fills in the column "answer" of a copy. Spreadsheets run no cell as a formula.

        Raises
        ------
        InputError
            If a file exists, which may hold answers, or cannot be written.
        """
        folder = Path(folder)
        paths = folder / f"{self.task}.csv", folder / KEYS / f"{self.task}.csv"
        for path, table in zip(paths, (self.questions, self.key), strict=True):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8-sig", newline="") as stream:
                    write_csv(stream, table)
            except OSError as error:
                problem = f"{path}: {error.strerror or error}"
                remedy = "files there may hold answers"
                raise InputError(
                    "folder", "a new or empty folder", found=problem, remedy=remedy
                ) from error
        return paths


class _Question(NamedTuple):
    """Options that are shown together, the intruder last, and the text above them, if any."""

    topic: int
    options: list[str]
    intruder_topic: int
    text: str = ""
    shares: tuple[float, ...] = ()


Ask = Callable[[int, int, np.random.Generator], "_Question | None"]
"""Makes a question on a topic in a turn, if there is one."""


def word_intrusion(
    topics: Sequence[Sequence[str]],
    weights: npt.ArrayLike | csr_matrix | None = None,
    terms: Sequence[str] = (),
    *,
    n_questions: int | None = None,
    n_terms: int = 5,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of several words does not belong to a topic.

    All words but one are the first words of a topic. The intruder is one of the first words of
    another topic with little weight in this one, so that people recognize it only if the topic is
    coherent (Chang et al. 2009, "Reading tea leaves: how humans interpret topic models").

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first; more than `n_terms`, because no intruder is among them.
    weights : array_like or sparse matrix of shape (n_topics, n_terms), optional
        If given, an intruder weighs at most a tenth of the weakest word shown.
    terms : sequence of str
        Columns of `weights`.
    n_questions : int, optional
        One per topic by default. Fewer questions are on topics drawn at random; further questions
        on a topic draw their words from twice as many.
    n_terms : int
        Words of the topic that are shown, at least 2.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        Without questions on topics with fewer than `n_terms` words or without an intruder.

    Raises
    ------
    InputError
        If fewer than two topics have enough words.
    """
    refuse_strings(topics)
    lists = [list(dict.fromkeys(topic)) for topic in topics]
    checked_count(n_terms, "n_terms", 2)
    usable = [topic for topic, words in enumerate(lists) if len(words) >= n_terms]
    _check_topics(usable, f"two with at least {n_terms} words")
    weight = _weight_function(weights, terms, len(lists))

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        words = lists[topic]
        of_topic = words[:n_terms]
        if turn and len(words) > n_terms:
            of_topic = rng.permutation(words[: 2 * n_terms])[:n_terms].tolist()
        limit = LOW * min(weight(topic, word) for word in of_topic)
        others = [other for other in rng.permutation(usable).tolist() if other != topic]
        for other in others:
            intruders = [
                word
                for word in lists[other][:n_terms]
                if weight(topic, word) <= limit and not _shares_letters(word, words)
            ]
            if intruders:
                intruder = intruders[int(rng.integers(len(intruders)))]
                return _Question(topic, [*of_topic, intruder], other)
        return None

    return _sheet("word_intrusion", usable, n_questions, resolve_seed(random_state), ask, 80)


def document_intrusion(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    *,
    n_questions: int | None = None,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of five texts does not belong to the topic of the other four.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topic ids; texts of -1 are not shown.
    probabilities : array_like of shape (n_texts,), optional
        Probability of each text in its topic. If given, texts come from the more probable half.
    n_questions : int, optional
        One per topic by default.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet

    Raises
    ------
    InputError
        If fewer than two topics have enough texts, or the lengths do not match.
    """
    topic_of = np.asarray(labels)
    has_order = probabilities is not None
    order_by = np.asarray(probabilities, dtype=float) if has_order else np.zeros(len(topic_of))
    if len(texts) != len(topic_of) or order_by.shape != topic_of.shape:
        raise InputError(
            "labels",
            "as long as texts and probabilities",
            found=f"{len(texts)} texts, {len(topic_of)} labels and {len(order_by)} probabilities",
        )
    members: dict[int, list[int]] = {}
    for topic in np.unique(topic_of[topic_of != NOISE]).tolist():
        rows = np.flatnonzero(topic_of == topic)
        rows = rows[np.argsort(-order_by[rows], kind="stable")]
        n_shown = max(N_DOCUMENTS, -(-len(rows) // 2)) if has_order else len(rows)
        members[topic] = rows[:n_shown].tolist()
    usable = [topic for topic, rows in members.items() if len(rows) >= N_DOCUMENTS]
    _check_topics(usable, f"two with at least {N_DOCUMENTS} texts", "labels")

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        rows = rng.choice(members[topic], N_DOCUMENTS, replace=False).tolist()
        other = _draw([one for one in usable if one != topic], rng)
        intruder = int(rng.choice(members[other]))
        excerpts = [shown(texts[row], 300) for row in (*rows, intruder)]
        if len(set(excerpts)) <= N_DOCUMENTS:  # equal texts cannot be distinguished
            return None
        return _Question(topic, excerpts, other)

    return _sheet("document_intrusion", usable, n_questions, resolve_seed(random_state), ask, 300)


def topic_intrusion(
    texts: Sequence[str],
    memberships: npt.ArrayLike | csr_matrix,
    topics: Sequence[Sequence[str]],
    *,
    n_questions: int = 50,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of several topics does not belong to a text.

    Up to three topics have the largest shares of the text (at least 0.05), and one has a small
    share (Chang et al. 2009). `score_intrusion` reports the topic log odds.

    Parameters
    ----------
    texts : sequence of str
    memberships : array_like or sparse matrix of shape (n_texts, n_topics)
        Share of each topic in each text.
    topics : sequence of sequence of str
        Words of each topic, best first; eight of them name it.
    n_questions : int
        Texts, drawn evenly over their main topics; fewer if there are no more.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        Without questions on texts with large shares of all topics.

    Raises
    ------
    InputError
        If there are fewer than two topics, or the shapes do not match.
    """
    from scipy.sparse import csr_matrix

    refuse_strings(topics)
    seed = resolve_seed(random_state)
    matrix: Any = memberships
    shares = csr_matrix(matrix, dtype=np.float64)
    if shares.shape != (len(texts), len(topics)):
        expected = f"of shape ({len(texts)}, {len(topics)}), texts by topics"
        raise InputError("memberships", expected, found=f"shape {shares.shape}")
    names = [", ".join(topic[:N_TERMS]) for topic in topics]
    main = np.asarray(shares.argmax(axis=1)).ravel()
    is_member = np.asarray(shares.max(axis=1).toarray()).ravel() >= LEAST_SHARE
    usable = [k for k in range(len(topics)) if (is_member & (main == k)).any()]
    _check_topics(usable, "two that are the main one of a text")
    queues = {
        k: np.random.default_rng([seed, k]).permutation(np.flatnonzero(is_member & (main == k)))
        for k in usable
    }

    def ask(topic: int, turn: int, rng: np.random.Generator) -> _Question | None:
        if turn >= len(queues[topic]):
            return None
        row = int(queues[topic][turn])
        share = shares[row].toarray().ravel()
        order = np.argsort(-share, kind="stable")
        large = [int(k) for k in order[:N_TOPICS] if share[k] >= LEAST_SHARE]
        low = [int(k) for k in order[max(len(large), len(order) // 2) :] if share[k] < LEAST_SHARE]
        if not low:
            return None
        intruder = _draw(low, rng)
        options = [*large, intruder]
        if len({names[k] for k in options}) < len(options):
            return None
        of_text = tuple(float(share[k]) for k in options)
        return _Question(
            topic, [names[k] for k in options], intruder, shown(texts[row], 600), of_text
        )

    return _sheet("topic_intrusion", usable, n_questions, seed, ask, 200)


def coding_sample(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    topics: Sequence[Sequence[str]],
    *,
    n_per_topic: int = 10,
    n_decoys: int = 5,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask whether texts are about a topic: texts of the topic, and decoys from elsewhere.

    The share of the topic's texts that are coded "yes" is its precision, and that of the decoys
    the rate of false positives.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topic ids; -1 for none, whose texts can be decoys.
    topics : sequence of sequence of str
        Words of each topic, best first; eight of them name it.
    n_per_topic, n_decoys : int
        Texts and decoys of each topic; all if there are no more.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Sheet
        Task "coding", answers "yes" or "no". The key holds `row` (of the text), `topic`,
        `in_topic`, and `topic_size`, by which topics are weighted.

    Raises
    ------
    InputError
        If there is no topic, or the lengths do not match.
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
    names = [", ".join(shown(word, 40) for word in topic[:N_TERMS]) for topic in topics]
    questions: list[dict[str, Any]] = []
    key: list[dict[str, Any]] = []
    for number, place in enumerate(order, start=1):
        row, topic = pairs[place]
        text = shown(texts[row], 1000)
        head = {"task": "coding", "question": _question_id(number, "coding", text, names[topic])}
        questions.append(head | {"text": text, "topic": names[topic], ANSWER: ""})
        in_topic = "yes" if topic_of[row] == topic else "no"
        topic_size = int((topic_of == topic).sum())
        key.append(
            head | {"row": row, "topic": topic, "in_topic": in_topic, "topic_size": topic_size}
        )
    return Sheet("coding", pd.DataFrame(questions), pd.DataFrame(key))


def _sheet(
    task: str,
    topics: Sequence[int],
    n_questions: int | None,
    seed: int,
    ask: Ask,
    n_characters: int,
) -> Sheet:
    """Ask about the topics in turn, and shuffle questions and options."""
    import pandas as pd

    n = len(topics) if n_questions is None else checked_count(n_questions, "n_questions")
    rng = np.random.default_rng(seed)
    drawn = _rounds(topics, n, seed, ask, rng)
    rng.shuffle(drawn)  # type: ignore[arg-type]
    n_options = max((len(question.options) for question in drawn), default=0)
    questions, key = [], []
    for number, question in enumerate(drawn, start=1):
        order = rng.permutation(len(question.options)).tolist()
        options = [shown(question.options[place], n_characters) for place in order]
        id = _question_id(number, task, question.text, *options)
        head: dict[str, Any] = {"task": task, "question": id}
        padding = [""] * (n_options - len(options))
        columns = {f"option_{i}": one for i, one in enumerate([*options, *padding], start=1)}
        text = {"text": question.text} if question.text else {}
        questions.append(head | text | columns | {ANSWER: ""})
        solution = head | {
            "topic": question.topic,
            "intruder": order.index(len(options) - 1) + 1,
            "intruder_topic": question.intruder_topic,
            "n_options": len(options),
        }
        solution |= columns
        if question.shares:
            shares = [question.shares[place] for place in order]
            shares += [float("nan")] * len(padding)
            solution |= {f"share_{i}": share for i, share in enumerate(shares, start=1)}
        key.append(solution)
    return Sheet(task, pd.DataFrame(questions), pd.DataFrame(key))


def _rounds(
    topics: Sequence[int], n: int, seed: int, ask: Ask, rng: np.random.Generator
) -> list[_Question]:
    """Make one question per topic and round, on drawn topics in the last round."""
    questions: list[_Question] = []
    contents: set[tuple[Any, ...]] = set()
    for turn in range(n):
        n_before = len(questions)
        for topic in rng.permutation(topics).tolist():
            if len(questions) == n:
                return questions
            question = ask(topic, turn, np.random.default_rng([seed, topic, turn]))
            if question is None:
                continue
            content = topic, question.text, *sorted(question.options)
            if content not in contents:
                contents.add(content)
                questions.append(question)
        if len(questions) == n_before and turn:
            break
    return questions


def _question_id(number: int, *content: str) -> str:
    """Return an id that differs from those of other sheets."""
    digest = hashlib.blake2b("\x1f".join(content).encode("utf-8", "replace"), digest_size=2)
    return f"q{number:03}-{digest.hexdigest()}"


def shown(text: str, n_characters: int) -> str:
    """Return a text on one line, without control characters, cut at a length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"


def _check_topics(topics: Sequence[int], expected: str, parameter: str = "topics") -> None:
    if len(topics) < 2:
        raise InputError(parameter, expected, found=f"{len(topics)}")


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


def _shares_letters(word: str, words: Sequence[str]) -> bool:
    """Return whether a word contains or is part of others: "taxes" gives "tax" away."""
    low = word.casefold()
    return any(low in other or other in low for other in (w.casefold() for w in words))


def _draw(items: Sequence[int], rng: np.random.Generator) -> int:
    return int(items[int(rng.integers(len(items)))])
