"""What people's answers say of the topics: model precision, log odds, precision of coded texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.answers import (
    checked_answers,
    checked_key,
    read_choice,
    read_yes_or_no,
)
from embedtopics.evaluation.bootstrap import interval, resampled_means
from embedtopics.evaluation.reliability import krippendorff_alpha
from embedtopics.evaluation.shares import share_interval, wilson
from embedtopics.evaluation.sheets import ANSWER

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CodingScore", "IntrusionScore", "score_coding", "score_intrusion"]

INTRUSIONS = ("word_intrusion", "document_intrusion", "topic_intrusion")
LEAST_SHARE = 1e-3
"""Share that a topic counts with at least in log odds: a share of 0 has no logarithm."""


@dataclass(frozen=True, eq=False)
class IntrusionScore:
    """How often people found the intruders.

    Parameters
    ----------
    task : str
    precision, low, high : float
        Share of the answers that name the intruder, the model precision of Chang et al. (2009),
        with an interval: of the answers for one coder, of questions drawn anew for several,
        whose answers to one question are not independent.
    chance : float
        What guessing would find.
    n_answers, n_questions, n_coders : int
    by_topic : pandas.DataFrame
        Columns topic, n (answers), hits, precision, low, high, chance (the mean over its
        questions), and p_value (of a one-sided binomial test against that). Each answer is an
        observation: low and high are of other people before these questions, not of other
        questions on the topic.
    log_odds : float
        Mean topic log odds, log of the intruder's share in the text less that of the topic chosen
        (Chang et al. 2009, equation 2): 0 at best, below where people choose topics that the model
        sees in the text. NaN for tasks other than "topic_intrusion".
    alpha : float
        Krippendorff's alpha of the coders' choices; NaN for one coder.
    """

    task: str
    precision: float
    low: float
    high: float
    chance: float
    n_answers: int
    n_questions: int
    n_coders: int
    by_topic: pd.DataFrame
    log_odds: float
    alpha: float


@dataclass(frozen=True, eq=False)
class CodingScore:
    """How often people see a text's topic in it.

    Parameters
    ----------
    precision, low, high : float
        Share of the texts in topics that belong there, each topic weighted by its size; Wilson's
        interval at the effective size of the sample (Kish 1965). A text that several coders read
        counts once, by the share of them that see the topic in it: more coders do not make up for
        few texts.
    by_topic : pandas.DataFrame
        Columns topic, n (texts), precision, low, high (Wilson), n_decoys, and decoys, the share of
        the texts from elsewhere that people put in the topic, too.
    decoys : float
        That share over all topics.
    n_answers, n_coders : int
    alpha : float
        Krippendorff's alpha; NaN for one coder.
    """

    precision: float
    low: float
    high: float
    by_topic: pd.DataFrame
    decoys: float
    n_answers: int
    n_coders: int
    alpha: float


def score_intrusion(
    answers: pd.DataFrame | str | Path | Sequence[str | Path],
    key: pd.DataFrame | str | Path,
    *,
    confidence: float = 0.95,
    method: str = "wilson",
    seed: int = 0,
) -> IntrusionScore:
    """Score the answers to a sheet of `word_intrusion`, or of the other two.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
        Columns question and answer: the number of the option, 1 for the first, or the option
        itself as it is written. A column coder tells coders apart; so does a file for each.
        Rows may be missing: a coder need not have seen all questions.
    key : DataFrame or file
    confidence : float
    method : {"wilson", "exact"}
        See `share_interval`.
    seed : int
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
    solutions = checked_key(key, "intruder")
    if not set(solutions["task"]) <= set(INTRUSIONS):
        raise InputError(
            f"the key is of the task {solutions['task'].iloc[0]!r}, not of an intrusion; "
            "use score_coding for coding"
        )
    known = solutions.set_index("question")
    checked = checked_answers(answers, known, read_choice)
    found = known.loc[checked["question"]].reset_index()
    chosen = checked[ANSWER].astype(int).to_numpy()
    n_options = found["n_options"].astype(int).to_numpy()
    hit = chosen == found["intruder"].astype(int).to_numpy()
    table = checked.assign(topic=found["topic"].astype(int), hit=hit, chance=1.0 / n_options)
    n_coders = int(checked["coder"].nunique())
    low, high = share_interval(int(hit.sum()), len(hit), confidence, method)
    if n_coders > 1:
        by_question = table.groupby("question")["hit"].agg(["sum", "count"]).to_numpy(float)
        low, high = _clustered(by_question, confidence, seed)
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
    answers: pd.DataFrame | str | Path | Sequence[str | Path],
    key: pd.DataFrame | str | Path,
    *,
    confidence: float = 0.95,
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

    known = checked_key(key, "in_topic").set_index("question")
    checked = checked_answers(answers, known, read_yes_or_no)
    found = known.loc[checked["question"]].reset_index()
    yes = (checked[ANSWER] == "yes").to_numpy()
    inside = (found["in_topic"] == "yes").to_numpy()
    topic = found["topic"].astype(int).to_numpy()
    size = found["topic_size"].astype(int).to_numpy()
    answers_to = pd.DataFrame(
        {"question": checked["question"], "topic": topic, "inside": inside, "size": size,
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


def _clustered(by_question: Any, confidence: float, seed: int) -> tuple[float, float]:
    """Return the interval of a share, questions with all of their answers drawn anew."""
    means = resampled_means(by_question, seed=seed)
    low, high = interval(means[:, 0] / means[:, 1], confidence)
    return float(low), float(high)


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
    if len(ratings) < 2:
        return math.nan
    return krippendorff_alpha(ratings.to_numpy(dtype=object), n_resamples=0).alpha


def _wilson(share: float, n: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval for a sample whose size is no whole number; NaN for none."""
    if not n:
        return math.nan, math.nan
    low, high = wilson(share * n, n, confidence)
    return float(low), float(high)


def _mean(hits: Any) -> float:
    return float(hits.mean()) if len(hits) else math.nan
