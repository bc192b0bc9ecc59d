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
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means
from embedtopics.evaluation._intrusion import ANSWER
from embedtopics.evaluation._shares import share_interval, wilson
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
    """Read a sheet as a spreadsheet saved it: commas, semicolons or tabs; all values are strings.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        Where it is missing, no such table, or not UTF-8.
    """
    import pandas as pd

    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; name the file") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start}); save it as CSV UTF-8"
        ) from None
    header = text.split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    try:
        return pd.read_csv(StringIO(text), sep=separator, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is no table ({error}); save the sheet as CSV again") from None


def score_intrusion(
    answers: Answers,
    key: pd.DataFrame | str | Path,
    *,
    confidence: float = 0.95,
    method: str = "wilson",
    random_state: RandomState = 0,
) -> IntrusionScore:
    """Score the answers to a sheet of `word_intrusion`, `document_intrusion` or `topic_intrusion`.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
        Columns question and answer: the number of the option, 1 for the first, or the option
        itself as it is written. A column coder identifies coders; so does a file for each.
        Rows may be missing: a coder need not have seen all questions.
    key : DataFrame or file
    confidence : float
    method : {"wilson", "exact"}
        Interval of a share: Wilson (1927), whose coverage is right on average, or Clopper and
        Pearson (1934), whose coverage is never too small.
    random_state : None, int or numpy.random.Generator
        Of the resamples behind the interval with several coders.

    Returns
    -------
    IntrusionScore

    Raises
    ------
    InputError
        Where an answer is empty, is none of the options or more than one, a question is unknown,
        or answered twice by one coder; the message names the row.
    """
    solutions = _checked_key(key, "intruder")
    if not set(solutions["task"]) <= INTRUSIONS:
        raise InputError(
            "key", "of a task of intrusion", solutions["task"].iloc[0], "use score_coding"
        )
    known = solutions.set_index("question")
    checked = _checked_answers(answers, known, _read_choice)
    found = known.loc[checked["question"]].reset_index()
    chosen = checked[ANSWER].astype(int).to_numpy()
    hit = chosen == found["intruder"].astype(int).to_numpy()
    chance = 1.0 / found["n_options"].astype(int).to_numpy()
    table = checked.assign(topic=found["topic"].astype(int), hit=hit, chance=chance)
    n_coders = int(checked["coder"].nunique())
    low, high = share_interval(int(hit.sum()), len(hit), confidence, method)
    if n_coders > 1:  # questions are resampled with all of their answers
        by_question = table.groupby("question")["hit"].agg(["sum", "count"]).to_numpy(float)
        means = resampled_means(by_question, seed=resolve_seed(random_state))
        ends = bounded_interval(hit.mean(), means[:, 0] / means[:, 1], len(by_question), confidence)
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
        by_topic=_by_topic(table, confidence, method),
        log_odds=_log_odds(found, chosen),
        alpha=_alpha_of(checked),
    )


def score_coding(
    answers: Answers, key: pd.DataFrame | str | Path, *, confidence: float = 0.95
) -> CodingScore:
    """Score the answers to a sheet of `coding_sample`.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
        Columns question and answer, "yes" or "no"; coders as for `score_intrusion`.
    key : DataFrame or file
    confidence : float

    Returns
    -------
    CodingScore

    Raises
    ------
    InputError
        As `score_intrusion`.
    """
    import pandas as pd

    known = _checked_key(key, "in_topic").set_index("question")
    checked = _checked_answers(answers, known, _read_yes_or_no)
    found = known.loc[checked["question"]].reset_index()
    yes = (checked[ANSWER] == "yes").to_numpy()
    inside = (found["in_topic"] == "yes").to_numpy()
    answers_to = pd.DataFrame(
        {"question": checked["question"], "topic": found["topic"].astype(int).to_numpy(),
         "inside": inside, "size": found["topic_size"].astype(int).to_numpy(),
         "yes": yes.astype(float)}
    )  # fmt: skip
    # A text is one observation, however many coders read it.
    texts = answers_to.groupby("question", sort=True).agg(
        {"topic": "first", "inside": "first", "size": "first", "yes": "mean"}
    )
    rows = []
    for one, of_topic in texts.groupby("topic", sort=True):
        own = of_topic["yes"][of_topic["inside"]]
        decoy = of_topic["yes"][~of_topic["inside"]]
        low, high = _wilson(_mean(own), len(own), confidence)
        rows.append(
            {"topic": one, "n": len(own), "precision": _mean(own), "low": low, "high": high,
             "n_decoys": len(decoy), "decoys": _mean(decoy), "size": int(of_topic["size"].iloc[0])}
        )  # fmt: skip
    frame = pd.DataFrame(rows)
    coded = frame[frame["n"] > 0]
    precision = low = high = math.nan
    if len(coded):
        weight = (coded["size"] / coded["size"].sum()).to_numpy()
        precision = float((weight * coded["precision"]).sum())
        low, high = _wilson(precision, 1.0 / float((weight**2 / coded["n"]).sum()), confidence)
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
            "key", f"a table with the columns task, question, topic and {column}",
            found=", ".join(map(str, frame.columns)) or "none",
            remedy="use the file from the folder of keys",
        )  # fmt: skip
    return frame


