"""Answers to one question over all combinations of choices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.topics.results._result import TopicResult

CHOICES = ("encoder", "n_topics", "random_state", "words", "long_texts")
"""Columns of the choices of a specification."""


@dataclass(frozen=True, eq=False, repr=False)
class Specifications(Displayed):
    """Answers to one question over all combinations of choices.

    Parameters
    ----------
    choices : DataFrame
        A row for each specification: encoder, n_topics, random_state, words, long_texts; n_fitted
        (topics); coverage; unmatched (names of topics that match none of the main study).
    estimates : DataFrame
        A row for each specification and quantity: topic (of the main study; -1 for all texts),
        topic_name, quantity, estimate, low, high (95 % interval), matched (ids of the topics here),
        overlap (Jaccard), agrees (the same conclusion as the main study), and the choices.
    summary : DataFrame
        A row for each quantity: estimate, low, high and conclusion of the main study; median,
        lowest and highest over the specifications; n and n_matched (specifications, and those with
        the topic); same_sign and agreement (shares of all specifications with the sign and the
        conclusion of the main study); by_encoder, by_n_topics ... (share of the variance).
    question : str
    main : TopicResult
    """

    choices: pd.DataFrame
    estimates: pd.DataFrame
    summary: pd.DataFrame
    question: str
    main: TopicResult

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of `estimates`."""
        return self.estimates.copy()

    def _summary(self) -> str:
        varied = [f"{self.choices[one].nunique()} of {one}" for one in self._varied()]
        how = f" ({', '.join(varied)})" if varied else ""
        return f"{self.question}: {len(self.choices)} specifications{how}"

    def _varied(self) -> list[str]:
        return [one for one in CHOICES if self.choices[one].nunique() > 1]

    @property
    def verdict(self) -> tuple[str, ...]:
        """One paragraph for each quantity, in the order of `summary`."""
        return tuple(self._sentences(row) for _, row in self.summary.iterrows())

    def _sentences(self, row: pd.Series) -> str:
        is_function = self.question.split("(")[0].strip() not in ("shares", "effects", "trends")

        def number(value: float) -> str:
            return f"{value if is_function else 100 * value:.3g}"

        about = row["topic_name"]
        if row["topic"] >= 0:
            about = f"topic {row['topic']} ({about})"
        text = f"{about}, {row['quantity']}: {number(row['estimate'])}"
        text += "" if is_function else " points" if row["quantity"] != "share" else " %"
        if not np.isnan(row["low"]):
            text += f" (95 % interval {number(row['low'])} to {number(row['high'])})"
        n, n_matched = row["n"], row["n_matched"]
        text += f" in the main study. Over {n} specifications the median is "
        text += f"{number(row['median'])}, from {number(row['lowest'])} to {number(row['highest'])}"
        if n_matched < n:
            text += f"; {spell_count(n - n_matched, 'has', 'have')} no such topic"
        if row["quantity"] == "share":
            text += f". The interval overlaps that of the main study in {row['agreement']:.0%}"
        else:
            text += f". The sign is the same in {row['same_sign']:.0%}, the conclusion "
            text += f"({row['conclusion']}) in {row['agreement']:.0%}"
        by_choice = {one: row[f"by_{one}"] for one in self._varied()}
        most = max(by_choice, key=lambda one: by_choice[one], default="")
        if by_choice and by_choice[most] > 0:
            text += f"; of the choices, {most} matters most ({by_choice[most]:.0%} of the variance)"
        return f"{text}."
