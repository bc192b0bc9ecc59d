"""The exact search on a GPU, with a stand-in for the functions of a FAISS that has one."""

import faiss
import numpy as np
import pytest

from embedtopics import TopicModel
from embedtopics.neighbors import _gpu as gpu
from embedtopics.neighbors import _graph as graph_module
from embedtopics.neighbors._graph import build_graph
from tests.factories import raising
from tests.neighbors.test_graph import blobs


@pytest.fixture
def calls(monkeypatch):
    """A GPU whose candidates are those of a CPU, in another order and with other products."""
    made = []

    def knn_gpu(resources, queries, embeddings, k, *, metric):
        made.append((queries.shape, k))
        assert resources == "resources" and queries.dtype == np.float32
        found = faiss.knn(queries, embeddings, k, metric)[1][:, ::-1]
        return np.full(found.shape, np.nan, dtype=np.float32), found

    monkeypatch.setattr(gpu, "has_cuda_driver", lambda: True)
    monkeypatch.setattr(gpu, "LEAST_ROWS", 100)
    monkeypatch.setattr(graph_module, "LEAST_ROWS", 100)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "knn_gpu", knn_gpu, raising=False)
    return made


def same(first, second):
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.similarities, second.similarities)


def test_a_gpu_finds_the_neighbors_of_the_cpu(calls, monkeypatch):
    embeddings = blobs(600)
    embeddings[7] = embeddings[450]  # a tie for everybody
    found, some = build_graph(embeddings, 15), build_graph(embeddings, 5, rows=np.arange(0, 600, 3))
    assert calls == [((600, 24), 32), ((200, 24), 22)]
    assert (found.method, found.recall, found.note) == ("exact", 1.0, "")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    same(found, build_graph(embeddings, 15))
    same(some, build_graph(embeddings, 5, rows=np.arange(0, 600, 3)))
    assert len(calls) == 2


def test_a_gpu_compares_all_pairs_where_a_cpu_does_not(calls, monkeypatch):
    embeddings = blobs(1200)
    expected = build_graph(embeddings, 15)
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 1000)
    same(build_graph(embeddings, 15), expected)
    monkeypatch.setattr(graph_module, "MOST_ROWS", 1100)
    assert build_graph(embeddings, 15).method == "ivf"
    assert len(calls) == 2


def test_few_documents_are_none_for_a_gpu(calls):
    assert build_graph(blobs(99), 5).method == "exact" and not calls


@pytest.mark.parametrize("missing", ["driver", "resources", "devices"])
def test_a_machine_without_a_gpu_for_faiss(calls, monkeypatch, missing):
    if missing == "driver":  # then FAISS must not be asked
        monkeypatch.setattr(gpu, "has_cuda_driver", lambda: False)
        monkeypatch.setattr(faiss, "get_num_gpus", raising(AssertionError("asked")))
    elif missing == "resources":
        monkeypatch.delattr(faiss, "StandardGpuResources")
    else:
        monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    found = build_graph(blobs(200), 5)
    assert (found.method, found.note, calls) == ("exact", "", [])


def test_a_gpu_that_fails_leaves_the_search_to_the_cpu_and_a_decision(calls, monkeypatch, caplog):
    embeddings = blobs(300)
    expected = build_graph(embeddings, 15)
    monkeypatch.setattr(faiss, "knn_gpu", raising(RuntimeError("out of\nmemory")))
    found = build_graph(embeddings, 15)
    same(found, expected)
    assert found.note.endswith("because the GPU could not (out of memory).")
    assert found.note in caplog.text
    texts = [f"text {i} of {i % 12}" for i in range(300)]
    result = TopicModel().fit(texts, embeddings=embeddings).result_
    [decision] = [d for d in result.decisions if (d.stage, d.name) == ("neighbors", "device")]
    assert (decision.value, decision.message) == ("cpu", found.note)


@pytest.mark.gpu
@pytest.mark.skipif(
    not (hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus()),
    reason="no GPU for FAISS",
)
def test_a_gpu_that_is_there(monkeypatch):
    embeddings = blobs(gpu.LEAST_ROWS, d=384)
    found = build_graph(embeddings, 15)
    assert (found.method, found.note) == ("exact", "")
    monkeypatch.setattr(graph_module, "LEAST_ROWS", 10**9)
    same(found, build_graph(embeddings, 15))
