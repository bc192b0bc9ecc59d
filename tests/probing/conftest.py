"""The tiny checkpoints of the encoders' tests, for the room that looks inside them."""

from tests.encoders.conftest import empty_hub, tiny_bert, tiny_roberta
from tests.encoders.test_families import checkpoint

__all__ = ["checkpoint", "empty_hub", "tiny_bert", "tiny_roberta"]
