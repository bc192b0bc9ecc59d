"""Streams, strategies, the model, shares, stopping and agreement, beside oracles."""

import re

import krippendorff
import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from embedtopics.annotation._estimates import recall_test
from embedtopics.annotation._loop import STRATEGIES, Pool
from embedtopics.inference import shares as measured_shares
from tests.annotation.conftest import NAMES, code
from tests.factories import refuses, rows_of


@pytest.fixture
def pool(toy):
    """Twelve labelled texts and what a model might think of all."""
    vectors = toy[1]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    labelled = rng.permutation(len(vectors))[:12]
    candidates = np.setdiff1d(np.arange(len(vectors)), labelled)
    return Pool(vectors, candidates, labelled, False, rng.dirichlet(np.ones(3), len(vectors)))


def test_the_smallest_margins_are_picked(pool):
    found = pool.probabilities[pool.candidates]
    ordered = np.sort(found, axis=1)
    wanted = pool.candidates[np.argsort(ordered[:, 2] - ordered[:, 1])[:5]]
    assert STRATEGIES["uncertainty"](pool, 5).tolist() == wanted.tolist()


def test_a_core_set_by_brute_force(pool):
    covered, wanted = pool.labelled.tolist(), []
    for _ in range(5):
        far = [min(np.linalg.norm(pool.vectors[a] - pool.vectors[b]) for b in covered)
               if a not in covered else -1 for a in pool.candidates]  # fmt: skip
        wanted.append(int(pool.candidates[np.argmax(far)]))
        covered.append(wanted[-1])
    assert STRATEGIES["diversity"](pool, 5).tolist() == wanted


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_strategies_return_different_candidates_and_need_no_model(pool, strategy):
    for shown in (pool, pool._replace(labelled=pool.labelled[:0], probabilities=None)):
        picked = strategy(shown, 7)
        assert len(set(picked)) == 7 and set(picked) <= set(shown.candidates)
        assert strategy(shown, 10**6).size <= len(shown.candidates)


@pytest.mark.parametrize("teach", [0.0, 0.25, 0.5, 1.0])
def test_streams_are_mixed_as_stated_and_the_test_part_is_not_taught(begin, truth, teach):
    study = begin(teach=teach, n_test=9)
    given = code(study, truth, 60)
    n_taught = sum(text.stream == "teach" for text in given)
    assert n_taught == round(60 * teach)
    frame = study.to_frame()
    assert (frame["stream"] == "teach").sum() == n_taught
    assert (frame.loc[frame["test"], "stream"] == "count").all()
    sample, n_missing = study.state.count_sample()
    in_sample = frame["probability"].notna()
    assert set(frame.loc[in_sample, "key"]) == set(sample) and n_missing == 0
    assert np.allclose(frame.loc[in_sample, "probability"], len(sample) / len(study.keys))


def test_the_sample_is_the_same_whatever_is_taught(begin, truth):
    first, second = begin(strategy="random"), begin(folder="other", strategy="diversity")
    for study in (first, second):
        code(study, truth, 60)
    one, other = first.state.count_sample().keys, second.state.count_sample().keys
    shorter = min(len(one), len(other))
    assert shorter >= 30 and one[:shorter] == other[:shorter]


def test_the_random_strategy_is_random_from_the_first_text(begin, truth):
    other = code(begin(teach=1.0), truth, 6)
    texts = code(begin(teach=1.0, strategy="random", folder="other"), truth, 6)
    assert [text.key for text in texts] != [text.key for text in other]
    assert not {text.key for text in texts} <= {text.key for text in other}


@pytest.mark.parametrize("kind", ["single", "several", "ordinal"])
def test_the_model_learns_and_shares_hold_the_truth(begin, truth, kind):
    study = begin(kind=kind, n_test=10)
    code(study, truth, 80)
    study.loop.learn()
    guess = np.array(NAMES)[study.loop.probabilities.argmax(axis=1)]
    texts = study.state.texts.documents.texts
    assert (guess == [truth[text] for text in texts]).mean() > 0.95
    quality = study.quality()
    assert set(quality["part"]) == {"count", "test"} and (quality["value"].dropna() > 0.8).all()
    true = pd.Series(truth).value_counts(normalize=True)
    shares = measured_shares(study).to_frame()
    for name, low, high in shares[["class", "low", "high"]].values:
        assert low <= true[name] <= high
    stopping = study.stopping().to_frame()
    assert (stopping["width_after_50"] < stopping["width"]).all()


def test_nothing_is_estimated_from_nothing(begin):
    study = begin(teach=1.0)
    with refuses("count texts"):
        measured_shares(study)
    study.label(study.next().key, "fruit")
    assert study.stopping().to_frame()["width"].isna().all()


