"""The tiny checkpoint of the encoders' tests, for those that train it."""

from tests.encoders.conftest import tiny_bert  # noqa: F401
