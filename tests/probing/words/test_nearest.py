import numpy as np
import pytest

from embedtopics import probing
from embedtopics.probing import _layers as spaces
from tests.factories import refuses
from tests.probing.made import made_states, random_states

TEXTS = [
    "The play begins at eight",
    "They play ball . The goalkeeper will play again",
    "a Play on words",
    "one more match begins",
    "The play begins at eight",
]


def cosines(vectors, row):
    unit = vectors.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1), 1e-300)[:, None]
    return unit @ unit[row]


def in_sentence(use):
    """The word of a use, cut out of its sentence."""
    return use["sentence"][use["offset"] :][: use["end"] - use["start"]]


@pytest.fixture
def states():
    return random_states(TEXTS, width=6, seed=3, missing=[7])


@pytest.mark.parametrize("size", [3, 8192])
@pytest.mark.parametrize("layer", [0, 2, -1])
def test_neighbors_are_those_of_all_cosines(states, layer, size, monkeypatch):
    monkeypatch.setattr(spaces.blocks, "__defaults__", (size,))
    found = probing.word_neighbors(states, "play", in_text=2, layer=layer, k=4)
    row = states.rows_of(2).start + 1
    every = cosines(states.layer(layer), row)
    able = [r for r in range(len(states)) if states.of_text[r] != 2 and r != 7]
    best = sorted(able, key=lambda r: -every[r])[:4]
    np.testing.assert_allclose(found.similarities, every[best], atol=1e-12)
    # Two texts are equal, but their vectors are not.
    assert found.uses["row"].tolist() == best
    assert found.query["row"] == row and found.layer == states.layers[layer]


def test_neighbors_know_their_sentences_and_spans(states):
    found = probing.word_neighbors(states, "goalkeeper", k=30)
    assert found.query["sentence"] == TEXTS[1]
    assert in_sentence(found.query) == "goalkeeper"
    for use in found.uses.itertuples():
        assert states.texts[use.text][use.start : use.end] == use.word == in_sentence(use._asdict())
        assert use.sentence in states.texts[use.text]
    frame = found.to_frame()
    assert list(frame["rank"]) == list(range(1, len(found.uses) + 1))
    columns = ["word", "text", "position", "start", "end", "sentence"]
    assert frame[columns].equals(found.uses[columns])


def test_sentences_within_a_text_are_told_apart(states):
    sentences = np.concatenate([[0] * 5, [1] * 4, [2] * 5, [3] * 4, [4] * 4, [5] * 5])
    object.__setattr__(states, "sentences", sentences.astype(np.int32))
    uses = probing.word_neighbors(states, "begins", in_text=3, k=100).uses
    by_row = {use.row: use for use in uses.itertuples()}
    assert by_row[5].sentence == "They play ball ." and by_row[5].offset == 0
    assert by_row[10].sentence == "The goalkeeper will play again" and by_row[10].offset == 4


def test_the_same_word_or_other_words_can_be_asked_for(states):
    same = probing.word_neighbors(states, "play", in_text=2, k=100, candidates="same word")
    assert sorted(same.uses["row"]) == [1, 6, 12, 23]
    other = probing.word_neighbors(states, "play", in_text=2, k=100, candidates="other words")
    assert "play" not in set(other.uses["word"].str.lower())


def test_ties_do_not_depend_on_the_order_of_the_texts():
    texts = ["alpha x", "gamma y", "beta z"]
    vectors = {"x": [1, 0], "y": [1, 0], "z": [1, 0], "alpha": [0, 1], "beta": [-1, 1],
               "gamma": [-1, 0]}  # fmt: skip
    found = []
    for order in ([0, 1, 2, 3], [3, 2, 0, 1]):
        own = [[*texts, "query here"][i] for i in order]
        rows = [vectors.get(w, [1, 1]) for text in own for w in text.split()]
        states = made_states(own, [rows])
        near = probing.word_neighbors(states, "query", k=3)
        found.append(list(zip(near.uses["sentence"], near.uses["word"], strict=True)))
    assert found[0] == found[1]
    assert set(found[0]) == {("alpha x", "x"), ("alpha x", "alpha"), ("beta z", "z")}


def test_several_uses_are_listed_with_their_places(states):
    second = probing.word_neighbors(states, "play", in_text=1, occurrence=1)
    assert second.query["position"] == 7
    again = probing.word_neighbors(states, "play", occurrence=2)
    assert again.query["row"] == second.query["row"]


def test_vectors_that_are_not_finite_and_states_of_texts_are_refused():
    vectors = np.ones((1, 4, 2))
    vectors[0, 2, 1] = np.inf
    with refuses("states", row=2):
        probing.word_neighbors(made_states(["a b", "c d"], vectors), "a")
