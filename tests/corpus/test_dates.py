"""Dates: formats, what the whole column decides, and what is refused with its row."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.corpus._dates import read_dates
from embedtopics.errors import InputError


def parse_dates(values):
    return read_dates(values, "dates")[0]


def iso(series):
    """Write moments as short as they are: no midnight."""
    found = [None if pd.isna(value) else value.isoformat() for value in series]
    return [text and text.removesuffix("T00:00:00") for text in found]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2021-05-17", "1999-12-31"], ["2021-05-17", "1999-12-31"]),
        (["2021-05-17T10:20", "2021-05-17"], ["2021-05-17T10:20:00", "2021-05-17"]),
        (["2021-05-17 10:20:30.5"], ["2021-05-17T10:20:30.500000"]),
        (["2021", "2021-05", "2021-05-17"], ["2021-01-01", "2021-05-01", "2021-05-17"]),
        ([2021, 1492], ["2021-01-01", "1492-01-01"]),
        ([2021.0, None], ["2021-01-01", None]),
        (["20210517", "20201231"], ["2021-05-17", "2020-12-31"]),
        (["03/04/2021", "17/04/2021"], ["2021-04-03", "2021-04-17"]),
        (["03/04/2021", "04/17/2021"], ["2021-03-04", "2021-04-17"]),
        (["3.4.2021 9:05", "17.4.2021 21:05:06"], ["2021-04-03T09:05:00", "2021-04-17T21:05:06"]),
        (["26-FEB-1987 15:01:01.79", "5-MAR-1987"], ["1987-02-26T15:01:01.790000", "1987-03-05"]),
        (["17 May 2021", "Sept. 5, 2020", ""], ["2021-05-17", "2020-09-05", None]),
        (["Wed Oct 10 20:19:24 +0200 2018"], ["2018-10-10T20:19:24"]),
        (["Mon, 17 May 2021 10:00:00 +1400"], ["2021-05-17T10:00:00"]),
        ([1_600_000_000, "0999999999"], ["2020-09-13T12:26:40", "2001-09-09T01:46:39"]),
        ([1_600_000_000_123], ["2020-09-13T12:26:40.123000"]),
        ([date(2021, 5, 17), None], ["2021-05-17", None]),
        ([datetime(2021, 5, 17, 1, 2, 3, 4), pd.NaT], ["2021-05-17T01:02:03.000004", None]),
        ([np.datetime64("2021-05-17"), pd.Timestamp("2021-05-18")], ["2021-05-17", "2021-05-18"]),
        (["", " ", "NA", "2021-01-01", pd.NA], [None, None, None, "2021-01-01", None]),
        ([None, None], [None, None]),
        ([], []),
    ],
)  # fmt: skip
def test_formats(values, expected):
    parsed = parse_dates(values)
    assert iso(parsed) == expected
    assert parsed.dtype == "datetime64[us]"


@pytest.mark.parametrize(
    ("text", "expected", "zone"),
    [
        ("2021-05-17T10:00:00Z", "2021-05-17T10:00:00", "UTC"),
        ("2021-05-17T10:00:00+02:00", "2021-05-17T10:00:00", "local"),
        ("2021-05-17 10:00:00 +0530", "2021-05-17T10:00:00", "local"),
        ("2021-05-17T01:00-03", "2021-05-17T01:00:00", "local"),
        ("2021-01-01T00:30:00.123456789+01:00", "2021-01-01T00:30:00.123456", "local"),
        ("Wed Oct 10 20:19:24 +0200 2018", "2018-10-10T20:19:24", "local"),
        ("Mon, 17 May 2021 10:00:00 GMT", "2021-05-17T10:00:00", "UTC"),
        ("Mon May 17 2021 00:00:00 GMT+0200", "2021-05-17", "local"),
        ("Mon May 17 2021 00:00:00 GMT-0500 (EST)", "2021-05-17", "local"),
        ("17 May 2021 23:30 +00:00", "2021-05-17T23:30:00", "UTC"),
    ],
)
def test_times_keep_the_clocks_of_their_zones(text, expected, zone):
    day = "2020-01-01" if text[0] == "2" else "1 Jan 2020"

    parsed, notes = read_dates([text, day], "dates")

    assert iso(parsed) == [expected, "2020-01-01"]
    assert [(note.name, note.value) for note in notes][1:] == [("time_zone", zone)]


def test_midnights_of_summer_and_winter_stay_on_their_days():
    midnights = pd.date_range("2021-03-26", periods=5, tz="Europe/Berlin")  # one day has 23 hours
    written = [moment.isoformat() for moment in midnights]

    for values in (midnights.to_series(), written, midnights.tolist()):
        assert iso(parse_dates(values)) == [f"2021-03-{day}" for day in range(26, 31)]


@pytest.mark.parametrize(
    "cell",
    ["may " * 40_000 + "2021", "1" * 150_000, "2021-05-17 10:00" + " " * 150_000 + "Z", "5" * 101],
)
def test_a_cell_too_long_for_a_date_is_refused(cell):
    with pytest.raises(InputError, match="row 1: expected a date of at most 100 char") as caught:
        parse_dates(["2021-05-17", cell])

    assert len(str(caught.value)) < 600


def test_typed_columns():
    naive = pd.Series(pd.to_datetime(["2021-05-17 10:00", None]), index=["a", "b"], name="when")
    pd.testing.assert_series_equal(parse_dates(naive), naive.astype("datetime64[us]"))
    aware = naive.dt.tz_localize("Europe/Paris")
    assert iso(parse_dates(aware)) == ["2021-05-17T10:00:00", None]
    assert parse_dates(aware).index.tolist() == ["a", "b"]
    assert iso(parse_dates(pd.Series([2020, None], dtype="Int64"))) == ["2020-01-01", None]


moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
hours = st.integers(-12, 14)


@settings(deadline=None)
@given(st.lists(st.tuples(moments, hours), min_size=1, max_size=5))
def test_round_trip_of_iso_times_with_zones(found):
    zoned = [moment.replace(tzinfo=timezone(timedelta(hours=h))) for moment, h in found]
    parsed = parse_dates([moment.isoformat() for moment in zoned])
    expected = [moment.replace(tzinfo=None) for moment in zoned]
    assert parsed.to_numpy().tolist() == expected


@settings(deadline=None)
@given(st.lists(st.dates(date(1000, 1, 1)), max_size=6), st.sampled_from(["%d/%m/%Y", "%m/%d/%Y"]))
def test_the_column_decides_between_days_and_months(days, pattern):
    days = [*days, date(2021, 3, 31)]
    texts = [f"{day:{pattern}}"[:6] + f"{day.year:04d}" for day in days]
    assert [moment.date() for moment in parse_dates(texts)] == days


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["2021-05-17", None, "17/05/2021"],
            "row 2: expected ISO 8601 .*, as in row 0 .*, got '17/05",
        ),
        (["2021", "20210517"], "row 1: expected ISO 8601"),
        (["17 May 2021", "31 June 2021"], "row 1: expected a day that exists, as the month by"),
        ([1_600_000_000, 1_600_000_000_000], "row 1: expected Unix time in seconds, as in row 0"),
        ([2021, 1_600_000_000], "row 1: expected ISO 8601"),
        (["03/04/2021", "04/03/2021"], "row 0: expected some value above 12 .* got '03/04/2021'"),
        (["17/04/2021", "01/01/2021", "04/17/2021"], r"row 2: .* order .* row 0 \('17/04/2021'\)"),
        (["2021-02-29"], "row 0: expected a day that exists"),
        (["31/02/2021"], "row 0: expected a day that exists, as day/month/year"),
        (["2021-01-01T10:00Z", "2021-01-01T10:00"], r"row 1: expected a time zone in every row"),
        (["10:00 5-Mar-2021", "5 Mar 2021 10:00 UTC"], r"row 1: expected a time zone in every row"),
        (["spring 2018"], "row 0: expected ISO 8601 .* Unix time, got 'spring"),
        ([2021.5], "row 0: expected ISO 8601 .* got 2021.5"),
    ],
)
def test_refused(values, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_dates(values)
    assert "pandas.to_datetime" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_notes():
    _, notes = read_dates(["2021", "2021-05", None, "2021", "2021-05-01"], "column 'year'")
    assert {note.name: note.value for note in notes} == {
        "dates": "ISO 8601 (like 2021-05-17 or 2021)",
        "dates_without_day": 3,
        "dates_missing": 1,
    }
    _, notes = read_dates(["13/01/2021"], "column 'day'")
    assert [(note.name, note.value) for note in notes] == [("dates", "day/month/year")]
