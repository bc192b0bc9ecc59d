"""Questions have an answer for a result of no topic, and of one."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import topics
from embedtopics.topics.editing._labels import read_labels, write_labels
from tests.factories import make_result


@pytest.fixture(params=[0, 1])
def few(request):
    return make_result(40, request.param)


def test_trends_count_every_text(few):
    n_texts = (few.documents.of_row >= 0).sum()
    trends = topics.over_time(few, "month")
    groups = topics.by_group(few, ["x"] * len(few.corpus))
    for table in (trends, groups):
        assert table.counts.shape[0] == few.n_topics + 1 and table.counts.sum() == n_texts
        assert len(table.to_frame()) == table.counts.size
    found = topics.effects(few, "~ date", n_resamples=20)
    assert found.coefficients.shape == (few.n_topics + 1, 2)


def test_a_level_of_the_tree_is_the_result_itself(few):
    read = topics.at_level(few, topics.hierarchy(few), few.n_topics)
    assert read.memberships.shape == (len(few.documents), few.n_topics)
    np.testing.assert_array_equal(read.labels, few.labels)


def test_files_hold_every_row_though_there_are_no_dates(few, tmp_path):
    assert read_labels(write_labels(few, tmp_path / "labels.csv"), few) == {}
    undated = make_result(20, few.n_topics, dated=False)
    topics.export(undated, tmp_path / "r.xlsx")
    sheets = pd.read_excel(tmp_path / "r.xlsx", sheet_name=None)
    assert len(sheets["documents"]) == len(undated.corpus)
    assert len(sheets["topics"]) == few.n_topics + 1
