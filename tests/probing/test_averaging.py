import numpy as np

from embedtopics import probing
from embedtopics.probing import _layers as averaging
from tests.factories import refuses
from tests.probing.made import made_states, random_states


def test_texts_are_the_means_of_their_words():
    states = made_states(
        ["one two gone", "", "three"],
        [[[1, 2], [3, 4], [9, 9], [5, 6]], [[0, 0], [2, 8], [9, 9], [1, 1]]],
        missing=[2],
    )
    found = states.pooled()
    np.testing.assert_array_equal(found.layer(0), [[2, 3], [0, 0], [5, 6]])
    np.testing.assert_array_equal(found.layer(1), [[1, 4], [0, 0], [1, 1]])
    assert found.words == states.texts and found.unit == "text"
    assert found.n_pieces.tolist() == [2, 0, 1] and found.missing.tolist() == [False, True, False]
    assert found.spans.tolist() == [[0, 12], [0, 0], [0, 5]]
    assert found.rows_of(2) == slice(2, 3)


def test_reading_in_parts_changes_nothing(monkeypatch):
    states = random_states(["a b c d e", "f g", "", "h i j"], n_layers=2)
    whole = states.pooled()
    monkeypatch.setattr(averaging, "WORDS_AT_ONCE", 3)
    for one, other in zip(whole.vectors, states.pooled().vectors, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_no_words_at_all(tiny_bert):
    states = probing.hidden_states(tiny_bert, ["", " "])
    assert len(states) == 0 and states.width == 16
    assert states.pooled().missing.tolist() == [True, True]


def test_bad_input():
    states = made_states(["a"], [[[1, 2]]])
    with refuses("states"):
        states.pooled().pooled()
