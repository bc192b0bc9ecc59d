"""From an expression, or a mapping, to a tree of conditions whose columns and types are checked.

The grammar, in which keywords may be written in any case::

    filter     = every { "or" every }
    every      = part { "and" part }
    part       = "not" part | "(" filter ")" | condition
    condition  = column ( comparison | membership | search | range | absence )
    comparison = ( "==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) value
    membership = [ "not" ] "in" ( "(" values ")" | "[" values "]" )
    search     = [ "not" ] ( "contains" | "startswith" | "endswith" ) text
    range      = [ "not" ] "between" value "and" value          both ends belong to it
    absence    = "is" [ "not" ] "null"
    column     = name | name in quotes
    value      = number | text in quotes | date in quotes | "true" | "false"

A filter is read, never run: it cannot call, compute or reach anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from embedtopics.retrieval.filters.checking import Unfit, checked_condition, found_column
from embedtopics.retrieval.filters.tokens import Token, fault, tokenize
from embedtopics.retrieval.filters.tree import (
    ORDERED,
    TEXTUAL,
    Condition,
    Every,
    Node,
    Not,
    Some,
    Value,
)

__all__ = ["DEEPEST", "parse_expression"]

DEEPEST = 100
"""Parentheses and negations within one another."""

_SAME = {"=": "==", "==": "=="}
_OTHER = {"!=": "==", "<>": "=="}
_COMPARISONS = {*_SAME, *_OTHER, *ORDERED}


def parse_expression(text: str, columns: Mapping[str, str]) -> Node:
    """Parse a filter; see the grammar above.

    Raises
    ------
    InputError
        Naming the place.
    """
    parser = _Parser(text, columns)
    tree = parser.some(0)
    parser.finish()
    return tree


class _Parser:
    """Recursive descent; each method reads one rule of the grammar from the current token on."""

    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self.text = text
        self.columns = columns
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def is_next(self, *values: str) -> bool:
        return self.token.kind in ("keyword", "symbol") and self.token.value in values

    def take(self, *values: str) -> bool:
        found = self.is_next(*values)
        self.at += found
        return found

    def refuse(
        self, message: str, start: Token | None = None, stop: Token | None = None
    ) -> NoReturn:
        first = start or self.token
        raise fault(self.text, first.start, (stop or first).stop, message)

    def finish(self) -> None:
        token, before = self.token, self.tokens[self.at - 1]
        if token.kind == "end":
            return
        if self.is_next(*_COMPARISONS):
            self.refuse(
                "comparisons are not chained; join two with and, or write between: "
                "year between 2000 and 2010"
            )
        if self.is_next(")", "]"):
            self.refuse("this closes what was never opened; leave it out")
        if token.kind == "number" and str(token.value).startswith("-") and before.kind == "number":
            self.refuse("filters do not compute; write the result")
        self.refuse("expected and, or, or the end of the filter")

    def some(self, depth: int) -> Node:
        parts = [self.every(depth)]
        while self.take("or"):
            parts.append(self.every(depth))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def every(self, depth: int) -> Node:
        parts = [self.part(depth)]
        while self.take("and"):
            parts.append(self.part(depth))
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def part(self, depth: int) -> Node:
        if depth > DEEPEST:
            self.refuse(f"a filter has at most {DEEPEST} levels of parentheses and not; flatten it")
        if self.take("not"):
            return Not(self.part(depth + 1))
        if not self.is_next("("):
            return self.condition()
        opened = self.token
        self.at += 1
        inside = self.some(depth + 1)
        if not self.take(")"):
            if self.token.kind == "end":
                self.refuse("this parenthesis is never closed; add )", opened)
            self.finish()
        return inside

    def condition(self) -> Node:
        place = self.token
        kind = self.column()
        name = str(place.value)
        operator = self.token
        if operator.kind == "symbol" and operator.value in _COMPARISONS:
            self.at += 1
            value = self.value(name)
            written = str(operator.value)
            if written in _OTHER:
                return Not(self.checked(name, kind, "==", [value]))
            return self.checked(name, kind, _SAME.get(written, written), [value])
        if self.take("is"):
            negated = self.take("not")
            if not self.take("null", "none"):
                self.refuse("expected null behind is; compare values with ==")
            absent = self.checked(name, kind, "is null", [])
            return Not(absent) if negated else absent
        negated = self.take("not")
        found = self.worded(name, kind)
        return Not(found) if negated else found

    def worded(self, name: str, kind: str) -> Node:
        """Read what follows a column, and is neither a comparison nor ``is``."""
        word = self.token
        if self.take("in"):
            return self.checked(name, kind, "in", self.listed(name))
        if self.take(*TEXTUAL):
            return self.checked(name, kind, str(word.value), [self.value(name)])
        if self.take("between"):
            least = self.value(name)
            if not self.take("and"):
                self.refuse(
                    "expected and: between has two ends, such as year between 2000 and 2010"
                )
            most = self.value(name)
            return Every(
                (self.checked(name, kind, ">=", [least]), self.checked(name, kind, "<=", [most]))
            )
        if self.is_next("("):
            self.refuse("filters call no functions; compare a column with a value")
        hint = f"; write {name} == true" if kind == "boolean" else ""
        self.refuse(
            "expected a comparison behind the column: ==, !=, <, <=, >, >=, in, between, contains, "
            f"startswith, endswith or is null{hint}"
        )

    def column(self) -> str:
        token = self.token
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        if token.kind == "end":
            self.refuse(
                "expected a condition such as year >= 2020"
                + ("" if self.at else "; the filter is empty, leave it out")
            )
        if token.kind == "keyword" and self.text[token.start : token.stop] in self.columns:
            written = self.text[token.start : token.stop]
            self.refuse(f'{written} is a word of filters, too; write the column as "{written}"')
        if token.kind == "number" or self.is_next("true", "false", "null", "none"):
            self.refuse(
                "expected the name of a column first, such as year >= 2020 (or year between 2000 "
                "and 2010)"
            )
        if token.kind not in ("name", "quoted"):
            self.refuse(
                "expected the name of a column, not or a parenthesis; put a name that is a word "
                "of filters in double quotes"
            )
        self.at += 1
        if token.kind == "name" and following.kind == "symbol" and following.value == "(":
            self.refuse("filters call no functions; compare a column with a value", token)
        try:
            return found_column(str(token.value), self.columns)
        except Unfit as error:
            self.refuse(str(error), token)

    def value(self, column: str) -> tuple[Value, Token]:
        token = self.token
        if token.kind in ("number", "quoted"):
            self.at += 1
            return token.value, token
        if self.take("true", "false"):
            return token.value == "true", token
        if self.is_next("null", "none"):
            self.refuse(f"nothing is equal to null; write {column} is null, or is not null")
        if token.kind == "name":
            self.refuse(
                f"expected a value; put texts in quotes, as in '{token.value}'; columns are not "
                "compared with one another"
            )
        self.refuse("expected a value: a number, a text or date in quotes, true or false")

    def listed(self, column: str) -> list[tuple[Value, Token]]:
        opened = self.token
        if not self.take("(", "["):
            self.refuse("expected a list behind in, such as (1, 2) or ('a', 'b')")
        closing = ")" if opened.value == "(" else "]"
        if self.is_next(closing):
            self.refuse("expected at least one value in the list", opened, self.token)
        values = [self.value(column)]
        while self.take(","):
            if self.is_next(closing):
                break
            values.append(self.value(column))
        if not self.take(closing):
            self.refuse(f"expected a comma or {closing} in the list")
        return values

    def checked(
        self, name: str, kind: str, operator: str, values: list[tuple[Value, Token]]
    ) -> Condition:
        made: list[Value] = []
        for value, token in values:
            try:
                one = checked_condition(name, kind, operator, (value,))
                made.extend(one.values)
                kind = one.kind  # what a column without any value is compared as
            except Unfit as error:
                self.refuse(str(error), token)
        return checked_condition(name, kind, operator, tuple(made))
