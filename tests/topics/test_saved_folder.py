"""Saved results of format 1, and label files."""

import csv
import dataclasses
import hashlib
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.report._explorer import explorer_html
from embedtopics.topics import assign, recluster, rename
from embedtopics.topics._storage import FILES, FORMAT, KIND, write_arrays
from embedtopics.topics.editing._names_file import read_names, write_names
from tests.factories import each, fields, make_result, refuses, saved_arrays

SAVED = Path(__file__).parent / "saved" / "format_1"


def test_a_saved_result_is_read():
    assert json.loads((SAVED / "manifest.json").read_text("utf-8"))["version"] == FORMAT == 1
    result = et.TopicResult.load(SAVED)
    corpus, documents = result.corpus, result.distinct
    assert len(corpus) == 62 and len(documents) == 60
    assert corpus.texts[25].startswith("The train 1: ") and corpus.texts[61] == ""
    assert corpus.ids[0] == "6f81e1aa8c4fd524" and corpus.index[3] == "r3"
    assert corpus.time.iloc[3] == pd.Timestamp("2024-01-04") and corpus.group.iloc[1] == "b"
    assert documents.hashes[0].tolist() == [1067782376339258632, 15463854738023585819]
    assert documents.weights.sum() == 61 and documents.of_row[61] == -1
    assert documents.of_row[60] == documents.of_row[3]
    first = [-0.10084052, 0.36882368, -0.2601946, 0.7408155, -0.31519705, -0.37140575]
    np.testing.assert_allclose(result.embeddings[0], first, rtol=1e-6)
    assert result.graph.indices[0].tolist() == [52, 14, 3, 24, 20]
    assert result.coordinates.shape == (60, 5) and result.coordinates.dtype == np.float32
    assert result.tokens.words[:4] == ("0", "1", "10", "11") and len(result.tokens.ids) == 480
    counts = result.term_counts
    assert counts.terms[5] == "apple orchard" and counts.counts.sum() == 494
    assert counts.counts.dtype == np.int32 and counts.lengths.dtype == np.int8
    assert result.settings["languages"] == ["en"] and result.settings["seed"] == 3
    assert [(t.name, t.size, t.is_named) for t in result.topics] == [
        ("train, ticket, station", 36, False), ("Garden & kitchen", 25, True),
    ]  # fmt: skip
    merged, renamed, reworded = result.history
    assert (merged.name, merged.parameters) == ("merge", {"topics": [[1, 2]]})
    assert merged.new_ids == (1, 0, 0) and [mark.topic_id for mark in merged.marks] == [1, 2]
    assert merged.marks[1].documents[0] == "3822b5b9b2fb5806aff9b5c2aaf92968"
    assert renamed.parameters == {"names": {"1": "Garden & kitchen"}}
    assert reworded.parameters == {"extra_stop_words": ["elsewhere"]}
    assert result.settings["constraints"] == {
        "kind": "labels", "classes": ["court", "fruit", "train"], "n_labeled": 16, "weight": 0.5,
    }  # fmt: skip
    constraints = result.constraints
    assert constraints.names == ("court", "fruit", "train") and not constraints.is_fixed
    assert (constraints.attraction, constraints.separation) == (0.25, 0.5)
    assert constraints.probabilities.sum() == (constraints.groups >= 0).sum() == 16
    assert result.stability.n_replicates == 2 and len(result.stability.recurrence) == 2


def test_a_saved_result_answers_and_is_saved_again(tmp_path):
    result = et.TopicResult.load(SAVED)
    again = et.TopicResult.load(result.save(tmp_path / "new"))
    assert fields(again.topics) == fields(result.topics) and again.history == result.history
    np.testing.assert_array_equal(again.map, result.map)
    found = assign(again, ["a new text"], embeddings=result.embeddings[:1])
    assert found.labels.tolist() == [result.clustering.labels[0]]
    assert et.topics.table(again).equals(et.topics.table(result))
    assert recluster(again, 3).n_topics == 3
    assert explorer_html(again)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SAVED, tmp_path / "saved")


def damaged(path, how):
    content = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
        return
    if how == "cut":
        content = content[: len(content) // 2]
    elif how == "one bit":
        content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content) if how != "empty" else b"")


