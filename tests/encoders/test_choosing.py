import pytest

from embedtopics.encoders import FastTextEncoder, RandomProjectionEncoder, TfidfEncoder
from embedtopics.encoders._contract import as_encoder
from embedtopics.encoders._registry import encoder_from_settings, resolve_encoder
from embedtopics.errors import InputError, ModelLoadError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tfidf", TfidfEncoder), ("lsa", TfidfEncoder), ("fasttext", FastTextEncoder),
        ("random", RandomProjectionEncoder),
    ],
)  # fmt: skip
def test_baselines_have_names(name, kind):
    encoder = resolve_encoder(name)
    assert type(encoder) is kind and encoder.name == name and encoder.languages is None
    assert encoder_from_settings(encoder.settings).settings == encoder.settings


def test_names_stand_for_settings_and_paths_for_folders():
    assert resolve_encoder("lsa").settings["n_components"] == 300
    assert resolve_encoder("tfidf").settings["n_components"] is None
    with pytest.raises(ModelLoadError):
        resolve_encoder("./tfidf")


def test_the_callers_encoder_stays_unfitted():
    mine = TfidfEncoder()
    made = mine.fitted_to(["warm water", "cold water"])
    assert made.is_fitted and not mine.is_fitted
    assert made.fitted_to(["other texts"]) is made
    same = RandomProjectionEncoder()
    assert same.fitted_to(["any"]) is same

    class Learner:
        """Learns without being one of ours."""

        is_fitted = False

        def fit(self, texts):
            self.is_fitted = True
            return self

        def encode(self, texts):
            raise AssertionError

    learner = Learner()
    assert as_encoder(learner).fitted_to(["a"]).is_fitted and not learner.is_fitted


def test_an_unknown_kind_is_refused():
    with pytest.raises(
        InputError, match="among across languages, cascade, fasttext, joined, random, static, tfidf"
    ):
        encoder_from_settings({"kind": "oracle"})
