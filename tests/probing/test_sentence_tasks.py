"""Questions on whole sentences: answers by hand, classes of one size, nothing given away."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from embedtopics.probing import make_task, read_treebank
from embedtopics.probing._tasks import SENTENCE_TASKS, depth, shifted, tokens_of
from tests.factories import refuses
from tests.probing.treebanks import FRENCH_FILE, n_each_in_one_part, sentence, treebank

PARTS = ("train", "dev", "test")


def counted(task):
    return Counter((part, label) for part, (label,) in zip(task.parts, task.labels, strict=True))


def check_sound(task, n_classes):
    """Classes are of one size in each part, and no text is there twice."""
    found = counted(task)
    assert len({label for _, label in found}) == n_classes
    for part in PARTS:
        assert len({n for (own, _), n in found.items() if own == part}) == 1
    assert len(set(task.texts)) == len(task.texts)
    assert task.unit == "text" and task.decisions[-1].value == len(task.texts)


def flat(n, id, word="w"):
    """A sentence of n words that all hang on the first."""
    words = " ".join(f"{word}{id}n{i}" for i in range(n))
    return sentence(words, [0] + [1] * (n - 1), id, deprel=" ".join(["root"] + ["dep"] * (n - 1)))


def chain(n, steps, id):
    """A sentence of n words whose farthest word is so many steps from the root."""
    words = " ".join(f"c{id}n{i}" for i in range(n))
    heads = [min(place, steps) for place in range(n)]
    return sentence(words, heads, id, deprel=" ".join(["root"] + ["dep"] * (n - 1)))


def test_lengths_are_in_bins_of_one_width():
    lines = [flat(4 + i % 26, str(i)) for i in range(900)]  # also too short and too long ones
    task = make_task(treebank(*lines), "sentence length")
    check_sound(task, 6)
    for text, (label,) in zip(task.texts, task.labels, strict=True):
        low, high = map(int, label.split("-"))
        assert low <= len(text.split()) <= high == low + 3 <= 28


def test_depth_is_that_of_the_farthest_word():
    assert depth([0]) == 0
    assert depth([2, 3, 4, 0]) == depth([0, 1, 2, 3]) == 3
    assert depth([0, 1, 1, 2, 4]) == 3


def test_lengths_say_nothing_of_the_depth():
    rng = np.random.default_rng(3)
    lines = []
    for i in range(900):
        n = int(rng.integers(5, 12))
        # Deeper trees are longer, as they are in texts.
        steps = int(np.clip(n // 2 + rng.integers(-2, 2), 1, n - 1))
        lines.append(chain(n, steps, str(i)))
    known = {one.text: depth(one.heads) for one in lines}
    task = make_task(treebank(*lines), "tree depth")
    check_sound(task, 3)
    lengths = defaultdict(Counter)
    for text, (label,), part in zip(task.texts, task.labels, task.parts, strict=True):
        assert known[text] == int(label)
        lengths[part, len(text.split())][label] += 1
    assert all(len(set(of.values())) == 1 and len(of) == 3 for of in lengths.values())


def test_a_shift_exchanges_two_neighbours_and_leaves_no_other_trace():
    words = "The old cat , it seems , sat down ."
    names = [f"cat{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(100)]
    lines = [sentence(words.replace("cat", name), id=name, upos=words) for name in names]
    task = make_task(treebank(*lines), "bigram shift")
    check_sound(task, 2)
    originals = {tuple(sorted(one.words)): one.words for one in lines}
    used = []
    for text, (label,) in zip(task.texts, task.labels, strict=True):
        now = tuple(text.split())
        before = originals[tuple(sorted(now))]
        used.append(before)
        apart = [place for place in range(len(now)) if now[place] != before[place]]
        if label == "intact":
            assert not apart
        else:
            assert len(apart) == 2 and apart[1] == apart[0] + 1 and apart[0] > 0
            assert all(before[place].isalpha() for place in apart)
    # No sentence is there in both forms.
    assert len(set(used)) == len(used)
    again = make_task(treebank(*lines[::-1]), "bigram shift")
    assert dict(zip(task.texts, task.labels, strict=True)) == dict(
        zip(again.texts, again.labels, strict=True)
    )


def test_what_cannot_be_shifted():
    assert shifted(("Yes", ",", "it", "!"), set(), 0) is None
    assert shifted(("It", "is", "very", "very", "big"), {"it very is very big"}, 0) in {
        ("It", "is", "very", "big", "very")
    }
    assert shifted(("so", "it", "IT", "."), {"so it it ."}, 0) is None
    found = {shifted(("a", "b", "c", "d"), set(), seed) for seed in range(20)}
    assert found == {("a", "c", "b", "d"), ("a", "b", "d", "c")}


def test_multiword_tokens_are_shifted_as_they_are_written():
    first = read_treebank(FRENCH_FILE).sentences[0]
    assert tokens_of(first) == ("Il", "parle", "du", "chat", ".")


def clauses(n=240):
    """Sentences of six words, with trees of depth 1, 2 and 3 in turn."""
    return [
        sentence(f"the{i} noun{i % 60} verb{i % 30} old{i} thing{i % 50} .",
                 [[3, 3, 0, 3, 3, 3], [2, 3, 0, 5, 3, 3], [2, 5, 0, 5, 3, 3]][i % 3], str(i))
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["tree depth", "bigram shift"])
def test_the_order_of_the_rows_changes_nothing(what):
    lines = clauses()
    for one in lines[::7]:
        columns = {name: " ".join(cells) for name, cells in one.columns.items()}
        lines.append(sentence(one.text.upper(), one.heads, f"{one.id}u", **columns))
    rows = {}
    for order in (lines, lines[::-1]):
        task = make_task(treebank(*order), what)
        rows.setdefault(frozenset(zip(task.texts, task.labels, task.parts, strict=True)), order)
    assert len(rows) == 1
    assert "repeats" in {decision.name for decision in task.decisions}
    other = make_task(treebank(*lines), what, random_state=1)
    assert frozenset(zip(other.texts, other.labels, other.parts, strict=True)) not in rows


def test_sentences_of_the_test_are_not_learnt_from():
    lines = [flat(5 + i % 24, str(i)) for i in range(400)]
    parts = {"train": treebank(*lines), "test": treebank(*lines[:150])}
    task = make_task(parts, "sentence length")
    sides = defaultdict(set)
    for text, part in zip(task.texts, task.parts, strict=True):
        sides[part].add(text)
    assert sides["test"] <= {one.text for one in lines[:150]}
    assert sides["train"] <= {one.text for one in lines[150:]}


def test_what_is_no_question():
    bank = treebank(*clauses(20))
    for parameter, task in [
        ("task", "sentiment"), ("source", "tree depth"),
    ]:  # fmt: skip
        with refuses(parameter):
            make_task(bank if parameter == "task" else treebank(flat(4, "1")), task)
    bare = sentence("a b c d e", id="1", upos="X X X X X")
    for task, sentences in [("tree depth", [bare] * 3), ("bigram shift", [flat(5, "1")])]:
        with refuses("source"):
            make_task(treebank(*sentences), task)


@pytest.mark.benchmark_data
@pytest.mark.parametrize("what", SENTENCE_TASKS)
def test_english_ewt(data_folder, what):
    banks = {
        part: read_treebank(data_folder / "ud_english_ewt" / f"{part}.tsv.gz") for part in PARTS
    }
    task = make_task(banks, what)
    check_sound(task, len({label for (label,) in task.labels}))
    assert len(task.texts) > 600
    n_each_in_one_part([text.casefold() for text in task.texts], task.parts)
