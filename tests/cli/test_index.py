"""``embedtopics index``: what it builds, changes and tells, and what it refuses."""

import shutil

import pandas as pd
import pytest

import embedtopics as et
from tests import factories
from tests.cli.running import build, refused, rows, run


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("index"))


@pytest.fixture
def index(built, tmp_path):
    """A copy of the index that a test may change."""
    return shutil.copytree(built[0], tmp_path / "articles.index")


def table(folder, query="river hospital late", **options):
    """Everything that a search finds."""
    return et.SearchIndex.load(folder).search(query, 50, **options).to_frame()


def contents(folder):
    """All files but those that SQLite keeps beside its own."""
    return {
        name: content
        for name, content in factories.contents(folder).items()
        if not name.endswith(("-wal", "-shm"))
    }


def same(left, right):
    """Whether two indexes hold the same documents, and find the same, to the last bit."""
    pd.testing.assert_frame_equal(table(left), table(right))
    assert et.SearchIndex.load(left).columns == et.SearchIndex.load(right).columns
    assert len(et.SearchIndex.load(left)) == len(et.SearchIndex.load(right))


def test_builds_what_the_function_builds(built, tmp_path):
    folder, file = built
    corpus = et.Corpus(file, text="body", id="id", time="date")
    et.SearchIndex.build(corpus, tmp_path / "own.index", encoder="random")
    same(folder, tmp_path / "own.index")
    kinds = {"date": "date", "source": "text", "words": "integer"}
    assert et.SearchIndex.load(folder).columns == kinds


def test_options_reach_the_function(built, tmp_path):
    _, file = built
    out = tmp_path / "deep" / "other.index"
    done = run("index", "build", file, "--text", "body", "--encoder", "random", "--out", out,
               "--words", "lemmas, social")  # fmt: skip
    assert done.exit_code == 0, done.output
    settings = et.SearchIndex.load(out).settings
    words = settings["lexical"]["words"]
    assert words["social"] == "kept" and words["lemmas"] == ["en"]
    assert "9 documents, 9 passages, flat, random" in done.stdout
    assert "1 of 9 documents have no text" in " ".join(done.stderr.split())


def test_adds_updates_removes_and_compacts_as_the_functions_do(index, built, tmp_path):
    own = et.SearchIndex.load(shutil.copytree(index, tmp_path / "own.index"))
    more = rows().assign(id=[f"n{n}" for n in range(9)], body="Storks nest on the chimney.")
    more.iloc[:2].to_csv(tmp_path / "more.csv", index=False)
    changed = rows().iloc[:3].assign(body="The river is calm.", words=7)
    changed.to_csv(tmp_path / "changed.csv", index=False)

    def corpus(name):
        return et.Corpus(tmp_path / name, text="body", id="id", time="date")

    done = run("index", "add", index, tmp_path / "more.csv", "--text", "body", "--id", "id")
    assert done.exit_code == 0 and "added: 2 documents; now 11 documents" in done.stdout
    own.add(corpus("more.csv"))
    same(index, own.folder)

    again = ("index", "add", index, tmp_path / "changed.csv", "--id", "id")
    assert "'d1'" in (line := refused(*again)) and "--update" in line
    done = run(*again, "--update")
    assert "added: 3 documents (3 replaced an older version); now 11" in done.stdout
    own.add(corpus("changed.csv"), update=True)
    same(index, own.folder)

    done = run("index", "remove", index, "n1", "d4", "d5")
    assert done.exit_code == 0 and "removed: 3 documents; now 8 documents" in done.stdout
    own.remove(["n1", "d4", "d5"])
    same(index, own.folder)
    assert not set(table(index)["id"]) & {"n1", "d4", "d5"}

    before = table(index)
    assert "compacted: 8 documents, 8 passages" in run("index", "compact", index).stdout
    assert len(list((index / "segments").iterdir())) == 1
    pd.testing.assert_frame_equal(table(index), before)
    assert "already compact: 8 documents" in run("index", "compact", index).stdout


def test_additions_must_name_what_the_index_was_built_from(index, tmp_path):
    new = rows().iloc[:1].assign(id="n1")
    new.to_csv(tmp_path / "new.csv", index=False)
    before = contents(index)
    line = refused("index", "add", index, tmp_path / "new.csv")
    assert "--id" in line
    misleading = pd.DataFrame({"id": ["n1"], "source": ["A long text of a newspaper, in a column"]})
    misleading.to_csv(tmp_path / "odd.csv", index=False)
    line = refused("index", "add", index, tmp_path / "odd.csv", "--id", "id")
    assert "'source'" in line and "text" in line
    assert contents(index) == before


