"""BM25 over segments, held against bm25s over all living texts at once."""

import itertools

import bm25s
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedtopics.errors import CorruptFileError
from embedtopics.retrieval._bm25 import (
    LexicalSearcher,
    LexicalSettings,
    build_lexical,
    lexical_settings,
    open_lexical,
)
from embedtopics.retrieval._query_notes import _lexical_decisions
from embedtopics.terms._tokens import tokenize
from tests.factories import refuses

PLAIN = LexicalSettings()
ENGLISH = lexical_settings(["en"])
WORDS = ["ant", "bee", "cat", "dog", "éclair", "été", "𐐨y", "zoo"]
COUNTER = itertools.count()


def opened(folder, texts, settings=PLAIN):
    folder = folder / f"{next(COUNTER):06}"
    folder.mkdir()
    build_lexical(folder, texts, settings)
    return open_lexical(folder)


def searching(*segments):
    settings = segments[0].settings if segments else PLAIN
    return LexicalSearcher.of(segments, [None] * len(segments), settings)


def bm25s_scores(texts, query, k1=1.5, b=0.75):
    """Scores by bm25s, with the project's tokens."""
    stream = tokenize([*texts, query])
    words = [[stream.words[i] for i in ids] for ids in np.split(stream.ids, stream.offsets[1:-1])]
    model = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    model.index(words[:-1], show_progress=False)
    return model.get_scores(words[-1]) if words[-1] else np.zeros(len(texts))


texts_of_words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    passages=st.lists(st.tuples(texts_of_words, st.integers(0, 2), st.booleans()), min_size=1),
    query=st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=6).map(" ".join),
    k=st.integers(1, 12),
    k1=st.sampled_from([0.0, 0.9, 1.5]),
    b=st.sampled_from([0.0, 0.75, 1.0]),
)
def test_segments_and_removals_score_as_one_collection(tmp_path_factory, passages, query, k, k1, b):
    folder = tmp_path_factory.mktemp("segments")
    parts = [[p for p in passages if p[1] == number] for number in range(3)]
    segments = [opened(folder, [text for text, _, _ in part]) for part in parts]
    alive = [np.array([there for _, _, there in part], dtype=bool) for part in parts]
    searcher = LexicalSearcher.of(segments, alive, LexicalSettings(k1=k1, b=b))
    living = [
        (number, row, text)
        for number, part in enumerate(parts)
        for row, (text, _, there) in enumerate(part)
        if there
    ]
    if not any(text for _, _, text in living):
        assert len(searcher.search(query, k).scores) == 0
        return
    scores = bm25s_scores([text for _, _, text in living], query, k1, b)
    expected = sorted(
        ((-score, *place) for score, place in zip(scores, living, strict=True) if score > 0)
    )
    found = searcher.search(query, k)
    assert len(found.scores) == min(k, len(expected))
    np.testing.assert_allclose(found.scores, [-e[0] for e in expected[:k]], atol=1e-6)
    by_place = {(number, row): -score for score, number, row, _ in expected}
    for score, number, row in zip(*found, strict=True):
        assert by_place[number, row] == pytest.approx(score, abs=1e-6)
    whole = list(zip(-found.scores, found.segments, found.rows, strict=True))
    assert whole == sorted(whole), "ties go by segment, then row"
    at = searcher.scores_at(query, found.segments, found.rows)
    assert at.tolist() == found.scores.tolist()


def test_a_split_changes_no_bit(tmp_path):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 9))) for _ in range(60)]
    one = searching(opened(tmp_path, texts))
    three = searching(*[opened(tmp_path, p) for p in (texts[:7], [], texts[7:])])
    starts = np.array([0, 7, 7])
    for query in ("bee", "cat été ant cat"):
        a, b = one.search(query, 25), three.search(query, 25)
        assert a.scores.tobytes() == b.scores.tobytes()
        assert a.rows.tolist() == (starts[b.segments] + b.rows).tolist()


def test_stems_and_stop_words(tmp_path):
    searcher = searching(
        opened(tmp_path, ["The hospitals were closed", "A horse", "Closing it"], ENGLISH)
    )
    assert set(searcher.search("the closure of a hospital: closes?", 5).rows) == {0, 2}
    assert set(searcher.search("it was the", 5).rows) == {0, 2}  # it has nothing else to ask
    assert searcher.segments[0].lengths.tolist() == [2, 1, 1]


