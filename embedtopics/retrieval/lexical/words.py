"""From words as they are written to words of the index, for passages and queries alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from embedtopics.errors import InputError
from embedtopics.retrieval.lexical.settings import LexicalSettings
from embedtopics.terms.one_text import words_of
from embedtopics.terms.stems import stems_of

__all__ = ["QueryWords", "WordForms", "query_words", "stop_form"]

_STOP = "\x1f"
"""In front of a stop word in the index; no word of the tokeniser has it."""


def stop_form(word: str) -> str:
    """Return the form under which the index knows a stop word: never that of another word."""
    return _STOP + word


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
    stop_words : mapping of str to int
        Stop words of the query that are not among these, in alphabetical order, and how often each
        occurs.
    """

    written: Mapping[str, Mapping[str, int]]
    stop_words: Mapping[str, int]

    def weight(self, form: str) -> int:
        """Return how often the query has a form; BM25 counts it so often."""
        return sum(self.written[form].values())

    def asking(self, stop_words: Iterable[str]) -> QueryWords:
        """Return the same query with some of its stop words looked for."""
        chosen = set(stop_words)
        more = {stop_form(w): {w: n} for w, n in self.stop_words.items() if w in chosen}
        rest = {word: n for word, n in self.stop_words.items() if word not in chosen}
        return QueryWords(dict(sorted({**self.written, **more}.items())), rest)


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
    ({'train': {'train': 1, 'trains': 1}}, {'of': 1, 'the': 2})
    """
    if not isinstance(query, str):
        raise InputError(f"a query must be a string, got a {type(query).__name__}")
    forms = WordForms(settings)
    written: dict[str, dict[str, int]] = {}
    left_out: dict[str, int] = {}
    for word, times in sorted(Counter(words_of(query)).items()):
        form = forms.of(word)
        if form is None:
            left_out[word] = times
        else:
            written.setdefault(form, {})[word] = times
    return QueryWords(dict(sorted(written.items())), left_out)
