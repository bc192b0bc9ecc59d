"""The tiny checkpoints of the encoders' tests."""

from tests.encoders.conftest import (  # noqa: F401
    make_sentence_folder,
    tiny_bert,
    tiny_roberta,
)
