"""Parsing of filters, which are never executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.retrieval.filters._conditions import (
    ORDERED,
    And,
    Condition,
    Filter,
    InvalidCondition,
    Node,
    Not,
    Or,
    Value,
    kind_of_column,
    make_condition,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree, UnexpectedToken

MOST_CHARACTERS = 10_000
MOST_LEVELS = 12
"""Maximum levels of parentheses and not; 13 may overflow the parser of SQLite."""

_GRAMMAR = r"""
?start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: part (_AND part)*
?part: NOT part                                           -> negation
    | "(" disjunction ")"                                 -> group
    | column COMPARISON value                             -> comparison
    | column [NOT] _IN ("(" values ")" | "[" values "]")  -> membership
    | column [NOT] _IN column                             -> element
    | column [NOT] SEARCH value                           -> search
    | column [NOT] _BETWEEN value _AND value              -> between
    | column _IS [NOT] _NULL                              -> absence
values: value ("," value)* [","]
?column: NAME | QUOTED
?value: NUMBER | QUOTED | TRUE | FALSE

COMPARISON: "==" | "=" | "!=" | "<>" | "<=" | "<" | ">=" | ">"
_AND.2: /and\b/i
_OR.2: /or\b/i
NOT.2: /not\b/i
_IN.2: /in\b/i
_IS.2: /is\b/i
_NULL.2: /(null|none)\b/i
_BETWEEN.2: /between\b/i
SEARCH.2: /(contains|startswith|endswith)\b/i
TRUE.2: /true\b/i
FALSE.2: /false\b/i
NAME: /[^\W\d]\w*/
NUMBER: /-?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?(?![\w.+-])/i
QUOTED: /'([^'\\\0\ud800-\udfff]|''|\\[\\'"nrt])*'|"([^"\\\0\ud800-\udfff]|""|\\[\\'"nrt])*"/
%import common.WS
%ignore WS
"""
_QUOTED_SO_FAR = {
    quote: re.compile(rf"{quote}([^{quote}\\\0\ud800-\udfff]|{quote * 2}|\\[\\'\"nrt])*")
    for quote in "'\""
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_REMEDIES = {
    ";": "give one expression",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != for unequal",
    **dict.fromkeys("+-*/%^@", "filters do not compute; put names with signs in double quotes"),
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u00ab\u00bb", "use straight quotes: ' or \""),
    **dict.fromkeys("0123456789", "write numbers as 12, -0.5 or 1e6, and put dates in quotes; "
                                  "filters do not compute"),
}  # fmt: skip
_REMEDY = "put texts in quotes, and unusual names of columns in double quotes"
_EXPECTED = (
    ("TRUE", "NAME", "expected a value; put texts in quotes, as in '{}'; columns are not compared "
                     "with one another"),
    ("TRUE", "_NULL", "nothing is equal to null; write is null, or is not null"),
    ("TRUE", "", "expected a value: a number, a text or date in quotes, true or false"),
    ("LSQB", "", "expected a list after in, such as (1, 2) or ('a', 'b'), or a column of lists"),
    ("NAME", "", "expected the name of a column, as in year >= 2020 or year between 2000 and 2010"),
    ("COMPARISON", "LPAR", "filters call no functions; compare a column with a value"),
    ("COMPARISON", "", "expected a comparison after the column: ==, !=, <, <=, >, >=, in, between, "
                       "contains, startswith, endswith or is null; of a boolean write ok == true"),
    ("COMMA", "", "expected a comma, or the end of the list"),
    ("_OR", "COMPARISON", "comparisons are not chained; join two with and, or write between"),
    ("$END", "RPAR", "this closes what was never opened; leave it out"),
    ("_NULL", "", "expected null after is; compare values with =="),
    ("RPAR", "", "expected and, or; a parenthesis is not closed"),
    ("_OR", "", "expected and, or, or the end of the filter"),
    ("_AND", "", "expected and: between has two ends, such as year between 2000 and 2010"),
)  # fmt: skip
"""A token that the parser accepts, the token that it got, and the message."""


@cache
def _parser() -> Lark:
    """Build the parser, at the first filter."""
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", lexer="basic", propagate_positions=True)


def parse_filter(text: str, columns: Mapping[str, str]) -> Filter:
    """Parse a filter by the grammar above, given the kind of each column of the metadata."""
    from lark import UnexpectedCharacters, UnexpectedToken

    if len(text) > MOST_CHARACTERS:
        expected = f"a filter of at most {MOST_CHARACTERS:,} characters"
        raise InputError("where", expected, found=f"{len(text):,}")
    try:
        parsed = _parser().parse(text)
    except UnexpectedToken as error:
        at = len(text) if error.token.type == "$END" else int(error.token.start_pos or 0)
        written = "" if error.token.type == "$END" else str(error.token)
        raise _fault(text, at, at + len(written), _expected(error, columns)) from None
    except UnexpectedCharacters as error:
        raise _unreadable(text, int(error.pos_in_stream or 0)) from None
    return Filter(text.strip(), _FilterReader(text, columns).read(parsed, 0))


class _FilterReader:
    """Converts the tree of lark to conditions."""

    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self.text = text
        self.columns = columns

    def read(self, tree: Tree[Token], level: int) -> Node:
        """Read one rule of the grammar."""
        if level > MOST_LEVELS:
            at = tree.meta.start_pos
            message = f"use at most {MOST_LEVELS} levels of parentheses and not"
            raise _fault(self.text, at, at + 1, message)
        rule: str = tree.data
        parts: list[Any] = [part for part in tree.children if part is not None]
        if rule in ("disjunction", "conjunction"):
            nodes = tuple(self.read(part, level) for part in parts)
            return Or(nodes) if rule == "disjunction" else And(nodes)
        if rule == "group":
            return self.read(parts[0], level + 1)
        if rule == "negation":
            return Not(self.read(parts[1], level + 1))
        column, *rest = parts
        negated = any(getattr(part, "type", "") == "NOT" for part in rest)
        rest = [part for part in rest if getattr(part, "type", "") != "NOT"]
        node: Node
        if rule == "comparison":
            operator = str(rest[0])
            negated = operator in ("!=", "<>")
            node = self.condition(column, operator if operator in ORDERED else "==", rest[1:])
        elif rule == "membership":
            node = self.condition(column, "in", [v for v in rest[0].children if v is not None])
        elif rule == "element":
            node = self.condition(rest[0], "element", [column])
        elif rule == "search":
            node = self.condition(column, str(rest[0]).lower(), rest[1:])
        elif rule == "between":
            ends = zip((">=", "<="), rest, strict=True)
            node = And(tuple(self.condition(column, sign, [end]) for sign, end in ends))
        else:
            node = self.condition(column, "is null", [])
        return Not(node) if negated else node

    def condition(self, column: Token, operator: str, values: list[Token]) -> Condition:
        """Return a condition, or refuse it with its position."""
        at = column
        name = str(self.value(column))
        typed_values: list[Value] = []
        try:
            kind = kind_of_column(name, self.columns)
            if operator == "element":
                if kind not in ("list", "missing"):
                    raise InvalidCondition(
                        f"column {name!r} holds no lists; write {name} contains 'a'"
                    )
                if values[0].type != "QUOTED":
                    at = values[0]
                    raise InvalidCondition(f"put texts in quotes, as in '{at}'")
                operator = "=="
            for at in values:
                one = make_condition(name, kind, operator, (self.value(at),))
                typed_values.extend(one.values)
                kind = one.kind  # the kind of a column without values is that of its first value
            return make_condition(name, kind, operator, tuple(typed_values))
        except InvalidCondition as error:
            start = int(at.start_pos or 0)
            raise _fault(self.text, start, start + len(at), str(error)) from None

    def value(self, token: Token) -> str | int | float | bool:
        """Return the value of a token, without quotes."""
        if token.type == "QUOTED":
            pattern = rf"\\(.)|({token[0]}){token[0]}"
            return re.sub(
                pattern, lambda m: _ESCAPES.get(m[1], m[1]) if m[1] else m[2], token[1:-1]
            )
        if token.type == "NUMBER":
            is_whole = token.lstrip("-").isdigit()
            value = int(token) if is_whole and len(token.lstrip("-0")) <= 19 else float(token)
            if abs(value) == float("inf"):
                raise InvalidCondition("a number must be below 1.8e308")
            if is_whole and not -(1 << 63) <= value < 1 << 63:
                raise InvalidCondition("an integer must fit into 64 bits; write 1e30 or so")
            return value
        return str(token) if token.type == "NAME" else token.lower() == "true"


def _fault(text: str, start: int, stop: int, message: str) -> InputError:
    part = text[start:stop] if stop - start <= 40 else f"{text[start : start + 40]}..."
    before = ("..." if start > 30 else "") + text[max(0, start - 30) : start]
    after = text[stop : stop + 20] + ("..." if len(text) > stop + 20 else "")
    # One line without characters that control a terminal.
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in f"{before}>>>{part}<<<{after}")
    return InputError("where", "a filter that can be read", found=shown,
                      remedy=f"at character {start + 1}: {message}")  # fmt: skip


def _expected(error: UnexpectedToken, columns: Mapping[str, str]) -> str:
    kind, written, accepts = error.token.type, str(error.token), error.accepts or set()
    if "TRUE" not in accepts and "NAME" in accepts and written in columns:
        return f'{written} is a keyword of filters; write the column as "{written}"'
    for accepted, token, message in _EXPECTED:
        if accepted in accepts and token in ("", kind):
            return message.format(written)
    return "expected and, or, or the end of the filter"


def _unreadable(text: str, at: int) -> InputError:
    if text[at] not in _QUOTED_SO_FAR:
        remedy = _REMEDIES.get(text[at], _REMEDY)
        return _fault(text, at, at + 1, f"this character is not allowed here; {remedy}")
    match = _QUOTED_SO_FAR[text[at]].match(text, at)
    end = match.end() if match else at
    if end == len(text):
        message = f"this quote is never closed; add {text[at]}, and write a quote inside twice"
        return _fault(text, at, end, message)
    message = "a text cannot hold NUL or a lone surrogate, and a backslash is written \\\\"
    return _fault(text, end, end + 1, message)
