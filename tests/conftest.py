"""Shared by all tests: where the development data sets lie, and small corpora with vectors."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

# Tests run side by side take a thread each. The libraries read these names when they are imported.
# Numba keeps a second thread in its pool, for the tests that compare one thread with two.
if SIDE_BY_SIDE := "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import hypothesis
import numba
import numpy as np
import pytest

from tests.noise import jittered

if SIDE_BY_SIDE:
    numba.set_num_threads(1)

REPOSITORY = Path(__file__).parents[1]


# The same few examples each time, so that a change alone makes the fast tests fail or pass; as many
# as each test asks for, and other ones each time, are tried with --hypothesis-profile=thorough.
ANY_SPEED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile(
    "ci", max_examples=12, derandomize=True, database=None, **ANY_SPEED
)
hypothesis.settings.register_profile("thorough", **ANY_SPEED)
hypothesis.settings.load_profile("ci")


def pytest_configure(config):
    # Nothing in the tests may reach for a hub, whatever the caller's environment says.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Nor write into the caller's cache, or find there what a test should make. Tests side by side
    # share what they prepare.
    if not SIDE_BY_SIDE:
        config.cache_folder = tempfile.mkdtemp(prefix="embedtopics-tests-")
        os.environ["EMBEDTOPICS_CACHE"] = config.cache_folder


def pytest_collection_modifyitems(items):
    """Begin with the longest files, and hold tests to the examples of the profile "ci"."""
    longest = ("tests/test_commands.py", "tests/test_readme.py")
    items.sort(key=lambda item: not item.nodeid.startswith(longest))
    if hypothesis.settings.get_current_profile_name() != "ci":
        return
    most = hypothesis.settings.default.max_examples
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        chosen = getattr(test, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > most:
            test._hypothesis_internal_use_settings = hypothesis.settings(chosen, max_examples=most)


@pytest.fixture(scope="module", autouse=True)
def what_is_there_is_not_looked_at_by_the_collector():
    """Leave what earlier files imported out of garbage collection, which trainers ask for often."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config):
    if not SIDE_BY_SIDE:
        shutil.rmtree(config.cache_folder, ignore_errors=True)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("EMBEDTOPICS_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the development data sets are not at {folder}; set EMBEDTOPICS_DATA")
    return folder


WORDS = {
    "fruit": "apple pear plum cherry orchard harvest juice cider blossom ripe".split(),
    "train": "station rail platform ticket conductor track signal carriage delay timetable".split(),
    "chess": "bishop rook pawn checkmate opening endgame knight castle queen tournament".split(),
}


@pytest.fixture(scope="session")
def toy():
    """Texts on three themes with vectors around three directions; and the themes."""
    rng = np.random.default_rng(7)
    texts, vectors, themes = [], [], []
    centers = np.linalg.qr(rng.normal(size=(16, 3)))[0].T
    for theme, (name, words) in enumerate(WORDS.items()):
        for number in range(60 - 15 * theme):
            chosen = rng.choice(words, size=6)
            texts.append(f"The {name} number {number}: " + " ".join(chosen) + ".")
            vectors.append(centers[theme] + 0.12 * rng.normal(size=16))
            themes.append(theme)
    return texts, jittered(np.array(vectors, dtype=np.float32)), np.array(themes)
