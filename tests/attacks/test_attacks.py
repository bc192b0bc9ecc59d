"""Everything that can be thrown at the package is served or refused in one sentence."""

import sys

import pytest

from tests.attacks.trials import attack


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of POSIX")
@pytest.mark.parametrize("family", ["parameters", "files"])
def test_nothing_crashes_hangs_or_lies(family):
    outcome = attack(family)
    sys.stdout.write(f"{family}: {outcome}\n")
    assert not outcome.failures
