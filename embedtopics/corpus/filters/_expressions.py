"""Filters on metadata: an expression, checked against the columns, then SQL; never executed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from embedtopics.corpus._columns import list_names
from embedtopics.corpus._texts import compose
from embedtopics.corpus.filters._values import compared_form
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree, UnexpectedToken

ORDERED = ("<", "<=", ">", ">=")
TEXTUAL = ("contains", "startswith", "endswith")


@dataclass(frozen=True)
class Period:
    """The time that a date names, up to before `stop` (None after the year 9999)."""

    start: datetime
    stop: datetime | None


Value: TypeAlias = str | int | float | bool | Period

Sql: TypeAlias = tuple[str, list[str | int | float]]
"""A condition of SQLite, true or false for every row and never NULL, and its parameters."""


@dataclass(frozen=True)
class Filter:
    """A filter whose columns and types were checked, as the caller wrote it and in SQL."""

    text: str
    sql: Sql


_NAMES = {
    "text": "texts", "integer": "integers", "real": "numbers", "boolean": "true or false",
    "date": "dates", "list": "lists of texts",
}  # fmt: skip
_HINTS = {
    "text": "put the text in quotes",
    "list": "put the text that a list should hold in quotes",
    "integer": "write a number without quotes",
    "real": "write a number without quotes",
    "boolean": "write true or false without quotes",
    "date": "write it as '2020-01-31' or '2020-01', in quotes, or a year as 2020",
}


class InvalidCondition(Exception):
    """A value or name that does not fit; the caller, who knows its position, raises InputError."""


def find_column(name: object, columns: Mapping[str, str]) -> str:
    """Return the name of a column as `columns` spell it, or refuse it and suggest similar ones."""
    if not isinstance(name, str):
        raise InvalidCondition(f"names of columns are texts, not {name!r:.80}")
    if name in columns:
        return name
    by_spelling = {compared_form(column): column for column in columns}
    if compared_form(name) in by_spelling:
        return by_spelling[compared_form(name)]

    by_lower = {str(column).casefold(): column for column in columns}
    close = [by_lower[match] for match in difflib.get_close_matches(name.casefold(), by_lower, n=3)]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else ""
    hint = hint or f"the columns are {list_names(list(columns))}"
    raise InvalidCondition(f"there is no column {name!r}; {hint}")


def _check_operator(column: str, kind: str, operator: str) -> None:
    """Refuse an operator that does not apply to the values of a column."""
    if operator in TEXTUAL and kind not in ("text", "list", "missing"):
        raise InvalidCondition(
            f"{operator} searches texts; column {column!r} holds {_NAMES[kind]}; compare it with "
            "==, < or >"
        )
    if operator in ORDERED and kind in ("boolean", "list"):
        raise InvalidCondition(
            f"column {column!r} holds {_NAMES[kind]}, which have no order; compare it with =="
        )


def typed_value(column: str, kind: str, value: Value, hints: Mapping[str, str] = _HINTS) -> Value:
    """Return a value of a filter in the type of its column."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "date":
        if isinstance(value, str):
            return read_period(value)
        if isinstance(value, int | float) and is_number and 1000 <= value <= 9999:
            return read_period(f"{value:g}")
    elif kind == "missing" or (kind == "boolean" and isinstance(value, bool)):
        return value
    elif kind in ("text", "list") and isinstance(value, str):
        return compared_form(value)
    elif kind in ("integer", "real") and isinstance(value, int | float) and is_number:
        # 2.0 and 2 are one value.
        is_exact = isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53
        return int(value) if is_exact else value

    raise InvalidCondition(
        f"column {column!r} holds {_NAMES[kind]}; got {value!r:.80}; {hints[kind]}"
    )


_DATE = re.compile(
    r"\d{4}(-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?)?)?)?",
    re.ASCII,
)


def read_period(value: str) -> Period:
    """Read a date as the stretch of time that it names, by the clock of its zone."""
    match = _DATE.fullmatch(value.strip())
    if not match:
        raise InvalidCondition(
            "expected a date such as '2020-01-31', '2020-01', '2020' or '2020-01-31T12:00'; got "
            f"{value[:40]!r}; write it as YYYY-MM-DD"
        )

    zone = match["zone"] or ""
    try:
        moment = np.datetime64(match[0].removesuffix(zone).replace(" ", "T"))
        # In units of the last part; after the year 9999, the end is no datetime.
        start = moment.astype("datetime64[us]").item()
        stop = (moment + 1).astype("datetime64[us]").item()
        datetime.fromisoformat(f"2000-01-01T00:00{zone}")  # refuses an offset of a day
        end = stop if isinstance(stop, datetime) else None
        return Period(start, end)
    except (ValueError, OverflowError, TypeError):
        raise InvalidCondition(f"the date {value!r} does not exist; correct it") from None


