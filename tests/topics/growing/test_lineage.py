"""What became of each topic, told by documents or by mean vectors."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics.clustering.results import Clustering
from embedtopics.errors import InputError
from embedtopics.topics import at_resolution, lineage
from embedtopics.topics.growing._novelty import described
from tests.factories import make_result


def with_labels(result, labels):
    """Return a result with the first documents labelled so, its topics described anew."""
    labels = np.array([*labels, *[-1] * (len(result.documents) - len(labels))], dtype=np.int32)
    n_topics = int(labels.max(initial=-1)) + 1
    probabilities = (labels >= 0).astype(np.float32)
    clustering = Clustering(labels, probabilities, np.full(n_topics, np.nan))
    result = dataclasses.replace(result, clustering=clustering)
    topics, topic_terms = described(result, [None] * n_topics)
    return dataclasses.replace(result, topics=topics, topic_terms=topic_terms)


@pytest.fixture(scope="module")
def base():
    return make_result(60, 2)


def kinds(found):
    return [(link.kind, link.old, link.new) for link in found.links]


def test_every_fate_by_hand(base):
    #        continued    split         merged        gone
    old = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, -1, -1]
    new = [0, 0, 0, 5, 1, 1, 2, 2, 3, 3, 3, 3, 3, -1, -1, 0, 4, 4]
    found = lineage(with_labels(base, old), with_labels(base, new))
    assert kinds(found) == [
        ("split", 0, 0), ("split", 0, 5), ("split", 1, 1), ("split", 1, 2),
        ("merged", 2, 3), ("merged", 3, 3), ("gone", 4, -1), ("new", -1, 4),
    ]  # fmt: skip
    assert found.by == "documents" and found.n_shared == len(base.documents)
    link = found.links[0]
    assert (link.shared, link.share_of_old, link.share_of_new) == (3, 0.75, 0.75)
    assert link.similarity == pytest.approx(3 / 5)
    assert found.links[3].share_of_new == 1.0 and found.links[3].share_of_old == 0.5
    frame = found.to_frame()
    assert frame["kind"].tolist() == [link.kind for link in found.links]
    assert frame["new_label"].iloc[-1] == found.new_labels[4] and frame["old_label"].iloc[-1] == ""


def test_continued_and_regrouped(base):
    old = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    new = [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 1, -1]
    found = lineage(with_labels(base, old), with_labels(base, new))
    assert kinds(found) == [
        ("continued", 0, 0), ("regrouped", 1, 1), ("regrouped", 1, 2), ("regrouped", 2, 2)
    ]  # fmt: skip
    same = lineage(with_labels(base, old), with_labels(base, old))
    assert kinds(same) == [("continued", topic, topic) for topic in range(3)]
    assert all(link.similarity == 1.0 for link in same.links)


LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=30)
TURNED = {"split": "merged", "merged": "split", "gone": "new", "new": "gone"}


def in_order(labels):
    """Number labels without gaps."""
    there = sorted({*labels} - {-1})
    return [there.index(label) if label >= 0 else -1 for label in labels]


@settings(max_examples=60, deadline=None)
@given(LABELS, LABELS)
def test_backwards_it_is_the_other_way_round(one, other):
    base = make_result(60, 2)
    first, second = with_labels(base, in_order(one)), with_labels(base, in_order(other))
    forth, back = lineage(first, second), lineage(second, first)
    turned = {(TURNED.get(kind, kind), new, old) for kind, old, new in kinds(forth)}
    assert turned == set(kinds(back))
    # Every topic has a fate, and one only.
    for side, result in ((1, first), (2, second)):
        fates = {(link[side], link[0]) for link in kinds(forth) if link[side] >= 0}
        assert sorted(topic for topic, _ in fates) == list(range(result.n_topics))


def test_only_common_documents_count(branched):
    half = branched.corpus.take(np.arange(0, len(branched.corpus), 2))
    rows = branched.documents.of_row[::2]
    vectors = branched.embeddings[rows]
    part = et.TopicModel(languages=[], random_state=2, n_topics=12).fit(half, embeddings=vectors)
    found = lineage(branched, part.result_)
    assert found.n_shared == len(part.result_.documents) < len(branched.documents)
    assert [link.kind for link in found.links] == ["continued"] * branched.n_topics
    assert min(link.similarity for link in found.links) > 0.8


def test_a_coarser_reading_merges_what_belongs_together(branched):
    found = lineage(branched, at_resolution(branched, 4))
    assert {link.kind for link in found.links} == {"merged"} and len(found.links) == 12
    assert {link.new for link in found.links} == {0, 1, 2, 3}
    back = lineage(at_resolution(branched, 4), branched)
    assert {link.kind for link in back.links} == {"split"}


@pytest.fixture(scope="module")
def halves(branches):
    """Two fits of different halves, without a common text."""
    texts, vectors = branches
    found = {text: i for i, text in enumerate(texts)}
    each = np.random.default_rng(3).permutation(sorted(found.values()))
    return [
        et.TopicModel(languages=[], random_state=2, n_topics=12)
        .fit([texts[i] for i in part], embeddings=vectors[part])
        .result_
        for part in (each[::2], each[1::2])
    ]


def test_without_common_documents(halves):
    one, other = halves
    found = lineage(one, other)
    assert found.n_shared == 0 and found.by == "centroids"
    assert [link.kind for link in found.links] == ["continued"] * 12
    first, second = (
        np.array([r.embeddings[r.clustering.labels == t].mean(axis=0) for t in range(12)])
        for r in halves
    )
    nearest = (second @ first.T / np.linalg.norm(second, axis=1)[:, None]).argmax(axis=0)
    assert [link.new for link in found.links] == nearest.tolist()
    assert all(link.shared == 0 and np.isnan(link.share_of_old) for link in found.links)


def test_different_encoders_cannot_be_compared(halves):
    marks = [{"encoder": name, "encoder_fingerprint": name} for name in "ab"]
    one, other = (
        dataclasses.replace(result, settings={**result.settings, **mark})
        for result, mark in zip(halves, marks, strict=True)
    )
    with pytest.raises(InputError, match=r"different encoders or settings \(a and b"):
        lineage(one, other)
    narrow = dataclasses.replace(other, embeddings=other.embeddings[:, :5])
    with pytest.raises(InputError, match="24 and 5 dimensions"):
        lineage(one, narrow)


def test_results_without_topics(base):
    nothing = with_labels(base, [])
    assert kinds(lineage(nothing, nothing)) == []
    assert kinds(lineage(nothing, with_labels(base, [0, 0, 1]))) == [("new", -1, 0), ("new", -1, 1)]
    empty = lineage(nothing, nothing)
    assert empty.to_frame().empty and "none" in repr(empty) and "<table>" in empty._repr_html_()
    assert kinds(lineage(with_labels(base, [0, 0]), nothing)) == [("gone", 0, -1)]