@pytest.mark.parametrize("how", ["missing", "cut", "one bit", "empty"])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_named(folder, file, how):
    damaged(folder / file, how)
    with pytest.raises(CorruptFileError, match=str(folder / file)):
        et.TopicResult.load(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"kind": 3}', b"\xff\xfe\x00"])
def test_a_damaged_manifest_is_named(folder, content):
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        et.TopicResult.load(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"PAR1PAR1", b"ARROW1\0\0"])
@pytest.mark.parametrize("file", FILES)
def test_a_file_of_other_content_is_named_though_its_checksum_is_right(folder, file, content):
    (folder / file).write_bytes(content)
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=str(folder / file)):
        et.TopicResult.load(folder)


def test_parts_that_do_not_belong_together_are_refused(folder):
    edit_json(folder / "result.json", lambda content: content["topics"][0]["keywords"].pop())
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"result\.json does not match"):
        et.TopicResult.load(folder)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"topics": Infinity}', "[]", "7", "\ud800"])
def test_forged_json_is_refused_in_one_sentence(folder, text):
    (folder / "result.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"result\.json cannot be read"):
        et.TopicResult.load(folder)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CorruptFileError, match="was not saved by embedtopics"):
        et.TopicResult.load(tmp_path)
    with pytest.raises(InputError):
        et.TopicResult.load(tmp_path / "nowhere")
    with pytest.raises(InputError):
        et.TopicResult.load(tmp_path / ("x" * 300))


def test_newer_formats_are_refused_with_a_remedy(folder):
    write_manifest(folder, KIND, FORMAT + 1)
    with pytest.raises(CorruptFileError, match=rf"format {FORMAT + 1}; .* upgrade"):
        et.TopicResult.load(folder)


OUT_OF_RANGE = {
    "graph.indices": 10**9, "counts.indices": 10**8, "memberships.indices": -(10**8),
    "topic_terms.indices": 10**8, "tree.edges": 10**12, "clustering.labels": 10**8,
    "tokens.ids": 10**9, "tokens.offsets": -5, "documents.of_row": 10**9, "counts.indptr": 10**8,
    "documents.first_rows": 10**9, "constraints.groups": 10**6,
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_numbers_of_nothing_are_refused_before_compiled_code_believes_them(folder, name):
    arrays = saved_arrays(folder / "arrays.arrow")
    arrays[name].ravel()[len(arrays[name]) // 2] = OUT_OF_RANGE[name]
    write_arrays(folder / "arrays.arrow", arrays)
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"does not match"):
        et.TopicResult.load(folder)


@pytest.mark.parametrize("name", ["embeddings", "map", "coordinates", "clustering.probabilities"])
def test_arrays_of_fewer_documents_are_refused(folder, name):
    if name == "embeddings":
        np.save(folder / "embeddings.npy", np.load(folder / "embeddings.npy")[:-1])
    else:
        arrays = saved_arrays(folder / "arrays.arrow")
        write_arrays(folder / "arrays.arrow", {**arrays, name: arrays[name][:-1]})
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"does not match"):
        et.TopicResult.load(folder)


