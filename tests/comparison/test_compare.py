import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, silhouette_score
from sklearn.neighbors import KNeighborsClassifier

from embedtopics import Corpus
from embedtopics.comparison import compare_encoders
from embedtopics.corpus._corpus import as_corpus
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.evaluation._bootstrap import bounded_interval
from embedtopics.evaluation._labels import groups_of, scored_classes
from embedtopics.neighbors._graph import unit_rows
from tests.comparison.conftest import Hashed, WordCounts
from tests.factories import refuses, with_threads

QUICK = {"k": 6, "n_moves": 3, "n_resamples": 50}


def value(result, encoder, measure):
    scores = result.scores
    row = scores[(scores["encoder"] == encoder) & (scores["measure"] == measure)]
    assert len(row) == 1
    return row.iloc[0]


def assert_same(first, second):
    """Compare all but times, to the last bit."""
    for one, other in zip(first.encoders, second.encoders, strict=True):
        np.testing.assert_array_equal(one.map, other.map)
        np.testing.assert_array_equal(one.graph.indices, other.graph.indices)
        np.testing.assert_array_equal(one.graph.similarities, other.graph.similarities)
    for one, other in zip(first.neighbor_overlaps, second.neighbor_overlaps, strict=True):
        np.testing.assert_array_equal(one.rank_biased, other.rank_biased)
    np.testing.assert_array_equal(first.groups, second.groups)
    assert first.group_names == second.group_names
    pd.testing.assert_frame_equal(first.moved, second.moved)
    untimed = [r.scores[r.scores["measure"] != "documents_per_second"] for r in (first, second)]
    pd.testing.assert_frame_equal(*untimed)


def test_the_result_has_a_row_for_each_document(compared, themed):
    corpus, _ = themed
    n = len(corpus.distinct())
    assert compared.names == ("words", "themes", "hashed", "noise")
    assert compared.grouped_by == 'label "label"'
    assert set(compared.group_names) == {"fruit", "train", "chess"}
    names = [compared.group_names[group] for group in compared.groups]
    assert names == corpus.metadata["label"].iloc[compared.distinct.first_rows].tolist()
    for view in compared.encoders:
        assert view.map.shape == (n, 2) and view.graph.indices.shape == (n, 8)
        assert np.isfinite(view.map).all()
    assert [(o.first, o.second) for o in compared.neighbor_overlaps] == [
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    ]  # fmt: skip
    assert len(compared.moved) == 6 * 5
    assert compared.versions["numpy"] == np.__version__
    assert compared.settings["encoders"] == list(compared.names)
    assert compared.encoders[1].dimensions == 16 and np.isnan(compared.encoders[1].seconds)
    assert compared.encoders[2].seconds > 0
    decided = {d.name: d.value for d in compared.decisions}
    assert (decided["empty"], decided["duplicates"], decided["languages"]) == (2, 2, ["en"])
    assert "given" in decided
    pd.testing.assert_frame_equal(compared.to_frame(), compared.scores)
    scores = compared.scores.dropna()
    assert (scores["low"] <= scores["value"]).all() and (scores["value"] <= scores["high"]).all()
    assert set(scores["measure"]) == {
        "knn_accuracy", "probe_accuracy", "probe_macro_f1", "silhouette", "trustworthiness",
        "continuity",
    }  # fmt: skip
    assert (compared.per_document["probe_prediction"] >= 0).all()


def test_scores_equal_those_of_scikit_learn(compared, themed):
    corpus, vectors = themed
    rows = unit_rows(vectors, rows=corpus.distinct().first_rows)
    classes = compared.groups
    assert value(compared, "themes", "silhouette")["value"] == pytest.approx(
        silhouette_score(rows.astype(float), classes, metric="cosine"), abs=1e-6
    )
    right = []
    for i in range(len(rows)):  # k is 8, so that 8 of the 10 neighbours that vote are there
        others = np.arange(len(rows)) != i
        voters = KNeighborsClassifier(8, metric="cosine", weights=lambda d: 1 - d)
        told = voters.fit(rows[others], classes[others]).predict(rows[[i]])[0]
        right.append(told == classes[i])
    assert value(compared, "themes", "knn_accuracy")["value"] == pytest.approx(np.mean(right))
    predicted = compared.per_document["probe_prediction"]
    for place, name in enumerate(compared.names):
        expected = f1_score(classes, predicted[place], average="macro")
        assert value(compared, name, "probe_macro_f1")["value"] == pytest.approx(expected)
        assert value(compared, name, "probe_accuracy")["value"] == pytest.approx(
            np.mean(predicted[place] == classes)
        )


