from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.terms._tokens import join_tokens, tokenize

TEXTS = st.lists(st.text("ab cé", max_size=12), max_size=6)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_a_joint_stream_is_that_of_all_texts(first, second, random):
    order = list(range(len(first) + len(second)))
    random.shuffle(order)
    order = order[: len(order) - random.randint(0, len(order)) // 3]
    joint = join_tokens(tokenize(first), tokenize(second), np.array(order, dtype=np.int64))
    whole = tokenize([(first + second)[place] for place in order])
    assert joint.words == whole.words
    np.testing.assert_array_equal(joint.ids, whole.ids)
    np.testing.assert_array_equal(joint.offsets, whole.offsets)
    assert joint.ids.dtype == np.int32 and joint.offsets.dtype == np.int64
