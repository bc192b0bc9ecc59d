"""Labelled texts, from tables."""

import json
from collections import Counter

import pytest

from embedtopics.errors import InputError
from embedtopics.probing import make_task
from tests.factories import refuses
from tests.probing.treebanks import n_each_in_one_part, sentence, treebank


@pytest.fixture
def write(tmp_path):
    def written(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return written


def texts(*rows):
    return [{"label": label, "text": text} for label, text in rows]


def test_labelled_texts_keep_their_parts(write):
    train = write("a.jsonl", texts((1, "He ran."), (0, "He run did."), (1, "Go  HOME.")))
    test = write("b.jsonl", texts((1, "Go home."), (0, "Home it go.")))
    task = make_task({"train": train, "test": test}, "label")
    assert task.texts == ("He ran.", "He run did.", "Go home.", "Home it go.")
    assert task.labels == (("1",), ("0",), ("1",), ("0",))
    assert task.parts == ("train", "train", "test", "test")
    assert (task.name, task.unit) == ("label", "text")
    assert "1 of train" in task.decisions[-1].message
    single = write("c.jsonl", texts(*[(i % 2, f"text {i // 2}") for i in range(40)]))
    alone = make_task(single, "label")
    assert make_task(single, "label", random_state=1).parts != alone.parts
    assert n_each_in_one_part(alone.texts, alone.parts) == 20
    assert Counter(alone.parts) == {"train": 32, "dev": 4, "test": 4}


def test_labelled_texts_that_are_none(write):
    good = write("g.jsonl", texts((1, "a b"), (0, "c")))
    with refuses("text in b.jsonl", line=2):
        make_task({"train": write("b.jsonl", texts((1, "x"), (0, " "))), "test": good}, "label")
    with refuses("label in n.jsonl", line=1):
        make_task(
            {"train": write("n.jsonl", texts((None, "x"), ("y", "z"))), "test": good}, "label"
        )
    with refuses("g.jsonl"):
        make_task(good, "says")
    with refuses("task"):
        make_task(write("o.jsonl", texts((1, "x"), (1, "y"), (1, "z"))), "label")
    with refuses("source"):
        make_task({"train": good}, "label")
    with pytest.raises(InputError, match="no such file"):
        make_task("nothing.jsonl", "label")


WORDS_TABLE = "form\tupos\nHe\tPRON\nran\tVERB\n\nShe\tPRON\nsat\tVERB\n\nIt\tPRON\nwas\tAUX\n"


def test_the_header_says_whether_rows_are_words_or_texts(tmp_path):
    words = tmp_path / "words.tsv"
    words.write_text(WORDS_TABLE, "utf-8")
    rows = "".join(f"text {i},{i % 2}\n" for i in range(40))
    whole = tmp_path / "whole.csv"
    whole.write_text("text,label\n" + rows, "utf-8")

    assert make_task(words, "upos").unit == "word"
    assert make_task(whole, "label").unit == "text"
    with refuses("source"):
        make_task({"train": words, "test": whole}, "label")


def test_a_file_of_words_and_texts_needs_the_unit(tmp_path):
    both = tmp_path / "both.csv"
    rows = "".join(f"word{i},text {i},{i % 2}\n" for i in range(40))
    both.write_text("token,text,label\n" + rows, "utf-8")

    with refuses("unit") as caught:
        make_task(both, "label")
    assert "both.csv" in str(caught.value)
    assert make_task(both, "label", unit="text").texts[0].startswith("text ")
    with refuses("unit"):
        make_task(both, "label", unit="sentence")


def test_a_column_named_like_a_task_needs_the_unit():
    columns = {"upos": "A B A B A", "tree depth": "x y x y x"}
    words = ["a b c d e", "b c d e f", "c d e f g", "d e f g h"]
    bank = treebank(*(sentence(text, (0, 1, 1, 1, 1), **columns) for text in words))

    with refuses("unit"):
        make_task(bank, "tree depth")
    assert make_task(bank, "tree depth", unit="word").unit == "word"


def test_several_files_are_read_as_one(write):
    files = [
        write(f"{k}.jsonl", texts(*[(i % 2, f"text {k} {i}") for i in range(20)])) for k in "ab"
    ]
    task = make_task(files, "label")
    assert len(task.texts) == 40


@pytest.mark.parametrize("source", [3, [], None, ["a.conllu", 3]])
def test_what_is_no_source_is_refused(source):
    with refuses("source"):
        make_task(source, "upos")


def test_swapped_arguments_of_a_task_are_refused(write):
    with refuses("task") as caught:
        make_task("label", [write("g.jsonl", texts((1, "a"), (0, "b")))])
    assert "call et.probing.make_task(source, task)" in str(caught.value)
