"""Sheets of questions on topics for people, and the scores of their answers."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np

from embedtopics._utils.checks import resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics._utils.folders import read_regular
from embedtopics.annotation.results import Sheet, SheetScore
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import krippendorff_alpha
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means, wilson
from embedtopics.protocols import FloatArray, Int32Array, RandomState
from embedtopics.terms._keywords import keywords
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

Answers: TypeAlias = Union["pd.DataFrame", str, Path, Sequence[str | Path]]

ANSWER = "answer"
KEYS = "keys"
"""Folder of the keys, below that of the sheets: coders get the folder without it."""

LOW = 0.1
"""An intruder's weight in the topic is at most this share of that of the weakest word shown."""

N_WORDS, N_TEXTS, N_NAMES, N_FITTING = 5, 4, 3, 2
"""Words and texts shown with an intruder, names with the right one, texts judged with another."""

TASKS = {
    "word_intrusion": "Which word does not belong to the others?",
    "document_intrusion": "Which text does not belong to the others?",
    "optimal_label": "Which name fits the text best?",
    "topic_fit": "How well does the text fit the topic?",
}
FITS = ("not at all", "hardly", "partly", "well", "fully")
FITS_FROM = 4
"""The lowest of these answers, from 1, that says that a text fits."""


LISTED = 20
"""Best words of a topic, which cannot be intruders."""


def validation_sheets(result: FittedTopics, *, random_state: RandomState = 0) -> tuple[Sheet, ...]:
    """Make sheets of questions to people: which words and texts do not belong, which names fit.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
        A result with two topics or more.
    random_state : int, numpy.random.Generator or None
        Source of the random questions.

    Returns
    -------
    tuple of Sheet
        "word_intrusion", "document_intrusion", "optimal_label" and "topic_fit", except sheets
        that need more or larger topics: a question for each topic, three in the last. Each distinct
        text counts once. `ask` puts them on a page.

    Raises
    ------
    InputError
        If there are fewer than two topics.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> [sheet.task for sheet in et.annotation.validation_sheets(model)]
    ['word_intrusion', 'document_intrusion', 'optimal_label', 'topic_fit']
    """
    result = result_of(result)
    if result.n_topics < 2:
        raise InputError("result", "one with two topics or more", found=str(result.n_topics))
    seed = resolve_seed(random_state)
    words = _single_words(result)
    texts = result.corpus.document_texts()
    clustering = result.clustering

    names = [topic.name for topic in result.topics]
    spelled = []
    for topic in result.topics:
        terms = ", ".join(term for term in topic.keywords[:8] if term not in topic.name)
        spelled.append(f"{topic.name} ({terms})")

    sheets = (
        word_intrusion(words, result.topic_terms, result.term_counts.terms, seed),
        document_intrusion(texts, clustering.labels, clustering.probabilities, seed),
        optimal_label(texts, result.memberships, names, seed),
        topic_fit(texts, clustering.labels, spelled, seed),
    )
    return tuple(sheet for sheet in sheets if len(sheet))


def _single_words(result: TopicResult) -> list[list[str]]:
    """Return the best single words of every topic, best first, chosen like its keywords."""
    weighted = keywords(
        result.topic_terms,
        result.term_counts,
        result.embeddings,
        n=LISTED,
        languages=tuple(result.settings.get("languages", ())),
        ngram_range=(1, 1),
    )
    return [[word for word, _ in words] for words in weighted]


class _Question(NamedTuple):
    """Options that are shown together, the right answer last; or degrees to which a text fits."""

    topic: int
    options: Sequence[str]
    other_topic: int
    text: str = ""


Ask: TypeAlias = Callable[[int, np.random.Generator], Iterator[_Question]]
"""Makes the questions on a topic."""


