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


def test_a_frame_stays_as_it_was():
    table = frame(NLI).rename(index={0: "x", 1: "y", 2: "z"})
    before = table.copy(deep=True)
    read_examples(table, "nli")
    pd.testing.assert_frame_equal(table, before)


def test_examples_of_the_kind_are_returned_and_of_another_refused():
    read = read_examples(NLI, "nli")
    assert read_examples(read, "nli") is read
    assert refused(read, "pairs") == "examples"
    assert refused(read.take([]), "nli") == "examples"
    taught = Examples("taught", (("a",),), np.ones((1, 2)), np.arange(1))
    assert read_examples(taught, "taught") is taught
    assert refused(["a"], "taught") == "kind"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("premise", "hypothesis", "label"), "nli"),
        (("Sentence1", "Sentence2", "gold_label"), "nli"),
        (("sentence_A", "sentence_B", "entailment_judgment"), "nli"),
    ],
)
def test_usual_names_are_found(names, kind):
    read = read_examples(frame(NLI, names), kind)
    assert read.columns[1][0] == "An animal moves."
    assert told(read)["columns"] == list(names)


def test_columns_can_be_named():
    table = frame(NLI, ("p", "h", "l")).assign(premise="wrong")
    read = read_examples(table, "nli", columns=("p", "h"), label="l")
    assert read.columns[0][0] == "A dog runs."


def test_a_column_that_is_not_there_is_asked_for_beside_those_that_are():
    table = frame(NLI, ("a", "b", "label"))
    assert refused(table, "nli") == "columns"
    assert refused(table, "nli", columns=("a", "c")) == ""
    assert refused(table.drop(columns="label"), "nli", columns=("a", "b")) == "label"
    assert refused(table, "nli", columns=("a",)) == "columns"
    assert refused(table, "nli", columns=("a", "a")) == "columns"
    assert refused(table, "pairs", columns=("a", "b", "label")) == "columns"
    assert refused(table, "pairs", columns=("a", "b"), label="label") == "label"


@pytest.mark.parametrize("nothing", ["", "  ", None, float("nan"), pd.NA, "\u200b"])
def test_an_empty_side_is_named_or_dropped(nothing):
    rows = [*NLI, ("x", nothing, "neutral"), (nothing, "y", "neutral"), ("z", nothing, "neutral")]
    assert refused(rows, "nli") == "drop_invalid"
    assert refused(rows[:4] + rows[5:], "nli") == "drop_invalid"
    read = read_examples(rows, "nli", drop_invalid=True)
    assert read.rows.tolist() == [0, 1, 2]
    dropped = [d for d in read.decisions if d.name == "dropped_invalid"]
    assert sum(d.value for d in dropped) == 3


def test_a_row_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,label\na,b,neutral\nc,NA,neutral\n")
    assert refused(path, "nli") == "drop_invalid"


def test_nothing_left_is_refused():
    assert refused([("", ""), (" ", "b")], "pairs", drop_invalid=True) == "examples"
    assert refused([], "pairs") == "examples"


def test_what_is_no_text_is_refused():
    assert refused([("a", "b"), ("c", 5)], "pairs") == ""


def test_rows_of_another_shape_are_named():
    assert refused([NLI[0], ("a", "b")], "nli") == "examples"
    assert refused(["a", "b"], "pairs") == "examples"
    assert refused(5, "pairs") == "examples"
    assert refused("nowhere.csv", "pairs") == ""
    assert refused(NLI, "sts") == "kind"


def test_triplets_may_have_several_negatives():
    rows = {"anchor": ["a"], "positive": ["b"], "negative_1": ["c"], "negative_2": ["d"], "x": [1]}
    assert read_examples(rows, "triplets").columns == (("a",), ("b",), ("c",), ("d",))
    assert read_examples([("a", "b", "c", "d")], "triplets").columns[3] == ("d",)
    named = read_examples(rows, "triplets", columns=("anchor", "positive", "negative_2"))
    assert named.columns[2] == ("d",)


def test_texts_are_read_from_lists_and_columns():
    assert read_examples(["a", "b"], "texts").columns == (("a", "b"),)
    assert read_examples(pd.Series(["a", "b"]), "texts").columns == (("a", "b"),)
    assert read_examples(pd.DataFrame({"text": ["a"]}), "texts").columns == (("a",),)
    assert refused(["a", None], "texts") == "drop_invalid"


def test_a_list_of_texts_is_no_text():
    rows = [{"premises": ["a", "b"], "hypothesis": "c", "label": "neutral"},
            {"premises": ["d"], "hypothesis": "e", "label": "entailment"}]  # fmt: skip
    assert refused(rows, "nli") == "premises"


def test_repeats_and_conflicts_are_kept_and_counted():
    rows = [("a", "b", 1), ("a", " b ", 1), ("a", "b", 0), ("c", "d", 0)]
    read = read_examples(rows, "binary")
    assert len(read) == 4
    assert told(read)["repeated_examples"] == 1 and told(read)["conflicting_labels"] == 1
    pairs = read_examples([("a", "a"), ("a", "b")], "pairs")
    assert told(pairs)["identical_sides"] == 1
    triplets = read_examples([("a", "b", "b"), ("a", "b", "c")], "triplets")
    assert told(triplets)["negative_is_positive"] == 1


def test_half_characters_are_replaced_and_counted():
    read = read_examples([("a\ud800", "b")], "pairs")
    assert read.columns[0] == ("a\ufffd",) and told(read)["replaced_characters"] == 1


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
