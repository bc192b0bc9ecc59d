"""Every call of ours in the tables for sentence-transformers and txtai runs and answers."""

import inspect
import re
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import embedtopics as et
from embedtopics.encoders.sentence._loading import PACKAGE, package_folder
from tests.coming_from_bertopic.table import habit_of, names_the_call, rows
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
        corpus = et.Corpus("embedtopics:demo", limit=100)
        pairs = [(one, f"{one[:-1]}, again: {n}") for n, one in enumerate(TEXTS * 3)]
        yield {
            "et": et,
            "texts": TEXTS,
            "rows": data,
            "rows_corpus": et.Corpus(TEXTS),
            "corpus": corpus,
            "model": et.TopicModel().fit(corpus),
            "pairs": [(f"{n}. {one}", other) for n, (one, other) in enumerate(pairs)],
            "scored": [(f"{n} {a}", b, n % 2) for n, (a, b) in enumerate(pairs)],
            "triplets": [(f"{n} {a}", b, TEXTS[n % 7]) for n, (a, b) in enumerate(pairs)],
            "encoder": et.SentenceEncoder(precision="float32"),
            "index": et.SearchIndex.build(data, text="text", id="id"),
            "reranker": SimpleNamespace(predict=lambda pairs: np.zeros(len(pairs))),
        }


LIBRARIES = ("sentence-transformers", "scikit-learn and pandas", "txtai")
ROWS = [row for library in LIBRARIES for row in rows(f"## Coming from {library}")]


@pytest.mark.parametrize(
    ("theirs", "ours"), [row for row in ROWS if habit_of(row[0])], ids=lambda code: code[:40]
)
def test_the_method_of_a_row_is_there_or_its_error_names_our_call(theirs, ours, names):
    holder, name = habit_of(theirs)
    value = names["index" if holder == "embeddings" else holder]
    if hasattr(value, name):
        assert f".{name}" in ours or name == "get_sentence_embedding_dimension"
    else:
        with pytest.raises(AttributeError) as raised:
            getattr(value, name)
        assert names_the_call(str(raised.value), ours)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("theirs", "ours"), ROWS)
def test_row(theirs, ours, names):
    if ours.startswith(("et.training.fit(", "et.batch.")):  # their own tests run them
        call = re.sub(r"^(et\.\w+\.\w+)\(", r"signature(\1).bind(", ours)
        assert eval(call, {**names, "signature": inspect.signature}).arguments
        return
    if ours.startswith(("encoder.max_seq_length =", "encoder.save(", "corpus.to_frame().to_csv(")):
        exec(ours, dict(names))
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