def test_a_stop_word_that_hardly_any_passage_holds_is_looked_for(tmp_path):
    """The lists call *mill* a stop word, and it is one where every hundredth passage has it."""
    assert "mill" in ENGLISH.stop_words
    texts = ["the lane", "the mill", *["the lake of the year"] * 198]
    rare = searching(opened(tmp_path, texts, ENGLISH))
    assert rare.search("the mill lane", 5).rows.tolist() == [1, 0]
    assert list(rare.read("the mill lane").stop_words) == ["the"]
    without = LexicalSettings(ENGLISH.stop_words, ENGLISH.stems)
    kept = [word for word in without.stop_words if word != "mill"]
    plain = searching(opened(tmp_path, texts, LexicalSettings(tuple(kept), ("en",))))
    own, other = rare.search("lane", 5), plain.search("lane", 5)
    np.testing.assert_allclose(own.scores, other.scores, rtol=0.01)  # one word in length
    often = [*texts, "the mill", "a mill"]
    common = searching(opened(tmp_path, often, ENGLISH))
    assert common.search("the mill lane", 5).rows.tolist() == [0]
    assert common.search("mill", 5).rows.tolist() == [1, 200, 201]
    parts = common.parts_at("mill", np.array([0]), np.array([1]))
    assert sum(part[0] for part in parts.values()) == common.search("mill", 1).scores[0] > 0


def test_inflections_of_the_first_language_meet_beside_a_second(tmp_path):
    both = lexical_settings(["fr", "en"])
    searcher = searching(opened(tmp_path, ["fermetures d'hôpitaux", "closing hospitals"], both))
    assert searcher.search("la fermeture", 5).rows.tolist() == [0]
    assert searcher.search("the hospital", 5).rows.tolist() == [1]


def test_a_very_long_query_is_one_pass_over_the_postings(tmp_path):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=5)) for _ in range(50)]
    query = " ".join(rng.choice([*WORDS, *(f"w{i}" for i in range(2000))], size=17_000))
    assert len(query) > 80_000
    searcher = searching(opened(tmp_path, texts))
    found = searcher.search(query, 50)
    np.testing.assert_allclose(found.scores, bm25s_scores(texts, query)[found.rows], rtol=1e-9)
    assert len(_lexical_decisions(searcher, query, "the query", {})[0].message) < 400


def test_words_of_any_letters_are_found(tmp_path):
    segment = opened(tmp_path, ["ant bee", "", "\ud800x 𐐨y zoo zoo", "été"], ENGLISH)
    assert segment.settings == ENGLISH
    found = {w: segment.postings(segment.find(w)) for w in ("ant", "été", "𐐨y", "zoo", "no", "")}
    assert {w: (r.tolist(), n.tolist()) for w, (r, n) in found.items()} == {
        "ant": ([0], [1]), "été": ([3], [1]), "𐐨y": ([2], [1]), "zoo": ([2], [2]), "no": ([], []),
        "": ([], []),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["rows.npy", "starts.npy", "letters.npy", "lexical.json"])
@pytest.mark.parametrize("how", ["missing", "cut", "empty", "other"])
def test_damaged_files_are_refused(tmp_path, name, how):
    build_lexical(tmp_path, ["ant bee", "cat"], PLAIN)
    path = tmp_path / name
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:-5])
    elif how == "empty":
        path.write_bytes(b"")
    elif name.endswith("json"):
        path.write_text('{"format": 99}')
    else:
        np.save(path, np.zeros((2, 2)))
    with pytest.raises(CorruptFileError, match=r"its postings|format 99"):
        open_lexical(tmp_path)


def test_stop_words_of_ones_own_are_read_as_texts_are(tmp_path):
    own = lexical_settings(["fr"], stop_words=["LES", "e\u0301te\u0301", "d\u2019un"], stems=False)
    assert own.stop_words == ("d", "les", "un", "été")
    both = lexical_settings(["fr"], stop_words=["auto", "Moutons"]).stop_words
    assert set(both) == {"moutons", *lexical_settings(["fr"]).stop_words} > {"les"}
    segment = opened(tmp_path, ["Les étés d'un été"], own)
    assert segment.lengths.tolist() == [1] and segment.find("étés") >= 0 > segment.find("été")
    with refuses("stop_words", row=0):
        lexical_settings(["fr"], stop_words=[3])
