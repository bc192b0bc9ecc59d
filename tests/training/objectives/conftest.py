"""The tiny checkpoints of the encoders' tests."""

import pytest

from tests.encoders.conftest import make_sentence_folder, tiny_bert, tiny_roberta  # noqa: F401
from tests.factories import exact_encoder


@pytest.fixture(scope="module")
def encoder(tiny_bert):  # noqa: F811
    return exact_encoder(tiny_bert)
