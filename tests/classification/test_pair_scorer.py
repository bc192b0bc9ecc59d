"""Cross-encoders learn from judgements and from pairs, and search takes them."""

import numpy as np
import pytest

from embedtopics.classification import fit_pair_scorer
from embedtopics.classification._pairs import _judged
from embedtopics.retrieval import SearchIndex, load_cross_encoder
from embedtopics.training import read_examples
from tests.factories import refuses

TRAINING = {"epochs": 10, "learning_rate": 3e-3, "batch_size": 16, "show_progress": False}


def judged(n_queries=30, seed=0):
    """Return queries with two passages on water, which are relevant, and two on light."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_queries):
        query = f"the {'abcdefghij'[number % 10]} {'klmn'[number // 10]}"
        for words, label in (("river stone blue", 1), ("light red sound", 0)) * 2:
            rows.append((query, " ".join(rng.permutation([*words.split(), "cat", "dog"])), label))
    return rows


@pytest.fixture(scope="module")
def trained(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scorers") / "judged"
    examples = read_examples(judged(), "binary")
    return fit_pair_scorer(tiny_bert, examples, out=folder, training=TRAINING)


def test_a_ranking_of_held_out_queries_is_learned(trained):
    before, after = trained.before.scores["map"], trained.after.scores["map"]
    assert after.value > 0.95 > before.value
    assert trained.decisions[-1].value == 3 == len(trained.after.queries)


def test_search_takes_the_scorer_and_its_folder(trained):
    texts = ["light red sound", "cat dog sound red", "river stone blue", "dog river blue"]
    index = SearchIndex.build(texts, encoder="random", show_progress=False)
    found = [
        [hit.text for hit in index.search("the a", 4, reranker=each).hits[0]]
        for each in (trained, trained.folder, load_cross_encoder(trained.folder))
    ]
    assert found[0] == found[1] == found[2] and set(found[0][:2]) == set(texts[2:])
    pairs = [("the a", text) for text in texts]
    theirs = load_cross_encoder(trained.folder).predict(pairs)
    assert np.allclose(1 / (1 + np.exp(-trained.predict(pairs))), theirs, atol=1e-6)


def test_negatives_of_pairs_are_mined(tiny_bert):
    texts = [f"{'abcdefghij'[i]} {word}" for i in range(10) for word in ("river", "light", "stone")]
    pairs = read_examples([(f"the {text}", text) for text in texts], "pairs")
    made = fit_pair_scorer(tiny_bert, pairs, num_negatives=2, training={**TRAINING, "max_steps": 2})
    assert any(each.name == "hard_negatives" for each in made.decisions)
    assert np.isfinite(made.predict([("the a", "b river")])).all()


def test_every_pair_is_judged_once_and_relevant_wins():
    rows = [("q", "a", "b"), ("q", "b", "c"), ("p", "a", "c")]
    pairs, labels = _judged(read_examples(rows, "triplets"))
    found = dict(zip(pairs, labels.tolist(), strict=True))
    assert found == {("q", "a"): 1, ("q", "b"): 1, ("q", "c"): 0, ("p", "a"): 1, ("p", "c"): 0}


@pytest.mark.parametrize(
    ("parameter", "changed"),
    [
        ("examples", {"examples": [("q", "a", 1)]}),
        ("examples", {"examples": read_examples(["a", "b"], "texts")}),
        ("model", {"model": "tfidf"}),
        ("lora_rank", {"training": {"lora_rank": 4}}),
        ("learning_rate", {"training": {**TRAINING, "learning_rate": 1e30}}),
    ],
)
def test_what_cannot_be_learned_is_refused(tiny_bert, parameter, changed):
    given = {"model": tiny_bert, "examples": read_examples(judged(6), "binary"), **changed}
    with refuses(parameter):
        fit_pair_scorer(given.pop("model"), given.pop("examples"), **given)
