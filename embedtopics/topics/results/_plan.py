"""The result of a plan that was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.topics.results._result import TopicResult
from embedtopics.topics.results._specifications import Specifications


@dataclass(frozen=True, eq=False, repr=False)
class PlanResult(Displayed):
    """The main study of a plan, its specifications and hypotheses, and departures from it.

    Parameters
    ----------
    folder : Path
        Where the run was written.
    result : TopicResult
        The main study, with the first of each list of choices.
    specifications : Specifications
        The answers with all choices.
    hypotheses : DataFrame
        A row for each hypothesis; see `to_frame`.
    departures : tuple of str
        What differs from the first run of the plan or, in the first run, from its date.
    excluded : mapping of str to int
        Rows that each rule of the plan excludes.
    record : mapping
        What the file of the run holds: the plan, its digest, and the findings.
    """

    folder: Path
    result: TopicResult
    specifications: Specifications
    hypotheses: pd.DataFrame
    departures: tuple[str, ...]
    excluded: Mapping[str, int]
    record: Mapping[str, Any]

    @property
    def findings(self) -> tuple[str, ...]:
        """One paragraph for each hypothesis, or for each answer of a plan without hypotheses."""
        if len(self.hypotheses):
            return tuple(self.hypotheses["finding"])
        return self.specifications.verdict

    def summary(self) -> str:
        """Return the plan, the departures from it, and the findings, a paragraph each."""
        plan = f"plan of {self.record['date']} (sha256 {self.record['plan_sha256'][:12]})"
        lines = [f"{plan}: {self.specifications!r}"]
        lines += [f"departure from the plan: {departure}" for departure in self.departures]
        return "\n\n".join([*lines, *self.findings])

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each hypothesis.

        Returns
        -------
        DataFrame
            Columns name, topic, topic_name, quantity, conclusion ("above 0" or "below 0"), n
            (specifications), share (of them in which it holds), supported (whether it holds in nine
            of ten) and finding (one paragraph).
        """
        return self.hypotheses.copy()

    def _summary(self) -> str:
        n_supported = int(self.hypotheses["supported"].sum())
        n = spell_count(len(self.hypotheses), "hypothesis", "hypotheses")
        departures = spell_count(len(self.departures), "departure", "departures")
        n_runs = spell_count(len(self.specifications.choices), "specification", "specifications")
        return f"{n_runs}, {n_supported} of {n} supported, {departures}"
