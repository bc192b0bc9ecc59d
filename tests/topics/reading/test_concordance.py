import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import concordance
from tests.factories import refuses

TEXTS = [
    "The Tax-cut, and the TAX  cut:\nno tax was cut.",
    "A tax\u00a0cut? L’impôt caf&eacute; (Tax)",
    "Nothing here but words.",
    "the tax-cut of row four",
]


@pytest.fixture(scope="module")
def small(build):
    return build([*TEXTS, TEXTS[2], ""], [0, 0, 1, 1, 1, -1])


def hits(result, words):
    """Count a run of words in the stream of each document, by brute force."""
    tokens = result.tokens
    found = 0
    for begin, end in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True):
        stream = [tokens.words[i] for i in tokens.ids[begin:end]]
        found += sum(stream[i : i + len(words)] == words for i in range(len(stream)))
    return found


def test_lines_show_the_text_as_it_was_written(small):
    found = (
        concordance(small, "tax cut", n_occurrences=None)
        .sort_values("start")
        .sort_index(kind="stable")
    )
    assert found.index.tolist() == [0, 0, 1, 3]
    assert found["keyword"].tolist() == ["Tax-cut", "TAX cut", "tax cut", "tax-cut"]
    assert found["left"].tolist() == ["The ", "The Tax-cut, and the ", "A ", "the "]
    assert found["right"][0].tolist() == [", and the TAX cut: no tax was cut.", ": no tax was cut."]
    assert found["topic"].tolist() == [0, 0, 0, 1] and (found["rows"] == 1).all()
    for row in found.itertuples():
        text = small.corpus.texts[row.Index]
        assert re.sub(r"\s+", " ", text[row.start : row.stop]) == row.keyword
        assert re.sub(r"\s+", " ", text).count(row.left + row.keyword + row.right) >= 1


def test_entities_accents_and_elisions_are_found(small):
    assert concordance(small, "café")["keyword"].tolist() == ["caf&eacute;"]
    assert concordance(small, "l'IMPO\u0302T")["keyword"].tolist() == ["L’impôt"]
    assert len(concordance(small, "impôt", window=1)) == 1


def test_windows_count_words(small):
    one = concordance(small, "was", window=2)
    assert one[["left", "keyword", "right"]].iloc[0].tolist() == ["no tax ", "was", " cut."]
    one = concordance(small, "here", window=1)
    assert one[["left", "right"]].iloc[0].tolist() == ["Nothing ", " but"]


def test_lines_are_sorted_by_the_words_after_the_term(build):
    result = build(["z tax b", "a tax c", "m tax a", "a a tax d"], [0, 0, 1, 1])
    assert concordance(result, "tax").index.tolist() == [2, 0, 1, 3]


def test_topics_periods_and_masks_narrow_the_search(press):
    def rows(**conditions):
        found = concordance(press, "tax", n_occurrences=None, **conditions)
        return found.sort_values("start").sort_index(kind="stable")

    assert rows().index.tolist() == ["row0", "row0", "row1"]
    assert rows()["rows"].tolist() == [2, 2, 1]
    assert rows(topic=0, where=press.corpus.time >= "2021").index.tolist() == ["row2", "row2"]
    assert rows(where={"source": "Le Figaro"}).index.tolist() == ["row2", "row2"]
    assert rows(where=np.arange(7) == 1).index.tolist() == ["row1"]
    empty = rows(topic=1)
    assert len(empty) == 0 and list(empty.columns) == list(rows().columns)
    assert (empty.dtypes == rows().dtypes).all()
    assert rows(topic=[0, -1]).equals(rows())


def test_the_draw_depends_on_the_texts_alone(build):
    texts = [f"word{i} tax word{i + 1}" for i in range(60)]
    topics = np.zeros(60, dtype=int)
    order = np.random.default_rng(1).permutation(60)
    first = build(texts, topics)
    other = build([texts[i] for i in order], topics)

    def ids(result, n=10, seed=5):
        return concordance(result, "tax", n_occurrences=n, random_state=seed)["id"].tolist()

    one, more = ids(first), ids(first, 20)
    assert one == ids(other) and set(one) != set(ids(first, seed=6))
    assert set(one) <= set(more) and len(more) == 20


@pytest.mark.parametrize("term", ["taxx", "Nothing word", "cut tax words", "!!!"])
def test_a_term_that_is_nowhere(small, term):
    with refuses("term") as caught:
        concordance(small, term)
    assert term != "taxx" or "similar terms are 'tax'" in str(caught.value)


def test_other_words_than_the_counted_ones_are_refused(small):
    words = tuple("taxi" if w == "tax" else w for w in small.tokens.words)
    older = replace(small, tokens=replace(small.tokens, words=words))
    with pytest.raises(InputError, match="another version"):
        concordance(older, "taxi")


PARTS = ["Tax", "tax", "cut", "tax-cut", "l'eau", "caf&eacute;", "<b>", "日本語", "x-ray", "qu'un"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=9), min_size=2, max_size=6),
    st.sampled_from(
        ["tax", "cut", "tax cut", "eau", "l'eau", "café", "日本", "日本語", "x-ray", "un"]
    ),
    st.sampled_from([" ", ", ", "\n\n"]),
)
def test_there_are_as_many_lines_as_the_stream_has_occurrences(build, parts, term, glue):
    texts = sorted({glue.join(text) for text in parts} | {"no one"})
    result = build(texts, [0] * len(texts))
    stream = tokenize([term])
    expected = hits(result, [stream.words[i] for i in stream.ids])
    try:
        found = concordance(result, term, n_occurrences=None)
    except InputError:
        assert expected == 0
        return
    assert len(found) == expected
    for row in found.itertuples():
        again = tokenize([row.keyword])
        assert [again.words[i] for i in again.ids] == [stream.words[i] for i in stream.ids]
