import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embedtopics.comparison.results import Overlap
from embedtopics.evaluation._maps import chance_overlap
from embedtopics.report._comparison import comparison_html
from embedtopics.results import Decision
from tests.factories import make_comparison
from tests.report.test_explorer import about, column
from tests.report.test_page import NASTY, check_that_nothing_is_loaded

NAN = float("nan")
NAME = NASTY.replace("\ud800", "")  # a table of scores holds no lone surrogate


@pytest.fixture(scope="module")
def result():
    made = make_comparison(texts=[NASTY])
    scores = pd.DataFrame(
        [("encoder 0", "agreement", 0.5, 0.4, 0.6, 300), (NAME, "agreement", 0.9, 0.8, 1.0, 300),
         ("encoder 2", "agreement", 0.45, NAN, NAN, 300),
         ("encoder 0", "recall", 0.3, 0.2, 0.4, 120), (NAME, "recall", 0.7, 0.6, 0.8, 120)],
        columns=["encoder", "measure", "value", "low", "high", "n"],
    )  # fmt: skip
    views = list(made.encoders)
    views[1] = replace(views[1], name=NAME)
    row = int(made.distinct.of_row[0])
    moved = made.moved.copy()
    moved.at[0, "document"] = row
    moved.at[0, "gained"] = (NASTY,)
    return replace(
        made, encoders=tuple(views), group_names=(NASTY, *made.group_names[1:]), scores=scores,
        grouped_by=NASTY, moved=moved, decisions=(Decision("encoder", "x", 1, f"Seen {NASTY}"),),
        settings={"k": NASTY},
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(result):
    return comparison_html(result)


def test_the_page_loads_nothing_and_runs_only_its_scripts(page):
    check_that_nothing_is_loaded(page, 7)


def test_the_page_holds_the_maps_neighbours_and_groups_of_the_result(page, result):
    known = about(page)
    held = np.flatnonzero(result.distinct.of_row >= 0)
    documents = list(dict.fromkeys(result.distinct.of_row[held].tolist()))  # as on the page
    every = np.vstack([view.map for view in result.encoders]).astype(float)
    step = np.ptp(every, axis=0).max() / 65535
    np.testing.assert_allclose(known["span"], np.ptp(every, axis=0) / step, atol=0.5)
    labels = column(page, "labels", "<u2").astype(int)
    np.testing.assert_array_equal(labels - 1, result.groups[documents])
    for i, (view, panel) in enumerate(zip(result.encoders, known["panels"], strict=True)):
        places = column(page, f"places-{i}", "<u2").reshape(-1, 2)
        found = every.min(axis=0) + places * step
        np.testing.assert_allclose(found, view.map[documents], rtol=0, atol=0.51 * step)
        near = column(page, f"neighbors-{i}", "<u4").reshape(-1, panel["depth"])
        np.testing.assert_array_equal(np.array(documents)[near], view.graph.indices[documents])
        rows = np.bincount(result.groups + 1, result.distinct.weights)[1:]
        assert [n for _, _, n in panel["names"]] == rows.tolist()
        for group, (_, anchor, _) in enumerate(panel["names"]):
            assert anchor in places[labels - 1 == group].tolist()


def test_a_missing_neighbor_and_an_empty_group_have_their_marks():
    made = make_comparison(n_documents=20, n_groups=2)
    first = made.encoders[0]
    indices, similarities = first.graph.indices.copy(), first.graph.similarities.copy()
    document = int(made.distinct.of_row[0])
    indices[document, -1], similarities[document, 0] = -1, 0  # the list is only filled
    graph = replace(first.graph, indices=indices, similarities=similarities)
    made = replace(
        made, encoders=(replace(first, graph=graph), *made.encoders[1:]),
        group_names=(*made.group_names, "nobody's"),
    )  # fmt: skip
    page = comparison_html(made)
    near = column(page, "neighbors-0", "<u4").reshape(20, -1)
    assert near[0, [0, -1]].tolist() == [20, 20] and (near[1:] < 20).all()
    assert about(page)["panels"][0]["names"][2] == ["nobody's", None, 0]


def cells(page, name):
    body = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]


