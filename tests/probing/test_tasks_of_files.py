"""Labelled texts and pairs of words, from tables."""

import json
from collections import Counter

import pytest

from embedtopics.errors import InputError
from embedtopics.probing import pair_task, text_task
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
    task = text_task({"train": train, "test": test}, name="acceptability")
    assert task.texts == ("He ran.", "He run did.", "Go home.", "Home it go.")
    assert task.labels == (("1",), ("0",), ("1",), ("0",))
    assert task.parts == ("train", "train", "test", "test")
    assert (task.name, task.unit) == ("acceptability", "text")
    assert "1 of train" in task.decisions[-1].message
    alone = text_task(write("c.jsonl", texts(*[(i % 2, f"text {i // 2}") for i in range(40)])))
    assert n_each_in_one_part(alone.texts, alone.parts) == 20 and alone.name == "label"
    assert Counter(alone.parts) == {"train": 32, "dev": 4, "test": 4}


def test_labelled_texts_that_are_none(write):
    good = write("g.jsonl", texts((1, "a b"), (0, "c")))
    with refuses("text in b.jsonl", row=2):
        text_task({"train": write("b.jsonl", texts((1, "x"), (0, " "))), "test": good})
    with refuses("label in n.jsonl", row=1):
        text_task({"train": write("n.jsonl", texts((None, "x"), ("y", "z"))), "test": good})
    with refuses("g.jsonl"):
        text_task(good, text="says")
    with refuses("label"):
        text_task(write("o.jsonl", texts((1, "x"), (1, "y"), (1, "z"))))
    with refuses("files"):
        text_task({"train": good})
    with pytest.raises(InputError, match="no such file"):
        text_task("nothing.jsonl")


def uses(*rows):
    names = ("index1", "index2", "sentence1", "sentence2", "label")
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_pairs_point_at_their_words(write):
    train = write("a.jsonl", uses(
        (1, 2, "The bat flew .", "He swung a bat .", False),
        (1, 1, "The bat flew .", "One bat slept .", True),
        (0, 0, "Banks lend .", "Banks of rivers", False),
    ))  # fmt: skip
    test = write("b.jsonl", uses((1, 0, "My play", "banks LEND .", True)))
    task = pair_task({"train": train, "test": test})
    # The third pair has a sentence of the test.
    assert task.texts == (
        ("The", "bat", "flew", "."), ("He", "swung", "a", "bat", "."), ("One", "bat", "slept", "."),
        ("My", "play"), ("banks", "LEND", "."),
    )  # fmt: skip
    assert task.pairs.tolist() == [[0, 1, 1, 2], [0, 1, 2, 1], [3, 1, 4, 0]]
    assert task.pairs.dtype.name == "int32"
    assert task.labels == (("false",), ("true",), ("true",))
    assert task.parts == ("train", "train", "test")
    assert (task.name, task.unit) == ("word in context", "pair")
    assert "1 of train" in task.decisions[-1].message


def test_pairs_with_a_sentence_in_common_are_dealt_to_one_part(write):
    rows = []
    for i in range(40):
        # Chains of three pairs.
        rows += [(0, 0, f"w{i} {k}", f"w{i} {k + 1}", k == 1) for k in range(3)]
    task = pair_task(write("a.jsonl", uses(*rows)), random_state=1)
    first, second = ([task.texts[text][0] for text in task.pairs[:, side]] for side in (0, 2))
    assert n_each_in_one_part(first + second, task.parts * 2) == 40
    assert Counter(task.parts) == {"train": 96, "dev": 12, "test": 12}


def test_a_sentence_in_another_case_is_dealt_to_the_same_part(write):
    rows = [
        (0, 0, f"{shared} {i}", f"{letter} {i}", letter == "a")
        for i in range(60)
        for shared, letter in (("Shared", "a"), ("shared", "z"))
    ]
    task = pair_task(write("a.jsonl", uses(*rows)))
    assert n_each_in_one_part([task.texts[text][1] for text in task.pairs[:, 0]], task.parts) == 60
    assert set(task.parts) == {"train", "dev", "test"}


@pytest.mark.parametrize("place", [4, -1, 0.5, 1e12])
def test_places_without_a_word(write, place):
    rows = uses((0, place, "a b", "c d e f", True), (0, 0, "g", "h", False))
    with refuses("index2 in a.jsonl", row=1):
        pair_task(write("a.jsonl", rows))


@pytest.mark.benchmark_data
def test_word_in_context(data_folder):
    task = pair_task({p: data_folder / "wic" / f"{p}.jsonl.gz" for p in ("train", "dev", "test")})
    assert task.parts.count("test") == 1_400
    of_test = [label for (label,), p in zip(task.labels, task.parts, strict=True) if p == "test"]
    assert Counter(of_test) == {"true": 700, "false": 700}
    # What is pointed at is the word in one of its forms.
    first = [task.texts[text][place].casefold() for text, place, _, _ in task.pairs.tolist()]
    second = [task.texts[text][place].casefold() for _, _, text, place in task.pairs.tolist()]
    alike = sum(a[:2] == b[:2] for a, b in zip(first, second, strict=True))
    assert alike / len(first) > 0.95
