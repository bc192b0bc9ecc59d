"""Tables of a result, and files of them that are read again with equal values."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.results import Decision
from embedtopics.topics import document_shares, documents, export, rename, table, terms
from tests.factories import make_result, refuses

ALL = ["topics", "documents", "terms", "decisions", "history", "settings"]
WHEN = ["2021-05-17 10:20:30", "1850-01-01", None, *["2020-01-01"] * 5]
EVIL = "=cmd|' /C calc'!A0"


@pytest.fixture(scope="module")
def result(build):
    """Texts and columns with all that formats stumble over."""
    frame = pd.DataFrame(
        {
            "text": [
                EVIL, "-1 is a number, \"quoted\"\nand a line", "+plus @at", "été 日本語 😀\r\nend",
                "#N/A", "a\x0bcontrol", "", "x " * 20_000,
            ],
            "zone": pd.date_range("2021-01-01", periods=8, tz="Europe/Paris"),
            "when": pd.Series(WHEN, dtype="datetime64[us]").array,
            "tweet": [2**60 + i for i in range(8)],
            "count": range(8),
            "share": [0.1, float("nan"), float("inf"), 1 / 3, 2.5, -1.0, 0.0, 1e300],
            "flag": [True, False] * 4,
            "=sum": ["=1+1", "@x", None, "-", "plain", "\tx", "#REF!", "01"],
            "kind": pd.Categorical(["a", "b"] * 4),
            "list": [[1, "a"], {"k": 2}] * 4,
        },
        index=pd.Index([f"r{i}" for i in range(8)], name="key"),
    )  # fmt: skip
    found = build(frame, [0, 0, 0, 1, 1, 1, -1, 1], text="text")
    return replace(
        rename(found, {topic.topic_id: f"=T{topic.topic_id}" for topic in found.topics}),
        decisions=(Decision("corpus", "list", ["a", 1], "=A message."),),
        settings={"encoder": "given", "range": [1, 2]}, versions={"numpy": "2"},
        timings={"terms": 0.5},
    )  # fmt: skip


def same(column, expected):
    """Compare a column that was read with what was written, an empty text being a missing one."""
    for got, want in zip(column.tolist(), expected.tolist(), strict=True):
        if want == "" or (np.isscalar(want) and pd.isna(want)) or want is None:
            assert pd.isna(got)
        elif isinstance(want, float):
            assert got == pytest.approx(want, rel=1e-6)
        else:
            assert got == want


def test_a_workbook_holds_all_tables_with_equal_values(result, tmp_path):
    done = export(result, tmp_path / "r.xlsx")
    assert done.paths == (tmp_path / "r.xlsx",)
    sheets = pd.read_excel(tmp_path / "r.xlsx", sheet_name=None, keep_default_na=False,
                           na_values=[""])  # fmt: skip
    assert list(sheets) == ALL
    read, written = sheets["documents"], documents(result)
    assert read["key"].tolist() == written.index.tolist()
    for name in ("id", "count", "flag", "status", "topic", "topic_name", "membership", "x", "kind"):
        same(read[name], written[name])
    same(read["=sum"], written["=sum"])
    texts = written["text"].str.replace("\r\n", "\n").str.replace("\x0b", "").str[:32_767]
    same(read["text"], texts)
    same(read["tweet"], written["tweet"])  # all 19 digits
    same(read["share"].astype(float), written["share"])
    same(read["zone"], written["zone"].map(pd.Timestamp.isoformat))
    assert read["when"].tolist()[:2] == [pd.Timestamp("2021-05-17 10:20:30"), "1850-01-01T00:00:00"]
    assert read["list"].tolist()[:2] == ["[1, 'a']", "{'k': 2}"]
    topics = table(result, n_terms=10, n_examples=3, n_characters=300)
    same(sheets["topics"]["name"], topics["name"])
    same(sheets["topics"]["terms"], topics["terms"].map(", ".join))
    same(sheets["terms"]["weight"], terms(result)["weight"])
    assert sheets["decisions"].iloc[0].tolist() == ["corpus", "list", '["a", 1]', "=A message."]
    assert sheets["history"]["edit"].tolist() == ["rename"]
    assert json.loads(sheets["history"]["parameters"][0])["names"]["0"] == "=T0"
    settings = sheets["settings"].set_index(["section", "name"])["value"]
    assert json.loads(settings["settings", "range"]) == [1, 2]
    assert float(settings["seconds", "terms"]) == 0.5
    assert [(note.name, note.value) for note in done.decisions] == [("texts_shortened", 2)]


def test_a_workbook_runs_nothing(result, tmp_path):
    import openpyxl

    export(result, tmp_path / "r.xlsx")
    cells = [
        cell for sheet in openpyxl.load_workbook(tmp_path / "r.xlsx") for row in sheet.iter_rows()
        for cell in row if isinstance(cell.value, str) and cell.value[:1] in ("=", "+", "-", "@")
    ]  # fmt: skip
    assert {EVIL, "=sum", "=1+1", "@x", "-", "+plus @at", "=A message."} <= {c.value for c in cells}
    assert all(cell.data_type == "s" and cell.quotePrefix for cell in cells)


def test_a_folder_holds_a_file_for_each_table(result, tmp_path):
    done = export(result, tmp_path / "out")
    assert [p.name for p in done.paths] == [f"{name}.csv" for name in ALL]
    single = export(result, tmp_path / "one.csv")
    assert single.paths[0].read_bytes() == done.paths[1].read_bytes()
    assert "formulas" in {note.name for note in single.decisions}
    read = pd.read_csv(single.paths[0], keep_default_na=False, na_values=[""])
    for name in ("key", "id", "tweet", "count", "share", "flag", "topic", "membership", "x"):
        same(read[name], documents(result).reset_index()[name])
    again = export(result, tmp_path / "out", what=["topics"])
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["manifest.json", "topics.csv"]
    assert again.paths == (tmp_path / "out" / "topics.csv",)


def test_parquet_is_read_again_with_equal_values(result, tmp_path):
    done = export(result, tmp_path / "r.parquet")
    read, written = pd.read_parquet(tmp_path / "r.parquet"), documents(result)
    kept = [name for name in written.columns if name != "list"]
    pd.testing.assert_frame_equal(read[kept], written[kept])
    assert done.decisions[0].value == ["list"] and read["list"].iloc[0] == "[1, 'a']"
    export(result, tmp_path / "t.parquet", what="topics")
    read = pd.read_parquet(tmp_path / "t.parquet")["terms"]
    assert [list(row) for row in read] == table(result, n_terms=10)["terms"].tolist()


@pytest.mark.parametrize(
    ("path", "arguments", "parameter"),
    [
        ("r.xls", {}, "path"),
        ("r.csv", {"what": "sentences"}, "what"),
        ("r.csv", {"what": ["topics", "terms"]}, "path"),
        ("r.csv", {"what": []}, "what"),
    ],
)
def test_bad_arguments(result, tmp_path, path, arguments, parameter):
    with refuses(parameter):
        export(result, tmp_path / path, **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def fitted(toy):
    texts, vectors, _ = toy
    frame = pd.DataFrame({"t": texts, "topic": "given", "id": [f"x{i}" for i in range(len(texts))]})
    corpus = et.Corpus(frame, text="t", id="id")
    return et.TopicModel(languages=["en"], random_state=1).fit(corpus, embeddings=vectors).result_


def test_table_adds_up(fitted, toy):
    frame = et.topics.table(fitted, n_terms=4, n_examples=2)
    columns = ["topic", "name", "terms", "examples", "theme", "size", "share"]
    assert list(frame.columns) == columns
    assert frame["theme"].tolist() == frame["name"].tolist()  # fewer than eight topics
    assert frame["size"].sum() == len(toy[0])
    assert frame["share"].sum() == pytest.approx(1.0)
    topics = frame[frame["topic"] >= 0]
    assert topics["size"].is_monotonic_decreasing
    assert (topics["terms"].map(len) == 4).all() and (topics["examples"].map(len) == 2).all()
    sizes = pd.Series(fitted.labels).value_counts()
    assert dict(zip(frame["topic"], frame["size"], strict=True)) == sizes.to_dict()


def test_documents_keep_rows_and_given_columns(fitted, toy):
    frame = et.topics.documents(fitted)
    assert frame["text"].tolist() == toy[0]
    assert frame["excerpt"].str.len().max() <= 160 and "\n" not in "".join(frame["excerpt"])
    assert frame["id"].tolist()[:2] == ["x0", "x1"]
    assert (frame["topic_given"] == "given").all()
    np.testing.assert_array_equal(frame["topic"], fitted.labels)
    inside = frame["topic"] >= 0
    assert (frame.loc[inside, "membership"] >= 0.5).all()


def test_documents_tell_typical_texts(branched):
    frame = et.topics.documents(branched)
    for topic in branched.topics:
        texts = {branched.corpus.texts[row] for row in topic.representatives}
        inside = frame[frame["topic"] == topic.topic_id]
        assert inside["representative"].tolist() == inside["text"].isin(texts).tolist()
    assert not frame.loc[frame["topic"] < 0, "representative"].any()


def test_terms_are_the_best_of_each_topic(fitted):
    frame = et.topics.terms(fitted, n_terms=5)
    assert (frame.groupby("topic").size() == 5).all()
    weights = fitted.topic_terms[0].toarray()[0]
    np.testing.assert_allclose(frame["weight"][:5], np.sort(weights)[::-1][:5])
    column = fitted.term_counts.terms.index(frame["term"][0])
    holders = fitted.term_counts.counts[:, column].toarray().ravel() > 0
    expected = int((holders & (fitted.clustering.labels == 0)).sum())
    assert frame["n_documents"][0] == expected


def test_shares_of_documents_come_from_their_passages(tmp_path):
    result = make_result(n_documents=60, n_topics=2)
    with refuses("result"):
        document_shares(result)
    result.corpus.metadata["passage_of"] = [f"d{59 - row // 5}" for row in range(62)] + ["empty"]
    shares = document_shares(result)
    assert shares.index.tolist() == [*(f"d{59 - i}" for i in range(13)), "empty"]
    assert list(shares) == ["passages", 0, 1, -1]
    assert (
        shares["passages"].tolist() == [5] * 12 + [2, 0]
        and shares.loc["empty", 0] != shares.loc["empty", 0]
    )
    first = result.labels[:5].tolist()
    assert shares.iloc[0, 1:].tolist() == [first.count(topic) / 5 for topic in (0, 1, -1)]
    export(result, tmp_path / "tables")
    written = pd.read_csv(tmp_path / "tables" / "shares.csv", index_col="document")
    np.testing.assert_allclose(written, shares)
