"""Stored hidden states whose rows are of texts that are not there are refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.probing._extract import KIND, VERSION, open_store

SAVED = Path(__file__).parents[1] / "data" / "saved" / "states-words"


@pytest.mark.parametrize("row", [-1, 10**6])
def test_rows_of_texts_that_are_not_there_are_refused(tmp_path, row):
    folder = shutil.copytree(SAVED, tmp_path / "states")
    open_store(folder)
    with np.load(folder / "index.npz") as stored:
        arrays = dict(stored)
    arrays["of_text"][-1] = row
    np.savez(folder / "index.npz", **arrays)
    write_manifest(folder, KIND, VERSION)
    with pytest.raises(CorruptFileError, match="of texts that it does not hold"):
        open_store(folder)
