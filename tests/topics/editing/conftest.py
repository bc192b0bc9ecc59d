"""Results to edit."""

from __future__ import annotations

import pytest

from tests.factories import make_result


@pytest.fixture(scope="session")
def synthetic():
    """A result of six topics that is no fit."""
    return make_result()
