"""Results that older versions saved, kept beside this file, are read as they were."""

import hashlib
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
from embedtopics.topics import assign, at_resolution, extend, load_result, save_result
from embedtopics.topics._storage import FORMAT, KIND, write_arrays
from embedtopics.topics.results import Edit
from tests.factories import refuses, saved_arrays

SAVED = Path(__file__).parent / "saved"
FORMATS = [f"format_{number}" for number in range(1, FORMAT + 1)]
GROWN = SAVED / "format_3_grown"
FILES = ["arrays.arrow", "embeddings.npy", "result.json", "rows.parquet", "words.json"]


def test_there_is_a_sample_of_each_format():
    found = {
        path.name: json.loads((path / "manifest.json").read_text("utf-8"))["version"]
        for path in SAVED.iterdir()
        if path != GROWN
    }
    assert found == {name: number for number, name in enumerate(FORMATS, 1)}


@pytest.mark.parametrize("name", FORMATS)
def test_what_all_formats_hold(name):
    result = load_result(SAVED / name)
    corpus, documents = result.corpus, result.documents
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
    assert result.graph.method == "exact" and result.graph.recall == 1.0
    assert result.coordinates.shape == (60, 5) and result.coordinates.dtype == np.float32
    assert result.tokens.words[:4] == ("0", "1", "10", "11") and len(result.tokens.ids) == 480
    counts = result.term_counts
    assert counts.terms[5] == "apple orchard" and counts.counts.sum() == 494
    assert counts.counts.dtype == np.int32 and counts.lengths.dtype == np.int8
    assert result.settings["languages"] == ["en"] and result.settings["seed"] == 3
    assert result.versions["embedtopics"] == "0.1.0"
    assert result.decisions[0].message == "1 of 62 rows hold no text; they stay, in no topic."
    fruit = next(topic for topic in result.topics if topic.keywords[0] == "fruit")
    assert fruit.keywords[:3] == ("fruit", "blossom", "juice") and fruit.size == 25
    assert fruit.representatives == (9,) and fruit.is_seeded is False


def test_format_1_knew_no_hierarchy_and_no_reasons():
    result = load_result(SAVED / "format_1")
    assert [topic.size for topic in result.topics] == [25, 20, 16]
    assert result.topics[0].label == "fruit, blossom, juice"
    assert result.topics[0].persistence == pytest.approx(0.7386041120247111)
    np.testing.assert_allclose(result.map[0], [-5.146507, 2.8594887], rtol=1e-6)
    np.testing.assert_array_equal(result.memberships.sum(axis=1), 1.0)
    assert result.tree is None and result.stability is None and result.clustering.reasons is None
    assert np.isnan(result.peak_memory) and result.history == ()
    with refuses("result"):
        at_resolution(result, 2)


def test_format_2_had_an_edit_as_a_sentence():
    result = load_result(SAVED / "format_2")
    assert [topic.size for topic in result.topics] == [25, 20]
    np.testing.assert_allclose(result.map[0], [-6.280098, 2.053374], rtol=1e-6)
    assert result.history == (Edit("note", message="read at n_topics=2, coverage=auto: 2 topics"),)
    assert np.bincount(result.reasons).tolist() == [45, 0, 16, 0, 1]
    assert result.peak_memory == 445935616.0
    np.testing.assert_allclose(result.tree.distances[:2], [0.69206858, 0.70430815], rtol=1e-7)
    assert at_resolution(result, 3).n_topics == 3


