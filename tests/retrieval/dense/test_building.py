"""What is written, what is measured, and what is refused."""

import json
from dataclasses import replace

import faiss
import numpy as np
import pytest

from embedtopics.errors import CorruptFileError
from embedtopics.retrieval.dense import _build as building_module
from embedtopics.retrieval.dense import _codes as codes_module
from embedtopics.retrieval.dense._build import (
    MARGIN,
    build_dense,
    calibrate,
    measure_recall,
    samples,
)
from embedtopics.retrieval.dense._segment import DenseSettings, choose_kind, open_dense
from tests.retrieval.dense.conftest import KINDS, clustered, settings_of


def content(folder):
    return {
        p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".json"
    }


def brute_recall(vectors, queries, itself, found):
    """Recall at ten by float64, each query left out of its own answer."""
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    products[np.arange(len(queries)), itself] = -9
    least = -np.sort(-products, axis=1)[:, 9]
    kept = [[row for row in line if row != i][:10] for line, i in zip(found, itself, strict=True)]
    exact = np.take_along_axis(products, np.array(kept), axis=1)
    return (exact >= least[:, None] - 1e-6).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_what_is_there(kind, folders, vectors):
    opened = open_dense(folders[kind])
    about = opened.about
    assert about == json.loads((folders[kind] / "dense" / "dense.json").read_text())
    assert about["kind"] == about["asked"] == kind
    raw = np.fromfile(folders[kind] / "vectors.f32", dtype=np.float32)
    np.testing.assert_array_equal(raw.reshape(vectors.shape), vectors)


@pytest.mark.parametrize("kind", KINDS)
def test_recall_that_is_recorded_is_that_of_brute_force(kind, folders, vectors):
    opened = open_dense(folders[kind])
    _, held_out = samples(vectors, 0)
    found = opened.search(held_out.queries, 11)[1]
    np.testing.assert_array_equal(vectors[held_out.rows], held_out.queries)
    expected = brute_recall(vectors, held_out.queries, held_out.rows, found)
    assert opened.about["measured"]["recall"] == pytest.approx(expected, abs=1e-9)
    assert opened.about["measured"]["reached"] and expected >= 0.95


@pytest.mark.parametrize("recall", [0.9, 0.97])
def test_calibration_takes_the_least_that_suffices(tmp_path, monkeypatch, recall):
    monkeypatch.setattr(building_module, "MIN_RECALL", recall)
    vectors = clustered(6000, 32, seed=5, n_clusters=400)
    about = build_dense(tmp_path, vectors, settings_of("ivf"))
    opened = open_dense(tmp_path)
    first, second = samples(vectors, 0)
    assert not set(first.rows) & set(second.rows)
    wanted = 1 - (1 - MARGIN) * (1 - recall)
    n_probe = about["parameters"]["n_probe"]
    assert n_probe > 1
    assert measure_recall(opened, first, vectors) >= wanted
    assert measure_recall(replace(opened, n_probe=n_probe - 1), first, vectors) < wanted
    assert measure_recall(opened, second, vectors) == about["measured"]["recall"] >= recall
    again = calibrate(replace(opened, n_probe=1, n_candidates=1), first, vectors, recall)
    assert (again.n_probe, again.n_candidates) == (opened.n_probe, opened.n_candidates)


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_on_any_number_of_threads(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(codes_module, "ROWS_AT_ONCE", 500)
    vectors = clustered(2000, 40, seed=3)
    settings, queries = settings_of(kind, seed=7), clustered(50, 40, seed=4)
    threads, seen = faiss.omp_get_max_threads(), []
    try:
        for n_threads in (1, 2, 3, 1):
            faiss.omp_set_num_threads(n_threads)
            folder = tmp_path / str(len(seen))
            folder.mkdir()
            about = build_dense(folder, vectors, settings)
            near, found = open_dense(folder).search(queries, 8)
            seen.append((about, content(folder), near.tobytes(), found.tobytes()))
    finally:
        faiss.omp_set_num_threads(threads)
    assert all(one == seen[0] for one in seen[1:])


@pytest.mark.parametrize(
    ("n", "d", "settings", "kind"),
    [
        (100, 384, {}, "flat"),
        (52_083, 384, {}, "flat"),
        (52_084, 384, {}, "ivf"),
        (200, 384, {"kind": "ivf"}, "flat"),
        (573_000, 384, {"kind": "flat"}, "flat"),
        (1_000, 384, {"kind": "ivf"}, "ivf"),
    ],
)  # fmt: skip
def test_kind_is_chosen_by_size(n, d, settings, kind):
    chosen, why = choose_kind(n, d, DenseSettings(**settings))
    assert chosen == kind and why


@pytest.fixture
def built(tmp_path):
    def build(kind):
        build_dense(tmp_path, clustered(300, 16), settings_of(kind))
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("flat", "vectors.f32"), ("ivf", "dense/codes.faiss"),
        ("ivf", "dense/axes.npy"), ("flat", "dense/dense.json"),
    ],
)  # fmt: skip
def test_a_missing_or_cut_file_is_named(built, kind, name):
    path = built(kind) / name
    whole = path.read_bytes()
    for part in (whole[:-7], b""):
        path.write_bytes(part)
        with pytest.raises(CorruptFileError, match=path.name):
            open_dense(path.parents[len(name.split("/")) - 1])
    path.unlink()
    with pytest.raises(CorruptFileError, match=path.name):
        open_dense(path.parents[len(name.split("/")) - 1])