KEYWORDS = frozenset(
    "and or not in is null none between contains startswith endswith true false".split()
)
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
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_REMEDIES = {
    ";": "give one expression",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != for unequal",
    **dict.fromkeys("+-*/%^@", "filters do not compute; put names with signs in double quotes"),
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u00ab\u00bb", "use straight quotes: ' or \""),
    **dict.fromkeys("'\"", "the quote is never closed, or a backslash is not written \\\\"),
    **dict.fromkeys("0123456789", "write numbers as 12, -0.5 or 1e6, and put dates in quotes"),
}  # fmt: skip
_REMEDY = "put texts in quotes, and unusual names of columns in double quotes"
_EXPECTED = (
    ("TRUE", "NAME", "expected a value; put texts in quotes, as in '{}'"),
    ("TRUE", "_NULL", "nothing is equal to null; write is null, or is not null"),
    ("TRUE", "", "expected a value: a number, a text or date in quotes, true or false"),
    ("LSQB", "", "expected a list after in, such as (1, 2) or ('a', 'b'), or a column of lists"),
    ("NAME", "", "expected the name of a column, as in year >= 2020 or year between 2000 and 2010"),
    ("COMPARISON", "", "expected a comparison after the column: ==, !=, <, <=, >, >=, in, between, "
                       "contains, startswith, endswith or is null"),
    ("COMMA", "", "expected a comma, or the end of the list"),
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


def parse_filter(
    text: str,
    columns: Mapping[str, str],
    column_sql: Callable[[str], str] = str,
    parameter: str = "where",
) -> Filter:
    """Parse a filter by the grammar above, given the kind and the name in SQL of each column.

    `parameter` is the argument that holds the filter, for errors.
    """
    from lark import UnexpectedCharacters, UnexpectedToken

    if len(text) > MOST_CHARACTERS:
        expected = f"a filter of at most {MOST_CHARACTERS:,} characters"
        raise InputError(parameter, expected, found=f"{len(text):,}")
    text = compose(text)  # a mark of its own ends a name
    try:
        parsed = _parser().parse(text)
    except UnexpectedToken as error:
        at = len(text) if error.token.type == "$END" else int(error.token.start_pos or 0)
        written = "" if error.token.type == "$END" else str(error.token)
        before = text[:at].rstrip()
        named = [name for name in columns if before.endswith((name, f'"{name}"'))]
        last = max(named, key=len, default="")
        message = _expected(error, columns, last)
        raise _fault(parameter, text, at, at + len(written), message) from None
    except UnexpectedCharacters as error:
        at = int(error.pos_in_stream or 0)
        message = f"this character is not allowed here; {_REMEDIES.get(text[at], _REMEDY)}"
        raise _fault(parameter, text, at, at + 1, message) from None

    reader = _FilterReader(text, columns, column_sql, parameter)
    return Filter(text.strip(), reader.read(parsed, 0))


class _FilterReader:
    """Converts the tree of lark to SQL."""

    def __init__(
        self,
        text: str,
        columns: Mapping[str, str],
        column_sql: Callable[[str], str],
        parameter: str,
    ) -> None:
        self.text = text
        self.columns = columns
        self.column_sql = column_sql
        self.parameter = parameter

    def read(self, tree: Tree[Token], level: int) -> Sql:
        """Read one rule of the grammar."""
        if level > MOST_LEVELS:
            at = tree.meta.start_pos
            message = f"use at most {MOST_LEVELS} levels of parentheses and not"
            raise _fault(self.parameter, self.text, at, at + 1, message)

        rule: str = tree.data
        parts: list[Any] = [part for part in tree.children if part is not None]
        if rule in ("disjunction", "conjunction"):
            return join_conditions([self.read(part, level) for part in parts], _WORDS[rule])
        if rule == "group":
            return self.read(parts[0], level + 1)
        if rule == "negation":
            return _negated(self.read(parts[1], level + 1))

        column, *rest = parts
        negated = any(getattr(part, "type", "") == "NOT" for part in rest)
        rest = [part for part in rest if getattr(part, "type", "") != "NOT"]

        if rule == "comparison":
            operator = str(rest[0])
            negated = operator in ("!=", "<>")
            sql = self.condition(column, operator if operator in ORDERED else "==", rest[1:])
        elif rule == "membership":
            sql = self.condition(column, "in", [v for v in rest[0].children if v is not None])
        elif rule == "element":
            sql = self.condition(rest[0], "element", [column])
        elif rule == "search":
            sql = self.condition(column, str(rest[0]).lower(), rest[1:])
        elif rule == "between":
            low, high = rest
            ends = [self.condition(column, ">=", [low]), self.condition(column, "<=", [high])]
            sql = join_conditions(ends, "AND")
        else:
            sql = self.condition(column, "is null", [])

        return _negated(sql) if negated else sql

    def condition(self, column: Token, operator: str, values: list[Token]) -> Sql:
        """Return a condition, or refuse it with its position."""
        at = column
        name = str(self.value(column))
        typed_values: list[Value] = []

        try:
            name = find_column(name, self.columns)
            kind = self.columns[name]
            if operator == "element":
                if kind not in ("list", "missing"):
                    raise InvalidCondition(
                        f"column {name!r} holds no lists; write {name} contains 'a'"
                    )
                if values[0].type != "QUOTED":
                    at = values[0]
                    raise InvalidCondition(f"put texts in quotes, as in '{at}'")
                operator = "=="

            _check_operator(name, kind, operator)
            for at in values:
                typed_values.append(typed_value(name, kind, self.value(at)))
            return condition_of(self.column_sql(name), kind, operator, typed_values)
        except InvalidCondition as error:
            start = int(at.start_pos or 0)
            stop = start + len(at)
            raise _fault(self.parameter, self.text, start, stop, str(error)) from None

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


def _fault(parameter: str, text: str, start: int, stop: int, message: str) -> InputError:
    part = text[start:stop] if stop - start <= 40 else f"{text[start : start + 40]}..."
    before = ("..." if start > 30 else "") + text[max(0, start - 30) : start]
    after = text[stop : stop + 20] + ("..." if len(text) > stop + 20 else "")
    # One line without characters that control a terminal.
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in f"{before}>>>{part}<<<{after}")
    return InputError(parameter, "a filter that can be read", found=shown,
                      remedy=f"at character {start + 1}: {message}")  # fmt: skip


