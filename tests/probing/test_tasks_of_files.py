"""Labelled texts, from tables."""

import json
from collections import Counter

import pytest

from embedtopics.errors import InputError
from embedtopics.probing import text_task
from tests.factories import refuses
from tests.probing.treebanks import n_each_in_one_part


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
    task = text_task({"train": train, "test": test})
    assert task.texts == ("He ran.", "He run did.", "Go home.", "Home it go.")
    assert task.labels == (("1",), ("0",), ("1",), ("0",))
    assert task.parts == ("train", "train", "test", "test")
    assert (task.name, task.unit) == ("label", "text")
    assert "1 of train" in task.decisions[-1].message
    single = write("c.jsonl", texts(*[(i % 2, f"text {i // 2}") for i in range(40)]))
    alone = text_task(single)
    assert text_task(single, random_state=1).parts != alone.parts
    assert n_each_in_one_part(alone.texts, alone.parts) == 20
    assert Counter(alone.parts) == {"train": 32, "dev": 4, "test": 4}


def test_labelled_texts_that_are_none(write):
    good = write("g.jsonl", texts((1, "a b"), (0, "c")))
    with refuses("text in b.jsonl", line=2):
        text_task({"train": write("b.jsonl", texts((1, "x"), (0, " "))), "test": good})
    with refuses("label in n.jsonl", line=1):
        text_task({"train": write("n.jsonl", texts((None, "x"), ("y", "z"))), "test": good})
    with refuses("g.jsonl"):
        text_task(good, label="says")
    with refuses("label"):
        text_task(write("o.jsonl", texts((1, "x"), (1, "y"), (1, "z"))))
    with refuses("files"):
        text_task({"train": good})
    with pytest.raises(InputError, match="no such file"):
        text_task("nothing.jsonl")
