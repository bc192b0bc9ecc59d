"""Questions on each word: labels by hand, and no sentence on both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.probing import make_task, read_treebank
from embedtopics.probing._tasks import split_contents
from tests.factories import refuses
from tests.probing.treebanks import FRENCH_FILE, sentence, treebank


@pytest.fixture
def french():
    return read_treebank(FRENCH_FILE)


def test_columns_and_parts(french):
    parts = {"train": french, "test": treebank(french.sentences[0])}
    task = make_task(parts, "upos")
    # The first sentence stands in the test, too: the training is left with the second.
    assert task.texts == (("Oui", "!"), ("Il", "parle", "de", "le", "chat", "."))
    assert task.labels == (("INTJ", "PUNCT"), ("PRON", "VERB", "ADP", "DET", "NOUN", "PUNCT"))
    assert (task.name, task.unit, task.parts) == ("upos", "word", ("train", "test"))
    assert task.decisions[-1].name == "repeats_across_parts" and task.decisions[-1].value == 1


def test_one_key_of_a_column():
    bank = treebank(
        sentence("They see", id="1", feats="Case=Nom|Number=Plur _"),
        sentence("he sees", id="2", feats="Number=Sing|Person=3 Numbers=Many"),
    )
    number = make_task(bank, "feats:Number")
    assert number.labels == (("Plur", ""), ("Sing", "")) and number.name == "feats:Number"


def test_an_underscore_is_no_label_unless_it_is_a_lemma():
    bank = treebank(
        sentence("_ a b", id="1", lemma="_ a _", xpos="X _ Y"),
        sentence("c d", id="2", lemma="c d", xpos="X Y"),
        sentence("e f", id="3", lemma="e f", xpos="X Y"),
    )
    assert make_task(bank, "lemma").labels[0] == ("_", "a", "")
    assert make_task(bank, "xpos").labels[0] == ("X", "", "Y")


def test_what_is_no_question():
    bank = treebank(sentence("a b", id="7", upos="X Y", xpos="_ _"))
    for parameter, banks, task in [
        ("task", bank, "pos"), ("task", bank, "xpos"),
        ("task", treebank(sentence("a b", upos="X X")), "upos"),
        ("source", {"train": bank}, "upos"),
        ("source", {"train": bank, "test": bank, "gold": bank}, "upos"),
        ("source", [], "upos"),
        ("the part train", {"train": bank, "test": bank}, "upos"),
    ]:  # fmt: skip
        with refuses(parameter):
            make_task(banks, task)


@given(st.lists(st.text("abcde", min_size=1), min_size=3), st.integers(0, 5), st.randoms())
def test_dealing_follows_contents_and_not_their_order(keys, seed, random):
    parts = dict(zip(keys, split_contents(keys, seed, "texts")[0], strict=True))
    assert split_contents(keys, seed, "texts")[0] == [parts[key] for key in keys]
    mixed = list(keys)
    random.shuffle(mixed)
    assert dict(zip(mixed, split_contents(mixed, seed, "texts")[0], strict=True)) == parts
    n = len(set(keys))
    counted = list(parts.values())
    if n >= 3:
        assert counted.count("test") == counted.count("dev") == max(1, round(n / 10))