def _expected(error: UnexpectedToken, columns: Mapping[str, str], last: str) -> str:
    """Return a message; `last` is the column before the fault, if there is one."""
    kind, written, accepts = error.token.type, str(error.token), error.accepts or set()
    if "TRUE" not in accepts and "NAME" in accepts and written in columns:
        return f'{written} is a keyword of filters; write the column as "{written}"'
    if "COMPARISON" in accepts and kind != "LPAR" and columns.get(last) == "boolean":
        return f"column {last!r} holds true or false; write {last} == true"
    for accepted, token, message in _EXPECTED:
        if accepted in accepts and token in ("", kind):
            return message.format(written)
    return "expected and, or, or the end of the filter"


_WORDS = {"disjunction": "OR", "conjunction": "AND"}


def _negated(sql: Sql) -> Sql:
    return f"NOT {sql[0]}", sql[1]


def join_conditions(parts: Sequence[Sql], word: str) -> Sql:
    """Join as a balanced tree: SQLite refuses expressions that are deeper than 1,000."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    first, first_parameters = join_conditions(parts[:half], word)
    second, second_parameters = join_conditions(parts[half:], word)
    return f"({first} {word} {second})", [*first_parameters, *second_parameters]


def condition_of(column: str, kind: str, operator: str, values: Sequence[Value]) -> Sql:
    """Return a condition on a column, whose name in SQL is given."""
    if operator == "is null":
        return f"({column} IS NULL)", []

    periods = [value for value in values if isinstance(value, Period)]
    if periods:
        conditions = [_date(column, operator, value) for value in periods]
        text, parameters = join_conditions(conditions, "OR")
    else:
        plain = [value for value in values if not isinstance(value, Period)]
        if kind == "list":
            # A list passes where one of its texts does.
            text, parameters = _compared("json_each.value", operator, plain)
            text = f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {text})"
        else:
            text, parameters = _compared(column, operator, plain)

    return f"({column} IS NOT NULL AND {text})", parameters


def _compared(column: str, operator: str, values: Sequence[str | int | float]) -> Sql:
    values = [int(value) if isinstance(value, bool) else value for value in values]
    if operator == "in":
        return f"{column} IN ({', '.join('?' * len(values))})", values
    text = str(values[0])
    # Not LIKE, whose wildcards and case would have to be taken out of the text.
    if operator == "contains":
        return f"instr({column}, ?) > 0", [text]
    if operator == "startswith":
        return f"substr({column}, 1, ?) = ?", [len(text), text]
    if operator == "endswith":
        # As bytes, because substr takes a NUL for the end of a text. Every text ends with the
        # empty text. For an empty value of the column, substr returns NULL, hence the first test.
        end = f"{column} != '' AND substr(CAST({column} AS BLOB), -?) = CAST(? AS BLOB)"
        return (end, [len(text.encode()), text]) if text else ("1", [])
    return f"{column} {'=' if operator == '==' else operator} ?", values[:1]


def _date(column: str, operator: str, value: Period) -> Sql:
    start = _bound(value.start)
    stop = None if value.stop is None else _bound(value.stop)
    if operator in ("<", ">="):
        return f"{column} {operator} ?", [start]
    if operator == "<=":
        return (f"{column} < ?", [stop]) if stop else ("1", [])
    if operator == ">":
        return (f"{column} >= ?", [stop]) if stop else ("0", [])
    within: Sql = (f"{column} >= ?", [start])
    return join_conditions([within, (f"{column} < ?", [stop])], "AND") if stop else within


def _bound(moment: datetime) -> str:
    """Return the shortest text before all texts of this moment and of later ones."""
    text = moment.isoformat()
    return text.rstrip("0") if "." in text else text.removesuffix("T00:00:00")
