import numpy as np
import pytest

from embedtopics.comparison import difference_table, move_table, overlap_table, score_table
from embedtopics.comparison._maps import displacement
from tests.factories import refuses


def test_scores_for_people_and_for_programs(compared):
    shown, numbers = score_table(compared), score_table(compared, numeric=True)
    assert shown.index.tolist() == list(compared.names) == numbers.index.tolist()
    row = compared.scores.query("encoder == 'noise' and measure == 'knn_accuracy'").iloc[0]
    assert numbers.loc["noise", ("knn_accuracy", "low")] == row["low"]
    assert shown.loc["noise", "knn_accuracy"] == (
        f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    )
    assert shown.loc["noise", "documents_per_second"] == ""  # given, not made
    assert np.isnan(numbers.loc["noise", ("documents_per_second", "value")])


def test_differences_are_paired(compared):
    found = difference_table(compared).set_index(["measure", "encoder"])
    assert set(found["against"]) == {"words"}
    right = compared.per_document["knn_accuracy"].astype(float)
    apart = right[3] - right[0]
    row = found.loc[("knn_accuracy", "noise")]
    assert row["difference"] == pytest.approx(apart.mean())
    rng = np.random.default_rng(0)
    n = len(apart)
    drawn = [apart[rng.integers(0, n, n)].mean() for _ in range(200)]
    expected = np.quantile(drawn, [0.025, 0.975])
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))
    assert row["high"] < 0 and row["n"] == n


def test_any_encoder_or_the_best_can_be_compared_with(compared):
    found = difference_table(compared, against="noise")
    assert "noise" not in set(found["encoder"])
    assert (found.query("measure == 'knn_accuracy'")["low"] > 0).all()
    found = difference_table(compared, against="best")
    for measure, rows in found.groupby("measure"):
        scores = compared.scores[compared.scores["measure"] == measure]
        values = scores.set_index("encoder")["value"]
        assert values[rows["against"].iloc[0]] == values.max()
    assert (found["difference"] <= 0).all()
    with refuses("against"):
        difference_table(compared, against="nobody")


def test_overlaps_with_what_chance_would_give(compared):
    found = overlap_table(compared)
    assert len(found) == 6 and (found["n"] == len(compared.documents)).all()
    first = found.iloc[0]
    assert first["jaccard"] == pytest.approx(compared.overlaps[0].jaccard.mean(), abs=1e-6)
    assert first["jaccard_low"] <= first["jaccard"] <= first["jaccard_high"]
    with_noise = found[found["second"] == "noise"]
    for name in ("jaccard", "rank_biased"):
        np.testing.assert_allclose(with_noise[name], with_noise[f"{name}_chance"], atol=0.02)
    of_words = found.query("first == 'words' and second == 'hashed'").iloc[0]
    assert of_words["jaccard"] > 5 * of_words["jaccard_chance"]
    maps = [view.map for view in compared.encoders]
    assert first["displacement"] == pytest.approx(displacement(maps[0], maps[1]).mean())


def test_moves_are_shown_with_their_texts(compared):
    found = move_table(compared, n_characters=20)
    assert len(found) == len(compared.moves)
    move, row = compared.moves[0], found.iloc[0]
    text = compared.corpus.texts[row["row"]]
    assert compared.documents.of_row[row["row"]] == move.document
    assert row["text"] == text[:19].rstrip() + "…"
    assert row["gained"] == ", ".join(move.gained)
    assert row["group"] == compared.group_names[compared.groups[move.document]]
    assert repr(compared).startswith("Comparison(words, themes, hashed, noise: ")
    shown = compared._repr_html_()
    assert "knn_accuracy" in shown and "themes" in shown
