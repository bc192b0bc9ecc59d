"""What was done to a result after the fit, so that it can be read, and done again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Edit", "TopicMark"]


@dataclass(frozen=True)
class TopicMark:
    """By what a topic that an edit names can be known again in another fit.

    Parameters
    ----------
    topic_id : int
        In the result that was edited.
    label : str
    keywords : tuple of str
    documents : tuple of str
        Content hashes, in hexadecimal, of documents deep inside the topic.
    """

    topic_id: int
    label: str
    keywords: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """One edit of a result.

    Parameters
    ----------
    name : str
        Of the function in `embedtopics.topics`, such as "merge"; "note" for a remark that cannot
        be done again.
    parameters : mapping of str
        Its arguments beside the result, as JSON holds them.
    message : str
        What it did, in one sentence.
    marks : tuple of TopicMark
        The topics that the parameters name.
    new_ids : tuple of int or None
        For each topic of the result before, the topic that holds its documents now, or -1; None
        where the topics are other ones altogether.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    marks: tuple[TopicMark, ...] = ()
    new_ids: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Return what it did."""
        return self.message
