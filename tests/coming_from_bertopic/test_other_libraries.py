"""Every call of ours in the tables for sentence-transformers and txtai runs and answers."""

import inspect
import re
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import embedtopics as et
from embedtopics.encoders.sentence._loading import PACKAGE, package_folder
from tests.coming_from_bertopic.table import rows
from tests.test_readme import few_steps

pytestmark = [pytest.mark.slow, pytest.mark.smoke]

TEXTS = [f"{a} {b}." for a in ("A river", "The sea", "An engine", "A choir") for b in
         ("in flood", "at night", "in winter", "out of order", "on film", "at rest")]  # fmt: skip


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names that the rows use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("coming"))
        few_steps(patch)
        data = [{"id": f"r{n}", "text": text, "year": 2010 + n} for n, text in enumerate(TEXTS)]
        pairs = [(one, f"{one[:-1]}, again: {n}") for n, one in enumerate(TEXTS * 3)]
        yield {
            "et": et,
            "texts": TEXTS,
            "rows": data,
            "rows_corpus": et.Corpus(TEXTS),
            "pairs": [(f"{n}. {one}", other) for n, (one, other) in enumerate(pairs)],
            "scored": [(f"{n} {a}", b, n % 2) for n, (a, b) in enumerate(pairs)],
            "triplets": [(f"{n} {a}", b, TEXTS[n % 7]) for n, (a, b) in enumerate(pairs)],
            "encoder": et.SentenceEncoder(precision="float32"),
            "index": et.SearchIndex.build(data, text="text", id="id"),
            "reranker": SimpleNamespace(predict=lambda pairs: np.zeros(len(pairs))),
        }


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [row for name in ("sentence-transformers", "txtai") for row in rows(f"## Coming from {name}")],
)
def test_row(theirs, ours, names):
    if ours.startswith("et.training.fit_"):  # tests/training runs them
        call = re.sub(r"^(et.training.\w+)\(", r"signature(\1).bind(", ours)
        assert eval(call, {**names, "signature": inspect.signature}).arguments
        return
    answer = eval(ours, dict(names))
    assert answer is not None
    if hasattr(answer, "run"):  # a server
        Thread(target=answer.run, daemon=True).start()
        answer.close()
    if "encode(texts" in theirs:
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(str(package_folder(PACKAGE) / "model"), device="cpu")
        wanted = eval(theirs, {"encoder": encoder, "texts": TEXTS})
        assert type(answer) is type(wanted)
        np.testing.assert_allclose(np.asarray(answer), np.asarray(wanted), atol=1e-4)
