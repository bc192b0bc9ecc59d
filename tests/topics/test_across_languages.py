"""Topics that hold texts of several languages, and how much topics tell of them."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from embedtopics.encoders import RandomProjectionEncoder
from embedtopics.encoders._across_languages import AcrossLanguagesEncoder
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.topics import TopicModel
from embedtopics.topics._describe import language_information
from tests.factories import refuses

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


def test_translations_share_a_topic_only_where_it_is_asked_for(texts, tmp_path):
    plain = TopicModel(Words()).fit(texts)
    across = TopicModel(Words(), across_languages=True, n_topics=3).fit(texts)
    of_plain, of_across = (m.labels_.reshape(25, 2, 3) for m in (plain, across))
    assert (of_plain[:, 0] != of_plain[:, 1]).all()
    assert (of_across[:, 0] == of_across[:, 1]).mean() > 0.95
    shares = [
        next(d for d in m.result_.decisions if d.name == "language_information").value
        for m in (plain, across)
    ]
    assert shares[0] > 0.95
    assert shares[1] < 0.05
    across.save(tmp_path / "model")
    again = TopicModel.load(tmp_path / "model", encoder=AcrossLanguagesEncoder(Words()).fit(texts))
    assert again.across_languages
    new = ["le conseil a parlé de la vigne et ses raisins à la fin du mois de mai"]
    assert again.predict(new) == across.predict(new)
    with refuses("across_languages"):
        TopicModel(across_languages=True).fit(texts, embeddings=np.ones((len(texts), 2)))


def test_means_of_the_languages_are_equal(texts):
    encoder = AcrossLanguagesEncoder(Words()).fit(texts)
    mean, axes = encoder._erased
    raw = Words().encode(texts)
    raw /= np.linalg.norm(raw, axis=1, keepdims=True)
    made = (raw - ((raw - mean) @ axes.T) @ axes).reshape(25, 2, 3, 12)
    np.testing.assert_allclose(made[:, 0].mean((0, 1)), made[:, 1].mean((0, 1)), atol=1e-6)
    english = AcrossLanguagesEncoder(Words()).fit([t for t in texts if t.startswith("the")])
    np.testing.assert_allclose(english.encode(texts), raw, atol=1e-6)  # nothing to take out


def test_it_is_made_again_from_its_settings(texts):
    encoder = AcrossLanguagesEncoder(RandomProjectionEncoder()).fit(texts)
    again = encoder_from_settings(encoder.settings).fit(texts)
    assert again.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(again.encode(texts[:3]), encoder.encode(texts[:3]))


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
