"""Axes between seeds, and positions on them, beside calculations by hand and simpler oracles."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

import embedtopics as et
from embedtopics.inference import regress, shares
from embedtopics.probing import Scale

FRUIT, TRAINS = ("apple", "pear", "plum"), ("rail", "track", "signal")
ANGLE = {word: 0.1 * i for i, word in enumerate(FRUIT)}
ANGLE |= {word: np.pi / 2 - 0.1 * i for i, word in enumerate(TRAINS)}


class Plane:
    """An encoder into the plane: the mean direction of the words, by `ANGLE`."""

    name = "plane"

    def encode(self, texts, **_):
        vectors = np.zeros((len(texts), 2))
        for row, text in enumerate(texts):
            for word in text.lower().replace(".", "").split():
                angle = ANGLE.get(word, np.pi / 4 + 0.02 * (sum(map(ord, word)) % 7 - 3))
                vectors[row] += np.cos(angle), np.sin(angle)
        return vectors


def texts_of(n, seed=0):
    rng = np.random.default_rng(seed)
    fillers = "old new small large good red long cold".split()
    texts, share = [], rng.random(n)
    for row in range(n):
        words = [str(rng.choice(FRUIT if rng.random() < share[row] else TRAINS)) for _ in range(6)]
        texts.append(" ".join([*words, *map(str, rng.choice(fillers, 4)), str(row)]))
    return texts, share


@pytest.fixture(scope="module")
def frame():
    texts, share = texts_of(240)
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "text": texts,
            "share": share,
            "side": np.where(share > 0.5, "fruit", "trains"),
            "speaker": [f"s{number}" for number in rng.integers(0, 30, 240)],
            "year": 2000 + np.arange(240) % 4,
        }
    )


@pytest.fixture(scope="module")
def scale(frame):
    return Scale(FRUIT, TRAINS, encoder=Plane()).fit(et.Corpus(frame, text="text"))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_positions_are_projections_on_the_axis_between_the_means_of_the_sides(frame, scale):
    vectors = unit(Plane().encode(frame["text"]))
    axis = unit(Plane().encode(FRUIT)).mean(axis=0) - unit(Plane().encode(TRAINS)).mean(axis=0)
    along = vectors @ axis
    expected = (along - along.mean()) / along.std()
    np.testing.assert_allclose(scale.positions_.values, expected, atol=1e-5)
    np.testing.assert_allclose(scale.positions(frame["text"][:5]).values, expected[:5], atol=1e-5)
    assert np.corrcoef(expected, frame["share"])[0, 1] > 0.6
    words = scale.words_.set_index("word")["position"]
    assert words.idxmax() == "apple" and words.idxmin() == "rail"


def test_held_out_seeds_lie_on_the_axis_of_the_others(frame, scale):
    seeds = unit(Plane().encode([*FRUIT, *TRAINS]))
    vectors = unit(Plane().encode(frame["text"]))
    ends = seeds[1:3].mean(axis=0), seeds[3:].mean(axis=0)  # without the first, apple
    axis = ends[0] - ends[1]
    expected = (seeds[0] - (ends[0] + ends[1]) / 2) @ axis / (vectors @ axis).std()
    row = scale.seeds_.set_index("seed").loc["apple"]
    assert row["held_out"] == pytest.approx(expected, abs=1e-4)
    assert scale.seeds_["own_side"].all() and (scale.seeds_["correlation"] > 0.99).all()


def test_sides_rows_and_seeds_can_change_places(frame, scale):
    positions = scale.positions_
    other = Scale(TRAINS, FRUIT, encoder=Plane()).fit(et.Corpus(frame, text="text"))
    assert np.array_equal(other.positions_.values, -positions.values)
    assert np.array_equal(other.positions_.draws, -positions.draws)
    order = np.random.default_rng(3).permutation(len(frame))
    other = Scale(FRUIT[::-1], TRAINS, encoder=Plane()).fit(
        et.Corpus(frame.iloc[order], text="text")
    )
    assert np.array_equal(other.positions_.draws, positions.draws[order])
    again = clone(scale).fit(list(frame["text"]))
    assert np.array_equal(again.positions_.draws, positions.draws)


def test_intervals_are_those_of_a_bootstrap_of_units_and_seeds(frame, scale):
    by_side = shares(scale.positions_.measurement(units="speaker"), "side")
    row = by_side.to_frame().set_index("group").loc["fruit"]
    vectors, rng = unit(Plane().encode(frame["text"])), np.random.default_rng(0)
    sides = [unit(Plane().encode(side)) for side in (FRUIT, TRAINS)]
    speakers, is_fruit = frame["speaker"].to_numpy(), (frame["side"] == "fruit").to_numpy()
    rows_of_speaker = {
        s: np.flatnonzero((speakers == s) & is_fruit) for s in set(speakers[is_fruit])
    }
    by_units, by_seeds = [], []
    for _ in range(600):
        axis = np.subtract(*(side[rng.integers(0, 3, 3)].mean(axis=0) for side in sides))
        along = vectors @ axis
        by_seeds.append(((along - along.mean()) / along.std())[is_fruit].mean())
        drawn = rng.choice(sorted(rows_of_speaker), len(rows_of_speaker))
        by_units.append(
            scale.positions_.values[np.concatenate([rows_of_speaker[s] for s in drawn])].mean()
        )
    variance = np.var(by_units) + 1.5 * np.var(by_seeds)  # of three seeds a side, 3 / 2
    assert (row.high - row.low) / 4 == pytest.approx(variance**0.5, rel=0.15)
    contrast = by_side.difference("fruit", "trains")
    assert contrast.value > 1 and contrast.p < 0.001


def test_a_ridge_on_scores_is_that_of_scikit_learn(frame):
    scores = np.where(np.arange(240) < 80, frame["share"], np.nan)
    scale = Scale(encoder=Plane()).fit(list(frame["text"]), scores)
    vectors = unit(Plane().encode(frame["text"]))
    oracle = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(vectors[:80], scores[:80])
    np.testing.assert_allclose(scale.positions_.values, oracle.predict(vectors), atol=1e-5)
    assert scale.penalty_ == oracle.alpha_ and 0.3 < scale.cv_correlation_ < 1
    rng, one = np.random.default_rng(0), RidgeCV(alphas=[oracle.alpha_])
    rows = rng.integers(0, 80, (300, 80))
    drawn = [one.fit(vectors[some], scores[some]).predict(vectors[80:]) for some in rows]
    widths = scale.positions_.draws[80:].std(axis=1)
    assert widths.mean() == pytest.approx(np.std(drawn, axis=0).mean(), rel=0.2)


def test_regressions_take_the_choice_of_the_seeds(frame, scale):
    positions, data = scale.positions_, frame[["side"]]
    with_seeds = regress(positions.measurement(units="speaker"), "position ~ side")
    plain = et.inference.Measurement(
        positions.values, positions.values, sampling="random", units=frame["speaker"], data=data,
        kind="number", name="position",
    )  # fmt: skip
    without = regress(plain, "position ~ side")
    assert np.array_equal(with_seeds.corrected.value, without.corrected.value)
    assert (with_seeds.corrected.error > without.corrected.error).all()
    is_fruit = (frame["side"] == "fruit").to_numpy()
    slopes = positions.draws[~is_fruit].mean(axis=0) - positions.draws[is_fruit].mean(axis=0)
    added = with_seeds.corrected.error[1] ** 2 - without.corrected.error[1] ** 2
    wider = (2.776 / 1.96) ** 2  # Student's t of 4 degrees of freedom
    assert added == pytest.approx(wider * np.var(slopes), rel=0.4)
    gold = np.where(np.arange(240) % 3 == 0, frame["share"], np.nan)
    measured = positions.measurement(gold, sampling="random", name="share")
    share = shares(measured).to_frame().iloc[0]
    assert share.low < frame["share"].mean() < share.high and share.n_gold == 80


def test_positions_within_topics_show_no_topic(frame, scale):
    topics = np.arange(240) % 3

    class Result:
        labels = topics

    positions = scale.positions(within=Result)
    means = pd.Series(positions.values).groupby(topics).mean()
    np.testing.assert_allclose(means, 0, atol=1e-12)
    assert list(positions.corpus.metadata["topic"]) == list(topics)
    assert len(shares(positions, ["topic", "side"]).to_frame()) == 6
    with pytest.raises(et.errors.InputError, match="within"):
        scale.positions(frame["text"][:9], within=Result)


def test_what_drives_a_position(frame, scale):
    moved = scale.explain("old apple and rail").set_index("word")["shift"]
    assert moved["apple"] > 0 > moved["rail"]
    ends = scale.positions_.ends(3)
    assert list(ends["position"]) == sorted(ends["position"], reverse=True) and len(ends) == 6
    assert ends["position"].iloc[0] == scale.positions_.values.max()


def test_one_seed_a_side_has_no_interval_and_agreement_is_a_correlation(frame, scale):
    with pytest.warns(UserWarning, match="one seed"):
        other = Scale(["apple"], ["signal"], encoder=Plane()).fit(et.Corpus(frame, text="text"))
    agreement = scale.positions_.agreement(other.positions_)
    values = scale.positions_.values, other.positions_.values
    assert agreement.value == pytest.approx(np.corrcoef(*values)[0, 1])
    assert agreement.low < agreement.value <= agreement.high
    assert shares(other.positions_, "side").to_frame()["low"].isna().all()
    with pytest.raises(et.errors.InputError, match="same texts"):
        scale.positions_.agreement(other.positions(["apple", "rail"]))


def test_a_scale_between_random_words_is_called_noise(frame):
    seeds = ["old", "new", "apple", "rail"], ["small", "red", "pear", "track"]
    with pytest.warns(UserWarning, match="own side|random words"):
        scale = Scale(*seeds, encoder=Plane()).fit(list(frame["text"]))
    assert {one.name for one in scale.decisions_} == {"axis"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scale(FRUIT, TRAINS, encoder=Plane()).fit(list(frame["text"]))


def test_seed_texts_and_rows_without_text(frame):
    texts = ["", *frame["text"]]
    scale = Scale(["apple pear apple"], ["rail signal", "track rail"], encoder=Plane())
    with pytest.warns(UserWarning, match="one seed"):
        values = scale.fit(texts).positions_.values
    assert np.isnan(values[0]) and np.corrcoef(values[1:], frame["share"])[0, 1] > 0.6


@pytest.mark.parametrize(
    ("positive", "negative", "parameter", "says"),
    [
        (["aple", "pear"], TRAINS, "positive", "'aple'; similar words are 'apple'"),
        (FRUIT, ["rail", "Apple"], "negative", "both have 'apple'"),
        (FRUIT, [], "negative", "one or more"),
        ("apple", TRAINS, "positive", "a list"),
        (None, None, "positive", "one or more"),
    ],
)
def test_unusable_seeds_are_refused(frame, positive, negative, parameter, says):
    with pytest.raises(et.errors.InputError) as error:
        Scale(positive, negative, encoder=Plane()).fit(list(frame["text"]))
    assert error.value.parameter == parameter and says in str(error.value)


def test_other_unusable_input_is_refused(frame):
    texts, scale = list(frame["text"]), Scale(encoder=Plane())
    for match, one, values in (
        ("no text", Scale(FRUIT, TRAINS, encoder=Plane()), (["", " "],)),
        ("one score for each", scale, (texts, [1.0, 2.0])),
        ("not all equal", scale, (texts, np.ones(240))),
        ("dense", Scale(FRUIT, TRAINS, encoder="tfidf"), (texts,)),
        ("one score for each", Scale(FRUIT, TRAINS), (texts, Plane())),
        ("in the constructor", Scale(FRUIT, TRAINS), (texts, "all-MiniLM-L6-v2")),
        ("left out for seeds", Scale(FRUIT, TRAINS, encoder=Plane()), (texts, np.ones(240))),
    ):
        with pytest.raises(et.errors.InputError, match=match):
            one.fit(*values)


def test_words_are_read_at_a_middle_layer_of_a_transformer(monkeypatch):
    texts = ["The movie is good and great.", "A bad and awful plot.", "A great cast, a good one."]
    texts += ["An awful script and bad acting.", "They walk to the station.", "It rains."]
    scale = Scale(["good", "great"], ["bad", "awful"]).fit(texts)
    states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, layers=4)
    vectors = np.asarray(states.layer(4), dtype=np.float64)
    center = vectors.mean(axis=0)
    words = np.array([word.lower() for word in states.words])
    means = unit(np.array([vectors[states.rows_of(i)].mean(axis=0) for i in range(6)]) - center)
    names = ("good", "great", "bad", "awful")
    seeds = {name: vectors[words == name].mean(axis=0) - center for name in names}
    seeds = {word: one / np.linalg.norm(one) for word, one in seeds.items()}
    axis = (seeds["good"] + seeds["great"] - seeds["bad"] - seeds["awful"]) / 2
    sentences = unit(et.SentenceEncoder().encode([*texts, *seeds]))
    long = sentences[6:8].mean(axis=0) - sentences[8:].mean(axis=0)
    parts = [sentences[:6] @ long, means @ axis]
    expected = sum(part / part.std() for part in parts)
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(scale.positions_.values, expected, atol=2e-2)
    read = []
    monkeypatch.setattr("embedtopics.probing._scale.hidden_states", lambda *a, **k: read.append(a))
    scale.set_params(positive=["great"], negative=["awful"])
    with pytest.warns(UserWarning, match="one seed"):
        scale.fit(texts)
    assert len(read) == 0 and scale.positions_.values[0] > scale.positions_.values[1]