@pytest.mark.parametrize("name", ["codes.faiss", "axes.npy"])
def test_bytes_that_faiss_cannot_read_are_refused(built, name):
    path = built("ivf") / "dense" / name
    path.write_bytes(b"\x00" * path.stat().st_size)
    with pytest.raises(CorruptFileError, match=name):
        open_dense(path.parents[1])


def test_the_index_of_other_vectors_is_refused(built, tmp_path_factory):
    kind, name = "ivf", "codes.faiss"
    folder, other = built(kind), tmp_path_factory.mktemp("other")
    build_dense(other, clustered(290, 16), settings_of(kind))
    taken = (other / "dense" / name).read_bytes()
    (folder / "dense" / name).write_bytes(taken)
    with pytest.raises(CorruptFileError, match=rf"{name} is damaged .* codes of 300 vectors"):
        open_dense(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "newer than this version reads"),
        ({"n": 299}, "vectors.f32"), ({"d": 8}, "vectors.f32"), ({"n": -1}, "damaged"),
        ({"kind": "ball tree"}, "unknown kind"),
        ({"parameters": None}, "damaged"), ({"n": "many"}, "damaged"),
    ],
)  # fmt: skip
def test_statements_that_cannot_be_are_refused(built, change, said):
    folder = built("flat")
    path = folder / "dense" / "dense.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CorruptFileError, match=said):
        open_dense(folder)


def test_rows_of_zeros_do_not_lift_the_recall(tmp_path):
    vectors = clustered(3000, 32, seed=2, n_clusters=400)
    vectors[np.random.default_rng(0).random(3000) < 0.8] = 0
    about = build_dense(tmp_path, vectors, settings_of("ivf"))
    for sample in samples(vectors, 0):
        assert sample.queries.any(axis=1).all()
    there = np.flatnonzero(vectors.any(axis=1))
    found = open_dense(tmp_path).search(vectors[there], 11)[1]
    true = brute_recall(vectors, vectors[there], there, found)
    assert about["measured"]["recall"] == pytest.approx(true, abs=0.02) and true >= 0.94


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_alone_are_measured_by_no_query(tmp_path, kind):
    zeros = np.zeros((300, 8), dtype=np.float32)
    about = build_dense(tmp_path, zeros, settings_of(kind))
    assert about["measured"]["n_queries"] == 0
    assert open_dense(tmp_path).search(clustered(1, 8), 3)[1].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [2**31, 2**40])
def test_any_seed_will_do(tmp_path, kind, seed):
    build_dense(tmp_path, clustered(300, 8), settings_of(kind, seed=seed))
    assert len(open_dense(tmp_path)) == 300