def test_the_interval_of_macro_f1_is_that_of_resampled_predictions(compared):
    n = len(compared.groups)
    rng = np.random.default_rng(compared.settings["seed"])
    told = compared.per_document["probe_prediction"][3]
    resampled = []
    for _ in range(200):
        drawn = rng.integers(0, n, n)
        resampled.append(f1_score(compared.groups[drawn], told[drawn], average="macro"))
    row = value(compared, "noise", "probe_macro_f1")
    f1 = f1_score(compared.groups, told, average="macro")
    low, high = bounded_interval(f1, resampled, n)
    assert (row["low"], row["high"]) == pytest.approx((float(low), float(high)))


def test_the_order_of_the_rows_does_not_matter(themed, noise):
    corpus, vectors = themed
    order = np.random.default_rng(3).permutation(len(corpus))
    turned = corpus.take(order)
    first = compare_encoders(
        {"w": WordCounts(), "n": noise, "t": vectors}, corpus, "label", **QUICK
    )
    second = compare_encoders(
        {"w": WordCounts(), "n": noise[order], "t": vectors[order]}, turned, "label", **QUICK
    )
    assert_same(first, second)


def test_the_same_seed_gives_the_same_for_any_number_of_threads(themed):
    corpus, vectors = themed
    encoders = {"words": WordCounts(), "themes": vectors}
    first, *others = with_threads(
        lambda: compare_encoders(encoders, corpus, **QUICK, random_state=5)
    )
    for second in others:
        assert_same(first, second)
    assert first.settings["seed"] == 5


def test_without_labels_topics_of_the_last_encoder_colour_the_maps(themed):
    corpus, vectors = themed
    result = compare_encoders({"words": WordCounts(), "themes": vectors}, corpus, **QUICK)
    assert result.grouped_by == "topics by themes"
    assert len(result.group_names) >= 3
    named = " ".join(result.group_names)
    assert all(theme in named for theme in ("fruit", "train", "chess"))
    themes = corpus.metadata["label"].iloc[result.distinct.first_rows].to_numpy()
    for group in range(len(result.group_names)):
        of_group = themes[result.groups == group]
        assert (of_group == of_group[0]).mean() > 0.95
    # Scores by the last encoder's own topics would favour it.
    assert set(result.scores["measure"]) == {
        "trustworthiness", "continuity", "documents_per_second", "megabytes"
    }  # fmt: skip
    assert set(result.per_document) == {"trustworthiness", "continuity"}
    # Topics of a sparse encoder.
    result = compare_encoders({"themes": vectors, "words": WordCounts()}, corpus, **QUICK)
    assert result.grouped_by == "topics by words" and len(result.group_names) >= 2


def test_texts_that_an_encoder_does_not_know(themed):
    corpus, vectors = themed
    vectors = vectors.copy()
    gone = corpus.distinct().first_rows[[2, 40]]
    vectors[np.isin(corpus.distinct().of_row, [2, 40])] = 0
    result = compare_encoders({"themes": vectors, "words": WordCounts()}, corpus, "label", **QUICK)
    assert len(gone) == 2 and np.isfinite(result.encoders[0].map).all()
    np.testing.assert_array_equal(np.flatnonzero(~result.encoders[0].has_neighbors), [2, 40])
    assert result.per_document["knn_accuracy"][0, [2, 40]].tolist() == [0, 0]
    assert result.neighbor_overlaps[0].jaccard[[2, 40]].tolist() == [0, 0]
    assert not {2, 40} & {*result.moved["document"]}
    assert np.isnan(result.per_document["trustworthiness"][:, [2, 40]]).all()
    assert any(d.name == "no_vector" and d.value == 2 for d in result.decisions)