def edit_json(path, change):
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/../../b", "C:\\x", "a\\b"])
def test_a_manifest_that_lists_files_elsewhere_is_refused(folder, tmp_path, name):
    (tmp_path / "outside").write_bytes(b"")
    listed = {name: {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}}
    edit_json(folder / "manifest.json", lambda manifest: manifest["files"].update(listed))
    with pytest.raises(CorruptFileError, match=r"manifest\.json is damaged: .* not below the"):
        et.TopicResult.load(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_file_without_a_checksum_is_not_read(folder, file):
    edit_json(folder / "manifest.json", lambda manifest: manifest["files"].pop(file))
    with pytest.raises(CorruptFileError, match=f"does not list {file}"):
        et.TopicResult.load(folder)


@pytest.fixture
def result():
    return make_result(texts=['=HYPERLINK("x")', "two\nlines, and a comma"], topic_labels=["=1+1"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "names.csv"


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def test_what_is_written(result, path):
    write_names(result, path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    head, *rows = rows_of(path)
    assert head == ["topic", "name", "size", "terms", "example_1", "example_2", "example_3"]
    assert [int(row[0]) for row in rows] == list(range(6))
    assert [int(row[2]) for row in rows] == [topic.size for topic in result.topics]
    assert rows[0][1] == "'=1+1"
    cells = [cell for row in rows for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert not any("\n" in cell for cell in cells)


def test_what_is_not_edited_is_no_change(result, path):
    write_names(result, path)
    assert read_names(path, result) == {}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_what_spreadsheets_do(result, path, delimiter, encoding, ending):
    write_names(result, path)
    rows = rows_of(path)[1:]
    rows[1][1], rows[4][1], rows[5][1] = 'Élections, 2024; "quoted"', "'-minus", "  two\n words "
    del rows[3], rows[0]
    order = [6, 2, 1, 0]  # an example, the size, the name, the topic
    table = [[*(row[i] for i in order), "mine"] for row in reversed(rows)]
    table[0][3] = f"{table[0][3]}.0"
    table[1][3] = f"{table[1][3]},00"
    names = ["Example_3", " SIZE", "Name ", "TOPIC", "notes"]
    out = io.StringIO(newline="")
    # Python quotes a line feed only where one ends the lines; spreadsheets always do.
    quoting = csv.QUOTE_ALL if ending == "\r" else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, lineterminator=ending, quoting=quoting)
    writer.writerows([names, *table, [""] * 5, []])
    path.write_bytes(out.getvalue().encode(encoding))
    expected = {5: "two words", 4: "-minus", 1: 'Élections, 2024; "quoted"'}
    assert read_names(path, result) == expected
    named = rename(result, expected)
    assert read_names(path, named) == {}


def test_topics_csv_may_be_edited_too(result, tmp_path):
    from embedtopics.topics import export

    export(result, tmp_path / "topics.csv", what="topics")
    assert read_names(tmp_path / "topics.csv", result) == {}


def test_an_own_apostrophe_stays(result, path):
    named = rename(result, {1: "'=x", 2: "'90s", 3: "+1"})
    write_names(named, path)
    assert [row[1] for row in rows_of(path)[2:5]] == ["'=x", "'90s", "'+1"]
    assert read_names(path, named) == {}
    assert read_names(path, result) == {1: "=x", 2: "'90s", 3: "+1"}


WRONG = {
    "names_from": ["", "\n \n", "topic,title\n1,a\n", "name\na\n", "topic,name,Name\n1,a,b\n"],
    "topic": [
        "topic,label\n1,a\nx,b\n",
        "topic,label\n1.5,a\n",
        "topic,label\n,a\n",
        "topic,label\n\n1,a\n2,b\n1,c\n",
        "topic,label\n6,a\n",
        "topic,label\n-2,a\n",
        "topic;label\n1.000;x\n",
    ],
    "name": ["topic,name\n1,\n", "topic,label\n1\n"],
    "size": ["topic,label,size\n1,a,9999\n"],
}


@pytest.mark.parametrize(("parameter", "content"), each(**WRONG))
def test_bad_files(result, path, content, parameter):
    path.write_text(content)
    with refuses(parameter) as raised:
        read_names(path, result)
    assert str(path) in str(raised.value)


def test_other_bytes_no_file_and_a_folder(result, path, tmp_path):
    path.write_bytes("topic,label\n1,a\n2,Été\n".encode("latin-1"))
    for place in (path, tmp_path / "none.csv", tmp_path):
        with refuses("names_from") as raised:
            read_names(place, result)
        assert str(place) in str(raised.value)


@pytest.mark.parametrize(
    ("number", "size"),
    [
        *((1234, size) for size in ("1,234", "1234.0", "1234,00", " 1234 ", "")),
        *((2000, size) for size in ("2,000", "2.000", "2000", "2000,0", "2.000,00", "2 000")),
    ],
)
def test_a_size_may_be_spelt_otherwise(path, number, size):
    result = make_result()
    big = dataclasses.replace(result.topics[0], size=number)
    result = dataclasses.replace(result, topics=(big, *result.topics[1:]))
    path.write_text(f'topic;label;size\n0;x;"{size}"\n')
    assert read_names(path, result) == {0: "x"}
