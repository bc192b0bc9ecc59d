from hypothesis import given
from hypothesis import strategies as st

from embedtopics.encoders.sentence._running import longest_first, token_batches

KEYS = st.lists(st.binary(max_size=6), max_size=40)


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_hold_every_text_once_within_the_budget(lengths, budget):
    lengths = sorted(lengths, reverse=True)
    batches = list(token_batches(lengths, budget))
    assert [row for batch in batches for row in range(len(lengths))[batch]] == list(
        range(len(lengths))
    )
    for batch in batches:
        padded = len(lengths[batch]) * lengths[batch.start]
        assert padded <= budget or len(lengths[batch]) == 1


@given(KEYS, st.randoms())
def test_order_depends_on_content_alone(keys, random):
    rows = list(range(len(keys)))
    ordered = [keys[row] for row in longest_first(keys, rows)]
    shuffled = list(keys)
    random.shuffle(shuffled)
    assert ordered == [shuffled[row] for row in longest_first(shuffled, rows)]
    lengths = [len(key) for key in ordered]
    assert lengths == sorted(lengths, reverse=True)
