"""Fixtures of other folders: the tiny checkpoint, and a fit of twelve topics."""

from tests.encoders.conftest import tiny_bert
from tests.topics.conftest import branched, branches

__all__ = ["branched", "branches", "tiny_bert"]