def word_intrusion(
    topics: Sequence[Sequence[str]],
    weights: csr_matrix,
    terms: Sequence[str],
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of six words does not belong to a topic, once for each topic with enough words.

    Five are the first words of the topic. The intruder is one of the first words of another topic
    and weighs little in this one, so that people recognize it only if the topic is coherent (Chang
    et al. 2009, "Reading tea leaves: how humans interpret topic models"). `weights` are those of
    all terms, (n_topics, n_terms).
    """
    lists = [list(dict.fromkeys(topic)) for topic in topics]
    usable = [topic for topic, words in enumerate(lists) if len(words) >= N_WORDS]

    def ask(topic: int, rng: np.random.Generator) -> Iterator[_Question]:
        words = lists[topic]
        weight = dict(zip(terms, weights[[topic]].toarray().ravel(), strict=True))
        limit = LOW * min(weight.get(word, 0.0) for word in words[:N_WORDS])
        others = [other for other in rng.permutation(usable).tolist() if other != topic]
        for other in others:
            intruders = [
                word
                for word in lists[other][:N_WORDS]
                if weight.get(word, 0.0) <= limit and not _shares_letters(word, words)
            ]
            if intruders:
                intruder = intruders[int(rng.integers(len(intruders)))]
                yield _Question(topic, [*words[:N_WORDS], intruder], other)
                return

    return _sheet("word_intrusion", usable, random_state, ask, 80)


def document_intrusion(
    texts: Sequence[str],
    labels: Int32Array,
    probabilities: FloatArray,
    random_state: RandomState = 0,
) -> Sheet:
    """Ask which of five texts does not belong to the topic of the other four.

    Texts come from the more probable half of their topic; `labels` and `probabilities` (n_texts,).
    """
    members: dict[int, list[int]] = {}
    for topic in np.unique(labels[labels != NOISE]).tolist():
        rows = np.flatnonzero(labels == topic)
        rows = rows[np.argsort(-probabilities[rows], kind="stable")]
        members[topic] = rows[: max(N_TEXTS, -(-len(rows) // 2))].tolist()
    usable = [topic for topic, rows in members.items() if len(rows) >= N_TEXTS]

    def ask(topic: int, rng: np.random.Generator) -> Iterator[_Question]:
        rows = rng.choice(members[topic], N_TEXTS, replace=False).tolist()
        others = [other for other in usable if other != topic]
        other = others[int(rng.integers(len(others)))]
        excerpts = [_shown(texts[row], 300) for row in (*rows, int(rng.choice(members[other])))]
        if len(set(excerpts)) > N_TEXTS:  # equal texts cannot be distinguished
            yield _Question(topic, excerpts, other)

    return _sheet("document_intrusion", usable, random_state, ask, 300)


def optimal_label(
    texts: Sequence[str], shares: csr_matrix, names: Sequence[str], random_state: RandomState = 0
) -> Sheet:
    """Ask which of four names of topics fits a text best, once for each topic.

    One is that of the topic with the largest share in the text, the others come next (Ying,
    Montgomery and Stewart 2022, "Topics, concepts, and measurement"). Their other question, which
    name intrudes, needs texts of several topics. `shares` are (n_texts, n_topics).
    """
    best = np.where(np.diff(shares.indptr) == 0, -1, np.ravel(shares.argmax(axis=1)))
    rows_of = {t: np.flatnonzero(best == t) for t in range(len(names))}
    usable = [t for t, rows in rows_of.items() if len(rows) and len(names) > N_NAMES]

    def ask(topic: int, rng: np.random.Generator) -> Iterator[_Question]:
        row = int(rng.choice(rows_of[topic]))
        weights = shares[[row]].toarray().ravel()
        weights[topic] = np.inf
        order = np.lexsort((rng.random(len(weights)), -weights))[: N_NAMES + 1].tolist()
        options = [names[t] for t in reversed(order)]
        if len(set(options)) > N_NAMES:
            yield _Question(topic, options, topic, _shown(texts[row], 600))

    return _sheet("optimal_label", usable, random_state, ask, 80)


def topic_fit(
    texts: Sequence[str], labels: Int32Array, topics: Sequence[str], random_state: RandomState = 0
) -> Sheet:
    """Ask how well texts fit a topic: two of the topic, and one of another, for each topic.

    The question of Hoyle et al. (2025, "ProxAnn: use-oriented evaluations of topic models and
    document clustering"). `topics` describe the topics, by name and words.
    """
    rows_of = {t: np.flatnonzero(labels == t) for t in range(len(topics))}
    usable = [t for t, rows in rows_of.items() if len(rows) > N_FITTING]

    def ask(topic: int, rng: np.random.Generator) -> Iterator[_Question]:
        other = int(rng.choice([t for t in usable if t != topic]))
        rows = rng.choice(rows_of[topic], N_FITTING, replace=False).tolist()
        for row in (*rows, int(rng.choice(rows_of[other]))):
            text = f"Topic: {topics[topic]}\n\nText: {_shown(texts[row], 600)}"
            yield _Question(topic, FITS, int(labels[row]), text)

    return _sheet("topic_fit", usable, random_state, ask, 80)


def _sheet(
    task: str, topics: Sequence[int], random_state: RandomState, ask: Ask, n_characters: int
) -> Sheet:
    """Ask about each topic, if there are two, and shuffle questions and options."""
    import pandas as pd

    seed = resolve_seed(random_state)
    rng = np.random.default_rng(seed)
    asked = [ask(t, np.random.default_rng([seed, t])) for t in topics if len(topics) > 1]
    drawn = [question for each in asked for question in each]
    questions, key = [], []
    for number, place in enumerate(rng.permutation(len(drawn)).tolist(), start=1):
        topic, options, other_topic, text = drawn[place]
        n_options, is_scale = len(options), task == "topic_fit"
        order = list(range(n_options)) if is_scale else rng.permutation(n_options).tolist()
        shuffled = [_shown(options[i], n_characters) for i in order]
        content = "\x1f".join([task, *filter(None, [text]), *shuffled]).encode("utf-8", "replace")
        # An id differs from those of other sheets.
        id = f"q{number:03}-{hashlib.blake2b(content, digest_size=2).hexdigest()}"
        head: dict[str, Any] = {"task": task, "question": id} | ({"text": text} if text else {})
        columns = {f"option_{i}": option for i, option in enumerate(shuffled, start=1)}
        questions.append(head | columns | {ANSWER: ""})
        intruder = 0 if is_scale else order.index(n_options - 1) + 1
        solution = {"topic": topic, "intruder": intruder, "intruder_topic": other_topic}
        key.append(head | solution | {"n_options": n_options} | columns)
    return Sheet(task, pd.DataFrame(questions), pd.DataFrame(key))


def _shown(text: str, n_characters: int) -> str:
    """Return a text on one line, without control characters, cut at a length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"


def _shares_letters(word: str, words: Sequence[str]) -> bool:
    """Return whether a word contains or is part of others: "taxes" gives "tax" away."""
    low = word.casefold()
    return any(low in other or other in low for other in (w.casefold() for w in words))


def read_sheet(path: str | Path) -> pd.DataFrame:
    """Read a sheet that a spreadsheet saved, between commas, semicolons or tabs, as texts."""
    import pandas as pd

    try:
        text = read_regular(path).decode("utf-8-sig")
        separator = max(",;\t", key=text.split("\n", 1)[0].count)
        return pd.read_csv(StringIO(text), sep=separator, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        remedy = "save the sheet as CSV UTF-8"
        raise InputError(str(path), "a table", found=str(error), remedy=remedy) from error


def score_sheet(
    answers: Answers, key: pd.DataFrame | str | Path, *, random_state: RandomState = 0
) -> SheetScore:
    """Score the answers to a sheet of `validation_sheets`.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
        Columns question and answer: the number of an option, from 1, or the option as written. A
        column "coder", or one file per coder, distinguishes coders. Rows may be missing: a coder
        need not have seen all questions.
    key : DataFrame or file
    random_state : None, int or numpy.random.Generator
        Seed of the resamples for the interval with several coders.

    Returns
    -------
    SheetScore

    Raises
    ------
    InputError
        If an answer is empty or not exactly one of the options, a question is unknown, or one
        coder answers it twice; the error names the row.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> sheet = et.annotation.validation_sheets(model)[0]
    >>> answers = sheet.questions.assign(answer=sheet.key["intruder"])
    >>> et.annotation.score_sheet(answers, sheet.key).precision
    1.0
    """
    solutions = read_sheet(key) if isinstance(key, str | Path) else key
    if "intruder" not in solutions:
        found = ", ".join(map(str, solutions.columns))
        remedy = "use the file from the folder of keys"
        raise InputError("key", "a table with a column intruder", found=found, remedy=remedy)
    by_question = solutions.set_index("question")
    checked = _checked_answers(answers, by_question)
    of_rows = by_question.loc[checked["question"]].reset_index()
    choices, task, level = checked[ANSWER].to_numpy(), str(solutions["task"].iloc[0]), "nominal"
    hit = choices == of_rows["intruder"].astype(int).to_numpy()
    chance = 1.0 / of_rows["n_options"].astype(int).to_numpy()
    used = np.ones(len(choices), dtype=np.bool_)
    if task == "topic_fit":  # chance is how often texts of other topics fit
        used = (of_rows["topic"].astype(int) == of_rows["intruder_topic"].astype(int)).to_numpy()
        hit, level = choices >= FITS_FROM, "ordinal"
        chance = np.full(len(hit), math.nan if used.all() else hit[~used].mean())
        if not used.any():
            raise InputError("answers", "some on texts of the topics themselves", found="none")
    table = checked.assign(topic=of_rows["topic"].astype(int), hit=hit, chance=chance)[used]
    hit = hit[used]
    n_coders = int(checked["coder"].nunique())
    alpha = math.nan
    ends = wilson(hit.sum(), len(hit))
    if n_coders > 1:  # questions are resampled with all of their answers
        sums = table.groupby("question")["hit"].agg(["sum", "count"]).to_numpy(float)
        means = resampled_means(sums, seed=resolve_seed(random_state))
        ends = bounded_interval(hit.mean(), means[:, 0] / means[:, 1], len(sums))
        # Options are shuffled, so that their places are categories.
        ratings = checked.pivot(index="coder", columns="question", values=ANSWER)
        alpha = krippendorff_alpha(ratings.to_numpy(dtype=float), level).value
    return SheetScore(
        task=task,
        precision=float(hit.mean()),
        low=float(ends[0]),
        high=float(ends[1]),
        chance=float(table["chance"].mean()),
        n_answers=len(hit),
        n_questions=int(table["question"].nunique()),
        n_coders=n_coders,
        by_topic=_by_topic(table),
        alpha=alpha,
    )


def _checked_answers(answers: Any, key: pd.DataFrame) -> pd.DataFrame:
    """Return question, coder and the number of the option of each answer."""
    import pandas as pd

    if isinstance(answers, pd.DataFrame | str | Path):
        answers = [answers]
    choices: dict[tuple[str, str], int] = {}
    for number, one in enumerate(answers, start=1):
        frame = one if isinstance(one, pd.DataFrame) else read_sheet(one)
        source = "answers" if isinstance(one, pd.DataFrame) else str(one)
        if any(name not in frame for name in ("question", ANSWER)):
            columns = ", ".join(map(str, frame.columns))
            raise InputError(source, f"columns question and {ANSWER}", found=columns)
        coders = frame["coder"] if "coder" in frame else ["1"] * len(frame)
        prefix = f"{number}/" if len(answers) > 1 else ""
        cells = zip(frame["question"], frame[ANSWER], coders, strict=True)
        for row, (question, answer, coder) in enumerate(cells):
            entry = _as_written(question), prefix + _as_written(coder)
            if entry[0] not in key.index:
                raise InputError(source, "questions of the key", question, row=row)
            if entry in choices:
                remedy = "keep one answer per coder, or add a column coder"
                raise InputError(source, "one answer per question", question, remedy, row=row)
            try:
                choices[entry] = _read_choice(_as_written(answer), key.loc[entry[0]])
            except ValueError as error:
                raise InputError(source, str(error), answer, row=row) from None
    if not choices:
        raise InputError("answers", "at least one", found="none", remedy="fill in the column")
    rows = [(question, coder, choice) for (question, coder), choice in choices.items()]
    return pd.DataFrame(rows, columns=["question", "coder", ANSWER])


def _as_written(value: Any) -> str:
    """Return a cell as a person typed it; spreadsheets make 3.0 of 3 and nothing of NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = str(value).strip()
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.isdecimal() and set(rest) == {"0"} else text


def _read_choice(answer: str, solution: Any) -> int:
    """Return the number of the option that an answer names."""
    n_options = int(solution["n_options"])
    options = [str(solution[f"option_{i}"]).removeprefix("'") for i in range(1, n_options + 1)]
    if answer.isdecimal() and 1 <= int(answer) <= n_options:
        return int(answer)
    plain = [option.casefold() for option in options]
    typed = answer.removeprefix("'").casefold()
    if typed in plain:
        return plain.index(typed) + 1
    close = difflib.get_close_matches(typed, plain, n=1)
    hint = f" (such as {options[plain.index(close[0])]!r})" if close else ""
    raise ValueError(f"one number from 1 to {n_options}, or one option as it is written{hint}")


def _by_topic(table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd
    from scipy.stats import binomtest

    rows = []
    for topic, of_topic in table.groupby("topic", sort=True):
        n, hits = len(of_topic), int(of_topic["hit"].sum())
        chance = float(of_topic["chance"].mean())
        low, high = (float(end) for end in wilson(hits, n))
        p_value = math.nan if chance != chance else binomtest(hits, n, chance, "greater").pvalue
        rows.append((topic, n, hits, hits / n, low, high, chance, p_value))
    columns = ["topic", "n", "hits", "precision", "low", "high", "chance", "p_value"]
    return pd.DataFrame(rows, columns=columns)
