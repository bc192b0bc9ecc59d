"""Values for the rows of a corpus are aligned by their index."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, TextClassifier, TopicModel
from embedtopics.corpus._alignment import align_values, as_series
from embedtopics.errors import InputError
from embedtopics.evaluation import evaluate_clustering
from embedtopics.evaluation._labels import groups_of
from embedtopics.inference import Measurement
from embedtopics.topics import ManualLabels, PartialLabels, by_group, over_time
from embedtopics.topics.reading._find import rows_where

N = 30
NAMES = [f"speech-{i}" for i in range(N)]
ORDER = np.random.default_rng(5).permutation(N)


@pytest.fixture(scope="module")
def texts() -> pd.Series:
    """Texts about bread and about bridges, in turns."""
    words = ("bread oven flour", "bridge river stone")
    return pd.Series([f"{words[i % 2]} {i}" for i in range(N)], index=NAMES)


@pytest.fixture(scope="module")
def parties() -> pd.Series:
    """A group of each row; three rows in a row have the same."""
    return pd.Series([f"party {i // 3 % 2}" for i in range(N)], index=NAMES)


@pytest.fixture(scope="module")
def result(texts):
    """Two topics of the texts."""
    return _fitted(texts).result_


def _fitted(data, **options):
    rng = np.random.default_rng(0)
    vectors = np.eye(6)[np.arange(N) % 2] + 0.05 * rng.normal(size=(N, 6))
    model = TopicModel(languages=["en"], n_topics=2, random_state=0, **options)
    return model.fit(data, embeddings=vectors)


def test_a_series_is_ordered_by_the_index_of_the_rows():
    rows = Corpus(pd.Series(["a", "b", "c"], index=[7, 3, 5]))

    aligned = align_values(pd.Series([30, 50, 70], index=[3, 5, 7]), rows, "units")

    assert aligned.tolist() == [70, 30, 50]


def test_a_table_is_ordered_by_the_index_of_the_rows():
    rows = pd.Series(["a", "b"], index=["x", "y"])

    aligned = align_values(pd.DataFrame({"n": [2, 1]}, index=["y", "x"]), rows, "data")

    assert aligned["n"].tolist() == [1, 2]


def test_arrays_and_lists_go_by_position():
    rows = Corpus(pd.Series(["a", "b", "c"], index=[7, 3, 5]))

    assert align_values([1, 2, 3], rows, "units") == [1, 2, 3]
    assert align_values(iter("xyz"), rows, "units") == ["x", "y", "z"]
    assert align_values(np.arange(3), rows, "units").tolist() == [0, 1, 2]


def test_a_repeated_index_that_is_that_of_the_rows_goes_by_position():
    rows = Corpus(pd.Series(["a", "b", "c"], index=["x", "x", "y"]))

    aligned = align_values(pd.Series([1, 2, 3], index=["x", "x", "y"]), rows, "units")

    assert aligned.tolist() == [1, 2, 3]


def test_a_selected_frame_belongs_to_a_list_of_its_texts():
    """The index 10, 20, 30 cannot mean positions of a list, so that only positions are left."""
    rows = Corpus(["a", "b", "c"])

    aligned = align_values(pd.Series(["p", "q", "r"], index=[10, 20, 30]), rows, "group")

    assert list(aligned) == ["p", "q", "r"]


@pytest.mark.parametrize(
    "index",
    [["x", "y", "w"], ["x", "y", "y"], [0, 1, 2]],
    ids=["another", "repeated", "default"],
)
def test_an_index_of_other_rows_is_refused(index):
    rows = Corpus(pd.Series(["a", "b", "c"], index=["x", "y", "z"]))

    with pytest.raises(InputError, match=r"group\.to_numpy\(\)") as caught:
        align_values(pd.Series([1, 2, 3], index=index), rows, "group")

    assert caught.value.parameter == "group"


def test_a_missing_row_is_named():
    rows = Corpus(pd.Series(["a", "b"], index=["x", "y"]))

    with pytest.raises(InputError, match="no value for the row 'y'"):
        align_values(pd.Series([1, 2], index=["x", "q"]), rows, "group")


def test_numbers_of_list_positions_in_another_order_are_ambiguous():
    rows = Corpus(["a", "b", "c"])

    with pytest.raises(InputError, match="texts without an index") as caught:
        align_values(pd.Series([1, 2, 3], index=[2, 0, 1]), rows, "group")

    assert caught.value.parameter == "group"


def test_numbers_of_rows_of_a_frame_in_another_order_are_aligned():
    rows = Corpus(pd.DataFrame({"text": ["a text", "b text", "c text"]}))

    aligned = align_values(pd.Series([3, 1, 2], index=[2, 0, 1]), rows, "group")

    assert aligned.tolist() == [1, 2, 3]


def test_another_number_of_values_is_refused():
    rows = Corpus(pd.Series(["a", "b"], index=["x", "y"]))

    with pytest.raises(InputError, match="1 for 2 rows"):
        align_values([1], rows, "units")
    with pytest.raises(InputError, match="select the rows"):
        align_values(pd.Series([1, 2, 3], index=["x", "y", "z"]), rows, "units")


def test_integers_of_a_list_with_gaps_stay_exact():
    values = as_series([2**60 + 1, None], Corpus(["a", "b"]), "units")

    assert values[0] == 2**60 + 1


def test_a_table_of_metadata_is_aligned_with_the_texts():
    texts = pd.Series(["first", "second"], index=["x", "y"])
    metadata = pd.DataFrame({"year": [2002, 2001]}, index=["y", "x"])

    corpus = Corpus(texts, metadata=metadata, ids=pd.Series(["id-y", "id-x"], index=["y", "x"]))

    assert corpus.metadata["year"].tolist() == [2001, 2002]
    assert corpus.ids == ("id-x", "id-y")


def test_vectors_in_a_frame_are_aligned(texts, result):
    rng = np.random.default_rng(0)
    vectors = np.eye(6)[np.arange(N) % 2] + 0.05 * rng.normal(size=(N, 6))
    frame = pd.DataFrame(vectors, index=NAMES).iloc[ORDER]

    model = TopicModel(languages=["en"], n_topics=2, random_state=0).fit(texts, embeddings=frame)

    assert np.array_equal(model.labels_, result.labels)


def test_groups_and_units_are_aligned(result, parties):
    expected = by_group(result, parties.to_numpy(), units=parties.to_numpy())

    groups = by_group(result, parties.iloc[ORDER], units=parties.iloc[ORDER])

    assert groups.names == expected.names
    assert np.array_equal(groups.counts, expected.counts)
    assert np.array_equal(groups.low, expected.low)


def test_dates_are_aligned(result):
    dates = pd.Series(pd.date_range("2021-01-01", periods=N, freq="7D"), index=NAMES)
    expected = over_time(result, "month", time=dates.to_numpy())

    trends = over_time(result, "month", time=dates.iloc[ORDER])

    assert np.array_equal(trends.counts, expected.counts)


def test_a_group_of_other_rows_is_refused(result, parties):
    with pytest.raises(InputError) as caught:
        by_group(result, parties.set_axis(range(N)))

    assert caught.value.parameter == "by"


def test_masks_are_aligned(result):
    mask = pd.Series(np.arange(N) < 4, index=NAMES)

    assert rows_where(result, mask.iloc[ORDER]).nonzero()[0].tolist() == [0, 1, 2, 3]


def test_a_condition_finds_all_spellings_of_a_value(texts):
    towns = ["Malm\u00f6", "Malmo\u0308", " Malm\u00f6", "Ulm", None, "NA"] * 5
    data = pd.DataFrame({"text": texts, "town": towns})
    model = _fitted(Corpus(data, text="text"))

    found = rows_where(model.result_, {"town": "Malmo\u0308"})

    assert found.reshape(5, 6).tolist() == [[True, True, True, False, False, False]] * 5


@pytest.mark.parametrize("kind", [PartialLabels, ManualLabels])
def test_labels_of_constraints_are_aligned(texts, parties, kind):
    expected = _fitted(texts, constraints=kind(parties.tolist())).labels_

    labels = _fitted(texts, constraints=kind(parties.iloc[ORDER])).labels_

    assert np.array_equal(labels, expected)


def test_labels_of_other_rows_are_refused_by_constraints(texts, parties):
    with pytest.raises(InputError) as caught:
        _fitted(texts, constraints=ManualLabels(parties.set_axis(range(N))))

    assert caught.value.parameter == "labels"


def test_known_labels_of_a_comparison_are_aligned(texts, parties):
    corpus = Corpus(texts)
    expected = groups_of(parties.tolist(), corpus, [])

    groups = groups_of(parties.iloc[ORDER], corpus, [])

    assert np.array_equal(groups.of_document, expected.of_document)


def test_labels_of_a_classifier_are_aligned(texts, parties):
    expected = TextClassifier("tfidf").fit(texts.tolist(), parties.tolist())

    model = TextClassifier("tfidf").fit(texts, parties.iloc[ORDER])

    chances = model.predict_proba(texts.tolist())
    assert np.array_equal(chances, expected.predict_proba(texts.tolist()))


def test_labels_of_a_fold_belong_to_a_list_of_its_texts(texts, parties):
    """Cross-validation of scikit-learn passes a list, and a Series with a part of its index."""
    rows = ORDER[:20]
    expected = TextClassifier("tfidf").fit(texts.iloc[rows].tolist(), parties.iloc[rows].tolist())

    model = TextClassifier("tfidf").fit(texts.iloc[rows].tolist(), parties.iloc[rows])

    assert np.array_equal(model.left_out_codes_, expected.left_out_codes_)


def test_parts_of_a_measurement_are_aligned(parties):
    rng = np.random.default_rng(2)
    truth = pd.Series(np.where(np.arange(N) % 4 == 0, "yes", "no"), index=NAMES)
    guess = pd.Series(np.where(rng.random(N) < 0.8, truth, "no"), index=NAMES)
    year = pd.DataFrame({"year": np.arange(N)}, index=NAMES)
    gold = truth.where(np.arange(N) < 16, None)
    expected = Measurement(
        gold.tolist(), guess.tolist(), data=year, units=parties.tolist(), sampling="random"
    )

    measured = Measurement(
        gold.iloc[ORDER],
        guess,
        data=year.iloc[ORDER[::-1]],
        units=parties.iloc[ORDER[::2].tolist() + ORDER[1::2].tolist()],
        sampling="random",
    )

    back = np.argsort(ORDER)
    assert np.array_equal(measured.truth[back], expected.truth)
    assert np.array_equal(measured.proxy[back], expected.proxy)
    assert measured.data["year"].to_numpy()[back].tolist() == list(range(N))
    assert np.array_equal(
        measured.sample.unit[back] == measured.sample.unit[back][0], parties == "party 0"
    )


def test_blank_gold_cells_are_missing_and_predictions_have_the_type_of_the_gold():
    gold = ["101", "007", " ", "NA", "\u00a0", "<NA>"] * 10
    predictions = pd.Series([101, "007", 101, 101, "007", "007"] * 10, dtype=object)

    measured = Measurement(gold, predictions, sampling="random")

    assert measured.classes == ("007", "101")
    assert measured.sample.is_gold.sum() == 20
    assert np.array_equal(measured.naive[:2], [[0, 1], [1, 0]])
    names = {note.name for note in measured.decisions}
    assert {"missing_classes", "types_of_predictions"} <= names


def test_probabilities_stay_numbers_beside_gold_words():
    gold = ["no", "yes", None] * 10

    measured = Measurement(gold, [0.25, 0.75, 1.0] * 10, sampling="random")

    assert measured.proxy[:3, 1].tolist() == [0.25, 0.75, 1.0]


def test_a_blank_unit_is_missing():
    with pytest.raises(InputError) as caught:
        Measurement(["a", "b"] * 2, ["a", "b"] * 2, units=["x", "y", " ", "z"], sampling="random")

    assert (caught.value.parameter, caught.value.row) == ("units", 2)


@pytest.mark.parametrize("parameter", ["predictions", "units", "strata", "probability", "data"])
def test_parts_of_a_measurement_of_other_rows_are_refused(parameter):
    gold = pd.Series(["yes", "no", "yes", "no"], index=list("abcd"))
    others = pd.Series([0.5, 0.5, 0.5, 0.5], index=list("efgh"))
    parts = {"predictions": gold, parameter: others}
    if parameter == "data":
        parts["data"] = others.to_frame("x")

    with pytest.raises(InputError) as caught:
        Measurement(gold, **parts, sampling="random")

    assert caught.value.parameter == parameter


def test_predicted_topics_are_aligned_with_the_classes():
    classes = pd.Series(["a", "a", "b", "b"], index=list("wxyz"))
    topics = pd.Series([1, 0, 1, 0], index=list("zxyw"))

    assert evaluate_clustering(classes, topics).ari == 1.0