def test_info_says_what_an_index_holds(index):
    done = run("index", "info", index)
    assert done.exit_code == 0
    first, second, *rest = done.stdout.splitlines()
    assert first.startswith("9 documents, 9 passages, flat, random") and str(index) in first
    assert second == "columns: date (date), source (text), words (integer)"
    measured = et.SearchIndex.load(index).measured[0]["measured"]
    assert f"{measured['recall']:.3f}" in rest[1] and len(rest) == 2
    assert max(map(len, rest)) <= 80


def test_topics_are_attached_to_their_documents(index, tmp_path):
    result = factories.make_result(60, 3)
    result.save(tmp_path / "model")
    assert "other ids" in refused("index", "attach-topics", index, tmp_path / "model")
    corpus, labels = result.corpus, result.by_row(result.clustering.labels, -1)
    frame = pd.DataFrame({"id": corpus.ids, "body": corpus.texts}).iloc[:40]
    frame.to_csv(tmp_path / "known.csv", index=False)
    done = run("index", "add", index, tmp_path / "known.csv", "--text", "body", "--id", "id")
    assert done.exit_code == 0, done.output
    done = run("index", "attach-topics", index, tmp_path / "model")
    assert done.exit_code == 0, done.output
    n_known = sum(bool(text.strip()) for text in frame["body"])
    assert f"attached: topics to {n_known} of 49 documents" in done.stdout
    topic = int(labels[0])
    own = et.SearchIndex.load(index).search(
        corpus.texts[0], 49, mode="dense", where=f"topic == {topic}"
    )
    assert {hit.id for hit in own} == {
        id for id, label in zip(corpus.ids[:40], labels[:40], strict=True) if label == topic
    }
    done = run("search", index, corpus.texts[0], "--mode", "dense", "--where", f"topic == {topic}",
               "-k", 49)  # fmt: skip
    assert done.stdout.count(f"  topic {topic}\n") == len(own)
    assert "expected a saved folder" in refused(
        "index", "attach-topics", index, tmp_path / "nothing"
    )


def test_check_names_the_damaged_file(index):
    done = run("index", "check", index)
    assert done.exit_code == 0 and done.stdout.startswith("no damage: 9 documents")
    (index / "segments" / "000007").mkdir()
    done = run("index", "check", index)
    assert done.exit_code == 0 and "note: " in done.stdout and "000007" in done.stdout
    path = index / "segments" / "000001" / "passages.npz"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    done = run("index", "check", index)
    assert done.exit_code == 1 and f"damaged: {path}: its checksum" in done.stdout, done.output
    path.write_bytes(content)
    (index / "catalog.sqlite").write_bytes(b"not a catalogue" * 100)
    done = run("index", "check", index)
    assert done.exit_code == 1 and "damaged: " in done.stdout and "catalog.sqlite" in done.stdout


def test_bad_input(index, built, tmp_path):
    _, file = built
    new = ("--out", tmp_path / "new.index", "--encoder", "random")
    assert "no.csv" in refused("index", "build", tmp_path / "no.csv", *new)
    assert "'nope'" in refused("index", "build", file, "--text", "nope", *new)
    assert "words must be" in refused("index", "build", file, *new, "--words", "stems")
    for learnt in ("lsa", "tfidf", "fasttext"):
        line = refused("index", "build", file, "--out", tmp_path / "new.index", "--encoder", learnt)
        assert f"{learnt} is fitted to the texts" in line
    refused("index", "build", file, "--out", tmp_path / "new.index", "--encoder", tmp_path / "no")
    assert "--overwrite" in refused("index", "build", file, "--encoder", "random", "--out", index)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    line = refused("index", "build", file, "--encoder", "random", "--overwrite", "--out", mine)
    assert "holds other files" in line and (mine / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "new.index").exists()
    nothing = tmp_path / "nothing.index"
    for command in (
        ("add", nothing, file), ("remove", nothing, "d1"), ("compact", nothing), ("check", nothing),
        ("info", nothing), ("attach-topics", nothing, mine),
    ):  # fmt: skip
        assert "nothing.index" in refused("index", *command), command
    assert "'zz'" in refused("index", "remove", index, "d1", "zz")
    line = refused("index", "add", index, file, "--id", "id", "--encoder", "all-MiniLM-L6-v2")
    assert "the encoder of the index" in line
