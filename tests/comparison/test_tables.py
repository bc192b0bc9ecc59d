import numpy as np
import pytest

from embedtopics.comparison._maps import displacement
from embedtopics.comparison._tables import compare_neighbors, find_moves, real_neighbors
from embedtopics.evaluation._bootstrap import interval
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.terms._counts import count_terms
from embedtopics.terms._tokens import tokenize


def test_scores_are_tabulated(compared):
    shown = compared._spelled_scores()
    assert shown.index.tolist() == list(compared.names)
    row = compared.scores.query("encoder == 'noise' and measure == 'knn_accuracy'").iloc[0]
    assert shown.loc["noise", "knn_accuracy"] == (
        f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    )
    assert shown.loc["noise", "documents_per_second"] == ""  # given, not made
    text = compared.summary()
    assert text.startswith("words, themes, hashed, noise: ")
    assert shown.loc["noise", "knn_accuracy"] in text
    assert repr(compared.encoders[1]).startswith("EncoderView('themes', ")
    assert "mean Jaccard 0." in repr(compared.neighbor_overlaps[0])


def test_differences_are_paired(compared):
    found = compared.differences().set_index(["measure", "encoder"])
    assert set(found["against"]) == {"words"}
    right = compared.per_document["knn_accuracy"].astype(float)
    apart = right[3] - right[0]
    row = found.loc[("knn_accuracy", "noise")]
    assert row["difference"] == pytest.approx(apart.mean())
    rng = np.random.default_rng(0)
    n = len(apart)
    drawn = [apart[rng.integers(0, n, n)].mean() for _ in range(200)]
    assert (row["low"], row["high"]) == pytest.approx(interval(drawn, n))
    assert row["high"] < 0 and row["n"] == n


def test_overlaps_with_what_chance_would_give(compared):
    found = compared.overlaps()
    assert len(found) == 6 and (found["n"] == len(compared.distinct)).all()
    first = found.iloc[0]
    assert first["jaccard"] == pytest.approx(compared.neighbor_overlaps[0].jaccard.mean(), abs=1e-6)
    assert first["jaccard_low"] <= first["jaccard"] <= first["jaccard_high"]
    with_noise = found[found["second"] == "noise"]
    for name in ("jaccard", "rank_biased"):
        np.testing.assert_allclose(with_noise[name], with_noise[f"{name}_chance"], atol=0.02)
    of_words = found.query("first == 'words' and second == 'hashed'").iloc[0]
    assert of_words["jaccard"] > 5 * of_words["jaccard_chance"]
    maps = [view.map for view in compared.encoders]
    assert first["displacement"] == pytest.approx(displacement(maps[0], maps[1]).mean())


def test_moves_are_shown_with_their_texts(compared):
    found = compared.moves(20)
    assert len(found) == len(compared.moved)
    move, row = compared.moved.iloc[0], found.iloc[0]
    text = compared.corpus.texts[row["row"]]
    assert compared.distinct.of_row[row["row"]] == move.document
    assert row["text"] == text[:19].rstrip() + "…"
    assert row["gained"] == ", ".join(move.gained)
    assert row["group"] == compared.group_names[compared.groups[move.document]]
    assert repr(compared).startswith("Comparison(words, themes, hashed, noise: ")
    shown = compared._repr_html_()
    assert "knn_accuracy" in shown and "themes" in shown


def graph(lists, similarities=None):
    indices = np.array(lists, dtype=np.int32)
    if similarities is None:
        similarities = np.tile(np.linspace(0.9, 0.5, indices.shape[1]), (len(indices), 1))
    return NeighborGraph(indices, np.array(similarities, dtype=np.float32))


def test_every_two_encoders_are_compared():
    found = real_neighbors(graph([[1, 2], [0, 2]], [[0.5, 0.0], [0.0, -0.1]]))
    assert found.tolist() == [[1, -1], [-1, -1]]  # what shares nothing is no neighbour
    first, second = graph([[1, 2], [0, 2], [0, 1]]), graph([[2, 1], [0, 2], [0, 1]])
    empty = graph([[1, 2], [0, 2], [0, 1]], np.zeros((3, 2)))
    pairs = compare_neighbors([first, second, empty])
    assert [(o.first, o.second) for o in pairs] == [(0, 1), (0, 2), (1, 2)]
    assert pairs[0].jaccard.tolist() == [1, 1, 1]
    assert pairs[0].rank_biased[0] < pairs[0].rank_biased[1] == 1
    assert pairs[1].jaccard.tolist() == pairs[2].rank_biased.tolist() == [0, 0, 0]


TEXTS = [
    "alpha", "goal match referee", "goal match striker", "goal match keeper",
    "tax budget vote", "tax budget minister", "tax budget deficit", "rain wind sun",
]  # fmt: skip


@pytest.fixture
def counts():
    return count_terms(tokenize(TEXTS), ngram_range=(1, 1), min_df=1)


def test_the_terms_of_a_move_are_those_that_its_neighbours_share(counts):
    same = [[0, 1, 2] for _ in TEXTS]
    before, after = graph([[1, 2, 3], *same[1:]]), graph([[4, 5, 6], *same[1:]])
    (move,) = find_moves(
        [before, after], compare_neighbors([before, after]), counts, 1
    ).itertuples()
    assert (move.document, move.first, move.second, move.jaccard) == (0, 0, 1, 0.0)
    # "referee" and "vote" are held by one neighbour each.
    assert set(move.gained) == {"tax", "budget"} and set(move.lost) == {"goal", "match"}
    # Neighbours that stay say nothing of the change.
    before, after = graph([[1, 2, 4], *same[1:]]), graph([[5, 6, 4], *same[1:]])
    (move,) = find_moves(
        [before, after], compare_neighbors([before, after]), counts, 1
    ).itertuples()
    assert set(move.gained) == {"tax", "budget"} and set(move.lost) == {"goal", "match"}
    assert move.jaccard == pytest.approx(0.2)


def test_the_least_overlap_comes_first_and_then_what_both_are_sure_of(counts):
    lists = [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1], [0, 1]]
    others = [row if i < 5 else [2, 3] for i, row in enumerate(lists)]
    others[4] = [1, 7]  # one neighbour of two is left
    near = np.full((8, 2), 0.5)
    first = near.copy()
    first[5], first[6], first[7] = 0.1, 0.9, 0.6
    second = near.copy()
    second[5], second[6], second[7] = 0.9, 0.8, 0.7
    graphs = [graph(lists, first), graph(others, second)]
    moves = find_moves(graphs, compare_neighbors(graphs), counts, 4)
    assert moves["document"].tolist() == [6, 7, 5, 4]


def test_documents_that_keep_their_neighbours_or_have_none_do_not_move(counts):
    lists, others = [[1, 2]] + [[0, 3]] * 7, [[4, 5]] + [[0, 2]] * 7
    similarities = np.full((8, 2), 0.5)
    similarities[0] = 0
    graphs = [graph(lists, similarities), graph(others)]
    moves = find_moves(graphs, compare_neighbors(graphs), counts, 8)
    assert 0 not in moves["document"].tolist() and len(moves) == 7
    assert find_moves(graphs, compare_neighbors(graphs), counts, 0).empty
    same = [[0, 1, 2] for _ in TEXTS[2:]]
    before = graph([[1, 2, 3], [0, 2, 3], *same])
    after = graph([[4, 5, 6], [3, 2, 0], *same])  # the second has the same, in another order
    moves = find_moves([before, after], compare_neighbors([before, after]), counts, 5)
    assert moves["document"].tolist() == [0]
