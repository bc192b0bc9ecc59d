"""Sentences whose words carry labels, and often a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from embedtopics.results.inputs import Decision

__all__ = ["Sentence", "Treebank"]


@dataclass(frozen=True)
class Sentence:
    """One sentence.

    Parameters
    ----------
    id : str
    text : str
        As it was written.
    words : tuple of str
        Syntactic words: "du" of a French text is "de" and "le".
    columns : mapping of str to tuple of str
        What is said of each word, by column, as it stands in the file: "_" where nothing is said.
    heads : tuple of int
        The head of each word, counted from 1; 0 of the root. Empty where there is no tree.
    spans : tuple of (int, int)
        First character of each word in the text, and the one behind its last. The words of a
        multi-word token share its span.
    ranges : tuple of (int, int)
        First word of each multi-word token, from 0, and the one behind its last.
    """

    id: str
    text: str
    words: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    heads: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Treebank:
    """The sentences of a file.

    Parameters
    ----------
    source : str
        Name of the file.
    sentences : tuple of Sentence
    columns : tuple of str
        Those that all sentences have, in the order of the file.
    decisions : tuple of Decision
        What was left out or made up while reading.
    """

    source: str
    sentences: tuple[Sentence, ...]
    columns: tuple[str, ...]
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.sentences)

    @property
    def n_words(self) -> int:
        """Words in all sentences."""
        return sum(len(sentence.words) for sentence in self.sentences)
