import warnings

import numpy as np
import pytest

from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.topics.constraints import _apply as drawing
from embedtopics.topics.constraints._apply import attract_groups, groups_of_vectors, separate_groups


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    embeddings = unit_rows(rng.normal(size=(80, 6)))
    return embeddings, fuzzy_graph(build_graph(embeddings, 8)), rng.integers(-1, 3, 80)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.2, 0.5, 0.9, 1.0])
def test_parting_equals_umap_learn(cloud, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn warns of a missing optional package
        from umap.umap_ import discrete_metric_simplicial_set_intersection

    _, fuzzy, groups = cloud
    far = 2.5 / (1.0 - weight) if weight < 1 else 1e12
    theirs = discrete_metric_simplicial_set_intersection(fuzzy.tocoo(True), groups, far_dist=far)
    ours = separate_groups(fuzzy, groups.astype(np.int32), weight)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), atol=1e-6)


@pytest.mark.parametrize("small", [128, 0])
def test_tying_is_the_union_with_ties_inside_each_group(cloud, monkeypatch, small):
    monkeypatch.setattr(drawing, "SMALL_GROUP", small)
    embeddings, fuzzy, groups = cloud
    groups = groups.astype(np.int32)
    inside = np.zeros(fuzzy.shape)
    for group in range(3):
        members = np.flatnonzero(groups == group)
        cosines = embeddings[members] @ embeddings[members].T
        np.fill_diagonal(cosines, -2)
        for place, member in enumerate(members):
            near = members[np.argsort(-cosines[place])[:8]]
            inside[member, near] = inside[near, member] = 0.4
    before = fuzzy.toarray()
    tied = attract_groups(fuzzy, embeddings, groups, 0.4, 8)
    np.testing.assert_allclose(tied.toarray(), before + inside - before * inside, atol=1e-6)
    np.testing.assert_array_equal(fuzzy.toarray(), before)
    alone = np.full(80, -1, dtype=np.int32)
    alone[7] = 0
    assert attract_groups(fuzzy, embeddings, alone, 0.4, 8) is fuzzy


def test_small_groups_are_tied_wholly(cloud):
    embeddings, fuzzy, _ = cloud
    groups = np.repeat(np.arange(16, dtype=np.int32), 5)
    groups[[0, 79]] = -1, 17  # 16 has nobody, 17 one document
    tied = attract_groups(fuzzy, embeddings, groups, 1.0, 8).toarray()
    same = (groups[:, None] == groups) & (groups >= 0)[:, None] & ~np.eye(80, dtype=bool)
    np.testing.assert_allclose(tied[same], 1.0, atol=1e-6)
    np.testing.assert_array_equal(tied[~same], fuzzy.toarray()[~same])


def test_documents_that_share_a_vector_have_the_one_group_that_they_have():
    groups = np.array([-1, 2, 0, 1, -1, 0], dtype=np.int32)
    places = np.array([0, 0, 1, 1, 2, 3])
    assert groups_of_vectors(groups, places, 4).tolist() == [2, -1, -1, 0]
