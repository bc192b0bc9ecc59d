import datetime

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from embedtopics.topics.trends._over_time import UNITS, cut_into_periods
from tests.factories import refuses

BEFORE_1970 = ("1969-12-31T22:00", "1970-01-01T02:00")
DAWN, DUSK = datetime.datetime(1950, 1, 1), datetime.datetime(1953, 1, 1)


def moments(*texts):
    return np.array(texts, dtype="datetime64[us]")


def test_months_have_no_gaps_and_hold_their_rows():
    dates = moments("2021-03-31T23:59:59.999999", "2020-12-31", "NaT", "2021-03-01")
    periods = cut_into_periods(dates, "month")
    assert periods.names == ("2020-12", "2021-01", "2021-02", "2021-03")
    assert periods.of_row.tolist() == [3, 0, -1, 3]
    assert periods.starts[0] == np.datetime64("2020-12-01")
    assert (periods.ends[:-1] == periods.starts[1:]).all()
    assert periods.ends[-1] == np.datetime64("2021-04-01")


@pytest.mark.parametrize(
    ("every", "dates", "names"),
    [
        ("day", BEFORE_1970, ("1969-12-31", "1970-01-01")),
        ("week", BEFORE_1970, ("1970-W01",)),
        ("month", BEFORE_1970, ("1969-12", "1970-01")),
        ("quarter", BEFORE_1970, ("1969 Q4", "1970 Q1")),
        ("year", BEFORE_1970, ("1969", "1970")),
        ("decade", BEFORE_1970, ("1960s", "1970s")),
        ("week", ("2021-01-03T23:59", "2021-01-04"), ("2020-W53", "2021-W01")),  # from Monday on
        ("decade", ("0003-05-01", "0012-01-01"), ("0000s", "0010s")),
    ],
)
def test_periods_are_those_of_the_calendar(every, dates, names):
    periods = cut_into_periods(moments(*dates), every)
    assert periods.names == names
    assert periods.of_row.tolist() == [0, len(names) - 1]


@given(st.lists(st.datetimes(DAWN, DUSK), min_size=1), st.sampled_from([*UNITS, "auto"]))
def test_every_date_lies_in_its_period(found, every):
    dates = np.array(found, dtype="datetime64[us]")
    periods = cut_into_periods(dates, every)
    of_row = periods.of_row
    assert (periods.starts[of_row] <= dates).all() and (dates < periods.ends[of_row]).all()
    assert (periods.starts[1:] == periods.ends[:-1]).all()
    assert (periods.starts < periods.ends).all()
    assert of_row.min() == 0 and of_row.max() == len(periods.names) - 1
    if every in UNITS:  # another way to the same calendar
        value = {
            "day": lambda d: d.date(),
            "week": lambda d: d.isocalendar()[:2],
            "month": lambda d: (d.year, d.month),
            "quarter": lambda d: (d.year, (d.month - 1) // 3),
            "year": lambda d: d.year,
            "decade": lambda d: d.year // 10,
        }[every]
        places = {value(d): p for d, p in zip(found, of_row.tolist(), strict=True)}
        assert len(set(places.values())) == len(places)
        assert [places[value(d)] for d in found] == of_row.tolist()


@pytest.mark.parametrize(
    ("dates", "unit"),
    [
        (np.repeat(np.arange("2000", "2020", dtype="M8[Y]"), 20), "year"),
        (np.repeat(np.arange("2000-01", "2001-07", dtype="M8[M]"), 20), "month"),
        (np.repeat(np.arange("2021-01-01", "2021-01-20", dtype="M8[D]"), 20), "day"),
        (np.repeat(np.arange("2021-01-01", "2021-05-20", dtype="M8[D]"), 20), "week"),
        (np.arange("2021-01-05", "2022-12-20", dtype="M8[D]"), "month"),
        (np.arange("2001-01-05", "2022-12-20", dtype="M8[D]"), "year"),
        (np.array(["2001-03-05", "2021-07-20"], dtype="M8[D]"), "decade"),
        (np.array(["2021-03-05"], dtype="M8[D]"), "day"),
    ],
)
def test_auto_takes_a_unit_that_the_dates_allow(dates, unit):
    periods = cut_into_periods(dates.astype("M8[us]"), "auto")
    assert periods.every == unit
    assert [d.value for d in periods.decisions] == [unit]


@pytest.mark.parametrize(
    ("every", "first"),
    [("fortnight", "2020-01-01"), ("day", "0021-01-01")],  # a wrong date makes no million periods
)
def test_every_given_wrongly(every, first):
    with refuses("every"):
        cut_into_periods(moments(first, "2021-01-01"), every)
