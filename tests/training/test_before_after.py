"""Before and after: figures of all kinds of examples, and what is said of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from embedtopics.training import _compare as on_corpus
from embedtopics.training._compare import compare_before_after
from tests.factories import Table, encodes, refuses
from tests.training.tables import cosine, examples_of, moved, random_vectors

DESCRIBED = ("10 nearest neighbours kept", "topics of two runs agree (ARI)")


@pytest.fixture(scope="module")
def sets():
    """A set of each kind, over texts that some of them share."""
    rng = np.random.default_rng(3)
    texts = [f"text {i}" for i in range(240)]
    a, b, c = texts[:80], texts[80:160], texts[160:]
    classes = rng.integers(0, 3, 80)
    premises = [a[i // 3] for i in range(80)]
    return texts, {
        "graded": examples_of("graded", (a, b), rng.integers(0, 6, 80) / 5),
        "nli": examples_of(
            "nli", (premises, b), classes, ("entailment", "neutral", "contradiction")
        ),
        "triplets": examples_of("triplets", (a, b, c, c[::-1])),
        "pairs": examples_of("pairs", ([*a[:-1], a[0]], b)),
    }


def test_figures_of_a_set_are_those_of_the_libraries(sets):
    texts, by_kind = sets
    before = random_vectors(texts, 0)
    after = moved(before, 0.7, 1)
    found = compare_before_after(Table(before), Table(after), test=by_kind, n_resamples=100)
    figures = {(change.task, change.metric): change for change in found}
    assert len(figures) == len(found) == 7
    for vectors, side in ((before, "before"), (after, "after")):

        def similarity(kind, second=1, vectors=vectors):
            columns = by_kind[kind].columns
            return np.array(
                [cosine(vectors, *p) for p in zip(columns[0], columns[second], strict=True)]
            )

        def check(task, metric, value, side=side):
            assert getattr(figures[task, metric], side) == pytest.approx(value, abs=1e-4)

        graded, labels = similarity("graded"), by_kind["graded"].labels
        check("graded", "Spearman correlation", stats.spearmanr(graded, labels).statistic)
        check("graded", "Pearson correlation", stats.pearsonr(graded, labels).statistic)
        near, far = similarity("triplets"), [similarity("triplets", i) for i in (2, 3)]
        check("triplets", "accuracy", np.mean((near > far[0]) & (near > far[1])))
        nli, classes = similarity("nli"), by_kind["nli"].labels
        asked = classes != 1
        check("nli", "AUC, entailment against contradiction",
              roc_auc_score(classes[asked] == 0, nli[asked]))  # fmt: skip
        premises = by_kind["nli"].columns[0]
        right = [nli[i] > nli[j] for i in range(80) for j in range(80)
                 if premises[i] == premises[j] and classes[i] == 0 and classes[j] == 2]  # fmt: skip
        check("nli", "entailed nearer than contradicted", np.mean(right))
        queries, answers = by_kind["pairs"].columns
        ranks = []
        for query, answer in zip(queries, answers, strict=True):
            own = {b for a, b in zip(queries, answers, strict=True) if a == query}
            rivals = [cosine(vectors, query, b) for b in set(answers) - own]
            ranks.append(1 + sum(rival > cosine(vectors, query, answer) for rival in rivals))
        check("pairs", "MRR@10", np.mean([1 / r if r <= 10 else 0 for r in ranks]))
        check("pairs", "accuracy@1", np.mean([r == 1 for r in ranks]))
    for change in found:
        assert change.difference == change.after - change.before
        assert change.low <= change.difference <= change.high


def test_swapping_the_encoders_turns_the_signs_round(sets):
    texts, by_kind = sets
    one = random_vectors(texts, 0)
    other = moved(one, 1.0, 1)
    found = compare_before_after(Table(one), Table(other), test=by_kind)
    swapped = compare_before_after(Table(other), Table(one), test=by_kind)
    flipped = {"better": "worse", "worse": "better", "no difference shown": "no difference shown"}
    for change, back in zip(found, swapped, strict=True):
        assert back.difference == -change.difference
        assert (back.before, back.after) == (change.after, change.before)
        assert (back.low, back.high) == pytest.approx((-change.high, -change.low), abs=1e-12)
        assert back.verdict == flipped[change.verdict]


def test_what_is_better_is_called_better_and_what_is_worse_worse():
    rng = np.random.default_rng(0)
    texts = [[f"{side} {i}" for i in range(200)] for side in "ab"]
    angle = rng.uniform(0, np.pi, 200)
    truth = (1 + np.cos(angle)) / 2
    exact = {a: np.array([1.0, 0.0]) for a in texts[0]}
    exact |= {b: np.array([np.cos(t), np.sin(t)]) for b, t in zip(texts[1], angle, strict=True)}
    rough = moved(exact, 0.8, 1)
    test = examples_of("graded", texts, truth)
    found = compare_before_after(Table(rough), Table(exact), test=test)
    assert {change.verdict for change in found} == {"better"}
    assert found[0].after == pytest.approx(1.0, abs=1e-3)
    found = compare_before_after(Table(exact), Table(rough), general=test)
    assert {(change.task, change.verdict) for change in found} == {("general", "worse")}


def test_among_many_figures_a_narrow_verdict_carries_a_note():
    rng = np.random.default_rng(12)
    texts = [[f"{side} {i}" for i in range(60)] for side in "ab"]
    names = texts[0] + texts[1]
    notes, verdicts = [], []
    for seed in range(5):
        before = random_vectors(names, seed)
        after = random_vectors(names, seed + 100)
        tests = {str(i): examples_of("graded", texts, rng.uniform(size=60)) for i in range(8)}
        for change in compare_before_after(
            Table(before), Table(after), test=tests, n_resamples=300
        ):
            verdicts.append(change.verdict != "no difference shown")
            notes.append("Holm" in change.note)
    assert 0 < sum(verdicts) < 0.15 * len(verdicts)
    assert sum(notes) >= sum(verdicts) - 2
    assert not any(note and not verdict for note, verdict in zip(notes, verdicts, strict=True))


def test_an_encoder_that_says_the_same_of_everything_has_no_correlation(sets):
    texts, by_kind = sets
    good = random_vectors(texts, 0)
    blind = dict.fromkeys(texts, np.ones(3))
    found = compare_before_after(Table(good), Table(blind), test=by_kind["graded"], n_resamples=100)
    for change in found:
        assert np.isnan(change.after) and np.isnan(change.low)
        assert change.verdict == "no difference shown" and "same similarity" in change.note


def test_encoders_that_are_read_in_different_ways_are_told_apart_from_training(sets):
    texts, by_kind = sets
    one, other = (Table(random_vectors(texts, seed)) for seed in (0, 1))
    one.settings = {"precision": "int8", "long_texts": "truncate", "name": "a"}
    for settings, said in (
        (
            {"precision": "float32", "long_texts": "truncate", "name": "b"},
            "precision int8 before and float32",
        ),
        ({**one.settings, "name": "b"}, ""),
        ({"kind": "static"}, ""),
    ):
        other.settings = settings
        for change in compare_before_after(one, other, test=by_kind["graded"], n_resamples=100):
            assert ("precision" in change.note) == bool(said) and said in change.note


@pytest.mark.parametrize("kind", ["texts", "labelled"])
def test_kinds_of_which_nothing_can_be_told_give_nothing(kind):
    labels = np.ones((2, 3), dtype=np.float32) if kind == "labelled" else None
    test = examples_of(kind, (("a", "b"),), labels)
    encoder = encodes(lambda texts: np.ones((len(texts), 2)))
    assert compare_before_after(encoder, encoder, test=test) == ()


def test_bad_input_is_refused(sets):
    texts, by_kind = sets
    same = examples_of("graded", (("a", "b"), ("c", "d")), np.array([0.5, 0.5]))
    unnamed = examples_of("nli", (("a", "b"), ("c", "d")), np.array([0, 2]))
    known, graded = Table(dict.fromkeys("abcd", np.ones(2))), by_kind["graded"]
    encoder = Table(random_vectors(texts, 0))
    short = encodes(lambda _: np.ones((1, 2)))
    broken = encodes(lambda texts: np.full((len(texts), 2), np.nan))
    for parameter, asked, arguments in [
        *(("test", known, {"test": test}) for test in (same, unnamed)),
        ("test", encoder, {}),
        ("test", encoder, {"test": ["a"]}),
        ("general", encoder, {"test": {"x": graded}, "general": {"x": by_kind["pairs"]}}),
        ("n_resamples", encoder, {"test": graded, "n_resamples": 5}),
        ("random_state", encoder, {"test": graded, "random_state": -1}),
        ("corpus", encoder, {"test": graded, "labels": "label"}),
        ("corpus", encoder, {"corpus": ["a b", "c d", "e f"]}),
        ("before", short, {"test": graded}),
        ("", broken, {"test": graded}),
    ]:
        with refuses(parameter):
            compare_before_after(asked, asked, **arguments)


def test_figures_on_a_corpus_have_a_level_to_compare_with(toy):
    texts, rows, themes = toy
    before = dict(zip(texts, rows, strict=True))
    noise = random_vectors(texts, 9, 16)
    found = {
        change.metric: change
        for change in compare_before_after(
            Table(before), Table(noise), corpus=texts, labels=themes, n_resamples=300
        )
    }
    kept, topics = (found[name] for name in DESCRIBED)
    assert kept.verdict == topics.verdict == "descriptive"
    chance = 10 / (len(texts) - 1)
    assert kept.before == 1 and kept.after == pytest.approx(chance, abs=0.04)
    assert f"{chance:.1%}" in kept.note
    assert kept.low < kept.difference < kept.high < -0.8
    assert topics.before > 0.9 and abs(topics.after) < 0.1
    for name in ("10-NN accuracy", "AMI of topics and classes"):
        assert found[name].verdict == "worse" and found[name].n_test_evaluations == 0
    assert found["10-NN accuracy"].before == 1


def test_the_agreement_of_topics_names_what_two_runs_of_each_encoder_reach(monkeypatch):
    # Groups by formula: of either encoder two runs, which agree by so much and no more.
    rng = np.random.default_rng(0)
    n = 80
    runs = [rng.integers(0, 3, n).astype(np.int32) for _ in range(4)]
    runs[1] = np.where(np.arange(n) < 60, runs[0], runs[1])
    drawn = iter([*runs, *runs[:2], *runs[:2]])
    fitted = lambda *_, **__: SimpleNamespace(labels_=next(drawn))  # noqa: E731
    monkeypatch.setattr("sklearn.cluster.KMeans.fit", fitted)
    texts = [f"text {i}" for i in range(n)]
    encoders = [Table(random_vectors(texts, seed)) for seed in (0, 1)]
    (_, found) = compare_before_after(*encoders, corpus=texts, n_resamples=100)
    own, again, new, newer = runs
    assert found.before == pytest.approx(adjusted_rand_score(own, again))
    both = adjusted_rand_score(own, newer), adjusted_rand_score(new, again)
    assert found.after == pytest.approx(np.mean(both))
    assert f"agree by {found.before:.2f} before" in found.note
    assert f"by {adjusted_rand_score(new, newer):.2f} after" in found.note
    # One encoder beside itself reaches what its own two runs do, which is not 1.
    (_, same) = compare_before_after(encoders[0], encoders[0], corpus=texts, n_resamples=100)
    assert same.after == same.before == found.before < 0.9
    assert same.difference == same.low == same.high == 0


def test_a_large_corpus_is_sampled_and_says_so(toy, monkeypatch):
    monkeypatch.setattr(on_corpus, "MOST_DOCUMENTS", 60)
    texts, rows, _ = toy
    encoder = Table(dict(zip(texts, rows, strict=True)))
    found = compare_before_after(encoder, encoder, corpus=texts, n_resamples=100)
    assert {change.n for change in found} == {60}
    assert all(f"60 of {len(texts)} texts" in change.note for change in found)
    assert len(encoder.asked[0]) == 60