def test_format_3_knows_what_was_asked_for_and_what_edits_did():
    result = load_result(SAVED / "format_3")
    assert [(t.label, t.size, t.is_named) for t in result.topics] == [
        ("train, ticket, station", 36, False), ("Garden & kitchen", 25, True),
    ]  # fmt: skip
    merged, renamed, reworded = result.history
    assert (merged.name, merged.parameters) == ("merge", {"topics": [[1, 2]]})
    assert merged.new_ids == (1, 0, 0) and [mark.topic_id for mark in merged.marks] == [1, 2]
    assert merged.marks[1].label == "court, sentence, appeal"
    assert merged.marks[1].documents[0] == "3822b5b9b2fb5806aff9b5c2aaf92968"
    assert renamed.parameters == {"labels": {"1": "Garden & kitchen"}}
    assert reworded.parameters == {"extra_stop_words": ["elsewhere"]}
    settings = result.settings
    assert settings["guidance"] == {
        "kind": "labels", "classes": ["court", "fruit", "train"], "n_labeled": 16, "weight": 0.5,
        "strict": True,
    }  # fmt: skip
    assert settings["weighting"]["bm25"] is True
    assert settings["extra_stop_words"] == ["elsewhere"]
    constraints = result.constraints
    assert constraints.names == ("court", "fruit", "train")
    assert (constraints.tie, constraints.part) == (0.25, 0.5)
    assert not constraints.is_fixed
    assert constraints.cannot_link.shape == (0, 2)
    words = [text.split()[1] for text in result.corpus.document_texts()]
    known = np.flatnonzero(constraints.groups >= 0)
    assert [constraints.names[constraints.groups[d]] for d in known] == [words[d] for d in known]
    assert constraints.probabilities.sum() == len(known) == 16
    assert result.stability.n_replicates == 2 and len(result.stability.recurrence) == 2
    assert result.added is None


def test_format_3_with_documents_that_were_added():
    result = load_result(GROWN)
    assert [topic.size for topic in result.topics] == [37, 26, 12]
    assert result.topics[1].label == "Garden & kitchen" and "boat" in result.topics[2].keywords
    assert [edit.name for edit in result.history[3:]] == ["note"] * 3
    assert len(result.corpus) == 76 and result.settings["n_fitted_rows"] == 62
    (added,) = np.flatnonzero(result.added)
    assert result.corpus.texts[result.documents.first_rows[added]].startswith("The train 99: ")
    assert result.graph.method == "extended" and result.tree.n_documents == 73
    assert len(result.constraints.groups) == 73 and (result.constraints.groups >= 0).sum() == 16
    again = extend(result, ["one more"], embeddings=result.embeddings[[added]]).result
    assert again.added.sum() == 2 and again.labels[-1] == result.labels[-2]
    assert at_resolution(result, 3).n_topics == 3


@pytest.mark.parametrize("name", [*FORMATS, GROWN.name])
def test_an_old_result_answers_and_is_saved_anew(name, tmp_path):
    result = load_result(SAVED / name)
    again = load_result(save_result(result, tmp_path / "new"))
    assert repr(again.topics) == repr(result.topics) and again.history == result.history
    np.testing.assert_array_equal(again.map, result.map)
    found = assign(again, ["a new text"], embeddings=result.embeddings[:1])
    assert found.labels.tolist() == [result.clustering.labels[0]]
    assert et.topics.table(again).equals(et.topics.table(result))
    assert explorer_html(again)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SAVED / "format_3", tmp_path / "saved")


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
        load_result(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"kind": 3}', b"\xff\xfe\x00"])
def test_a_damaged_manifest_is_named(folder, content):
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"manifest\.json"):
        load_result(folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"PAR1PAR1", b"ARROW1\0\0"])
@pytest.mark.parametrize("file", FILES)
def test_a_file_of_other_content_is_named_though_its_checksum_is_right(folder, file, content):
    (folder / file).write_bytes(content)
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=str(folder / file)):
        load_result(folder)


def test_parts_that_do_not_belong_together_are_refused(folder):
    edit_json(folder / "result.json", lambda content: content["topics"][0].pop("size"))
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"result\.json does not fit"):
        load_result(folder)


