"""A large collection in a process of limited memory; two gigabytes of it are libraries."""

import resource

import numpy as np
import pandas as pd
import pytest

from tests.factories import python

FIT = """
import resource, sys
import embedtopics as et
import numpy as np
limit = int(float(sys.argv[2]) * 1e9)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
corpus = et.Corpus(sys.argv[1] + "/texts.parquet", text="text", time="date", group="group")
vectors = np.load(sys.argv[1] + "/vectors.npy", mmap_mode="r")
model = et.TopicModel(languages=["en"], random_state=0, show_progress=False)
result = model.fit(corpus, embeddings=vectors).result_
print(result.n_topics, len(et.topics.table(result)), len(et.topics.over_time(result, "year").names))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="no limit of memory here")
def test_300_000_documents_are_fitted_in_five_gigabytes(tmp_path):
    n, n_themes, n_dimensions = 300_000, 40, 64
    rng = np.random.default_rng(0)
    theme = rng.integers(n_themes, size=n)
    words = np.array([f"word{i}{chr(97 + i % 26)}" for i in range(40 * n_themes)])
    chosen = words[theme[:, None] * 40 + rng.integers(40, size=(n, 9))]
    pd.DataFrame({
        "text": [f"{' '.join(row)} {i}" for i, row in enumerate(chosen)],
        "date": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(3650, size=n), "D"),
        "group": theme % 3,
    }).to_parquet(tmp_path / "texts.parquet")  # fmt: skip
    centres = rng.normal(size=(n_themes, n_dimensions))
    spread = rng.normal(size=(n, 8)) @ rng.normal(size=(8, n_dimensions))  # texts vary in few ways
    vectors = centres[theme] + 0.2 * spread
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float32))
    n_topics, n_rows, n_years = map(int, python(FIT, str(tmp_path), "5").split()[-3:])
    assert n_topics >= n_themes // 2 and n_rows >= n_topics and n_years >= 3
