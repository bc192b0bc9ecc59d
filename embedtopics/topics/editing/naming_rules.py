"""What a name that a user gives must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from embedtopics.errors import InputError

__all__ = ["checked_label", "checked_labels", "spell_topic"]


def checked_label(label: Any, topic: int | str) -> str:
    """Return a name on one line, after making sure that it is one.

    Raises
    ------
    InputError
        Where it is no string, or shows nothing.
    """
    if not isinstance(label, str):
        raise InputError(f"a label must be a string; got {label!r} for topic {topic}")
    name = " ".join(label.split())
    if not any(map(str.isprintable, name.replace(" ", ""))):
        raise InputError(f"a label must not be empty; got {label!r} for topic {topic}")
    return name


def checked_labels(
    labels: Mapping[int, Any], others: Iterable[tuple[int, str]] = ()
) -> dict[int, str]:
    """Return names by topic, after making sure that no two topics have the same.

    Parameters
    ----------
    labels : mapping of int to str
    others : iterable of (int, str)
        Topics that keep their names, and these.

    Raises
    ------
    InputError
        Where a label is no name, or would be that of two topics.
    """
    owner = {label: topic for topic, label in others}
    checked = {}
    for topic, label in labels.items():
        name = checked_label(label, topic)
        if name in owner:
            raise InputError(
                f"topics {owner[name]} and {topic} cannot both be called {name!r}; give one of "
                "them another label, or merge them"
            )
        owner[name] = topic
        checked[topic] = name
    return checked


def spell_topic(topic: int, label: str) -> str:
    """Return a topic as the messages of edits name it.

    Examples
    --------
    >>> spell_topic(3, "tax, cut")
    '3 (tax, cut)'
    """
    return f"{topic} ({label})"
