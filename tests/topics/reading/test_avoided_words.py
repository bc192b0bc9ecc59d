"""Key words that a small side avoids, by the likelihood ratio of rows."""

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from embedtopics import TopicModel, topics


@pytest.fixture(scope="module")
def avoided():
    """Return a result and its target: 70 of 900 texts, none of which has the word "quarrel"."""
    rng = np.random.default_rng(6)
    in_target = np.arange(900) < 70
    fillers = np.array([f"filler{i}" for i in range(200)])
    texts = []
    for i in range(900):
        word = "quarrel" if not in_target[i] and rng.random() < 0.2 else "chat"
        texts.append(f"{word} {' '.join(rng.choice(fillers, 25))} n{i}")
    points = np.eye(8)[np.arange(900) % 2] + 0.05 * rng.normal(size=(900, 8))
    model = TopicModel(languages=["en"], stop_words=[], n_topics=2, random_state=0)
    return model.fit(texts, embeddings=points).result_, in_target, np.array(texts)


def test_a_word_that_the_target_avoids_has_the_p_of_the_likelihood_ratio(avoided):
    result, in_target, texts = avoided
    table = topics.keyness(result, in_target, n_terms=1000).set_index("term")
    row = table.loc["quarrel"]

    has = np.array(["quarrel" in text for text in texts])
    counts = [[(has & side).sum(), (~has & side).sum()] for side in (in_target, ~in_target)]
    ratio = chi2_contingency(counts, correction=False, lambda_="log-likelihood").statistic
    assert row["p"] == pytest.approx(chi2.sf(ratio, 1))
    assert row["statistic"] == pytest.approx(-np.sqrt(ratio))
    assert row["q"] < 0.01 and row["effect"] < 0


def test_the_reference_avoids_a_word_as_well(avoided):
    result, in_target, _ = avoided
    one = topics.keyness(result, in_target, n_terms=1000).set_index("term")
    other = topics.keyness(result, ~in_target, in_target, n_terms=1000).set_index("term")
    assert other.loc["quarrel", "p"] == pytest.approx(one.loc["quarrel", "p"])
    assert other.loc["quarrel", "statistic"] == pytest.approx(-one.loc["quarrel", "statistic"])
