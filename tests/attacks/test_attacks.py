"""Everything that can be thrown at the package is served or refused in one sentence."""

import sys

import pytest

from tests.attacks.trials import attack

KNOWN = (
    "SeedWords(seeds=set)", "report_card(labels=", "score_labels(choose=True)",
    "without_texts(columns=[[1]])", "SentenceEncoder(layers=",
)  # fmt: skip
"""Faults that are still to be mended."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are those of POSIX")
@pytest.mark.parametrize("family", ["parameters", "files"])
def test_nothing_crashes_hangs_or_lies(family):
    outcome = attack(family)
    sys.stdout.write(f"{family}: {outcome}\n")
    assert not [failure for failure in outcome.failures if not failure.startswith(KNOWN)]
