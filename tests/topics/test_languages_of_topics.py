"""Topics that hold texts of several languages, and how much topics tell of them."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from embedtopics import TopicModel
from embedtopics.topics._describe import language_information

THEMES = {
    "en": [
        "the vineyard and its grapes",
        "the railway and its stations",
        "the wolves of the hills",
    ],
    "fr": ["la vigne et ses raisins", "le chemin de fer et ses gares", "les loups de la montagne"],
}
ENDS = {
    "en": "which the committee discussed on Thursday, number",
    "fr": "dont le conseil a parlé jeudi, numéro",
}


class Words:
    """Vectors of the theme of a text, with a direction of its language."""

    name = "words"

    def encode(self, texts):
        rng = np.random.default_rng(3)
        axes = np.eye(12)
        rows = []
        for text in texts:
            [(language, theme)] = [
                (code, place)
                for code, themes in THEMES.items()
                for place, words in enumerate(themes)
                if words in text
            ]
            rows.append(axes[theme] + 1.5 * axes[6 + (language == "fr")])
        return np.array(rows) + 0.05 * rng.normal(size=(len(rows), 12))


@pytest.fixture(scope="module")
def texts():
    return [
        f"{words} {ENDS[code]} {number}"
        for number in range(25) for code, themes in THEMES.items() for words in themes
    ]  # fmt: skip


def test_topics_of_one_language_each_tell_the_language(texts):
    model = TopicModel(Words()).fit(texts)
    labels = model.labels_.reshape(25, 2, 3)
    assert (labels[:, 0] != labels[:, 1]).all()
    decisions = [d for d in model.result_.decisions if d.name == "language_information"]
    assert decisions[0].value > 0.95


def test_information_is_that_of_scikit_learn_less_chance():
    rng = np.random.default_rng(0)
    codes = rng.choice(["en", "fr", "de"], 400)
    topics = np.where(rng.random(400) < 0.5, (codes == "en") * 2, rng.integers(0, 4, 400))
    shares = np.unique(codes, return_counts=True)[1] / 400
    chance = (len(set(topics)) - 1) * 2 / 800
    expected = (mutual_info_score(topics, codes) - chance) / -(shares * np.log(shares)).sum()
    found = language_information(topics.astype(np.int32), codes.tolist())
    assert found == pytest.approx(expected)
    by_chance = language_information(rng.integers(0, 20, 400).astype(np.int32), codes.tolist())
    assert by_chance < 0.03
