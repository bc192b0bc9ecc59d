"""Rows of metadata, and filters drawn together with what pandas says of them."""

import math
import operator

import pandas as pd
from hypothesis import strategies as st

COLUMNS = {
    "place": "text", "n": "integer", "share of votes": "real", "open": "boolean", "day": "date",
}  # fmt: skip
NAMES = {name: f'"{name}"' if " " in name else name for name in COLUMNS}

texts = st.text(st.sampled_from(list("aAbé'\"\\%_\n 中\U0001f600")), max_size=4)
integers = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
reals = st.one_of(st.sampled_from([0.5, -1.5, 1e300, 1e-9, 2.0]), st.integers(-2, 2).map(float))
MOMENTS = (
    "2019-12-31T23:59:59.999999", "2020-01-01T00:00:00", "2020-01-31T00:00:00", "2020-02-01",
    "2020-01-31T12:00:00", "2020-01-31T12:00:30", "2020-01-31T12:00:30.500000",
    "2020-01-31T12:00:30.5", "2020-12-31", "2020-01-31T12:00:31",
)  # fmt: skip
rows = st.lists(
    st.fixed_dictionaries(
        {
            "place": st.none() | texts,
            "n": st.none() | integers,
            "share of votes": st.none() | reals | st.just(math.nan),
            "open": st.none() | st.booleans(),
            "day": st.none() | st.sampled_from(MOMENTS),
        }
    ),
    min_size=1,
    max_size=8,
)


def quoted(text):
    quote = "'" if len(text) % 2 else '"'
    return quote + text.replace("\\", "\\\\").replace(quote, quote * 2) + quote


OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ORDERS = st.sampled_from(list(OPERATORS))


def compared(column, sign, value):
    """Compare one by one, for pandas would round integers above 2**53; of nothing all comparisons
    are false but that for being unequal."""
    return column.map(
        lambda own: sign == "!=" if pd.isna(own) else bool(OPERATORS[sign](own, value))
    ).astype(bool)


@st.composite
def of_numbers(draw):
    name = draw(st.sampled_from(["n", "share of votes"]))
    values = draw(st.lists(integers | reals, min_size=1, max_size=3))
    if len(values) > 1:
        negation = draw(st.sampled_from(["", "not "]))
        written = ", ".join(map(repr, values))
        inside = lambda f: f[name].map(lambda v: v is not None and v in values)  # noqa: E731
        return (
            f"{NAMES[name]} {negation}in ({written})",
            lambda f: ~inside(f).astype(bool) if negation else inside(f).astype(bool),
        )
    sign = draw(ORDERS)
    return f"{NAMES[name]} {sign} {values[0]!r}", lambda f: compared(f[name], sign, values[0])


@st.composite
def of_texts(draw):
    value = draw(texts)
    word = draw(st.sampled_from(["==", "!=", "<", ">=", "contains", "startswith", "endswith"]))
    series = lambda f: pd.Series(f["place"], dtype="str")  # noqa: E731
    masks = {
        "contains": lambda f: series(f).str.contains(value, regex=False, na=False),
        "startswith": lambda f: series(f).str.startswith(value, na=False),
        "endswith": lambda f: series(f).str.endswith(value, na=False),
    }
    if word in masks:
        return f"place {word.upper()} {quoted(value)}", masks[word]
    return f"place {word} {quoted(value)}", lambda f: compared(series(f), word, value)


DATES = ("2020", "2020-01", "2020-01-31", "2020-02-01", "2020-01-31T12:00", "2020-12",
         "2020-01-31 12:00:30", "2020-01-31T12:00:30.5", "2019-12-31")  # fmt: skip


def date_condition(text, operator):
    period = pd.Period(text, freq=None if len(text) < 17 else "100ms" if "." in text else "s")

    def mask(frame):
        day = pd.to_datetime(pd.Series(frame["day"], dtype=object), format="ISO8601")
        within = (day >= period.start_time) & (day <= period.end_time)
        return {
            "==": within, "!=": ~within, "<": day < period.start_time,
            "<=": day <= period.end_time, ">": day > period.end_time,
            ">=": day >= period.start_time,
        }[operator]  # fmt: skip

    return f"day {operator} '{text}'", mask


of_dates = st.builds(date_condition, st.sampled_from(DATES), ORDERS)


@st.composite
def of_the_rest(draw):
    name = draw(st.sampled_from(list(COLUMNS)))
    if draw(st.booleans()):
        return f"{NAMES[name]} IS null", lambda f: f[name].isna()
    if draw(st.booleans()):
        return f"{NAMES[name]} is not NULL", lambda f: f[name].notna()
    value = draw(st.booleans())
    return f"open == {str(value).lower()}", lambda f: f["open"].map(lambda v: v is value)


def negated(part):
    text, mask = part
    return f"not ({text})", lambda f: ~mask(f).astype(bool)


def conjunction(parts):
    text = " and ".join(f"({text})" for text, _ in parts)
    return text, lambda f: pd.concat([mask(f) for _, mask in parts], axis=1).all(axis=1)


def disjunction(parts):
    text = "(" + ") OR (".join(text for text, _ in parts) + ")"
    return text, lambda f: pd.concat([mask(f) for _, mask in parts], axis=1).any(axis=1)


def joined(inside):
    several = st.lists(inside, min_size=2, max_size=3)
    return inside.map(negated) | several.map(conjunction) | several.map(disjunction)


filters = st.recursive(of_numbers() | of_texts() | of_dates | of_the_rest(), joined, max_leaves=5)
