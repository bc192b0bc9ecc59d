"""The batches of an epoch: all examples, the same for a seed, no text twice, little padding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.training.trainer._batching import StepPlan

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=200)


@given(SIZES, st.integers(1, 17), st.integers(0, 5), st.integers(0, 4))
def test_an_epoch_holds_each_example_once(lengths, size, seed, epoch):
    batches = StepPlan(lengths, size, seed).of_epoch(epoch)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) <= size for batch in batches)
    assert len(batches) == len(StepPlan(lengths, size, seed))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=120),
    st.integers(2, 12),
)
def test_no_batch_holds_a_text_twice_in_two_examples(keys, size):
    plan = StepPlan(np.ones(len(keys)), size, 0, keys)
    batches = plan.of_epoch(3)
    assert len(batches) == len(plan)
    for batch in batches:
        texts = [text for place in batch for text in set(keys[place])]
        assert len(texts) == len(set(texts))
    learned = {place for batch in batches for place in batch}
    assert plan.n_left_out == len(keys) - len(learned)


@given(
    st.lists(
        st.tuples(*[st.integers(0, 40)] * 3).filter(lambda row: len(set(row)) == 3),
        min_size=1, max_size=80,
    ),
    st.integers(2, 12),
)  # fmt: skip
def test_no_known_partner_is_a_negative(keys, size):
    pairs = {frozenset(row[:2]) for row in keys}
    for batch in StepPlan(np.ones(len(keys)), size, 0, keys).of_epoch(1):
        for one in batch:
            others = {text for other in batch if other != one for text in keys[other]}
            assert not any(frozenset((text, keys[one][0])) in pairs for text in others)
            assert not any(frozenset((text, keys[one][1])) in pairs for text in others)


def test_batches_need_little_padding():
    rng = np.random.default_rng(0)
    lengths = rng.geometric(0.08, 4000) + 4
    batches = StepPlan(lengths, 32, 0).of_epoch(0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    shuffled = rng.permutation(4000).reshape(-1, 32)
    assert padded < 1.25 * lengths.sum()
    assert (lengths[shuffled].max(axis=1) * 32).sum() > 2.5 * lengths.sum()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 60)), min_size=1, max_size=120),
    st.integers(2, 12),
)
def test_each_example_is_in_the_first_batch_that_can_take_it(keys, size):
    plan = StepPlan(np.ones(len(keys)), size, 0, keys)
    order = list(range(len(keys)))
    batches = [[] for _ in range(len(plan))]
    paired = {frozenset(key[:2]) for key in keys}
    for example in order:
        for batch in batches:
            held = {text for other in batch for text in keys[other]}
            near = {text for text in held for own in keys[example] if {text, own} in paired}
            taken = held | {own for own in keys[example] if near}
            if len(batch) < size and taken.isdisjoint(keys[example]):
                batch.append(example)
                break
    assert plan._without_doubles(order) == (batches, len(keys) - sum(map(len, batches)))
    assert all(batches)


def test_a_few_texts_that_all_examples_share_are_not_looked_for_in_each_batch():
    class Counted(tuple):
        n_test_evaluations = 0

        def __iter__(self):
            Counted.n_test_evaluations += 1
            return super().__iter__()

    # Texts with one of ten class names: of 320 batches, each can hold ten examples.
    keys = [Counted((number % 10, 100 + number)) for number in range(10_240)]
    plan = StepPlan(np.ones(len(keys)), 32, 0, keys)
    assert sorted(map(len, plan.of_epoch(0))) == [10] * 320
    assert Counted.n_test_evaluations < 20 * len(keys)
