"""Whatever holds examples becomes the same examples; whatever cannot be used is named."""

import csv
import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.training import Examples, read_examples
from tests.training.rows import NLI, ORDER, frame, refused, told


def delimited(rows, delimiter):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows([("premise", "hypothesis", "label"), *rows])
    return stream.getvalue().encode()


def json_lines(rows):
    return "\n".join(json.dumps(record) for record in frame(rows).to_dict("records")).encode()


def parquet(rows):
    stream = io.BytesIO()
    frame(rows).to_parquet(stream)
    return stream.getvalue()


FILES = {
    "comma.csv": delimited(NLI, ","),
    "semicolon.csv": delimited(NLI, ";"),
    "tab.tsv": delimited(NLI, "\t"),
    "lines.jsonl": json_lines(NLI),
    "table.parquet": parquet(NLI),
}


@pytest.mark.parametrize("gzipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_examples(tmp_path, name, gzipped):
    path = tmp_path / (name + (".gz" if gzipped else ""))
    path.write_bytes(gzip.compress(FILES[name]) if gzipped else FILES[name])
    read = read_examples(str(path), "nli")
    assert read.columns == tuple(zip(*(row[:2] for row in NLI), strict=True))
    assert read.labels.tolist() == [0, 1, 2] and read.labels.dtype == np.int64
    assert read.names == ORDER and read.rows.tolist() == [0, 1, 2]
    assert read.source == path.name


def test_every_frame_and_list_gives_the_same_examples():
    datasets, pyarrow = pytest.importorskip("datasets"), pytest.importorskip("pyarrow")
    table = frame(NLI)
    sources = [
        table,
        table.to_dict("list"),
        table.to_dict("records"),
        NLI,
        [list(row) for row in NLI],
        iter(NLI),
        np.array(NLI, dtype=object),
        pyarrow.Table.from_pandas(table),
        datasets.Dataset.from_pandas(table),
    ]
    prints = {read_examples(source, "nli").fingerprint for source in sources}
    assert len(prints) == 1


def test_examples_of_the_kind_are_returned_and_of_another_refused():
    read = read_examples(NLI, "nli")
    assert read_examples(read, "nli") is read
    assert refused(read, "pairs") == "examples"
    assert refused(read.take([]), "nli") == "examples"
    labelled = Examples("labelled", (("a",),), np.ones((1, 2)), np.arange(1))
    assert read_examples(labelled, "labelled") is labelled


@pytest.mark.parametrize(
    "names",
    [
        ("premise", "hypothesis", "label"),
        ("Sentence1", "Sentence2", "gold_label"),
        ("sentence_A", "sentence_B", "entailment_judgment"),
    ],
)
def test_usual_names_are_found(names):
    read = read_examples(frame(NLI, names), "nli")
    assert read.columns[1][0] == "An animal moves." and told(read)["columns"] == list(names)


def test_columns_can_be_named():
    table = frame(NLI, ("p", "h", "l")).assign(premise="wrong")
    read = read_examples(table, "nli", columns=("p", "h"), label="l")
    assert read.columns[0][0] == "A dog runs."


AB = frame(NLI, ("a", "b", "label"))
LISTS = [{"premises": ["a", "b"], "hypothesis": "c", "label": "neutral"}]
TWICE = [("a", "b", 1), ("c", "d", 4.5), ("e", "f", 0.5)]
INFINITE = [("a", "b", 1), ("c", "d", float("inf"))]


@pytest.mark.parametrize(
    ("source", "kind", "options", "parameter"),
    [
        # Columns that are not there, or not of the kind.
        (AB, "nli", {}, "columns"),
        (AB, "nli", {"columns": ("a", "c")}, "hypothesis"),
        (AB.drop(columns="label"), "nli", {"columns": ("a", "b")}, "label"),
        (AB, "nli", {"columns": ("a", "a")}, "columns"),
        (AB, "pairs", {"columns": ("a", "b"), "label": "label"}, "label"),
        # Rows and texts.
        ([("", ""), (" ", "b")], "pairs", {"drop_invalid": True}, "examples"),
        ([("a", "b"), ("c", 5)], "pairs", {}, ""),
        ("nowhere.csv", "pairs", {}, ""),
        (NLI, "sts", {}, "kind"),
        (["a", None], "texts", {}, "examples"),
        (LISTS, "nli", {}, "premises"),
        # Labels that are none, or all the same.
        ([("a", "b", x) for x in ("entailment", "not_entailment", None)], "nli", {}, "label"),
        ([("a", "b", "neutral"), ("c", "d", "Neutral")], "nli", {}, "label"),
        ([*NLI[1:2], ("", "d", "entailment")], "nli", {"drop_invalid": True}, "label"),
        ([("a", "b", 0.5), ("c", "d", 0.5)], "graded", {}, "label"),
        *(
            ([("a", "b", 0), ("d", "e", number)], "nli", {"label_order": ORDER}, "label")
            for number in (3, -2, 0.5)
        ),
        *(
            ([("a", "b", 0), ("a", "c", 1)], "nli", {"label_order": order}, "label_order")
            for order in ("entailment", ORDER[:2], ("a", "b", "c"))
        ),
        # Scores outside their scale; a NaN is a missing one.
        (TWICE, "graded", {}, "scale"),
        (TWICE, "graded", {"scale": (0, 4)}, "scale"),
        (INFINITE, "graded", {"scale": (0, 5)}, "scale"),
        ([("a", "b", 1.0), ("c", "d", float("nan"))], "graded", {}, "examples"),
        # Options of other kinds.
        (NLI, "nli", {"scale": (0, 5)}, "scale"),
        ([("a", "b")], "pairs", {"label_order": ORDER}, "label_order"),
    ],
)
def test_what_cannot_be_read_is_named(source, kind, options, parameter):
    assert refused(source, kind, **options) == parameter


@pytest.mark.parametrize("nothing", ["", "  ", None, float("nan"), pd.NA, "\u200b"])
def test_an_empty_side_is_named_or_dropped(nothing):
    rows = [*NLI, ("x", nothing, "neutral"), (nothing, "y", "neutral"), ("z", nothing, "neutral")]
    assert refused(rows, "nli") == "examples"
    assert refused(rows[:4] + rows[5:], "nli") == "examples"
    read = read_examples(rows, "nli", drop_invalid=True)
    assert read.rows.tolist() == [0, 1, 2]
    dropped = [d for d in read.decisions if d.name == "dropped_invalid"]
    assert sum(d.value for d in dropped) == 3


def test_a_row_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,label\na,b,neutral\nc,NA,neutral\n")
    assert refused(path, "nli") == "examples"


def test_triplets_may_have_several_negatives():
    rows = {"anchor": ["a"], "positive": ["b"], "negative_1": ["c"], "negative_2": ["d"], "x": [1]}
    assert read_examples(rows, "triplets").columns == (("a",), ("b",), ("c",), ("d",))
    assert read_examples([("a", "b", "c", "d")], "triplets").columns[3] == ("d",)
    named = read_examples(rows, "triplets", columns=("anchor", "positive", "negative_2"))
    assert named.columns[2] == ("d",)


def test_repeats_and_conflicts_are_kept_and_counted():
    rows = [("a", "b", 1), ("a", " b ", 1), ("a", "b", 0), ("c", "d", 0)]
    read = read_examples(rows, "graded")
    assert len(read) == 4
    assert told(read)["repeated_examples"] == 1 and told(read)["conflicting_labels"] == 1
    pairs = read_examples([("a", "a"), ("a", "b")], "pairs")
    assert told(pairs)["identical_sides"] == 1
    triplets = read_examples([("a", "b", "b"), ("a", "b", "c")], "triplets")
    assert told(triplets)["negative_is_positive"] == 1


@settings(deadline=None)
@given(st.lists(st.sampled_from(["x", "y", "z w", "", None, "  "]), min_size=1, max_size=8))
def test_what_is_kept_is_what_has_text(texts):
    rows = [(text, "b") for text in texts]
    usable = [row for row, text in enumerate(texts) if text and text.strip()]
    if not usable:
        assert refused(rows, "pairs", drop_invalid=True) == "examples"
        return
    read = read_examples(rows, "pairs", drop_invalid=True)
    assert isinstance(read, Examples)
    assert read.rows.tolist() == usable
    assert list(read.columns[0]) == [texts[row] for row in usable]


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("name", "kind", "options", "size"),
    [
        ("lingnli/train.jsonl.gz", "nli", {}, 44_983),
        ("xnli/fr_test.jsonl.gz", "nli", {}, 5_010),
        ("sick/sick.jsonl.gz", "nli", {}, 9_927),
        ("sick/sick.jsonl.gz", "graded", {"scale": (1, 5)}, 9_927),
        ("stsb/en_test.jsonl.gz", "graded", {"scale": (0, 5)}, 1_379),
    ],
)
def test_published_sets_are_read_whole(data_folder, name, kind, options, size):
    read = read_examples(data_folder / name, kind, **options)
    table = pd.read_json(data_folder / name, lines=True)
    assert len(read) == len(table) == size
    if kind == "nli":
        assert [read.names[label] for label in read.labels] == table["label"].str.lower().tolist()
    else:
        low, high = options["scale"]
        column = "relatedness" if "relatedness" in table else "score"
        np.testing.assert_allclose(read.labels * (high - low) + low, table[column], atol=1e-12)


