"""Shared by all tests: where the development data sets lie, and small corpora with vectors."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[1]


def pytest_configure(config):
    # Nothing in the tests may reach for a hub, whatever the caller's environment says.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Nor write into the caller's cache, or find there what a test should make.
    config.cache_folder = tempfile.mkdtemp(prefix="embedtopics-tests-")
    os.environ["EMBEDTOPICS_CACHE"] = config.cache_folder


def pytest_unconfigure(config):
    shutil.rmtree(config.cache_folder, ignore_errors=True)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("EMBEDTOPICS_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the development data sets are not at {folder}; set EMBEDTOPICS_DATA")
    return folder


@pytest.fixture(scope="session")
def embeddings_folder() -> Path:
    default = REPOSITORY.parent / "shared" / "embeddings"
    folder = Path(os.environ.get("EMBEDTOPICS_EMBEDDINGS", default))
    if not folder.is_dir():
        pytest.skip(f"the ready embeddings are not at {folder}; set EMBEDTOPICS_EMBEDDINGS")
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
    return texts, np.array(vectors, dtype=np.float32), np.array(themes)
