"""Queries: their phrases and exclusions, and the signs in them that have no effect.

Quotation marks are those of any language, as keyboards, phones and word processors write them, and
the hyphen of an exclusion may be a short dash or a minus. Operators of other search engines, such
as ``NOT`` or ``*``, are no syntax here. They are reported, so that nobody takes them for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from embedtopics.errors import InputError
from embedtopics.terms._tokens import ADDRESS, PLAIN, words_of
from embedtopics.terms.results import WordRules


class ParsedQuery(NamedTuple):
    """A query without its quotes and exclusions, and the words of each phrase and exclusion."""

    text: str
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()
    ignored: tuple[str, ...] = ()
    """Signs without effect that other search engines would obey, as the query has them."""


# Which mark opens and which closes depends on the language: all become straight ones. Brackets
# of Chinese and Japanese stand without spaces.
_QUOTES = str.maketrans({
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\uff02\u2e42", '"'),
    **dict.fromkeys("\u275d\u275e\u301d\u301e\u301f", '"'),
    **dict.fromkeys("\u300c\u300e\ufe41\ufe43\uff62", ' "'),
    **dict.fromkeys("\u300d\u300f\ufe42\ufe44\uff63", '" '),
})  # fmt: skip

# A long dash before a word opens a remark in many languages, and a hyphen before a number is a
# minus.
_HYPHENS = "\\-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_DASHES = f"{_HYPHENS}\u2014\u2015"
_SYNTAX = re.compile(
    rf'(?<![\w"{_HYPHENS}])([{_HYPHENS}]?)"([^"]+)"(?!\w)'
    rf'|(?<!\S)[{_HYPHENS}](?=[^\W\d_])([^\s"]+)'
)

# Each part matches within a word, or within a bounded number of characters.
_IGNORED = re.compile(
    r'"|(?<!\S)(?:AND|OR|NOT|NEAR)(?!\S)|&&|\|\|?|(?<!\S)[!+](?=[^\W\d_])'
    r"|(?<=\w)[*?](?=\w)|(?<=\w)\*(?!\S)|(?<!\S)\*(?=\w)|(?<=\w)[~^]\d*(?!\S)"
    r"|(?<!\S)[^\W\d]\w{0,40}:(?=\w)"
    rf"|(?<!\S)[{_DASHES}]+(?=[^\W\d_])|(?<!\S)[{_DASHES}](?!\S)"
    r"|(?<!\w)['\u2018\u201a](?=\w[^'\u2018\u2019]{1,200}['\u2018\u2019](?!\w))"
)


def checked_queries(queries: Any) -> tuple[str, ...]:
    """Return the texts of one query or several."""
    if isinstance(queries, str):
        return (str(queries),)
    has_order = isinstance(queries, Iterable) and not isinstance(queries, bytes | Mapping | Set)
    if not has_order or getattr(queries, "ndim", 1) != 1:
        raise InputError("queries", "a text or a list of texts", queries)
    texts = tuple(queries)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError("queries", "a text or a list of texts", text, row=row)
    return texts


def parse_query(query: str, rules: WordRules = PLAIN) -> ParsedQuery:
    """Read "phrases in quotes" and -exclusions; the rest is the text of the query."""
    phrases: list[tuple[str, ...]] = []
    excluded: list[tuple[str, ...]] = []
    empty: list[str] = []

    def read(match: re.Match[str]) -> str:
        sign, phrase, word = match.groups()
        is_excluded = phrase is None or sign != ""
        words = tuple(words_of(phrase or word, rules))
        if not words:
            empty.append('"')
        elif is_excluded:
            excluded.append(words)
        else:
            phrases.append(words)
        return " " if is_excluded else phrase

    query = query.translate(_QUOTES)
    text = _SYNTAX.sub(read, query)
    rest = ADDRESS.sub(" ", _SYNTAX.sub(" ", query))
    ignored = tuple(dict.fromkeys([*empty, *_IGNORED.findall(rest)]))
    return ParsedQuery(text, _distinct(phrases), _distinct(excluded), ignored)


def _distinct(phrases: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(phrases))


def parse_for_dense(query: str) -> ParsedQuery:
    """Return a query as an encoder reads it, with the syntax that dense search ignores."""
    parsed = parse_query(query)
    signs = []
    if parsed.phrases:
        signs.append('"')
    if parsed.excluded:
        signs.append("-")
    return ParsedQuery(query, ignored=(*signs, *parsed.ignored))
