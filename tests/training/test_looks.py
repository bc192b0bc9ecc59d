"""Looks at test sets: counted across processes, and never lost in silence."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from embedtopics.training import Examples, compare_before_after
from embedtopics.training.effects.looks import add_look, count_looks


@pytest.fixture
def examples():
    texts = tuple(f"text {i}" for i in range(20))
    return Examples("graded", (texts, texts[::-1]), np.arange(20) / 19, np.arange(20), source="s")


class Random:
    def __init__(self, seed, name):
        self.seed, self.name = seed, name

    def encode(self, texts):
        return np.random.default_rng(self.seed).normal(size=(len(texts), 4))


def test_looks_are_counted_by_encoder(examples, tmp_path):
    assert count_looks(examples, tmp_path).n == 0
    first = add_look(examples, "one", "f1", tmp_path)
    assert (first.n, first.encoders, first.note) == (1, ("one",), "")
    second = add_look(examples, "one", "f1", tmp_path)
    assert second.n == 2 and "always with this encoder" in second.note
    third = add_look(examples, "two", "f2", tmp_path)
    assert third.n == 3 and third.encoders == ("one", "two")
    assert "scored 3 times, with 2 encoders" in third.note
    assert count_looks(examples, tmp_path) == third


def test_the_order_of_examples_makes_no_other_set_and_other_examples_do(examples, tmp_path):
    add_look(examples, "one", "f1", tmp_path)
    assert count_looks(examples.take(np.arange(20)[::-1]), tmp_path).n == 1
    assert count_looks(examples.take(np.arange(19)), tmp_path).n == 0


def test_looks_at_the_same_time_are_all_counted(examples, tmp_path):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda i: add_look(examples, "x", str(i), tmp_path), range(40)))
    assert count_looks(examples, tmp_path).n == 40


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "list", "binary"])
def test_a_damaged_look_is_counted_and_named(examples, tmp_path, damage):
    add_look(examples, "one", "f1", tmp_path)
    (path,) = tmp_path.rglob("*.json")
    text = path.read_text()
    broken = {
        "cut": text[:-20].encode(), "changed": text.replace("f1", "f9").encode(), "empty": b"",
        "list": b"[1]", "binary": b"\xff\xfe\x00",
    }  # fmt: skip
    path.write_bytes(broken[damage])
    found = add_look(examples, "two", "f2", tmp_path)
    assert found.n == 2 and found.encoders == ("two", "unknown")
    assert [decision.name for decision in found.decisions] == ["damaged_looks"]
    assert "damaged" in found.note


def test_where_looks_cannot_be_written_the_comparison_goes_on(examples, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    found = add_look(examples, "one", "f1", blocked)
    assert found.n == 1 and found.decisions[0].name == "look_not_counted"
    (change, _) = compare_before_after(
        Random(0, "a"), Random(1, "b"), test=examples, n_resamples=100, register=blocked
    )
    assert "could not be counted" in change.note and change.n_looks == 1


def test_a_comparison_counts_its_look_unless_told_not_to(examples, tmp_path):
    def compare(seed, **arguments):
        return compare_before_after(
            Random(0, "a"), Random(seed, "b"), test=examples, n_resamples=100, register=tmp_path,
            **arguments,
        )  # fmt: skip

    assert {change.n_looks for change in compare(1, count_looks=False)} == {0}
    assert not list(tmp_path.iterdir())
    assert {change.n_looks for change in compare(1)} == {1}
    assert {change.n_looks for change in compare(1)} == {2}
    again = compare(2)
    assert {change.n_looks for change in again} == {3}
    assert all("with 2 encoders" in change.note for change in again)
    looks = [json.loads(path.read_text()) for path in sorted(tmp_path.rglob("*.json"))]
    assert [look["encoder"] for look in looks] == ["b", "b", "b"]
    assert not any("text 1" in json.dumps(look) for look in looks)  # nothing of the texts is kept


def test_without_a_folder_looks_lie_in_the_cache(examples, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path))
    add_look(examples, "one", "f1")
    assert len(list(tmp_path.rglob("*.json"))) == 1
