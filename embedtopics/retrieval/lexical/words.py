"""From words as they are written to words of the index, for passages and queries alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from embedtopics.errors import InputError
from embedtopics.retrieval.lexical.settings import LexicalSettings
from embedtopics.terms.one_text import words_of
from embedtopics.terms.stems import stems_of

__all__ = ["QueryWords", "WordForms", "query_words"]


class WordForms:
    """The form under which the index knows a word.

    Parameters
    ----------
    settings : LexicalSettings
    """

    def __init__(self, settings: LexicalSettings) -> None:
        self._left_out = frozenset(settings.stop_words)
        self._stems = settings.stems

    def of(self, word: str) -> str | None:
        """Return the form of a word of the tokeniser, or None where it is a stop word."""
        if word in self._left_out:
            return None
        for code in self._stems:
            # A stem may be empty or hold a blank in no language that we know of; were it so, the
            # word would be lost.
            word = stems_of(word, (code,))[0][0] or word
        return word


@dataclass(frozen=True)
class QueryWords:
    """What a query asks for.

    Parameters
    ----------
    written : mapping of str to mapping of str to int
        By form of the index, in alphabetical order: the words of the query that have this form,
        and how often each occurs.
    stop_words : tuple of str
        Words of the query that are not looked for, sorted.
    """

    written: Mapping[str, Mapping[str, int]]
    stop_words: tuple[str, ...]

    def weight(self, form: str) -> int:
        """Return how often the query has a form; BM25 counts it so often."""
        return sum(self.written[form].values())


def query_words(query: str, settings: LexicalSettings) -> QueryWords:
    """Read a query.

    Parameters
    ----------
    query : str
        May be empty, or as long as a document.
    settings : LexicalSettings
        Of the index.

    Returns
    -------
    QueryWords

    Raises
    ------
    InputError
        If it is no string.

    Examples
    --------
    >>> found = query_words("The trains of the train", LexicalSettings(("of", "the"), ("en",)))
    >>> found.written, found.stop_words
    ({'train': {'train': 1, 'trains': 1}}, ('of', 'the'))
    """
    if not isinstance(query, str):
        raise InputError(f"a query must be a string, got a {type(query).__name__}")
    forms = WordForms(settings)
    written: dict[str, dict[str, int]] = {}
    left_out = []
    for word, times in sorted(Counter(words_of(query)).items()):
        form = forms.of(word)
        if form is None:
            left_out.append(word)
        else:
            written.setdefault(form, {})[word] = times
    return QueryWords(dict(sorted(written.items())), tuple(left_out))