def test_one_label_alone_can_be_counted(begin, truth):
    study = begin(["yes", "no"], teach=0.0)
    for _ in range(30):
        study.label(study.next().key, "no")
    (share,) = rows_of(measured_shares(study), name="yes")
    assert share.estimate == 0 and 0.05 < share.high < 0.2


def test_the_recall_test_by_hand():
    # 40 of 300 taught texts are relevant, and 1 of 400 counted ones: a recall of 95 % would be
    # missed with floor(41 / .95 - 40) + 1 = 4 or more among the 1,700 that were not taught.
    found = recall_test(2000, 300, 40, 400, 1)
    assert np.isclose(found.p, hypergeom.cdf(1, 1700, 4, 400)) and not found.enough
    assert recall_test(2000, 300, 40, 1500, 0).enough
    bounds = [k for k in range(1, 1301) if hypergeom.cdf(1, 1700, k, 400) >= 0.05]
    assert np.isclose(found.recall_bound, 41 / (40 + max(bounds)))
    assert recall_test(100, 40, 10, 60, 0).recall_bound == 1.0


@pytest.mark.parametrize(("kind", "level"), [("single", "nominal"), ("ordinal", "ordinal")])
def test_annotators_who_differ(begin, truth, kind, level):
    study = begin(teach=0.0, overlap=1.0, kind=kind)
    first = code(study, truth, 20, by="Ada")
    second = [study.next(by="Bo") for _ in range(1)]
    assert second[0].key in {text.key for text in first}
    for place, text in enumerate(first):
        study.label(text.key, "chess" if place < 4 else truth[text.text], by="Bo")
    found = study.agreement()
    table = study.to_frame().pivot(index="annotator", columns="key", values="label")
    codes = table.replace({name: place for place, name in enumerate(NAMES)}).astype(float)
    wanted = krippendorff.alpha(codes.to_numpy(), level_of_measurement=level)
    assert np.isclose(found.alpha["label"], wanted) and found.n_texts == 20
    low, high = found.intervals["label"]
    assert low < wanted < high <= 1
    differ = [text for text in first[:4] if truth[text.text] != "chess"]
    assert set(found.disagreements["key"]) == {text.key for text in differ}
    assert study.labels().notna().sum() == 20 - len(differ)


def test_annotators_of_spans_agree_by_words(begin):
    study = begin(teach=0.0, overlap=1.0, kind="spans")
    rng = np.random.default_rng(0)
    ratings = {name: ([], []) for name in NAMES}
    for _ in range(12):
        text = study.next(by="Ada")
        places = [word.span() for word in re.finditer(r"\S+", text.text)]
        for row, by in enumerate(("Ada", "Bo")):
            first = int(rng.integers(0, max(1, len(places) - 2)))
            name, end = NAMES[int(rng.integers(2))], min(first + 2, len(places) - 1)
            study.label(text.key, by=by, spans=[(name, places[first][0], places[end][1] - 1)])
            for label in NAMES:
                is_inside = [label == name and first <= i <= end for i in range(len(places))]
                ratings[label][row].extend(is_inside)
    found = study.agreement()
    for name in NAMES[:2]:
        codes = np.array(ratings[name], dtype=float)
        expected = krippendorff.alpha(codes, level_of_measurement="nominal")
        assert np.isclose(found.alpha[name], expected)
        low, high = found.intervals[name]
        assert low < expected < high
    assert np.isnan([found.alpha[name] for name in NAMES[2:]]).all()  # nobody used them
    assert found.n_texts == 12 and len(found.disagreements) > 6


def test_the_recall_test_errs_rarely_although_both_streams_are_mixed():
    rng = np.random.default_rng(0)
    wrong, above, n_below = 0, 0, 0
    for _ in range(300):
        is_relevant = np.arange(400) < 40
        score = is_relevant + rng.normal(0, 0.7, 400)
        order, best = rng.permutation(400).tolist(), np.argsort(-score).tolist()
        stream = np.zeros(400, dtype=int)  # 1 where taught, 2 where counted
        for place in range(230):
            chosen = next(row for row in (best, order)[place % 2] if not stream[row])
            stream[chosen] = 1 + place % 2
        taught, counted = stream == 1, stream == 2
        found = recall_test(400, taught.sum(), (taught & is_relevant).sum(), counted.sum(),
                            (counted & is_relevant).sum(), recall=0.9)  # fmt: skip
        recall = is_relevant[stream > 0].sum() / 40
        n_below += recall < 0.9
        wrong += found.enough and recall < 0.9
        above += found.recall_bound > recall
    assert n_below > 60 and wrong <= 0.07 * 300 and above <= 0.07 * 300
