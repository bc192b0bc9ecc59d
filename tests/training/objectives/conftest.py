"""The tiny checkpoints of the encoders' tests."""

from tests.encoders.conftest import make_sentence_folder, tiny_bert, tiny_roberta  # noqa: F401
