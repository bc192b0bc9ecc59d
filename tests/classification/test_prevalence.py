"""Shares of a corpus: estimates by hand, intervals that cover, groups, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from embedtopics import Corpus, plots
from embedtopics.classification import TextClassifier, effects, prevalence
from embedtopics.classification._prevalence import (
    adjusted_count,
    design_share,
    interval_of,
    ppi_share,
    tuned,
    tuned_by_fold,
)
from embedtopics.classification.results import Share
from tests.classification.conftest import themed_texts
from tests.factories import refuses


def test_prediction_powered_shares_by_hand():
    y, f = np.array([1.0, 0, 1, 0]), np.array([0.9, 0.2, 0.7, 0.4])
    others = np.array([0.5, 0.1, 0.6])
    share = ppi_share(y, f, others, np.full(4, 0.5))
    residuals = [0.55, -0.1, 0.65, -0.2]
    assert np.isclose(share.value, np.mean(residuals) + 0.5 * 0.4)
    wanted = np.var(residuals, ddof=1) / 4 + 0.25 * np.var(others, ddof=1) / 3
    assert np.isclose(share.variance, wanted)
    alone = ppi_share(y, f, others, np.zeros(4))
    assert np.isclose(alone.value, 0.5) and np.isclose(alone.variance, np.var(y, ddof=1) / 4)


def test_the_tuned_power_has_the_least_variance():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.4).astype(float)
    f = np.clip(0.5 * y + 0.5 * rng.random(400), 0, 1)
    others = rng.choice(f, 1000)  # of the same variance
    grid = np.linspace(0, 1, 101)
    variances = [ppi_share(y, f, others, np.full(400, k)).variance for k in grid]
    assert abs(tuned(y, f, np.ones(400), 0.4) - grid[np.argmin(variances)]) < 0.03
    assert tuned(y, np.zeros(400), np.ones(400), 0.4) == 0
    assert tuned(y, 1 - y, np.ones(400), 0.4) == 0


def test_a_design_of_equal_chances_is_that_of_all_texts():
    rng = np.random.default_rng(0)
    y = (rng.random(50) < 0.4).astype(float)
    f, everything = rng.random(50), rng.random(500)
    share = design_share(y, f, everything, np.full(50, 0.1), np.ones(50))
    assert np.isclose(share.value, (y - f).mean() + everything.mean())
    chance = rng.uniform(0.1, 1, 50)
    weights = 1 / chance
    found = design_share(y, f, everything, chance, np.ones(50))
    wanted = (weights * (y - f)).sum() / weights.sum() + everything.mean()
    assert np.isclose(found.value, wanted)


def test_adjusted_count_finds_the_shares_that_were_drawn():
    rates = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert np.allclose(adjusted_count(rates, np.array([0.2, 0.8]) @ rates), [0.2, 0.8])
    # Beyond what the rates can explain, the share is 0.
    assert np.allclose(adjusted_count(rates, np.array([0.1, 0.9])), [0, 1])


def test_labels_that_are_needed_by_hand():
    share = Share(0.5, 0.09, 1e-5, 100)
    wanted = np.ceil(0.09 / ((0.1 / (2 * 1.959964)) ** 2 - 1e-5)) - 100
    assert share.labels_needed(0.1) == wanted > 0
    assert share.labels_needed(0.9) == 0 and share.labels_needed(0.01) == np.inf


def covered(p, accuracy, n, n_draws, seed=0, n_others=5000, by_design=False):
    """Return how often intervals cover, and their width as a share of that of labels alone."""
    rng = np.random.default_rng(seed)
    apart = norm.ppf(accuracy)
    hits, widths, alone = [], [], []
    for draw in range(n_draws):
        y = (rng.random(n + n_others) < p).astype(float)
        score = rng.normal(size=len(y)) + apart * (2 * y - 1)
        f = expit(2 * apart * score + logit(p))
        if by_design:  # texts that look like the class are labelled more often
            chance = np.clip(n / len(y) * np.where(f > p, 2.0, 0.6), 0, 1)
            marked = rng.random(len(y)) < chance
            factor = tuned_by_fold(y[marked], f[marked], 1 / chance[marked], 0.0, draw)
            share = design_share(y[marked], f[marked], f, chance[marked], factor)
            sample = y[marked]
        else:
            factor = tuned_by_fold(y[:n], f[:n], np.ones(n), n / n_others, draw)
            share, sample = ppi_share(y[:n], f[:n], f[n:], factor), y[:n]
        rare = min(sample.sum(), len(sample) - sample.sum())
        low, high = interval_of(share, rare)
        hits.append(low <= p <= high)
        widths.append(high - low)
        bare = interval_of(ppi_share(sample, sample, f[n:], np.zeros(len(sample))), rare)
        alone.append(bare[1] - bare[0])
    return np.mean(hits), np.mean(widths) / np.mean(alone)


def test_intervals_cover_and_are_narrower_than_labels_alone():
    cover, ratio = covered(0.3, 0.9, 150, 120)
    assert cover > 0.9 and ratio < 0.75


@pytest.mark.slow
@pytest.mark.parametrize("by_design", [False, True])
@pytest.mark.parametrize(("p", "n"), [(0.5, 200), (0.02, 500)])
@pytest.mark.parametrize("accuracy", [0.6, 0.8, 0.95])
def test_intervals_cover_in_500_draws(p, n, accuracy, by_design):
    cover, ratio = covered(p, accuracy, n, 500, seed=1, by_design=by_design)
    # The share of 500 draws varies by a percent.
    assert 0.93 <= cover <= 0.985
    if not by_design:
        assert ratio < {0.6: 1.02, 0.8: 0.99, 0.95: 0.75}[accuracy]


@pytest.fixture(scope="module")
def model(counted):
    return TextClassifier(counted).fit(*themed_texts(240, noise=0.5, seed=9))


def corpus_of(n, seed=0, shares=(0.6, 0.3, 0.1)):
    """Return a corpus in which the shares of classes are others than in the training texts."""
    texts, themes = themed_texts(4 * n, noise=0.5, seed=seed)
    rng = np.random.default_rng(seed)
    order = ["fruit", "train", "chess"]
    wanted = [order[i] for i in rng.choice(3, n, p=shares)]
    pools = {name: [t for t, k in zip(texts, themes, strict=True) if k == name] for name in order}
    chosen = [pools[name].pop() for name in wanted]
    frame = pd.DataFrame({
        "text": [f"{text} row {i}" for i, text in enumerate(chosen)],
        "theme": wanted,
        "day": pd.date_range("2020-03-01", periods=n, freq="D"),
        "side": np.where(np.arange(n) % 2, "left", "right"),
        "length": [float(len(text)) for text in chosen],
    })  # fmt: skip
    marked = rng.random(n) < 0.25
    frame["label"] = [one if known else None for one, known in zip(wanted, marked, strict=True)]
    return Corpus(frame, text="text", time="day", group="side"), frame


def test_labels_correct_what_a_classifier_mistakes(model):
    corpus, frame = corpus_of(700)
    found = prevalence(model, corpus, "label")
    table = found.to_frame().set_index("class")
    truth = frame["theme"].value_counts(normalize=True)
    for name in truth.index:
        row = table.loc[name]
        assert row.low <= truth[name] <= row.high and row.low < row.share < row.high
        assert row.high - row.low < row.labels_high - row.labels_low
        known = frame["label"].dropna()
        assert row.n_labelled == len(known) and row.n == 700
        assert np.isclose(row.labels_share, (known == name).mean())
    wrong = abs(table["predicted"] - truth)
    assert wrong.max() > 0.03 and found.decisions == () and "ppi" in repr(found)
    further = found.further_labels(0.05).set_index("class")["further_labels"]
    assert (further > 0).all()


@pytest.mark.slow
def test_a_classifier_that_knows_the_labels_is_cross_fitted(counted):
    corpus, frame = corpus_of(500)
    found = prevalence(TextClassifier(counted), corpus, frame["label"])
    assert [decision.name for decision in found.decisions] == ["cross_fitted"]
    marked = frame.dropna(subset="label")
    learned = TextClassifier(counted).fit(marked["text"].tolist(), marked["label"].tolist())
    again = prevalence(learned, corpus, frame["label"])
    assert again.to_frame().equals(found.to_frame())
    row = found.to_frame().set_index("class").loc["fruit"]
    assert row.low <= (frame["theme"] == "fruit").mean() <= row.high


def test_texts_that_the_classifier_learned_from_are_set_aside(data_folder):
    news = pd.read_json(data_folder / "bbc_news" / "bbc_news.jsonl.gz", lines=True)
    news = news.assign(text=news["text"].str[:300]).drop_duplicates("text")
    news = news.sample(700, random_state=0)
    texts, labels = news["text"].tolist(), news["label"].tolist()
    learned = TextClassifier("lsa").fit(texts[:300], labels[:300])
    shares = {}
    for n_shared in (0, 1):
        sample = [
            label if 300 - n_shared <= row < 400 else None for row, label in enumerate(labels)
        ]
        found = prevalence(learned, texts, sample)
        shares[n_shared] = found.to_frame().drop(columns=["n_labelled"])
        assert [decision.value for decision in found.decisions] == [1] * n_shared
        assert set(found.to_frame()["n_labelled"]) == {100}
    pd.testing.assert_frame_equal(shares[0], shares[1], atol=1e-9)


def test_shares_by_group_and_time(model):
    corpus, _ = corpus_of(600)
    sides = prevalence(model, corpus, "label", by="group").to_frame()
    assert sides["group"].unique().tolist() == ["left", "right"]
    assert sides.groupby("class")["n"].sum().tolist() == [600] * 3
    months = prevalence(model, corpus, "label", by="time", every="quarter")
    names = months.to_frame()["group"].unique().tolist()
    assert names[0] == "2020-01-01" and names == sorted(names)
    fig = plots.prevalence(months)
    assert len(fig.data) == 9  # three classes: labels alone, predicted, estimated
    assert list(fig.data[2].x) == names
    bars = plots.prevalence(prevalence(model, corpus, "label", by="side"), ["chess"])
    assert list(bars.layout.yaxis.ticktext) == ["left  ", "right  "]
    with refuses("classes"):
        plots.prevalence(months, ["music"])


def test_known_chances_correct_a_sample_that_is_not_even(model):
    corpus, frame = corpus_of(900, seed=3)
    rng = np.random.default_rng(1)
    chance = np.where(frame["theme"] == "chess", 0.8, 0.15)
    label = frame["theme"].where(rng.random(900) < chance, None)
    found = prevalence(model, corpus, label, probability=chance).to_frame().set_index("class")
    assert (label.dropna() == "chess").mean() > 0.3
    for name, share in frame["theme"].value_counts(normalize=True).items():
        row = found.loc[name]
        assert row.low <= share <= row.high


def test_without_labels_prior_shift_is_assumed(model):
    corpus, frame = corpus_of(700, seed=5)
    found = prevalence(model, corpus)
    table = found.to_frame().set_index("class")
    for name, share in frame["theme"].value_counts(normalize=True).items():
        assert table.loc[name].low <= share <= table.loc[name].high
    assert np.isclose(table["share"].sum(), 1) and table["labels_share"].isna().all()
    assert [decision.name for decision in found.decisions] == ["prior_shift"]


def test_effects_of_covariates(model):
    corpus, frame = corpus_of(800, seed=4)
    table = effects(model, corpus, "label", ["side", "length"], target="fruit").set_index("term")
    assert table.index.tolist() == ["intercept", "length", "side_right"]
    y = (frame["theme"] == "fruit").to_numpy(dtype=float)
    X = np.stack([np.ones(800), frame["length"], frame["side"] == "right"], axis=1).astype(float)
    truth = np.linalg.lstsq(X, y, rcond=None)[0]
    for wanted, row in zip(truth, table.itertuples(), strict=True):
        assert row.low <= wanted <= row.high
    for parameter, options in (
        ("target", {"target": "music"}), ("covariates", {"covariates": ["colour"]}),
    ):  # fmt: skip
        given = {"covariates": ["side"], "target": "fruit", **options}
        with refuses(parameter):
            effects(model, corpus, "label", given.pop("covariates"), **given)


TEXTS = ["apple pear", "station rail", "", "pawn rook", "plum cider"]


@pytest.mark.parametrize(
    ("parameter", "row", "given"),
    [
        ("labelled", None, {"labelled": ["fruit"]}),
        ("labelled", None, {"labelled": "theme"}),
        ("labelled", None, {"labelled": [None] * 5}),
        ("y", 1, {"labelled": ["fruit", "music", None, None, None]}),
        ("probability", None, {"labelled": None, "probability": [0.5] * 5}),
        ("probability", 3, {"probability": [0.5, 0.5, 0.5, 0.0, 0.5]}),
        ("probability", 0, {"probability": [None, 0.5, 0.5, 0.5, 0.5]}),
        ("by", None, {"by": "colour"}),
        ("every", None, {"every": "decade"}),
    ],
)
def test_what_no_share_can_be_estimated_from_is_refused(model, parameter, row, given):
    labels = ["fruit", "train", None, "chess", None]
    with refuses(parameter, row=row):
        prevalence(model, Corpus(TEXTS), **{"labelled": labels, **given})
