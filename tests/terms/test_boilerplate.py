"""Lines that many texts repeat word for word."""

import numpy as np

from embedtopics.corpus._texts import repeated_lines
from embedtopics.terms._counts import count_terms
from embedtopics.terms._tokens import join_tokens, skip_lines, tokenize

LINE = "Sent from my pocket telephone, please excuse it"
BODIES = [f"The kettle {word} boils water for a long and quiet afternoon" for word in "abcdefg"]


def test_a_line_of_five_texts_and_no_copy_of_a_text():
    signed = [f"{body}.\n{LINE}." for body in BODIES]
    assert repeated_lines(signed) == ({LINE: 7}, [*range(7)])
    assert repeated_lines(signed[:4])[0] == {}
    assert repeated_lines([f"{n}\n{LINE}" for n in range(9)])[0] == {}  # they are their line
    assert (
        repeated_lines([f"{body}.\nFourwordsthatarelong evenlonger." for body in BODIES])[0] == {}
    )


def test_terms_do_not_count_the_words_of_a_line():
    signed = [f"{BODIES[0]}, telephone! {LINE}. Telephone", *(f"{b}.\n{LINE}." for b in BODIES)]
    tokens = tokenize(signed)
    skipping = skip_lines(tokens, signed, {LINE: 8}, range(len(signed)))
    counts = count_terms(skipping, min_df=1)
    terms = dict(zip(counts.terms, counts.counts.toarray().T, strict=True))
    assert terms["telephone"].tolist() == [2, *[0] * 7]
    assert (
        "pocket" not in terms and "pocket telephone" not in terms and "afternoon sent" not in terms
    )
    assert counts.terms == count_terms(tokenize([s.replace(LINE, ".") for s in signed])).terms
    grown = join_tokens(skipping, tokenize(["pocket telephone"]), np.array([*range(1, 9), 0]))
    assert count_terms(grown, min_df=1).counts.sum() == counts.counts.sum() + 3
