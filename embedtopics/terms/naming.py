"""Names of topics, made of their keywords."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["make_label", "make_labels"]


def make_label(keywords: Sequence[str], n: int = 3) -> str:
    """Return a name for one topic.

    Parameters
    ----------
    keywords : sequence of str
        Best first.
    n : int
        Keywords in the name.

    Returns
    -------
    str
        "no terms" for a topic without keywords.

    Examples
    --------
    >>> make_label(["interest rates", "inflation", "bank", "euro"])
    'interest rates, inflation, bank'
    """
    return ", ".join(keywords[:n]) or "no terms"


def make_labels(keywords: Sequence[Sequence[str]], n: int = 3) -> list[str]:
    """Return names of all topics, no two alike.

    A topic whose name is taken gets further keywords of its own, and a number if these do not
    help either. Earlier topics keep the shorter name.

    Parameters
    ----------
    keywords : sequence of sequence of str
        Keywords of each topic, best first.
    n : int
        Keywords in a name.

    Returns
    -------
    list of str

    Examples
    --------
    >>> make_labels([["tax", "cut", "vote"], ["tax", "cut", "rise"], ["tax"], ["tax"]], n=2)
    ['tax, cut', 'tax, cut, rise', 'tax', 'tax (2)']
    """
    labels: list[str] = []
    taken: set[str] = set()
    for words in keywords:
        longer = (make_label(words, length) for length in range(n, len(words) + 1))
        label = next((name for name in longer if name not in taken), make_label(words, n))
        plain, number = label, 2
        while label in taken:
            label, number = f"{plain} ({number})", number + 1
        taken.add(label)
        labels.append(label)
    return labels