def _checked_answers(
    answers: Any, key: pd.DataFrame, read: Callable[[str, Any], str]
) -> pd.DataFrame:
    """Return question, coder and answer of each row; `read` takes an answer and its solution."""
    import pandas as pd

    if isinstance(answers, pd.DataFrame | str | Path):
        answers = [answers]
    seen: dict[tuple[str, str], str] = {}
    rows = []
    for number, one in enumerate(answers, start=1):
        frame = one if isinstance(one, pd.DataFrame) else read_sheet(one)
        source = "the answers" if isinstance(one, pd.DataFrame) else str(one)
        if any(name not in frame for name in ("question", ANSWER)):
            raise InputError(
                f"{source} must have the columns question and {ANSWER}; got "
                f"{', '.join(map(str, frame.columns))}; fill in the sheet as it was written"
            )
        coders = frame["coder"] if "coder" in frame else [ONE_CODER] * len(frame)
        prefix = f"{number}/" if len(answers) > 1 else ""
        entries = zip(frame["question"], frame[ANSWER], coders, strict=True)
        for line, (question, answer, coder) in enumerate(entries, start=1):
            place = f"{source}, row {line} (question {question})"
            name, who = _as_written(question), prefix + _as_written(coder)
            if name not in key.index:
                raise InputError(f"{place}: the key has no such question; use the key of the sheet")
            if (name, who) in seen:
                raise InputError(
                    f"{place}: it was answered in {seen[name, who]} already; keep one answer for "
                    "each coder, or add a column coder"
                )
            seen[name, who] = f"row {line} of {source}"
            try:
                rows.append((name, who, read(_as_written(answer), key.loc[name])))
            except ValueError as error:
                raise InputError(f"{place}: {error}") from None
    if not rows:
        raise InputError("answers", "at least one", found="none", remedy="fill in the column")
    return pd.DataFrame(rows, columns=["question", "coder", ANSWER])


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
    if not answer:
        raise ValueError("the answer is empty; answer it, or delete the row")
    if answer.isdecimal() and 1 <= int(answer) <= n_options:
        return str(int(answer))
    plain = [option.casefold() for option in options]
    wanted = answer.removeprefix("'").casefold()
    if wanted in plain:
        return str(plain.index(wanted) + 1)
    parts = [part.strip().casefold() for part in answer.replace(";", ",").split(",")]
    if len(parts) > 1 and all(part in plain or part.isdecimal() for part in parts):
        raise ValueError(f"expected one answer; got {len(parts)}: {answer!r}")
    close = difflib.get_close_matches(wanted, plain, n=1)
    hint = f"; did you mean {options[plain.index(close[0])]!r}?" if close else ""
    raise ValueError(
        f"expected a number from 1 to {n_options}, or one of the options as it is written; got "
        f"{answer[:80]!r}{hint}"
    )


def _read_yes_or_no(answer: str, solution: Any) -> str:
    low = answer.casefold()
    if low in YES or low in NO:
        return "yes" if low in YES else "no"
    if not answer:
        raise ValueError("the answer is empty; answer it, or delete the row")
    raise ValueError(f"expected yes or no; got {answer[:80]!r}")


def _by_topic(table: pd.DataFrame, confidence: float, method: str) -> pd.DataFrame:
    import pandas as pd
    from scipy.stats import binomtest

    rows = []
    for topic in sorted(set(table["topic"].tolist())):
        own = table[table["topic"] == topic]
        n, hits, chance = len(own), int(own["hit"].sum()), float(own["chance"].mean())
        low, high = share_interval(hits, n, confidence, method)
        p_value = float(binomtest(hits, n, chance, alternative="greater").pvalue)
        rows.append((int(topic), n, hits, hits / n, low, high, chance, p_value))
    columns = ["topic", "n", "hits", "precision", "low", "high", "chance", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def _log_odds(found: pd.DataFrame, chosen: Any) -> float:
    if "share_1" not in found:
        return math.nan
    n_options = int(found["n_options"].astype(int).max())
    written = found[[f"share_{i}" for i in range(1, n_options + 1)]].replace("", "nan")
    logs = np.log(np.maximum(written.astype(float).to_numpy(), LEAST_SHARE))
    rows = np.arange(len(found))
    intruder = found["intruder"].astype(int).to_numpy()
    return float(np.mean(logs[rows, intruder - 1] - logs[rows, chosen - 1]))


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
    found, column = np.unique(np.concatenate(cells), return_inverse=True)
    coincidences = csr_matrix(
        (np.concatenate(weights), (np.concatenate(units), column)), shape=(len(n_each), len(found))
    )
    counts = np.asarray(coincidences.sum(axis=0)).ravel()
    first, second = found // n_values, found % n_values
    used = np.bincount(first, counts, minlength=n_values)
    n = used.sum()
    expected = n * n - (used * used).sum()
    if np.count_nonzero(used) < 2:  # no disagreement is possible
        return math.nan
    return float(1.0 - (counts * (first != second)).sum() * (n - 1) / expected)


def _wilson(share: float, n: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a sample whose size is no whole number; NaN for none."""
    if not n:
        return math.nan, math.nan
    low, high = wilson(share * n, n, confidence)
    return float(low), float(high)


def _mean(hits: Any) -> float:
    return float(hits.mean()) if len(hits) else math.nan
