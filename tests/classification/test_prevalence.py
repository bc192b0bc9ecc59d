"""Shares of a corpus: estimates by hand, intervals that cover, groups, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.base import BaseEstimator

from embedtopics import Corpus, TextClassifier, plots
from embedtopics.classification import adjusted_shares
from embedtopics.classification._adjusted_shares import adjusted_count
from embedtopics.classification._measure import measure
from embedtopics.inference import Measurement, regress, shares
from tests.classification.conftest import themed_texts
from tests.factories import refuses, rows_of


def shares_of(classifier, corpus, gold, by=None, *, every="year", probability=None):
    """Return the shares of a corpus that a classifier predicts, by the labels of a sample."""
    measured = Measurement.from_classifier(classifier, corpus, gold, probability=probability)
    return shares(measured, by, every=every)


def test_adjusted_count_finds_the_shares_that_were_drawn():
    rates = np.array([[0.9, 0.1], [0.3, 0.7]])
    assert np.allclose(adjusted_count(rates, np.array([0.2, 0.8]) @ rates), [0.2, 0.8])
    # Beyond what the rates can explain, the share is 0.
    assert np.allclose(adjusted_count(rates, np.array([0.1, 0.9])), [0, 1])


def covered(p, accuracy, n, n_draws, seed=0, n_others=5000, by_design=False):
    """Return how often intervals cover, and their width as a share of that of labels alone."""
    rng = np.random.default_rng(seed)
    apart = norm.ppf(accuracy)
    hits, widths, alone = [], [], []
    for _ in range(n_draws):
        y = (rng.random(n + n_others) < p).astype(float)
        score = rng.normal(size=len(y)) + apart * (2 * y - 1)
        f = expit(2 * apart * score + logit(p))
        chance = np.full(len(y), n / len(y))
        if by_design:  # texts that look like the class are labelled more often
            chance = np.clip(chance * np.where(f > p, 2.0, 0.6), 0, 1)
            marked = rng.random(len(y)) < chance
        else:
            marked = np.arange(len(y)) < n
        gold = np.where(marked, y, np.nan)
        one = rows_of(shares(Measurement(gold, f, probability=chance, kind="class")), name=1)[0]
        hits.append(one.low <= p <= one.high)
        widths.append(one.high - one.low)
        alone.append(one.gold_high - one.gold_low)
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
    found = shares_of(model, corpus, "label")
    table = found.to_frame().set_index("class")
    truth = frame["theme"].value_counts(normalize=True)
    for name in truth.index:
        row = table.loc[name]
        assert row.low <= truth[name] <= row.high and row.low < row.estimate < row.high
        assert row.high - row.low < row.gold_high - row.gold_low
        known = frame["label"].dropna()
        assert row.n_gold == len(known) and row.n == 700
        assert np.isclose(row.gold, (known == name).mean())
    wrong = abs(table["naive"] - truth)
    assert wrong.max() > 0.03 and found.decisions == () and "fruit" in repr(found)
    further = found.further_gold(0.05).set_index("class")["further_gold"]
    assert (further > 0).all()


@pytest.mark.slow
def test_a_classifier_that_knows_the_labels_is_cross_fitted(counted):
    corpus, frame = corpus_of(500)
    found = shares_of(TextClassifier(counted), corpus, frame["label"])
    assert [decision.name for decision in found.decisions] == ["cross_fitted"]
    marked = frame.dropna(subset="label")
    learned = TextClassifier(counted).fit(marked["text"].tolist(), marked["label"].tolist())
    again = shares_of(learned, corpus, frame["label"])
    assert again.to_frame().equals(found.to_frame())
    row = found.to_frame().set_index("class").loc["fruit"]
    assert row.low <= (frame["theme"] == "fruit").mean() <= row.high


def test_texts_that_the_classifier_learned_from_are_left_out_without_their_labels(data_folder):
    news = pd.read_json(data_folder / "bbc_news" / "bbc_news.jsonl.gz", lines=True)
    news = news.assign(text=news["text"].str[:300]).drop_duplicates("text")
    news = news.sample(700, random_state=0)
    texts, labels = news["text"].tolist(), news["label"].tolist()
    learned = TextClassifier("lsa").fit(texts[:300], labels[:300])
    shares_by_n = {}
    for n_shared in (0, 1):
        sample = [
            label if 300 - n_shared <= row < 400 else None for row, label in enumerate(labels)
        ]
        found = shares_of(learned, texts, sample)
        shares_by_n[n_shared] = found.to_frame().drop(columns=["n_gold", "n_effective"])
        assert [decision.name for decision in found.decisions] == ["learned_left_out"]
        assert set(found.to_frame()["n_gold"]) == {100}
        assert set(found.to_frame()["n"]) == {400}
    pd.testing.assert_frame_equal(shares_by_n[0], shares_by_n[1], atol=1e-9)


@pytest.mark.parametrize("labels_of_training", [False, True])
def test_texts_that_were_learned_because_of_a_search_are_a_stratum(labels_of_training):
    rng = np.random.default_rng(8)
    is_tax = rng.random(900) < 0.2
    words = np.where(is_tax, "levy", "opera")
    # The search finds most texts on taxes, and few of the others.
    is_found = rng.random(900) < np.where(is_tax, 0.7, 0.1)
    found = np.where(is_found, "budget", "evening")
    texts = [f"{a} {b} n{i}" for i, (a, b) in enumerate(zip(words, found, strict=True))]
    names = np.where(is_tax, "tax", "other")
    learned = np.flatnonzero(is_found)
    training = [texts[row] for row in learned]
    model = TextClassifier("tfidf").fit(training, names[learned].tolist())

    is_drawn = np.isin(np.arange(900), rng.choice(900, 250, replace=False))
    has_label = is_drawn | is_found if labels_of_training else is_drawn
    shares = shares_of(
        model, texts, [n if k else None for n, k in zip(names, has_label, strict=True)]
    )
    row = rows_of(shares, name="tax")[0]

    by_stratum = [is_tax[has_label & part].mean() for part in (is_found, ~is_found)]
    expected = np.average(by_stratum, weights=[is_found.sum(), (~is_found).sum()])
    assert row.gold == pytest.approx(expected)
    assert row.low <= is_tax.mean() <= row.high
    decision = next(one for one in shares.decisions if one.name == "learned_stratum")
    assert decision.value == (has_label & is_found).sum()
    assert f"{is_found.sum()} rows" in decision.message


def test_a_sample_of_one_predicted_class_is_questioned(model):
    corpus, frame = corpus_of(500)
    guess = model.predict(list(frame["text"]))
    label = [one if g == "chess" else None for one, g in zip(frame["theme"], guess, strict=True)]
    names = [decision.name for decision in shares_of(model, corpus, label).decisions]
    assert names == ["unlikely_sample"]


def test_shares_by_group_and_time(model):
    corpus, _ = corpus_of(600)
    sides = shares_of(model, corpus, "label", by="side").to_frame()
    assert sides["group"].unique().tolist() == ["left", "right"]
    assert sides.groupby("class")["n"].sum().tolist() == [600] * 3
    months = shares_of(model, corpus, "label", by="day", every="quarter")
    names = months.to_frame()["group"].unique().tolist()
    assert names[0] == "2020-01-01" and names == sorted(names)
    fig = plots.shares(months)
    assert len(fig.data) == 9  # three classes: labels alone, predicted, estimated
    assert list(fig.data[2].x) == names
    bars = plots.shares(shares_of(model, corpus, "label", by="side"), classes=["chess"])
    assert list(bars.layout.yaxis.ticktext) == ["left  ", "right  "]
    with refuses("classes"):
        plots.shares(months, classes=["music"])


def test_known_chances_correct_a_sample_that_is_not_even(model):
    corpus, frame = corpus_of(900, seed=3)
    rng = np.random.default_rng(1)
    chance = np.where(frame["theme"] == "chess", 0.8, 0.15)
    label = frame["theme"].where(rng.random(900) < chance, None)
    found = shares_of(model, corpus, label, probability=chance).to_frame().set_index("class")
    assert (label.dropna() == "chess").mean() > 0.3
    for name, share in frame["theme"].value_counts(normalize=True).items():
        row = found.loc[name]
        assert row.low <= share <= row.high


def test_without_labels_prior_shift_is_assumed(model):
    corpus, frame = corpus_of(700, seed=5)
    found = adjusted_shares(model, corpus)
    table = found.to_frame().set_index("class")
    for name, share in frame["theme"].value_counts(normalize=True).items():
        assert table.loc[name].low <= share <= table.loc[name].high
    assert np.isclose(table["estimate"].sum(), 1) and table["gold"].isna().all()
    assert [decision.name for decision in found.decisions] == ["prior_shift"]


def test_a_measured_corpus_has_regressions(model):
    corpus, frame = corpus_of(800, seed=4)
    measured = Measurement.from_classifier(model, corpus, "label")
    table = regress(measured, "class ~ side + length", target="fruit", reference={"side": "left"})
    y = (frame["theme"] == "fruit").to_numpy(dtype=float)
    length = frame["length"] - frame["length"].mean()
    X = np.stack([np.ones(800), frame["side"] == "right", length], axis=1).astype(float)
    truth = np.linalg.lstsq(X, y, rcond=None)[0]
    for value, row in zip(truth, table.to_frame().itertuples(), strict=True):
        assert row.low <= value <= row.high


class Recall(BaseEstimator):
    """Recognizes the authors, the first words, of the texts that it learned from."""

    head, classes = "softmax", None

    def fit(self, texts, y):
        self.authors, self.classes_ = {text.split()[0] for text in texts}, np.unique(y)
        return self

    def predict_proba(self, texts):
        is_learned = np.array([text.split()[0] in self.authors for text in texts])
        return np.column_stack([is_learned, ~is_learned]).astype(float)


def test_no_row_is_predicted_by_what_learned_from_its_unit():
    authors = [f"author{row % 12}" for row in range(120)]
    texts = [f"{author} wrote {row}" for row, author in enumerate(authors)]
    labels = [["no", "yes"][row % 2] if row % 12 < 6 and row < 60 else None for row in range(120)]
    measured = measure(Recall(), texts, labels, units=authors)
    assert measured.proxy[:, 0].max() == 0
    assert measure(Recall(), texts, labels).proxy[:, 0].max() == 1
    assert len(np.unique(measured.sample.unit)) == 12
    with refuses("units", row=3):
        measure(Recall(), texts, labels, units=[*authors[:3], None, *authors[4:]])


TEXTS = ["apple pear", "station rail", "", "pawn rook", "plum cider"]


@pytest.mark.parametrize(
    ("parameter", "row", "given"),
    [
        ("gold", None, {"gold": ["fruit"]}),
        ("gold", None, {"gold": "theme"}),
        ("gold", None, {"gold": [None] * 5}),
        ("y", 1, {"gold": ["fruit", "music", None, None, None]}),
        ("probability", 3, {"probability": [0.5, 0.5, 0.5, 0.0, 0.5]}),
        ("probability", 0, {"probability": [None, 0.5, 0.5, 0.5, 0.5]}),
        ("by", None, {"by": "colour"}),
        ("every", None, {"every": "decade"}),
    ],
)
def test_what_no_share_can_be_estimated_from_is_refused(model, parameter, row, given):
    labels = ["fruit", "train", None, "chess", None]
    with refuses(parameter, row=row):
        shares_of(model, Corpus(TEXTS), **{"gold": labels, **given})
