import numpy as np

from embedtopics.terms._representative import representatives


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_representatives_are_central_and_not_similar():
    vectors = unit([[1, 0.3], [1, 0.0], [1, 0.01], [1, -0.6], [0, 1], [-1, 0]])
    found = representatives(vectors, [0, 0, 0, 0, 1, -1], n=3)
    assert [topic.tolist() for topic in found] == [[1, 3], [4]]
    # 0 and 2 are near duplicates of 1, which is nearest to the centroid.


def test_probabilities_move_the_centroid():
    vectors = unit([[1, 0], [0, 1], [1, 1]])
    assert representatives(vectors, [0, 0, 0], [1, 1, 1], n=1)[0].tolist() == [2]
    assert representatives(vectors, [0, 0, 0], [0, 9, 0], n=1)[0].tolist() == [1]
    assert representatives(vectors, [0, 0, 0], [0, 0, 0], n=1)[0].tolist() == [2]


def test_ties_go_to_the_lower_index_and_empty_topics_stay_empty():
    vectors = unit([[0, 1], [0, 1], [0, 1]])
    found = representatives(vectors, [1, 1, 1], n=2, n_topics=3)
    assert [topic.tolist() for topic in found] == [[], [0], []]
