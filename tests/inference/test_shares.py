"""Measurements, and the shares and plans of labels that they give."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.inference import Measurement, power, shares
from embedtopics.inference._power import allocate
from tests.factories import rows_of

N = 1_000
RNG = np.random.default_rng(0)
TRUTH = RNG.random(N) < 0.3
GUESS = np.where(RNG.random(N) < 0.8, TRUTH, ~TRUTH)
DRAWN = np.isin(np.arange(N), RNG.choice(N, 200, replace=False))


def measured(truth=TRUTH, guess=GUESS, drawn=DRAWN, **options):
    gold = [bool(value) if known else None for value, known in zip(truth, drawn, strict=True)]
    if not {"sampling", "probability", "strata"} & set(options):
        options["sampling"] = "random"
    return Measurement(gold, guess, **options)


def row_of(measurement, name=True, **options):
    return rows_of(shares(measurement, **options), name=name)[0]


def test_a_share_is_the_formula_of_prediction_powered_inference():
    row = row_of(measured())
    y, f = TRUTH[DRAWN].astype(float), GUESS[DRAWN].astype(float)
    # k minimizes the variance of mean(y) - k (mean(f of gold) - mean(f of all)).
    everything = GUESS - GUESS.mean()
    gold_part = np.zeros(N)
    gold_part[DRAWN] = (f - f.mean()) * np.sqrt(200 / 199) * N / 200
    a = np.zeros(N)
    a[DRAWN] = (y - y.mean()) * np.sqrt(200 / 199) * N / 200
    b = everything - gold_part
    k = -(a @ b) / (b @ b)
    assert row.estimate == pytest.approx(y.mean() + k * (GUESS.mean() - f.mean()))
    variance = np.square(a + k * b).sum() / N**2
    trials = row.estimate * (1 - row.estimate) / variance
    low, high = wilson(row.estimate * trials, trials, df=199)
    assert (row.low, row.high) == pytest.approx((float(low), float(high)))
    assert row.gold == pytest.approx(y.mean())
    assert row.naive == GUESS.mean()
    assert row.n_effective > 200


def test_gold_values_of_all_rows_are_their_own_share():
    row = row_of(measured(drawn=np.ones(N, dtype=bool)))
    assert row.estimate == pytest.approx(TRUTH.mean())
    assert (row.low, row.high) == pytest.approx((row.gold_low, row.gold_high), abs=1e-4)


def test_groups_dates_and_crossed_columns_have_their_own_shares():
    dates = pd.to_datetime(np.where(np.arange(N) % 2, "2020-05-01", "2021-03-01"))
    frame = pd.DataFrame({"day": dates, "side": np.where(np.arange(N) % 3, "a", None)})
    found = shares(measured(data=frame), by="day")
    assert [row.group for row in rows_of(found, name=True)] == ["2020-01-01", "2021-01-01"]
    odd = TRUTH[DRAWN & (np.arange(N) % 2 == 1)]
    assert rows_of(found, name=True)[0].gold == pytest.approx(odd.mean())
    crossed = shares(measured(data=frame), by=["day", "side"])
    assert {row.group for row in rows_of(crossed)} == {("2020-01-01", "a"), ("2021-01-01", "a")}
    assert sum(row.n for row in rows_of(crossed, name=True)) == (frame["side"] == "a").sum()


def test_further_gold_rows_are_counted_by_hand():
    found = shares(measured())
    gold, predictions = found._variances[-1]
    allowed = (0.05 / (2 * 1.959964)) ** 2 - predictions
    further = found.further_gold(0.05).set_index("class")["further_gold"]
    assert further[True] == np.ceil(200 * gold / allowed) - 200 > 0
    # Predictions of 1,000 rows alone vary more than this.
    assert found.further_gold(0.01)["further_gold"].eq(np.inf).all()
    assert found.further_gold(0.9)["further_gold"].eq(0).all()


def test_a_difference_names_its_groups():
    side = np.where(np.arange(N) < 500, "a", "b")
    truth = TRUTH | (np.arange(N) < 150)
    found = shares(measured(truth=truth, data=pd.DataFrame({"side": side})), by="side")
    a, b = rows_of(found, name=True)
    difference = found.difference("a", "b")
    assert difference.value == pytest.approx(a.estimate - b.estimate)
    assert 0 < difference.low < difference.value < difference.high and difference.p < 0.05
    reverse = found.difference("b", "a")
    assert (reverse.low, reverse.high) == pytest.approx((-difference.high, -difference.low))
    with pytest.raises(InputError) as error:
        found.difference("a", "c")
    assert error.value.parameter == "second"


def test_strata_and_probabilities_correct_an_uneven_sample():
    stratum = np.where(GUESS, "likely", "unlikely")
    likely = np.flatnonzero(GUESS)
    drawn = np.zeros(N, dtype=bool)
    drawn[likely[::2]] = drawn[np.flatnonzero(~GUESS)[::10]] = True
    chance = np.where(GUESS, drawn[GUESS].mean(), drawn[~GUESS].mean())
    rows = [
        row_of(measured(drawn=drawn, strata=stratum)),
        row_of(measured(drawn=drawn, probability=chance)),
    ]
    expected = sum(
        (stratum == one).mean() * TRUTH[drawn & (stratum == one)].mean()
        for one in ("likely", "unlikely")
    )
    assert [row.gold for row in rows] == pytest.approx([expected] * 2)
    assert rows[0].gold_high - rows[0].gold_low < rows[1].gold_high - rows[1].gold_low
    assert abs(TRUTH[drawn].mean() - TRUTH.mean()) > 0.1  # uncorrected


def test_strata_of_one_class_vary_as_if_half_a_row_were_of_the_other():
    truth, drawn = np.arange(N) < 300, (np.arange(N) % 300 < 20) & (np.arange(N) < 600)
    found = shares(measured(truth, [True] * N, drawn, strata=truth))
    assert rows_of(found, name=True)[0].estimate == pytest.approx(0.3)
    # Rows of both strata are a sample too; 20 gold rows of each are half a row short of 20.5 in 21.
    smooth = 0.5 * 20.5 / 21**2 / 19
    expected = 0.3 * 0.7 / N + (0.3**2 + 0.7**2) * smooth
    assert found._variances[-1].sum() == pytest.approx(expected)


def test_several_predictions_are_combined_and_useless_ones_do_no_harm():
    rng = np.random.default_rng(4)
    predictions = {
        "classifier": GUESS,
        "score": TRUTH + rng.normal(size=N),
        "noise": rng.normal(size=N),
    }
    alone, together = row_of(measured()), row_of(measured(guess=predictions))
    assert together.high - together.low < alone.high - alone.low
    useless = row_of(measured(guess={"noise": predictions["noise"]}))
    assert useless.high - useless.low == pytest.approx(
        useless.gold_high - useless.gold_low, rel=0.1
    )


def test_numbers_have_means():
    values = RNG.normal(5, 2, N)
    gold = np.where(DRAWN, values, np.nan)
    found = shares(Measurement(gold, values + RNG.normal(size=N), sampling="random"))
    (row,) = rows_of(found)
    assert row.name is None and row.low < values.mean() < row.high
    assert row.gold == pytest.approx(values[DRAWN].mean())
    assert row.n_effective > 400


def test_probabilities_and_frames_are_read():
    frame = pd.DataFrame({"gold": np.where(DRAWN, np.where(TRUTH, "yes", "no"), None)})
    chance = np.where(GUESS, 0.9, 0.2)
    frame["bert"] = chance
    one = Measurement.from_frame(frame, "gold", "bert", sampling="random")
    table = pd.DataFrame({"yes": chance, "no": 1 - chance})
    same = Measurement(frame["gold"], table, sampling="random")
    assert one.classes == ("no", "yes") and one.name == "gold"
    assert row_of(one, "yes").estimate == pytest.approx(row_of(same, "yes").estimate)
    assert "200 of 1,000 gold" in repr(one)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(20, 100), st.floats(0.05, 0.95))
def test_an_interval_holds_its_estimate_and_the_order_of_rows_does_not_matter(seed, n_gold, share):
    rng = np.random.default_rng(seed)
    truth = rng.random(200) < share
    truth[:2] = [False, True]
    drawn = np.arange(200) < n_gold
    guess = np.where(rng.random(200) < 0.8, truth, ~truth)
    order = rng.permutation(200)
    rows = [
        row_of(measured(truth=truth[i], guess=guess[i], drawn=drawn[i]))
        for i in (np.arange(200), order)
    ]
    assert 0 <= rows[0].low <= rows[0].estimate <= rows[0].high <= 1
    assert rows[0].estimate == pytest.approx(rows[1].estimate)


def test_a_plan_says_how_many_labels_a_width_needs():
    plan = power(n_rows=100_000, width=0.1, share=0.3, accuracy=0.9)
    alone = 0.3 * 0.7 * (1.959964 / 0.05) ** 2
    assert plan.labels_alone == np.ceil(alone)
    # The correlation of two binary variables, by hand: predicted 0.34, both 0.27.
    correlation = (0.27 - 0.3 * 0.34) / np.sqrt(0.21 * 0.34 * 0.66)
    assert plan.correlation == pytest.approx(correlation)
    explained = correlation**2
    expected = (1 - explained) * 0.21 / ((0.05 / 1.959964) ** 2 - explained * 0.21 / 100_000)
    assert plan.labels == np.ceil(expected)
    assert power(n_rows=100, width=0.01, accuracy=0.9).labels == np.inf
    effect = power(n_rows=100_000, effect=0.1, share=0.3)
    assert effect.labels == pytest.approx(4 * 0.21 * ((1.959964 + 0.841621) / 0.1) ** 2, abs=1)


def test_a_plan_by_strata_allocates_as_neyman_does():
    strata = {"predicted": (1_000, 0.8), "not predicted": (9_000, 0.1)}
    plan = power(n_rows=10_000, width=0.06, strata=strata)
    # Standard deviations are 0.4 and 0.3, the share 0.17; the strata explain 0.1 * 0.9 * 0.7^2.
    spread, between = 0.1 * 0.4 + 0.9 * 0.3, 0.0441
    allowed = (0.03 / 1.959964) ** 2
    assert plan.labels == np.ceil(spread**2 / (allowed - between / 10_000))
    assert plan.labels_alone == np.ceil(0.17 * 0.83 / allowed)
    assert plan.strata["predicted"] == pytest.approx(plan.labels * 0.04 / spread, abs=1)
    assert sum(plan.strata.values()) == plan.labels
    assert allocate(64, [100, 900, 5], [0.5, 0.1, 0.5]).tolist() == [10, 49, 5]
    assert power(n_rows=10_000, width=0.001, strata=strata).labels == np.inf
    with pytest.raises(InputError) as error:
        power(n_rows=5_000, width=0.06, strata=strata)
    assert error.value.parameter == "strata"


def test_further_labels_by_strata_give_the_width_that_was_planned():
    widths, rng = [], np.random.default_rng(7)
    for _ in range(20):
        n = 10_000
        y = rng.random(n) < 0.12
        guess = np.where(rng.random(n) < np.where(y, 0.75, 0.93), y, ~y)
        is_gold = rng.permutation(n) < 200

        def share(y=y, guess=guess, is_gold=is_gold, **options):
            frame = pd.DataFrame({"guess": guess})
            return shares(measured(y, guess, is_gold, strata=guess, data=frame), **options)

        plan = power(n_rows=n, width=0.05, strata=share(by="guess"))
        assert sum(plan.strata.values()) == plan.labels > 0
        for stratum, further in plan.strata.items():
            rest = np.flatnonzero((guess.astype(str) == stratum) & ~is_gold)
            is_gold[rng.permutation(rest)[:further]] = True
        row = rows_of(share(), name=True)[0]
        widths.append(row.high - row.low)
    assert np.mean(widths) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize(
    ("parameter", "row", "options"),
    [
        ("sampling", None, {"sampling": None}),
        ("probability", 3, {"probability": np.where(np.arange(N) == 3, 0.0, 0.2)}),
        ("units", 2, {"units": [None if i == 2 else i for i in range(N)]}),
        ("strata", int(DRAWN.argmin()), {"strata": np.where(DRAWN, "drawn", "left")}),
        ("predictions", 7, {"guess": np.where(np.arange(N) == 7, np.nan, 0.5)}),
        ("predictions", None, {"guess": GUESS[:-1]}),
        ("predictions", 0, {"guess": ["maybe"] * N}),
        ("gold", None, {"truth": np.ones(N)}),
        ("data", None, {"data": pd.DataFrame({"a": [1]})}),
    ],
)
def test_what_would_bias_the_result_is_refused(parameter, row, options):
    with pytest.raises(InputError) as error:
        measured(**options)
    assert (error.value.parameter, error.value.row) == (parameter, row)


def test_a_predicted_class_without_gold_is_refused():
    gold = ["a", "b"] * 20 + [None] * 10
    with pytest.raises(InputError) as error:
        Measurement(gold, ["a"] * 49 + ["c"], sampling="random")
    assert error.value.parameter == "predictions" and error.value.row == 49


def questioned(measurement):
    """Return the decision that the gold rows are no random sample, or None."""
    return next((one for one in measurement.decisions if one.name == "unlikely_sample"), None)


@pytest.mark.parametrize("sides", ["many", "none"])
def test_gold_rows_that_chance_would_not_draw_are_questioned(sides):
    rare = np.arange(N) < 60
    truth = np.arange(N) % 3 == 0
    pool = np.flatnonzero(rare) if sides == "many" else np.flatnonzero(~rare)
    drawn = np.isin(np.arange(N), pool[: 50 if sides == "many" else 300])
    found = questioned(measured(truth, rare, drawn))
    # Both classes differ as much, in opposite directions.
    of_gold, of_all = ("0.0%", "94.0%") if sides == "many" else ("100.0%", "94.0%")
    of_true = ("100.0%", "6.0%") if sides == "many" else ("0.0%", "6.0%")
    assert any(
        f"predicted for {of_them} of them, and for {of_rows} of all rows" in found.message
        for of_them, of_rows in ((of_gold, of_all), of_true)
    )
    # Strata are compared within strata.
    strata = np.where(rare, "rare", np.where(np.arange(N) < 400, "first", "second"))
    drawn = np.isin(np.arange(N), [*range(30), *range(60, 90), *range(600, 700)])
    assert questioned(measured(truth, rare, drawn, strata=strata)) is None


def test_random_gold_rows_are_not_questioned():
    rng = np.random.default_rng(1)
    for _ in range(200):
        guess = rng.random(N) < rng.choice([0.01, 0.1, 0.5])
        drawn = np.isin(np.arange(N), rng.choice(N, 60, replace=False))
        assert questioned(measured(TRUTH, guess, drawn)) is None or guess[drawn].mean() > 0.1


def test_whole_authors_who_were_drawn_are_not_questioned():
    rng = np.random.default_rng(3)
    author = np.arange(N) // 50
    for _ in range(20):
        guess = (rng.random(20) < 0.4)[author]
        drawn = np.isin(author, rng.choice(20, 6, replace=False))
        assert questioned(measured(TRUTH, guess, drawn, units=author)) is None


def test_gold_numbers_of_high_predictions_are_questioned():
    values = np.random.default_rng(5).normal(size=N)
    gold = np.where(values > 0.8, values, np.nan)
    one = Measurement(gold, values, sampling="random")
    assert "that of all rows" in questioned(one).message


def test_groups_that_predictions_harm_are_as_precise_as_by_their_gold_rows():
    rng = np.random.default_rng(4)
    size = 4_000
    side = np.where(np.arange(size) % 5, "clear", "vague")
    truth = rng.random(size) < 0.3
    # Predictions of the vague side are noise.
    error = np.where(side == "clear", 0.03, 0.5)
    guess = np.where(rng.random(size) < error, ~truth, truth)
    drawn = np.isin(np.arange(size), rng.choice(size, 400, replace=False))
    data = pd.DataFrame({"side": side})
    clear, vague = rows_of(shares(measured(truth, guess, drawn, data=data), by="side"), name=True)
    assert vague.high - vague.low <= 1.05 * (vague.gold_high - vague.gold_low)
    assert clear.high - clear.low < 0.7 * (clear.gold_high - clear.gold_low)


def test_p_values_do_not_depend_on_the_confidence_of_the_intervals():
    side = np.where(np.arange(N) < 500, "a", "b")
    one = measured(data=pd.DataFrame({"side": side}))
    found = [shares(one, by="side", confidence=level) for level in (0.8, 0.95, 0.999)]
    contrasts = [each.difference("a", "b") for each in found]
    assert len({contrast.p for contrast in contrasts}) == 1
    assert contrasts[0].high < contrasts[1].high < contrasts[2].high


def test_groups_without_gold_rows_have_no_share_and_no_difference():
    side = np.where(np.arange(N) < 500, "read", "unread")
    drawn = DRAWN & (side == "read")
    found = shares(measured(drawn=drawn, data=pd.DataFrame({"side": side})), by="side")
    unread = rows_of(found, group="unread", name=True)[0]
    assert np.isnan([unread.estimate, unread.low, unread.high, unread.gold]).all()
    contrast = found.difference("read", "unread")
    assert np.isnan([contrast.value, contrast.low, contrast.high, contrast.p]).all()
    names = [note.name for note in found.decisions]
    assert "groups_without_gold" in names and "unread" in found.decisions[-1].message


def test_equal_gold_numbers_have_a_mean_without_an_interval():
    side = np.where(np.arange(N) < 500, "a", "b")
    values = np.where(side == "a", 0.0, np.random.default_rng(0).normal(size=N))
    gold = np.where(DRAWN, values, np.nan)
    one = Measurement(
        gold, np.zeros(N), sampling="random", data=pd.DataFrame({"side": side}), kind="number"
    )
    a, b = rows_of(shares(one, by="side"))
    assert a.estimate == 0 and np.isnan([a.low, a.high]).all()
    assert b.low < b.estimate < b.high
    assert np.isnan(shares(one, by="side").difference("a", "b").p)


def test_strata_of_a_rare_class_are_hardly_less_precise_than_their_probabilities():
    rng = np.random.default_rng(12)
    size, widths = 5_000, []
    for _ in range(12):
        truth = rng.random(size) < 0.03
        guess = np.where(rng.random(size) < np.where(truth, 0.25, 0.02), ~truth, truth)
        rows = [rng.choice(np.flatnonzero(guess == k), 70, replace=False) for k in (False, True)]
        drawn = np.isin(np.arange(size), np.concatenate(rows))
        chance = np.where(guess, 70 / guess.sum(), 70 / (~guess).sum())
        by = [
            row_of(measured(truth, guess, drawn, **how))
            for how in ({"strata": guess}, {"probability": chance})
        ]
        widths.append([row.high - row.low for row in by])
    of_strata, of_probabilities = np.mean(widths, axis=0)
    assert of_strata <= 1.9 * of_probabilities


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize("parameter", ["width", "effect", "confidence", "power", "n_rows"])
def test_plans_of_impossible_numbers_are_refused(parameter, value):
    options = {"n_rows": 500, "width": 0.1} | {parameter: value}
    if parameter == "effect":
        del options["width"]
    with pytest.raises(InputError) as error:
        power(**options)
    assert error.value.parameter == parameter


def test_infinite_gold_values_and_predictions_are_refused_with_their_row():
    values = np.random.default_rng(0).normal(size=N)
    gold = np.where(DRAWN, values, np.nan)
    last = int(np.flatnonzero(DRAWN)[-1])
    broken = np.where(np.arange(N) == last, np.inf, gold)
    predicted = np.where(np.arange(N) == last, np.inf, values)
    for parameter, pair in (("gold", (broken, values)), ("predictions", (gold, predicted))):
        with pytest.raises(InputError) as error:
            Measurement(*pair, sampling="random")
        assert (error.value.parameter, error.value.row) == (parameter, last)