def test_scores_show_intervals_and_who_leads(page):
    rows = {row[0].split("<")[0]: row[1:] for row in cells(page, "scores")}
    agreement, recall = rows["agreement"], rows["recall"]
    assert agreement[0].startswith('0.500 <span class="interval">[0.400, 0.600]</span>')
    assert agreement[1].startswith("0.900 ")  # the third has no interval, so nobody leads
    assert agreement[2] == "0.450"
    assert recall[1].startswith("<strong>0.700</strong> ")
    assert recall[2] == "\u2013"
    # strips lie on one scale for the row, here from 0.2 to 0.8
    assert 'x="0.0" width="33.3"' in recall[0] and 'x="15.9"' in recall[0]
    assert 'x="66.7" width="33.3"' in recall[1] and 'x="82.5"' in recall[1]
    assert rows["Dimensions"] == ["5", "6", "7"]
    assert rows["Time to encode"] == ["1.5 s", "2.5 s", "3.5 s"]
    assert rows["Memory of the vectors"] == ["0.2 MB", "0.5 MB", "0.8 MB"]


def test_differences_stand_with_their_intervals():
    result = make_comparison()
    frame = pd.DataFrame(
        [("knn_accuracy", "encoder 1", "encoder 0", -0.047, -0.053, -0.041, 300),
         ("knn_accuracy", "encoder 2", "encoder 0", 0.01, -0.003, 0.015, 300),
         ("silhouette", "encoder 1", "encoder 0", 0.2, 0.1, 0.3, 300)],  # compares no encoders
        columns=["measure", "encoder", "against", "difference", "low", "high", "n"],
    )  # fmt: skip
    made = comparison_html(replace(result, gains=frame))
    head, row = cells(made, "is-it-better")
    assert head[1:] == ["<bdi>encoder 1</bdi>", "<bdi>encoder 2</bdi>"]
    assert row == [
        "k-NN accuracy",
        '<strong>\u22120.047</strong> <span class="interval">[\u22120.053, \u22120.041]</span>',
        '+0.010 <span class="interval">[\u22120.003, +0.015]</span>',
    ]
    assert 'id="is-it-better"' not in comparison_html(result)


def test_overlaps_stand_beside_chance(result):
    n = len(result.distinct)
    jaccard = np.linspace(0.0, 1.0, n, dtype=np.float32)
    overlap = Overlap(0, 2, jaccard, (jaccard / 2).astype(np.float32))
    head, row = cells(
        comparison_html(replace(result, neighbor_overlaps=(overlap,))), "neighbours-in-common"
    )
    assert head[1:5] == ["Jaccard", "by chance", "Rank-biased overlap", "by chance"]
    assert row[0] == "<bdi>encoder 0</bdi> &ndash; <bdi>encoder 2</bdi>"
    by_chance = [f"{value:.3f}" for value in chance_overlap(n, 6)]
    assert row[1:5] == ["0.500", by_chance[0], "0.250", by_chance[1]]
    assert [int(c) for c in re.findall(r": (\d+) documents", row[5])] == [30] * 10


def test_moves_name_their_document_terms_and_overlap(page, result):
    body = page.split('<section id="largest-changes">')[1].split("</section>")[0]
    rows = [int(row) for row in re.findall(r'data-row="(\d+)"', body)]
    held = np.flatnonzero(result.distinct.of_row >= 0)
    documents = result.distinct.of_row[held[rows]].tolist()
    assert documents == result.moved["document"].tolist()
    assert body.count("<details") == 3 and body.count("<details open>") == 1
    assert body.count(">10%</span>") == len(result.moved)
    assert body.count("<bdi>engine line</bdi>") == len(result.moved) - 1


def test_summary_counts_and_the_title_are_there(page, result):
    tiles = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert tiles["Rows"] == str(len(result.corpus))
    assert tiles["Distinct documents"] == str(len(result.distinct))
    assert (tiles["Encoders"], tiles["Neighbours compared"]) == ("3", "6")
    assert "<h1>3 encoders on 313 rows</h1>" in page
    assert "<h1>&lt;b&gt;T</h1>" in comparison_html(result, title="<b>T")


@pytest.mark.parametrize("n_encoders", [1, 2, 6])
def test_few_documents_and_encoders_have_a_page(n_encoders):
    made = make_comparison(n_documents=3, n_groups=1, n_encoders=n_encoders)
    page = comparison_html(made)
    assert len(about(page)["panels"]) == n_encoders
    assert ('<section id="neighbours-in-common">' in page) == (n_encoders > 1)
    still = replace(made.encoders[0], map=np.ones((3, 2), dtype=np.float32))  # all in one place
    alone = replace(made, encoders=(still,), neighbor_overlaps=(), moved=made.moved.head(0))
    assert '"span":[1,1]' in comparison_html(alone)
