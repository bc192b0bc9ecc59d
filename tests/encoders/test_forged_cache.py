"""A cache of vectors that somebody changed is made again."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from embedtopics.encoders import CachedEncoder, RandomProjectionEncoder

TEXTS = ["the red cat", "a stone river", "blue light"]


@pytest.mark.parametrize(
    "script",
    [
        "ALTER TABLE vectors RENAME TO kept; CREATE VIEW vectors AS WITH RECURSIVE c(x) AS "
        "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS key, x AS content FROM c;",
        "UPDATE vectors SET content = 5;",
        "UPDATE vectors SET content = 'text';",
        "UPDATE vectors SET content = NULL;",
        "UPDATE vectors SET content = x'00';",
        "DROP TABLE vectors; CREATE TABLE vectors (other INTEGER);",
        "CREATE TRIGGER more AFTER INSERT ON vectors BEGIN DELETE FROM vectors; END;",
    ],
    ids=["endless view", "numbers", "texts", "nothing", "short", "other columns", "trigger"],
)
def test_a_changed_cache_gives_the_vectors_of_the_encoder(tmp_path, script):
    encoder = RandomProjectionEncoder(16)
    expected = encoder.encode(TEXTS)
    CachedEncoder(encoder, folder=tmp_path).encode(TEXTS)
    (path,) = tmp_path.rglob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    found = CachedEncoder(encoder, folder=tmp_path).encode(TEXTS)
    np.testing.assert_array_equal(found, expected)
