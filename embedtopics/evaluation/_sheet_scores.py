"""Answers of people on sheets: model precision, topic log odds, precision of coded texts."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means, wilson
from embedtopics.evaluation._sheets import ANSWER
from embedtopics.evaluation.results import CodingScore, IntrusionScore
from embedtopics.protocols import RandomState

if TYPE_CHECKING:
    import pandas as pd

Answers: TypeAlias = Union["pd.DataFrame", str, Path, Sequence[str | Path]]

YES = {"yes", "y", "1", "true", "oui", "ja", "si", "sí"}
NO = {"no", "n", "0", "false", "non", "nein"}
ONE_CODER = "1"
INTRUSIONS = {"word_intrusion", "document_intrusion", "topic_intrusion"}
LEAST_SHARE = 1e-3
"""Lower bound of a topic's share in log odds: a share of 0 has no logarithm."""


def read_sheet(path: str | Path) -> pd.DataFrame:
    """Read a sheet that a spreadsheet saved, with commas, semicolons or tabs; all cells are text.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        If the file does not exist, is not UTF-8, or is not a table.
    """
    import pandas as pd

    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        separator = max(",;\t", key=text.split("\n", 1)[0].count)
        return pd.read_csv(StringIO(text), sep=separator, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        remedy = "save the sheet as CSV UTF-8"
        raise InputError(str(path), "a table", found=str(error), remedy=remedy) from error


def score_intrusion(
    answers: Answers, key: pd.DataFrame | str | Path, *, random_state: RandomState = 0
) -> IntrusionScore:
    """Score the answers to a sheet of `word_intrusion`, `document_intrusion` or `topic_intrusion`.

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
    IntrusionScore

    Raises
    ------
    InputError
        If an answer is empty or not exactly one of the options, a question is unknown, or one
        coder answers it twice; the error names the row.
    """
    solutions = _checked_key(key, "intruder")
    if not set(solutions["task"]) <= INTRUSIONS:
        task = solutions["task"].iloc[0]
        raise InputError("key", "of a task of intrusion", task, "use score_coding")
    by_question = solutions.set_index("question")
    checked = _checked_answers(answers, by_question, _read_choice)
    solutions_of_rows = by_question.loc[checked["question"]].reset_index()
    choice = checked[ANSWER].astype(int).to_numpy()
    hit = choice == solutions_of_rows["intruder"].astype(int).to_numpy()
    chance = 1.0 / solutions_of_rows["n_options"].astype(int).to_numpy()
    table = checked.assign(topic=solutions_of_rows["topic"].astype(int), hit=hit, chance=chance)
    n_coders = int(checked["coder"].nunique())
    low, high = (float(end) for end in wilson(hit.sum(), len(hit)))
    if n_coders > 1:  # questions are resampled with all of their answers
        sums = table.groupby("question")["hit"].agg(["sum", "count"]).to_numpy(float)
        means = resampled_means(sums, seed=resolve_seed(random_state))
        ends = bounded_interval(hit.mean(), means[:, 0] / means[:, 1], len(sums))
        low, high = (float(end) for end in ends)
    return IntrusionScore(
        task=str(solutions["task"].iloc[0]),
        precision=float(hit.mean()),
        low=low,
        high=high,
        chance=float(table["chance"].mean()),
        n_answers=len(hit),
        n_questions=int(checked["question"].nunique()),
        n_coders=n_coders,
        by_topic=_by_topic(table),
        log_odds=_log_odds(solutions_of_rows, choice),
        alpha=_alpha_of(checked),
    )


def score_coding(answers: Answers, key: pd.DataFrame | str | Path) -> CodingScore:
    """Score the answers to a sheet of `coding_sample`.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
        Columns question and answer, "yes" or "no"; coders as for `score_intrusion`.
    key : DataFrame or file

    Returns
    -------
    CodingScore

    Raises
    ------
    InputError
        As `score_intrusion`.
    """
    import pandas as pd

    by_question = _checked_key(key, "in_topic").set_index("question")
    checked = _checked_answers(answers, by_question, _read_yes_or_no)
    solutions_of_rows = by_question.loc[checked["question"]].reset_index()
    yes = (checked[ANSWER] == "yes").to_numpy()
    inside = (solutions_of_rows["in_topic"] == "yes").to_numpy()
    table = pd.DataFrame(
        {
            "question": checked["question"],
            "topic": solutions_of_rows["topic"].astype(int).to_numpy(),
            "inside": inside,
            "size": solutions_of_rows["topic_size"].astype(int).to_numpy(),
            "yes": yes.astype(float),
        }
    )
    # A text is one observation, however many coders read it.
    texts = table.groupby("question", sort=True).agg(
        {"topic": "first", "inside": "first", "size": "first", "yes": "mean"}
    )
    rows = []
    for topic, of_topic in texts.groupby("topic", sort=True):
        members = of_topic["yes"][of_topic["inside"]]
        decoys = of_topic["yes"][~of_topic["inside"]]
        low, high = _wilson(_mean(members), len(members))
        rows.append(
            {
                "topic": topic,
                "n": len(members),
                "precision": _mean(members),
                "low": low,
                "high": high,
                "n_decoys": len(decoys),
                "decoys": _mean(decoys),
                "size": int(of_topic["size"].iloc[0]),
            }
        )
    frame = pd.DataFrame(rows)
    coded = frame[frame["n"] > 0]
    precision = low = high = math.nan
    if len(coded):
        weight = (coded["size"] / coded["size"].sum()).to_numpy()
        precision = float((weight * coded["precision"]).sum())
        low, high = _wilson(precision, 1.0 / float((weight**2 / coded["n"]).sum()))
    return CodingScore(
        precision=precision,
        low=low,
        high=high,
        by_topic=frame.drop(columns="size"),
        decoys=_mean(yes[~inside]),
        n_answers=len(yes),
        n_coders=int(checked["coder"].nunique()),
        alpha=_alpha_of(checked),
    )


def _checked_key(key: pd.DataFrame | str | Path, column: str) -> pd.DataFrame:
    import pandas as pd

    frame = key if isinstance(key, pd.DataFrame) else read_sheet(key)
    missing = [name for name in ("task", "question", "topic", column) if name not in frame]
    if missing or frame.empty:
        raise InputError(
            "key",
            f"a table with the columns task, question, topic and {column}",
            found=", ".join(map(str, frame.columns)) or "none",
            remedy="use the file from the folder of keys",
        )
    return frame


def _checked_answers(
    answers: Any, key: pd.DataFrame, parse: Callable[[str, Any], str]
) -> pd.DataFrame:
    """Return question, coder and answer of each row; `read` takes an answer and its solution."""
    import pandas as pd

    if isinstance(answers, pd.DataFrame | str | Path):
        answers = [answers]
    rows: dict[tuple[str, str], str] = {}
    for number, one in enumerate(answers, start=1):
        frame = one if isinstance(one, pd.DataFrame) else read_sheet(one)
        source = "answers" if isinstance(one, pd.DataFrame) else str(one)
        if any(name not in frame for name in ("question", ANSWER)):
            columns = ", ".join(map(str, frame.columns))
            raise InputError(source, f"columns question and {ANSWER}", found=columns)
        coders = frame["coder"] if "coder" in frame else [ONE_CODER] * len(frame)
        prefix = f"{number}/" if len(answers) > 1 else ""
        entries = zip(frame["question"], frame[ANSWER], coders, strict=True)
        for row, (question, answer, coder) in enumerate(entries):
            entry = _as_written(question), prefix + _as_written(coder)
            if entry[0] not in key.index:
                raise InputError(source, "questions of the key", question, row=row)
            if entry in rows:
                remedy = "keep one answer per coder, or add a column coder"
                raise InputError(source, "one answer per question", question, remedy, row=row)
            try:
                rows[entry] = parse(_as_written(answer), key.loc[entry[0]])
            except ValueError as error:
                raise InputError(source, str(error), answer, row=row) from None
    if not rows:
        raise InputError("answers", "at least one", found="none", remedy="fill in the column")
    cells = [(question, coder, answer) for (question, coder), answer in rows.items()]
    return pd.DataFrame(cells, columns=["question", "coder", ANSWER])


def _as_written(value: Any) -> str:
    """Return a cell as a person typed it; spreadsheets make 3.0 of 3 and nothing of NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    text = str(value).strip()
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.isdecimal() and set(rest) == {"0"} else text


def _read_choice(answer: str, solution: Any) -> str:
    """Return the number of the option that an answer names."""
    n_options = int(solution["n_options"])
    options = [str(solution[f"option_{i}"]).removeprefix("'") for i in range(1, n_options + 1)]
    if answer.isdecimal() and 1 <= int(answer) <= n_options:
        return str(int(answer))
    plain = [option.casefold() for option in options]
    typed = answer.removeprefix("'").casefold()
    if typed in plain:
        return str(plain.index(typed) + 1)
    close = difflib.get_close_matches(typed, plain, n=1)
    hint = f" (such as {options[plain.index(close[0])]!r})" if close else ""
    raise ValueError(f"one number from 1 to {n_options}, or one option as it is written{hint}")


def _read_yes_or_no(answer: str, solution: Any) -> str:
    if answer.casefold() not in YES | NO:
        raise ValueError("yes or no")
    return "yes" if answer.casefold() in YES else "no"


def _by_topic(table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd
    from scipy.stats import binomtest

    rows = []
    for topic, of_topic in table.groupby("topic", sort=True):
        n, hits = len(of_topic), int(of_topic["hit"].sum())
        chance = float(of_topic["chance"].mean())
        low, high = (float(end) for end in wilson(hits, n))
        p_value = float(binomtest(hits, n, chance, alternative="greater").pvalue)
        rows.append((topic, n, hits, hits / n, low, high, chance, p_value))
    columns = ["topic", "n", "hits", "precision", "low", "high", "chance", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def _log_odds(solutions: pd.DataFrame, choice: Any) -> float:
    if "share_1" not in solutions:
        return math.nan
    n_options = int(solutions["n_options"].astype(int).max())
    written = solutions[[f"share_{i}" for i in range(1, n_options + 1)]].replace("", "nan")
    logs = np.log(np.maximum(written.astype(float).to_numpy(), LEAST_SHARE))
    rows = np.arange(len(solutions))
    intruder = solutions["intruder"].astype(int).to_numpy()
    return float(np.mean(logs[rows, intruder - 1] - logs[rows, choice - 1]))


def _alpha_of(checked: pd.DataFrame) -> float:
    """Return the agreement of the coders; options are shuffled, so their places are categories."""
    ratings = checked.pivot(index="coder", columns="question", values=ANSWER)
    return math.nan if len(ratings) < 2 else krippendorff_alpha(ratings.to_numpy(dtype=object))


def krippendorff_alpha(ratings: npt.NDArray[Any]) -> float:
    """Return 1 less the observed over the expected disagreement of coders, (n_coders, n_units).

    Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section E; NaN is a missing
    value, and the outcome where all ratings that can be paired are equal.
    """
    import pandas as pd
    from scipy.sparse import csr_matrix

    codes = pd.factorize(ratings.ravel(), sort=True)[0].reshape(ratings.shape)
    n_each = (codes >= 0).sum(axis=0)
    n_values = int(codes.max(initial=0)) + 1
    units, cells, weights = [], [], []
    for one, other in permutations(range(len(codes)), 2):
        both = np.flatnonzero((codes[one] >= 0) & (codes[other] >= 0))
        units.append(both)
        cells.append(codes[one, both] * n_values + codes[other, both])
        weights.append(1.0 / (n_each[both] - 1))
    pairs, column = np.unique(np.concatenate(cells), return_inverse=True)
    coincidences = csr_matrix(
        (np.concatenate(weights), (np.concatenate(units), column)), shape=(len(n_each), len(pairs))
    )
    counts = np.asarray(coincidences.sum(axis=0)).ravel()
    first, second = pairs // n_values, pairs % n_values
    used = np.bincount(first, counts, minlength=n_values)
    n = used.sum()
    expected = n * n - (used * used).sum()
    if np.count_nonzero(used) < 2:  # no disagreement is possible
        return math.nan
    return float(1.0 - (counts * (first != second)).sum() * (n - 1) / expected)


def _wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval for a fractional sample size; NaN for none."""
    if not n:
        return math.nan, math.nan
    low, high = wilson(share * n, n)
    return float(low), float(high)


def _mean(hits: Any) -> float:
    return float(hits.mean()) if len(hits) else math.nan