def test_documents_without_label_are_in_no_score_by_label(themed):
    corpus, vectors = themed
    labels = corpus.metadata["label"].to_numpy(dtype=object).copy()
    labels[:20] = None
    labels[-4] = labels[-1] = None  # rows that repeat two of these
    labels[30] = "rare"
    result = compare_encoders({"words": WordCounts(), "themes": vectors}, corpus, labels, **QUICK)
    n = len(result.groups)
    assert (result.groups < 0).sum() == 20
    assert value(result, "words", "knn_accuracy")["n"] == n - 21
    assert value(result, "words", "probe_macro_f1")["n"] == n - 21
    assert "rare" in result.group_names
    assert {"single_labels", "unlabelled"} <= {d.name for d in result.decisions}


def test_bad_input(themed):
    corpus, vectors = themed
    both = {"words": WordCounts(), "themes": vectors}
    few = as_corpus(["a b", "b c", "c d", "a b", "d e"])
    with refuses("corpus"):
        compare_encoders(["tfidf", "lsa"], few)
    for parameter, bad in {
        "k": 1, "n_resamples": 0.5, "labels": np.full(len(corpus), "one")
    }.items():  # fmt: skip
        with refuses(parameter):
            compare_encoders(both, corpus, **{parameter: bad})
    with pytest.raises(InputError, match="no text"):
        compare_encoders(both, [None, " "])
    with refuses("encoders") as caught:
        compare_encoders(corpus, both)
    assert "compare_encoders(encoders, corpus)" in str(caught.value)


def test_an_encoder_that_is_not_there_is_told_before_any_encodes(themed, tmp_path):
    class Never(Hashed):
        def encode(self, texts):
            raise AssertionError("nothing should have been encoded")

    missing = str(tmp_path / "nothing")
    with pytest.raises(ModelLoadError, match="nothing"):
        compare_encoders({"never": Never(), "missing": missing}, themed[0], k=8)


def grouped(texts, labels):
    corpus = as_corpus(list(texts))
    decisions = []
    groups = groups_of(labels, corpus, decisions)
    documents = corpus.distinct()
    by_text = {
        corpus.texts[row]: (groups.names[g] if g >= 0 else None)
        for row, g in zip(documents.first_rows.tolist(), groups.of_document.tolist(), strict=True)
    }
    return by_text, groups, {d.name: d.value for d in decisions}


def test_labels_of_rows_become_labels_of_documents():
    texts = ["a", "b", "a", "c", None, "a", "d", "b"]
    labels = ["x", "y", "z", "y", "w", "x", None, "w"]
    by_text, groups, told = grouped(texts, labels)
    # "a" is x twice and z once; "b" is y and w alike; the row without text counts for nothing.
    assert by_text == {"a": "x", "b": "w", "c": "y", "d": None}
    assert groups.names == ("w", "x", "y")  # all of one text: by name
    assert told == {"conflicting_labels": 2, "unlabelled": 1}


def test_how_labels_are_read():
    # The largest group comes first.
    assert grouped("abcdef", ["b", "b", "b", "a", "a", "c"])[1].names == ("b", "a", "c")
    for missing in (None, float("nan"), pd.NA, pd.NaT, "", "  "):
        by_text, *_ = grouped("abc", pd.Series(["x", "y", missing], dtype=object))
        assert by_text["c"] is None
    assert set(grouped("abcd", np.array([1.0, 2.0, np.nan, 2.5]))[1].names) == {"1", "2", "2.5"}
    assert set(grouped("abc", np.array([True, False, True]))[1].names) == {"True", "False"}
    corpus = as_corpus(list("abc"))
    for bad in (["x", "y"], ["x", "x", None]):
        with refuses("labels"):
            groups_of(bad, corpus, [])
    with refuses("labels"):
        scored_classes(grouped("abc", ["x", "x", "y"])[1], [])


def test_groups_without_terms_are_named_by_a_text():
    texts = [f"{a} {b}" for a in ("the", "and", "of", "to", "in") for b in range(100, 130)]
    vectors = np.repeat(np.eye(2), 75, axis=0) + np.random.default_rng(0).normal(0, 0.1, (150, 2))
    result = compare_encoders(
        {"a": vectors, "b": vectors}, Corpus(texts), k=5, n_resamples=20, languages="en"
    )
    assert len(result.group_names) >= 2
    for group, name in enumerate(result.group_names):
        rows = result.distinct.first_rows[result.groups == group]
        assert name.strip("\u201c\u201d") in {texts[row] for row in rows.tolist()}