def test_the_names_of_a_data_set_are_the_order_of_its_numbers():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        premise=datasets.Value("string"),
        hypothesis=datasets.Value("string"),
        label=datasets.ClassLabel(names=["contradiction", "entailment", "neutral"]),
    )
    rows = {"premise": ["a", "b", "c"], "hypothesis": ["d", "e", "f"], "label": [0, 1, -1]}
    read = read_examples(datasets.Dataset.from_dict(rows, features=features), "nli")
    assert [read.names[label] for label in read.labels] == ["contradiction", "entailment"]
    assert told(read)["no_gold_label"] == 1


def test_labels_are_read_in_every_usual_spelling():
    spelled = ["Entailment", "ENTAILED ", "e", "Neutral", "n", "contradictory", "contradicts", "C"]
    read = read_examples([("a", f"b{i}", label) for i, label in enumerate(spelled)], "nli")
    assert read.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert told(read)["label_spellings"] == 8


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2], ["0", "1", "2"], [np.int32(0), np.int64(1), 2.0], ["0 ", " 1", "2"]]
)
def test_numbers_need_an_order(numbers):
    rows = [("a", "b", number) for number in numbers]
    assert refused(rows, "nli") == "label"
    read = read_examples(rows, "nli", label_order=("contradiction", "entailment", "neutral"))
    names = [read.names[label] for label in read.labels]
    assert names == ["contradiction", "entailment", "neutral"]


def test_pairs_without_gold_label_are_left_out_and_counted():
    read = read_examples([*NLI, ("x", "y", "-"), ("x", "z", "-")], "nli")
    assert len(read) == 3 and told(read)["no_gold_label"] == 2


@pytest.mark.parametrize("nothing", ["", None, float("nan")])
def test_a_missing_label_is_named_or_dropped(nothing):
    rows = [*NLI, ("x", "y", nothing)]
    assert refused(rows, "nli") == "examples"
    assert len(read_examples(rows, "nli", drop_invalid=True)) == 3


def test_scores_are_brought_to_the_scale_from_0_to_1():
    rows = [("a", "b", 1), ("c", "d", "3"), ("e", "f", np.float32(5))]
    assert read_examples(rows, "graded", scale=(1, 5)).labels.tolist() == [0.0, 0.5, 1.0]
    inside = [("a", "b", 0.25), ("c", "d", 1.0)]
    assert read_examples(inside, "graded").labels.tolist() == [0.25, 1.0]
    missing = [*inside, ("e", "f", float("nan")), ("e", "f", None)]
    assert read_examples(missing, "graded", drop_invalid=True).rows.tolist() == [0, 1]
