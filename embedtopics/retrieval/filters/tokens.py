"""Cutting a filter into words, names, numbers and quoted texts, and naming what cannot be one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from embedtopics.errors import InputError

__all__ = ["KEYWORDS", "MOST_CHARACTERS", "Token", "fault", "tokenize"]

MOST_CHARACTERS = 10_000

KEYWORDS = frozenset(
    ("and", "or", "not", "in", "is", "null", "none", "true", "false", "between",
     "contains", "startswith", "endswith")
)  # fmt: skip

_SHOWN_BEFORE, _SHOWN_BEHIND, _SHOWN_FAULT = 30, 20, 40
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SYMBOL = re.compile(r"==|!=|<>|<=|>=|[=<>()\[\],]")
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
_CURVED = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u2032\u2033\u00b4"
_IN_QUOTES = "if it belongs to the name of a column, put the whole name in double quotes"
_NOT_COMPUTED = f"filters do not compute; {_IN_QUOTES}"
_REMEDIES = {
    "`": "put names of columns in double quotes",
    ";": "give one expression",
    "#": f"leave comments out; {_IN_QUOTES}",
    ".": f"filters know no attributes; {_IN_QUOTES}",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != for unequal",
    "~": "write not",
    "{": "write lists in parentheses: (1, 2)",
    ":": f"{_IN_QUOTES}, and dates and times in quotes",
    **dict.fromkeys("+-*/%^@", _NOT_COMPUTED),
    **dict.fromkeys(_CURVED, "use straight quotes: ' or \""),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "write the minus of a number as -"),
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2260": "write !=",
}


@dataclass(frozen=True)
class Token:
    """One piece of a filter.

    Parameters
    ----------
    kind : {"keyword", "name", "quoted", "number", "symbol", "end"}
    value : str, int or float
        Keywords in lower case; quoted texts without quotes and escapes.
    start, stop : int
        Where it stands.
    """

    kind: str
    value: str | int | float
    start: int
    stop: int


def fault(text: str, start: int, stop: int, message: str) -> InputError:
    """Return the error for a part of a filter, which the message shows between marks."""
    stop = max(stop, start)
    part = text[start : min(stop, start + _SHOWN_FAULT)]
    more = "..." if stop - start > _SHOWN_FAULT else ""
    before = ("..." if start > _SHOWN_BEFORE else "") + text[max(0, start - _SHOWN_BEFORE) : start]
    behind = text[stop : stop + _SHOWN_BEHIND]
    behind += "..." if len(text) > stop + _SHOWN_BEHIND else ""
    shown = _printable(f"{before}>>>{part}{more}<<<{behind}")
    return InputError(f"filter, character {start + 1}: {message}; in: {shown}")


def _printable(text: str) -> str:
    """Keep a message on one line, and its terminal from acting on what somebody wrote."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def tokenize(text: str) -> list[Token]:
    """Cut a filter into tokens.

    Parameters
    ----------
    text : str
        At most 10,000 characters.

    Returns
    -------
    list of Token
        The last is of kind "end".

    Raises
    ------
    InputError
        Where a character has no place in a filter, or a quote is not closed.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"a filter has at most {MOST_CHARACTERS:,} characters; got {len(text):,}; give long "
            'lists of values as a mapping, such as {"source": [...]}'
        )
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _next(text, at)
        if tokens and token.kind in ("name", "keyword", "number") and tokens[-1].stop == at:
            if tokens[-1].kind in ("name", "keyword", "number"):
                raise fault(text, tokens[-1].start, token.stop, _run_together(text, tokens[-1]))
        tokens.append(token)
        at = token.stop
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _run_together(text: str, first: Token) -> str:
    if first.kind == "number":
        return "expected a number in digits, such as 12, -0.5 or 1e6; put texts and dates in quotes"
    return _REMEDIES.get(text[first.stop], "expected a space between two words")


def _next(text: str, at: int) -> Token:
    if text[at] in "'\"":
        return _quoted(text, at)
    if text.startswith(("--", "/*"), at):
        raise fault(text, at, at + 2, "a filter has no comments; leave them out")
    for pattern, kind in ((_NUMBER, "number"), (_WORD, "name"), (_SYMBOL, "symbol")):
        match = pattern.match(text, at)
        if not match:
            continue
        found = match.group()
        if kind == "number":
            return _number(text, at, match.end())
        if kind == "name" and found.lower() in KEYWORDS:
            return Token("keyword", found.lower(), at, match.end())
        return Token(kind, found, at, match.end())
    remedy = _REMEDIES.get(text[at], "put texts, dates and unusual names of columns in quotes")
    raise fault(text, at, at + 1, f"this character has no place in a filter; {remedy}")


def _number(text: str, start: int, stop: int) -> Token:
    written = text[start:stop]
    value: int | float
    if written.lstrip("-").isdigit():
        digits = written.lstrip("-").lstrip("0")
        value = int(written) if len(digits) <= 19 else 1 << 70
        if not -(1 << 63) <= value < 1 << 63:
            raise fault(text, start, stop, "an integer must fit into 64 bits; write 1e30 or so")
    else:
        value = float(written)
        if value in (float("inf"), float("-inf")):
            raise fault(text, start, stop, "a number must be below 1.8e308")
    return Token("number", value, start, stop)


def _quoted(text: str, start: int) -> Token:
    """Read a quoted text; a quote inside is doubled or has a backslash before it."""
    quote = text[start]
    parts: list[str] = []
    at = start + 1
    while at < len(text):
        character = text[at]
        if character == "\\":
            escaped = text[at + 1 : at + 2]
            if escaped not in _ESCAPES:
                message = "expected \\\\, \\', \\\", \\n, \\r or \\t; write \\\\ for a backslash"
                raise fault(text, at, at + 2, message)
            parts.append(_ESCAPES[escaped])
            at += 2
        elif character == quote and text[at + 1 : at + 2] == quote:
            parts.append(quote)
            at += 2
        elif character == quote:
            return Token("quoted", "".join(parts), start, at + 1)
        elif character == "\0" or "\ud800" <= character <= "\udfff":
            raise fault(text, at, at + 1, "a text may hold neither NUL nor half a character")
        else:
            parts.append(character)
            at += 1
    remedy = f"add {quote} behind the text, and write a quote inside twice"
    if any(character in _CURVED for character in text[start:]):
        remedy = f"it is not closed by a curved one: use straight quotes on both sides, {quote}"
    raise fault(text, start, len(text), f"this quote is never closed; {remedy}")
