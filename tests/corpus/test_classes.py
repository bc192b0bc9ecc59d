"""Classes of rows: one spelling each, and missing ones."""

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.corpus._classes import read_class, read_classes, spell_class, with_types_of


@pytest.mark.parametrize(
    "value",
    [
        None,
        np.nan,
        pd.NaT,
        pd.NA,
        "",
        "  ",
        "\u00a0",
        "\u2003\n",
        "NA",
        "n/a",
        "<NA>",
        " NaN ",
        "null",
    ],
)
def test_missing_classes_are_none(value):
    assert read_class(value) is None


@pytest.mark.parametrize("value", ["none", "na", "Nan", "0", "-", "N", "naan"])
def test_classes_that_resemble_markers_stay(value):
    assert read_class(value) == value


def test_composed_and_decomposed_letters_are_one_class():
    assert read_class(unicodedata.normalize("NFD", "Orléans")) == "Orléans"


def test_whole_floats_are_the_integers_of_a_column_with_gaps():
    assert read_class(np.float32(3.0)) == 3
    assert isinstance(read_class(np.float64(3.0)), int)
    assert read_class(0.5) == 0.5


def test_a_bool_stays_a_bool():
    assert read_class(np.bool_(True)) is True


def test_markers_are_counted_as_they_are_written():
    column = read_classes(["left", "NA", " ", None, "NA", np.nan])
    assert column.values == ["left", None, None, None, None, None]
    assert column.markers == {"NA": 2, " ": 1}


def test_a_note_names_the_column_and_the_most_frequent_markers():
    (note,) = read_classes(["left", "NA", "NA", " "]).notes("inference", "gold")
    assert note.message == "3 rows have no value in gold: 'NA', ' ' counts as missing."
    assert read_classes(["left", None]).notes("inference", "gold") == ()


@given(st.text())
def test_reading_a_class_twice_changes_nothing(text):
    once = read_class(text)
    assert read_class(once) == once
    assert spell_class(text) == once


def test_a_known_class_may_look_like_a_marker():
    column = read_classes(["NA", "EU", "n/a"], known=["NA", "EU"])

    assert column.values == ["NA", "EU", None]


def test_values_take_the_type_of_the_classes_that_are_spelled_alike():
    values, changed = with_types_of(["101", "007"], [101, "007", 5])

    assert values == ["101", "007", 5]
    assert changed == ["101 is '101'"]


def test_a_code_with_leading_zeros_is_not_the_number():
    assert with_types_of([7, 101], ["007", "101"])[0] == ["007", 101]
