"""Words of documents: concordance and keyness."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from embedtopics.errors import InputError
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import concordance, keyness
from embedtopics.topics.reading._words import _log_odds, false_discovery_rates
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
    assert found["topic"].tolist() == [0, 0, 0, 1] and (found["n"] == 1).all()
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
    assert rows()["n"].tolist() == [2, 2, 1]
    assert rows(topics=0, where=press.corpus.time >= "2021").index.tolist() == ["row2", "row2"]
    assert rows(where={"source": "Le Figaro"}).index.tolist() == ["row2", "row2"]
    assert rows(where=np.arange(7) == 1).index.tolist() == ["row1"]
    empty = rows(topics=1)
    assert len(empty) == 0 and list(empty.columns) == list(rows().columns)
    assert (empty.dtypes == rows().dtypes).all()
    assert rows(topics=[0, -1]).equals(rows())


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


MORE = {"n_terms": 1000}


@pytest.fixture(autouse=True)
def rare_terms(monkeypatch):
    monkeypatch.setattr("embedtopics.topics.reading._words.MIN_COUNT", 1)


def lines(frame):
    return frame.set_index("term")


def test_counts_are_of_rows_and_rates_of_places(press):
    found = lines(keyness(press, 0, 1, **MORE))
    # The text that two rows share counts twice: 5 + 4 + 5 words, 4 + 3 + 4 pairs.
    tax, cut = found.loc["tax"], found.loc["tax cut"]
    of_sides = ["count_target", "count_reference", "rows_target", "rows_reference"]
    assert tax[of_sides].tolist() == [5, 0, 3, 0]
    assert tax["rate_target"] == pytest.approx(1e6 * 5 / 14)
    assert cut[["count_target", "rows_target"]].tolist() == [4, 2]
    assert cut["rate_target"] == pytest.approx(1e6 * 4 / 11)
    river = found.loc["river"]
    assert river[["count_target", "count_reference", "rows_reference"]].tolist() == [0, 3, 2]
    assert river["rate_reference"] == pytest.approx(1e6 * 3 / 7)
    left_out = {"odd", "one", "out", "odd one", "one out"}
    assert set(found.index) == set(press.term_counts.terms) - left_out


def test_log_odds_by_hand(press):
    found = lines(keyness(press, 0, 1, **MORE))
    # 14 words and 7; the whole input has 24, in 5 of which "tax" stands: a prior of 7 words.
    prior = 7 * 5 / 24
    odds = [(y + prior) / (n + 7 - y - prior) for y, n in ((5, 14), (0, 7))]
    error = np.sqrt(1 / (5 + prior) + 1 / prior)
    tax = found.loc["tax"]
    assert tax["effect"] == pytest.approx(np.log(odds[0] / odds[1]))
    assert tax["statistic"] == pytest.approx(np.log(odds[0] / odds[1]) / error)
    assert tax["low"] == pytest.approx(tax["effect"] - 1.959964 * error, rel=1e-6)
    assert tax["p"] == pytest.approx(2 * stats.norm.sf(tax["statistic"]))
    np.testing.assert_allclose(found["q"], stats.false_discovery_control(found["p"]))


def test_both_sides_are_given_in_any_way(press):
    frame = press.corpus.metadata
    by_group = keyness(press, {"source": "Le Monde"}, {"source": "Le Figaro"}, **MORE)
    mask = (frame["source"] == "Le Monde").to_numpy()
    for target in (mask, pd.Series(mask, index=frame.index), mask.tolist(),
                   pd.Series(mask, index=frame.index).iloc[::-1]):  # fmt: skip
        pd.testing.assert_frame_equal(keyness(press, target, **MORE), by_group)
    # The text that stands in both papers counts once in each.
    assert lines(by_group).loc["cut", ["count_target", "count_reference"]].tolist() == [2, 2]
    several = keyness(press, [0, 1], -1, **MORE)
    pd.testing.assert_frame_equal(several, keyness(press, np.array([1, 0]), **MORE))
    assert lines(several).loc["odd", "count_reference"] == 1


def test_n_is_of_each_side_and_min_count_of_both(press, monkeypatch):
    everything = keyness(press, 0, 1, **MORE)
    few = keyness(press, 0, 1, n_terms=2)
    assert few["term"].tolist() == [*everything["term"][:2], *everything["term"][-2:]]
    assert few["q"].tolist() == [*everything["q"][:2], *everything["q"][-2:]]
    monkeypatch.setattr("embedtopics.topics.reading._words.MIN_COUNT", 3)
    often = keyness(press, 0, 1, **MORE)
    total = lines(everything)[["count_target", "count_reference"]].sum(axis=1)
    assert set(often["term"]) == set(total[total >= 3].index)


@pytest.mark.parametrize(
    ("target", "reference", "parameter"),
    [
        (0, {"source": "Le Monde"}, "reference"),
        (0, 0, "reference"),
        ({"source": "Die Zeit"}, None, "target"),
        (np.zeros(7, bool), None, "target"),
        (np.ones(7, bool), None, "reference"),
        (np.ones(3, bool), None, "target"),
        (pd.Series(True, index=range(7)), None, "target"),
        (pd.Series([True, None] + [False] * 5, dtype="boolean",
                   index=[f"row{i}" for i in range(7)]), None, "target"),
    ],
)  # fmt: skip
def test_bad_sides_are_named(press, target, reference, parameter):
    with refuses(parameter):
        keyness(press, target, reference)


def test_what_cannot_be_told_is_left_out(build, monkeypatch):
    # The reference has one word in each text, and so no place for a pair.
    result = build(["one two three", "four", "five"], [0, 1, 1])
    found = keyness(result, 0, 1, **MORE)
    assert set(found["term"]) == {"one", "two", "three", "four", "five"}
    monkeypatch.setattr("embedtopics.topics.reading._words.MIN_COUNT", 9)
    nothing = keyness(result, 0, 1, n_terms=5)
    assert len(nothing) == 0 and list(nothing.columns) == list(found.columns)


counted = st.integers(0, 40)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(counted, counted), min_size=1, max_size=6),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_sides_that_change_places_change_the_sign(pairs, more_target, more_reference):
    target, reference = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    n = [target.sum() + more_target + 1.0, reference.sum() + more_reference + 1.0]
    shares = (target + reference + 1) / (sum(n) + len(target))
    lengths, places = np.ones(len(target), dtype=int), [np.full(len(target), v) for v in n]
    there = _log_odds([target, reference], places, shares, lengths)
    back = _log_odds([reference, target], places[::-1], shares, lengths)
    np.testing.assert_allclose(there["effect"], -back["effect"], atol=1e-9)
    np.testing.assert_allclose(there["statistic"], -back["statistic"], atol=1e-9)
    np.testing.assert_allclose(there["low"], -back["high"], atol=1e-9)
    np.testing.assert_allclose(there["p"], back["p"], atol=1e-9)
    assert ((there["p"] >= 0) & (there["p"] <= 1)).all()
    assert np.isfinite(there["statistic"]).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_false_discovery_rates_are_those_of_scipy(p):
    np.testing.assert_allclose(false_discovery_rates(p), stats.false_discovery_control(p))
