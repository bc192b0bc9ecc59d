"""How ratings are read: missing ones, the order of values, and intervals of few disagreements."""

import math

import numpy as np
import pandas as pd
import pytest

from embedtopics.errors import InputError
from embedtopics.evaluation import dawid_skene, evaluate_clustering, krippendorff_alpha

NAN = float("nan")
GRADES = ["poor", "fair", "good"]
FIRST = ["poor", "good", "fair", "good", "poor", "fair"]
SECOND = ["poor", "fair", "fair", "good", "fair", "fair"]


def ranks(rows):
    return [[GRADES.index(word) for word in row] for row in rows]


def same(found, expected):
    """Whether two estimates are equal, bit for bit."""
    return found.to_frame().equals(expected.to_frame())


def of_ranks():
    return krippendorff_alpha(np.array(ranks([FIRST, SECOND]), dtype=float), "ordinal")


@pytest.mark.parametrize("missing", [NAN, None, "", "\u00a0", "NA", "n/a", "<NA>", pd.NA])
def test_missing_ratings_in_lists_are_those_of_a_float_array(missing):
    words = [["a", "b", "a", missing, "b"], ["a", "b", "b", "a", missing]]
    codes = np.array([[0, 1, 0, NAN, 1], [0, 1, 1, 0, NAN]])
    assert same(krippendorff_alpha(words), krippendorff_alpha(codes))


def test_two_spellings_of_a_class_agree():
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    rows = [[composed, "tea", composed, "tea"], [decomposed, "tea ", composed, "tea"]]
    assert krippendorff_alpha(rows).value == 1.0


@pytest.mark.parametrize(
    "ratings",
    [
        [pd.Categorical(row, GRADES, ordered=True) for row in (FIRST, SECOND)],
        [pd.Series(pd.Categorical(row, GRADES, ordered=True)) for row in (FIRST, SECOND)],
        pd.DataFrame([FIRST, SECOND]).astype(pd.CategoricalDtype(GRADES, ordered=True)),
    ],
)
def test_ordered_categories_keep_their_order(ratings):
    assert same(krippendorff_alpha(ratings, "ordinal"), of_ranks())


def test_words_have_the_order_that_is_given():
    found = krippendorff_alpha([FIRST, SECOND], "ordinal", order=GRADES)
    assert same(found, of_ranks())
    # The alphabet would order fair, good, poor.
    assert found.value != krippendorff_alpha([FIRST, SECOND]).value


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("order", {}),
        ("order", {"order": ["poor", "good"]}),
        ("order", {"order": ["poor", "fair", "good", "fair"]}),
        ("order", {"order": "poor"}),
    ],
)
def test_words_without_a_full_order_are_refused(parameter, options):
    with pytest.raises(InputError) as error:
        krippendorff_alpha([FIRST, SECOND], "ordinal", **options)
    assert error.value.parameter == parameter


def test_coders_with_different_orders_are_refused():
    rows = [
        pd.Categorical(FIRST, GRADES, ordered=True),
        pd.Categorical(SECOND, GRADES[::-1], ordered=True),
    ]
    with pytest.raises(InputError) as error:
        krippendorff_alpha(rows, "ordinal")
    assert error.value.parameter == "ratings"


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_numerals_are_numbers(level):
    numbers = [[3, 20, 100, 3, 20], [20, 20, 100, 3, 100]]
    words = [[str(value) for value in row] for row in numbers]
    mixed = [numbers[0], words[1]]
    expected = krippendorff_alpha(np.array(numbers), level)
    assert same(krippendorff_alpha(words, level), expected)
    assert same(krippendorff_alpha(mixed, level), expected)
    assert krippendorff_alpha(mixed).value == krippendorff_alpha(np.array(numbers)).value


def test_intervals_of_words_and_infinite_ratings_are_refused():
    for ratings in ([["a", "b"], ["a", "a"]], np.array([[1.0, math.inf], [1, 2]])):
        with pytest.raises(InputError) as error:
            krippendorff_alpha(ratings, "interval")
        assert error.value.parameter == "ratings"


@pytest.mark.parametrize("ratings", [[[1, 2], [1]], [], ["ab", "ab"], np.zeros(3)])
def test_what_is_no_table_of_ratings_is_refused(ratings):
    with pytest.raises(InputError) as error:
        krippendorff_alpha(ratings)
    assert error.value.parameter == "ratings"


def test_series_are_aligned_by_their_units():
    first = pd.Series(["a", "b", "b"], index=["u1", "u2", "u3"])
    assert krippendorff_alpha([first, first.iloc[::-1]]).value == 1.0
    with pytest.raises(InputError) as error:
        krippendorff_alpha([first, first.rename({"u3": "u4"})])
    assert error.value.parameter == "ratings"


def test_perfect_agreement_is_as_sure_as_its_number_of_units():
    lows = {}
    for n in (12, 40, 400):
        row = [0] * (n // 2) + [1] * (n // 2)
        found = krippendorff_alpha([row, row])
        # Wilson's upper end of 0 of n, over the chance that two of the 2 n ratings differ.
        misses = 1.959964**2 / (n + 1.959964**2)
        by_chance = 1 - 2 * n * (n - 1) / (2 * n * (2 * n - 1))
        assert found.low == pytest.approx(1 - misses / by_chance, abs=1e-6)
        assert (found.value, found.high) == (1.0, 1.0)
        lows[n] = found.low
    assert lows[12] < lows[40] < lows[400] < 1


def test_intervals_near_perfect_agreement_hold_the_agreement():
    rng = np.random.default_rng(0)
    errors, n, held = 0.02, 50, 0
    # Two coders who err alike: the classes are even, so chance agreement is one half.
    truth = 1 - 2 * (2 * errors * (1 - errors))
    for seed in range(60):
        classes = rng.integers(0, 2, n)
        rows = np.where(rng.random((2, n)) < errors, 1 - classes, classes)
        found = krippendorff_alpha(rows, random_state=seed)
        held += found.low <= truth <= found.high
    assert held >= 54


def test_perfect_clusters_of_few_documents_have_an_interval():
    labels = np.arange(16) % 4
    low, high = evaluate_clustering(labels, labels, n_resamples=50).intervals["ari"]
    assert low == pytest.approx(1 - 1.959964**2 / (16 + 1.959964**2)) and high == 1.0


def test_missing_ratings_are_no_class_of_dawid_and_skene():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 120)
    rows = np.where(rng.random((3, 120)) < 0.1, 1 - truth, truth)
    words = np.array(["no", "yes"], dtype=object)[rows]
    words[0, :20] = "NA"
    words[1, 30:40] = " "
    blank = np.array(["no", "yes"], dtype=object)[rows]
    blank[0, :20] = None
    blank[1, 30:40] = None
    found = dawid_skene(words.tolist(), n_resamples=10)
    assert found.classes == ("no", "yes")
    assert found.shares.tolist() == dawid_skene(blank, n_resamples=10).shares.tolist()
