"""Leftovers, full disks, damaged files, and many at once: an index is as before, or as after."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from embedtopics import SearchIndex
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.retrieval import _reader as opened_module
from embedtopics.retrieval.storage._checks import check
from tests.factories import raising, refuses
from tests.retrieval.indexes import build

REPOSITORY = Path(__file__).parents[2]
TEXTS = {"a": "cat owl", "b": "dog", "c": "", "d": "hen hen cat", "e": "fox owl dog cat"}


@pytest.mark.parametrize("name", ["i", "i.b"])
def test_leftovers_of_a_killed_build_are_swept_and_no_others(tmp_path, name):
    mine = [
        tmp_path / f".{name}.building" / "segments", tmp_path / f".{name}.embedtopics-new",
        tmp_path / f"..{name}.building.embedtopics-new",
    ]  # fmt: skip
    others = [
        tmp_path / f".{name}.other.embedtopics-new", tmp_path / f".{name}.other.building",
        tmp_path / f".{name}.other.embedtopics-old", tmp_path / ".x.embedtopics-new",
    ]  # fmt: skip
    for path in (*mine, *others):
        path.mkdir(parents=True)
        (path / "file").write_text("x")
    build(tmp_path / name, TEXTS)
    assert not any(path.exists() for path in mine)
    assert all((path / "file").is_file() for path in others)


def test_a_folder_that_is_taken_is_refused_before_anything_is_encoded(tmp_path, monkeypatch):
    index = build(tmp_path / "i", TEXTS)
    monkeypatch.setattr("embedtopics.retrieval._build.prepare", None)
    with refuses("folder"):
        build(tmp_path / "i", TEXTS)
    (tmp_path / "i" / "notes.txt").write_text("mine")
    with refuses("folder"):
        build(tmp_path / "i", TEXTS, overwrite=True)
    (tmp_path / "file").write_text("x")
    with refuses("folder"):
        build(tmp_path / "file", TEXTS, overwrite=True)
    assert len(index) == 5


def test_threads_search_while_another_process_writes(tmp_path):
    build(tmp_path / "i", {**TEXTS, "z": "zebra zebra"})
    code = (
        "import sys; from embedtopics import SearchIndex\n"
        "from tests.retrieval.indexes import corpus\n"
        "index = SearchIndex.load(sys.argv[1]); print('goes', flush=True)\n"
        "for number in range(4):\n"
        "    texts = {f'n{number}': 'owl hen', 'b': 'dog'}\n"
        "    index.add(corpus(texts), update=True, show_progress=False)\n"
        "    index.remove([f'n{number}'])\n"
        "    index.compact()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "i"], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert other.stdout.readline() == b"goes\n"
    index = SearchIndex.load(tmp_path / "i")

    def search(_):
        while other.poll() is None:
            for mode in ("dense", "lexical", "hybrid"):
                (hits,) = index.search("zebra zebra", 2, mode=mode).hits
                assert hits[0].id == "z" and hits[0].bm25 > 0
            assert index.similar("z", 1)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(search, range(2)))
    other.stdout.close()
    texts = {document.id: document.text for document in index}
    assert other.returncode == 0 and texts == {**TEXTS, "z": "zebra zebra"}


@pytest.mark.parametrize("function", ["open_dense", "open_lexical"])
def test_a_segment_that_is_compacted_while_it_is_opened(tmp_path, monkeypatch, function):
    build(tmp_path / "i", TEXTS).add(["more"], show_progress=False)
    index = SearchIndex.load(tmp_path / "i")
    before = getattr(opened_module, function)
    calls = []

    def late(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            SearchIndex.load(tmp_path / "i").compact()
        return before(*arguments)

    monkeypatch.setattr(opened_module, function, late)
    assert len(index.search("cat", 9)) == 5 and len(calls) == 2


def test_a_search_goes_on_in_a_version_whose_files_are_gone(tmp_path):
    index = build(tmp_path / "i", TEXTS)
    index.add(["more"], show_progress=False)
    version = index._reader.newest()
    SearchIndex.load(tmp_path / "i").compact()
    total = sum(
        np.asarray(dense.vectors, dtype=float).sum(axis=0) for dense in version.dense
    )  # of the files that were mapped
    np.testing.assert_allclose(version.mean_vector, total / 5, atol=1e-7)


def test_faiss_on_a_full_disk_leaves_the_index_as_it_was(tmp_path, monkeypatch):
    import faiss

    vectors = np.random.default_rng(0).normal(size=(600, 8))
    index = SearchIndex.build(
        [f"t{i}" for i in range(300)], tmp_path / "i", encoder=None, embeddings=vectors[:300],
        kind="ivf", languages=[], show_progress=False,
    )  # fmt: skip

    error = RuntimeError("Error in virtual void faiss: write error: No space left\nat io.cpp")
    monkeypatch.setattr(faiss, "write_index", raising(error))
    with pytest.raises(InputError, match=r"No space left.*as it was before"):
        index.add([f"u{i}" for i in range(300)], embeddings=vectors[300:], show_progress=False)
    assert len(index) == 300 and check(index.folder) == []


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_no_answer_is_given_of_a_file_with_a_flipped_bit(tmp_path, mode):
    index = SearchIndex.build(
        [f"text {i % 7}" for i in range(60)], tmp_path / "i", encoder=None, languages=[],
        embeddings=np.random.default_rng(0).normal(size=(60, 8)), show_progress=False,
    )  # fmt: skip
    asked = {"mode": mode, "vectors": None if mode == "lexical" else np.ones((1, 8))}
    expected = index.search("text 3", 5, **asked).hits
    files = sorted(path for path in (tmp_path / "i" / "segments").rglob("*") if path.is_file())
    for path in files:
        content = path.read_bytes()
        for place in (len(content) // 3, len(content) - 1):
            flipped = bytes([content[place] ^ 2])
            path.write_bytes(content[:place] + flipped + content[place + 1 :])
            with pytest.raises(CorruptFileError, match=path.name):
                SearchIndex.load(tmp_path / "i").search("text 3", 5, **asked)
        path.write_bytes(content)
    found = SearchIndex.load(tmp_path / "i", verify=False).search("text 3", 5, **asked).hits
    assert [[hit.id for hit in hits] for hits in found] == [[h.id for h in hs] for hs in expected]


@pytest.mark.parametrize("how", ["missing", "truncated", "longer", "flipped"])
def test_damaged_files_of_every_kind_are_named(tmp_path, how):
    folder = tmp_path / "i"
    rng = np.random.default_rng(0)
    SearchIndex.build(
        [f"text {i}" for i in range(300)], folder, encoder=None, kind="ivf",
        embeddings=rng.normal(size=(300, 8)), languages=[], show_progress=False,
    )  # fmt: skip
    files = sorted(path for path in (folder / "segments").rglob("*") if path.is_file())
    assert {path.name for path in files} >= {
        "vectors.f32", "dense.json", "sum.npy", "passages.npz", "lexical.json", "rows.npy",
        "counts.npy", "starts.npy", "lengths.npy", "letters.npy", "ends.npy",
    }  # fmt: skip
    for path in files:
        content = path.read_bytes()
        if how == "missing":
            path.unlink()
        elif how == "flipped":
            middle = len(content) // 2
            path.write_bytes(
                content[:middle] + bytes([content[middle] ^ 8]) + content[middle + 1 :]
            )
        else:
            path.write_bytes(content[:-1] if how == "truncated" else content + b"x")
        with pytest.raises(CorruptFileError, match=path.name):
            SearchIndex.load(folder, verify=how == "flipped")
        assert [problem.file for problem in check(folder)][:1] == [path]
        path.write_bytes(content)
    assert check(folder) == []
    assert len(SearchIndex.load(folder, verify=True).search("text", 3, mode="lexical")) == 3


@pytest.mark.parametrize("content", [b"", b"x", "header", np.zeros(7), np.zeros(8, np.float32)])
def test_a_sum_that_is_none_is_named(tmp_path, content):
    index = SearchIndex.build(
        ["a", "b"], tmp_path / "i", encoder=None, embeddings=np.eye(2, 8), languages=[],
        show_progress=False,
    )  # fmt: skip
    (path,) = (tmp_path / "i").rglob("sum.npy")
    if isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(path.read_bytes()[:40] if content == "header" else content)
    with pytest.raises(CorruptFileError, match=r"sum\.npy is damaged"):
        index.search("a", vectors=np.eye(1, 8))
