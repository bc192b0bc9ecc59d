"""A saved study beside the same study computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from embedtopics._utils.display import Displayed
from embedtopics.topics.results._result import TopicResult


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Displayed):
    """A saved study beside the one that its texts give here.

    Parameters
    ----------
    parts : DataFrame
        A row for each part: part, outcome ("same bits", "within rounding", "differs" or "not
        computed"), numbers of items compared and different, and message.
    versions : mapping of str to (str, str)
        Packages with another version here: that of the study, and the present one.
    result : TopicResult
        The study computed again.
    """

    parts: pd.DataFrame
    versions: Mapping[str, tuple[str, str]]
    result: TopicResult

    @property
    def is_same(self) -> bool:
        """Whether no part differs by more than rounding."""
        return "differs" not in self.parts["outcome"].tolist()

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of `parts`."""
        return self.parts.copy()

    def _summary(self) -> str:
        different = self.parts["part"][self.parts["outcome"] == "differs"]
        return f"different: {', '.join(different)}" if len(different) else "it comes out again"