WRONG = {
    "label": 7, "size": 2.5, "share": "much", "keywords": ["a", 7], "weights": ["a"],
    "representatives": [0.5], "persistence": {}, "is_named": 1, "is_anchor": "no",
    "label_auc": [0.5, 0.5], "keywords_auc": True, "topic_id": True,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_topic_of_wrong_types_is_refused(folder, name):
    edit_json(folder / "result.json", lambda c: c["topics"][0].update({name: WRONG[name]}))
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"result\.json does not fit") as caught:
        load_result(folder)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("result.json", lambda c: c.update(settings=[1])),
        ("result.json", lambda c: c.update(versions={"a": 1})),
        ("result.json", lambda c: c.update(timings={"a": "long"})),
        ("result.json", lambda c: c["graph"].update(method=3)),
        ("result.json", lambda c: c["decisions"][0].update(message=["x"])),
        ("result.json", lambda c: c["corpus"].update(source=None)),
        ("result.json", lambda c: c["corpus"].update(text_column={})),
        ("result.json", lambda c: c.update(history=[{"name": 1, "marks": []}])),
        ("result.json", lambda c: c.update(history=[{"name": "merge", "marks": [{}]}])),
        ("result.json", lambda c: c.update(n_replicates="two")),
        ("words.json", lambda c: c.update(words="".join(w[:1] or "x" for w in c["words"]))),
        ("words.json", lambda c: c["terms"].__setitem__(0, None)),
    ],
)
def test_parts_of_wrong_types_are_refused(folder, file, change):
    edit_json(folder / file, change)
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"does not fit|cannot be read"):
        load_result(folder)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"topics": Infinity}', "[]", "7", "\ud800"])
def test_forged_json_is_refused_in_one_sentence(folder, text):
    (folder / "result.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"result\.json cannot be read"):
        load_result(folder)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CorruptFileError, match="was not saved by embedtopics"):
        load_result(tmp_path)
    with pytest.raises(InputError):
        load_result(tmp_path / "nowhere")
    with pytest.raises(InputError):
        load_result(tmp_path / ("x" * 300))


def test_newer_formats_are_refused_with_a_remedy(folder):
    write_manifest(folder, KIND, FORMAT + 1)
    with pytest.raises(CorruptFileError, match=rf"format {FORMAT + 1}; .* upgrade"):
        load_result(folder)


OUT_OF_RANGE = {
    "graph.indices": 10**9, "counts.indices": 10**8, "memberships.indices": -(10**8),
    "topic_terms.indices": 10**8, "tree.edges": 10**12, "clustering.labels": 10**8,
    "tokens.ids": 10**9, "tokens.offsets": -5, "documents.of_row": 10**9, "counts.indptr": 10**8,
    "documents.first_rows": 10**9, "guide.groups": 10**6,
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_numbers_of_nothing_are_refused_before_compiled_code_believes_them(folder, name):
    arrays = saved_arrays(folder / "arrays.arrow")
    arrays[name].ravel()[len(arrays[name]) // 2] = OUT_OF_RANGE[name]
    write_arrays(folder / "arrays.arrow", arrays)
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"does not fit"):
        load_result(folder)


@pytest.mark.parametrize("name", ["embeddings", "map", "coordinates", "clustering.strengths"])
def test_arrays_of_fewer_documents_are_refused(folder, name):
    if name == "embeddings":
        np.save(folder / "embeddings.npy", np.load(folder / "embeddings.npy")[:-1])
    else:
        arrays = saved_arrays(folder / "arrays.arrow")
        write_arrays(folder / "arrays.arrow", {**arrays, name: arrays[name][:-1]})
    write_manifest(folder, KIND, FORMAT)
    with pytest.raises(CorruptFileError, match=r"does not fit"):
        load_result(folder)


def edit_json(path, change):
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/../../b", "C:\\x", "a\\b"])
def test_a_manifest_that_lists_files_elsewhere_is_refused(folder, tmp_path, name):
    (tmp_path / "outside").write_bytes(b"")
    listed = {name: {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}}
    edit_json(folder / "manifest.json", lambda manifest: manifest["files"].update(listed))
    with pytest.raises(CorruptFileError, match=r"manifest\.json is damaged .* not below it"):
        load_result(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_file_without_a_checksum_is_not_read(folder, file):
    edit_json(folder / "manifest.json", lambda manifest: manifest["files"].pop(file))
    with pytest.raises(CorruptFileError, match=f"does not list {file}"):
        load_result(folder)
