"""Edits of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from embedtopics._utils.display import Displayed


@dataclass(frozen=True)
class TopicMark:
    """Identifies a topic of an edit in another fit, by its keywords and documents.

    Parameters
    ----------
    topic_id : int
        Id in the edited result.
    name : str
    keywords : tuple of str
    documents : tuple of str
        Hexadecimal content hashes of central documents of the topic.
    """

    topic_id: int
    name: str
    keywords: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Edit(Displayed):
    """One edit of a result.

    Parameters
    ----------
    name : str
        Name of the function in `embedtopics.topics`, such as "merge"; "note" for a remark that
        `replay` skips.
    parameters : mapping of str
        Its arguments except the result, as JSON holds them.
    message : str
        One sentence on the outcome.
    marks : tuple of TopicMark
        The topics named by the parameters.
    new_ids : tuple of int or None
        New id of each earlier topic, or -1; None if all topics are new.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> et.topics.rename(model, {0: "Floods"}).history
    (Edit(rename, "renamed 0 'Floods'"),)
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    marks: tuple[TopicMark, ...] = ()
    new_ids: tuple[int, ...] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the edit in one row: edit (its name) and message."""
        return pd.DataFrame({"edit": [self.name], "message": [self.message]})

    def _summary(self) -> str:
        return f"{self.name}, {self.message!r}"
