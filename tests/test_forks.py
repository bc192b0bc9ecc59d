"""A process that was forked after some work answers as the first one does."""

import json
import os
import sys

import numpy as np
import pytest

from embedtopics._utils.forks import is_forked
from tests.encoders.conftest import tiny_bert  # noqa: F401
from tests.factories import python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")

SETUP = """
import multiprocessing, sys, tempfile, threading
import numpy as np
import embedtopics as et

noise = np.random.default_rng(0).normal(size=(600, 16))
vectors = np.eye(16)[np.arange(600) % 2] + 0.05 * noise
texts = [f"{'plum pear' if i % 2 else 'train track'} {i}" for i in range(600)]
classes = ["fruit", "rail"] * 300
new = ["plum pie", "train line"]
"""

# Work of the first process, then what the first process and its copies answer.
MODELS = """
model = et.TopicModel(languages=["en"], random_state=0).fit(texts, embeddings=vectors)
classifier = et.TextClassifier(et.encoders.RandomProjectionEncoder(64)).fit(texts, classes)
index = et.SearchIndex.build(
    texts, tempfile.mkdtemp() + "/index", encoder=et.encoders.RandomProjectionEncoder(64)
)

def answer():
    fitted = et.TopicModel(languages=["en"], random_state=0).fit(texts, embeddings=vectors)
    sparse = et.TopicModel("tfidf", random_state=0).fit(texts)
    trained = et.TextClassifier(et.encoders.RandomProjectionEncoder(64)).fit(texts, classes)
    found = [index.search(new, 3, mode=mode).hits for mode in ("lexical", "dense", "hybrid")]
    return {
        "predict": model.predict(new, embeddings=vectors[:2]).tolist(),
        "transform": model.transform(new, embeddings=vectors[:2]).toarray().round(4).tolist(),
        "fit": fitted.labels_.tolist(),
        "fit on sparse vectors": sparse.labels_.tolist(),
        "classify": classifier.predict(new).tolist(),
        "fit a classifier": trained.predict(new).tolist(),
        "search": [[hit.id for hit in hits] for by_mode in found for hits in by_mode],
    }
"""
TRANSFORMERS = """
encoders = {
    backend: et.SentenceEncoder(sys.argv[1], precision="float32", backend=backend)
    for backend in ("onnx", "torch")
}

def answer():
    vectors_of = {name: encoder.encode(texts[:80]) for name, encoder in encoders.items()}
    return {name: vectors.tolist() for name, vectors in vectors_of.items()}
"""

ANSWERS = """
first = answer()

def in_a_thread(_):
    found = []
    thread = threading.Thread(target=lambda: found.append(answer()))
    thread.start()
    thread.join()
    return found[0]

context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    same = pool.map_async(in_a_thread, range(2)).get(240)
queue = context.Queue()
process = context.Process(target=lambda: queue.put(answer()), daemon=True)
process.start()
same.append(queue.get(timeout=240))
for found in same:
    for name, expected in first.items():
        if name in ("onnx", "torch"):  # which round with the number of threads
            np.testing.assert_allclose(found[name], expected, atol=1e-5, err_msg=name)
        else:
            assert found[name] == expected, name
"""


def test_models_answer_in_a_forked_process():
    python(SETUP + MODELS + ANSWERS, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.parametrize("parallelism", [None, "true"])
def test_transformers_answer_in_a_forked_process(parallelism, tiny_bert):  # noqa: F811
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("TOKENIZERS_PARALLELISM", None)
    if parallelism is not None:
        environment["TOKENIZERS_PARALLELISM"] = parallelism
    python(SETUP + TRANSFORMERS + ANSWERS, str(tiny_bert), env=environment)


def test_a_parallel_loop_runs_in_a_forked_process(tmp_path):
    (tmp_path / "loops.py").write_text(
        "import numba\n"
        "from embedtopics._utils.compiling import compiled\n"
        '@compiled("void(float64[::1])", parallel=True)\n'
        "def square(values):\n"
        "    for i in numba.prange(len(values)):\n"
        "        values[i] *= values[i]\n"
    )
    code = """
import json, os
import numpy as np
from loops import square
values = np.arange(50.0)
square(values)
reading, writing = os.pipe()
if os.fork() == 0:
    values = np.arange(50.0)
    square(values)
    os.write(writing, json.dumps(values.tolist()).encode())
    os._exit(0)
status = os.wait()[1]
print(json.dumps([status, values.tolist(), json.loads(os.read(reading, 10_000))]))
"""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    status, first, copied = json.loads(python(code, env={**os.environ, "PYTHONPATH": paths}))
    assert status == 0
    assert first == copied == np.square(np.arange(50.0)).tolist()


def test_the_first_process_is_no_forked_one():
    assert not is_forked()
