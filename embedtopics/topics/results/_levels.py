"""The numbers of topics of a result, and the suggested one."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from embedtopics._utils.display import Displayed
from embedtopics.clustering.results import Level
from embedtopics.topics.results._result import TopicResult


@dataclass(frozen=True, eq=False, repr=False)
class ResolutionChoice(Displayed):
    """The levels of a result with their scores, and the suggested one.

    Parameters
    ----------
    levels : tuple of Level
        With ascending numbers of topics.
    chosen : int
        Position of the suggested level.
    n_replicates : int
    result : TopicResult
        The result cut at the suggested level.
    """

    levels: tuple[Level, ...]
    chosen: int
    n_replicates: int
    result: TopicResult

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each level.

        Returns
        -------
        pandas.DataFrame
            With the columns n_topics, word_gain, neighbor_share, examples, recurrence and
            suggested.
        """
        columns = ["n_topics", "word_gain", "neighbor_share", "examples", "recurrence"]
        frame = pd.DataFrame([vars(level) for level in self.levels], columns=columns)
        return frame.assign(suggested=frame.index == self.chosen)

    def _summary(self) -> str:
        counts = [level.n_topics for level in self.levels]
        return f"levels of {counts[0]} to {counts[-1]} topics, suggested: {counts[self.chosen]}"
