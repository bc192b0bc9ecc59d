"""Commands that change a folder of results: edit, recluster and extend."""

import csv
import io
import shutil

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.cli._display import write_results_folder
from embedtopics.topics import extend, merge, remove, rename, with_stability
from tests.cli.running import refused, run
from tests.factories import contents


@pytest.fixture(scope="module")
def written(branched, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "results"
    write_results_folder(branched, folder)
    return folder


@pytest.fixture
def results(written, tmp_path):
    return shutil.copytree(written, tmp_path / "results")


def name_rows(folder):
    text = (folder / "names.csv").read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def write_rows(folder, rows, delimiter=";"):
    with (folder / "names.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows(rows)


def test_names_are_read_back_into_everything(results):
    rows = [[*row, "my notes"] for row in name_rows(results)]
    rows[3][1], rows[1][1] = "Élections", "'=Sum"
    write_rows(results, [rows[0], *rows[:0:-1]])
    mine = (results / "names.csv").read_bytes()
    done = run("edit", results, "--names-from", results / "names.csv")
    assert done.exit_code == 0, done.output
    assert "renamed 0 '=Sum', 2 'Élections'" in done.stdout
    assert "no topic id has changed" in done.stdout
    result = et.TopicResult.load(results / "model")
    assert result.topics[2].name == "Élections" and result.topics[0].name == "=Sum"
    assert [topic.is_named for topic in result.topics[:4]] == [True, False, True, False]
    assert (results / "names.csv").read_bytes() == mine
    assert "Élections" in (results / "report.html").read_text("utf-8")
    table = pd.read_csv(results / "topics.csv")
    assert table["name"][2] == "Élections" and table["name"][0] == "'=Sum"
    found = pd.read_parquet(results / "documents.parquet")
    assert set(found.loc[found["topic"] == 2, "topic_name"]) == {"Élections"}
    # A second time there is nothing to do, and nothing is written.
    before = contents(results)
    again = run("edit", results, "--names-from", results / "names.csv")
    assert again.exit_code == 0 and "no name" in again.stdout
    assert contents(results) == before


def test_a_new_name_changes_no_id_and_a_merge_says_which(results):
    renamed = run("edit", results, "--rename", "4=Four")
    assert "no topic id has changed" in renamed.stdout

    merged = run("edit", results, "--merge", "1,2")
    result = et.TopicResult.load(results / "model")
    new_ids = result.history[-1].new_ids
    changed = [f"{old} is {new}" for old, new in enumerate(new_ids) if old != new]
    assert f"topic ids have changed: {', '.join(changed)}" in " ".join(merged.stdout.split())


def test_names_of_a_copy_or_a_folder_of_before_are_read(results, tmp_path):
    copy = tmp_path / "labels.csv"
    with copy.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["topic", "label"], ["1", "First"]])

    done = run("edit", results, "--names-from", copy, "--rename", "2=Second")
    assert done.exit_code == 0, done.output
    topics = et.TopicResult.load(results / "model").topics
    assert (topics[1].name, topics[2].name) == ("First", "Second")
    assert name_rows(results)[2][:2] == ["1", "First"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["40", "x"]], "got '40' in line 2"),
        ([["1", ""]], "got '' in line 2"),
        ([["one", "x"]], "got 'one' in line 2"),
        ([["1", "x"], ["2", "x"]], "'x' for 1 and 2"),
    ],
)
def test_bad_names_leave_the_folder_whole(results, rows, message):
    write_rows(results, [["topic", "name"], *rows])
    before = contents(results)
    assert message in refused("edit", results, "--names-from", results / "names.csv")
    assert contents(results) == before


def test_names_that_were_not_read_are_not_lost(results, tmp_path):
    write_rows(results, [["topic", "name"], ["1", "Work of hours"]])
    before = contents(results)
    for command in (("edit", results, "--remove", 1), ("recluster", results, "coarse")):
        assert "names.csv has edits that were not applied" in refused(*command)
    assert contents(results) == before
    assert run("edit", results, "--remove", 1, "--out", tmp_path / "new").exit_code == 0
    assert run("edit", results, "--names-from", results / "names.csv").exit_code == 0
    assert run("edit", results, "--remove", 2).exit_code == 0
    assert "Work of hours" in {t.name for t in et.TopicResult.load(results / "model").topics}


def test_all_edits_in_order_by_the_ids_of_before(results, branched):
    done = run(
        "edit", results, "--rename", "4=Merged", "--remove", "2,9", "--merge", "3,4",
        "--merge", "7,8", "--reduce-outliers", "terms",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    result = et.TopicResult.load(results / "model")
    names = [edit.name for edit in result.history]
    assert names == ["merge", "rename", "remove", "reduce_outliers"]
    assert result.n_topics == 8
    first = merge(branched, [[3, 4], [7, 8]])
    ids = first.history[-1].new_ids
    second = remove(rename(first, {ids[4]: "Merged"}), [ids[2], ids[9]])
    assert second.history[-1].message == result.history[2].message
    assert f"renamed {ids[4]} 'Merged'" in done.stdout
    assert "Merged" in {topic.name for topic in result.topics}
    assert "topic ids have changed: " in done.stdout and "removed: 2, 9" in done.stdout
    assert max(map(len, done.stdout.split("merged 3")[0].splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no edit was given"),
        (("--merge", "a,b"), "--merge takes ids"),
        (("--merge", "1,99"), "got 99"),
        (("--remove", "x"), "--remove takes ids"),
        (("--rename", "2"), "--rename takes an id and a name"),
        (("--rename", "2=a", "--rename", "2=b"), "a topic two names"),
    ],
)
def test_bad_edits_leave_the_folder_whole(results, options, message):
    before = contents(results)
    assert message in refused("edit", results, *options)
    assert contents(results) == before


def test_names_that_change_nothing_do_not_bar_the_way(results):
    write_rows(results, [[*row, "my notes"] for row in name_rows(results)])
    mine = (results / "names.csv").read_bytes()
    assert "has edits" in refused("edit", results, "--remove", 1)
    done = run("edit", results, "--names-from", results / "names.csv")
    assert done.exit_code == 0 and "no name" in done.stdout
    assert (results / "names.csv").read_bytes() == mine
    assert et.TopicResult.load(results / "model").history == ()
    assert run("edit", results, "--remove", 1).exit_code == 0


def test_what_is_no_folder_of_results(tmp_path, results):
    (tmp_path / "a.csv").write_text("text\nhello there\n")
    for folder in (tmp_path, tmp_path / "none"):
        message = refused("edit", folder, "--remove", 1)
        assert "expected a folder that embedtopics topics" in message
    out = ("--out", tmp_path / "o")
    assert "embedtopics recluster" in refused("topics", results, *out)
    assert "expected a folder" in refused("recluster", tmp_path / "a.csv", "fine", *out)
    assert "must be" in refused("recluster", results, "medium")
    assert "must be at most" in refused("recluster", results, 400)


@pytest.mark.parametrize(("asked", "n_topics"), [("4", 4), ("auto", 12)])
def test_another_number_of_topics(results, asked, n_topics, tmp_path):
    run("edit", results, "--merge", "1,2", "--rename", "5=Five")
    before = contents(results)
    done = run("recluster", results, asked, "--out", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert contents(results) == before
    result = et.TopicResult.load(tmp_path / "new" / "model")
    assert result.n_topics == n_topics and result.stability is None
    assert "earlier edits (merge, rename)" in done.stdout
    assert f"{n_topics} topics cover" in done.stdout
    again = ("recluster", results, asked)
    assert "--overwrite" in refused(*again) and contents(results) == before
    assert run(*again, "--overwrite").exit_code == 0
    assert et.TopicResult.load(results / "model").n_topics == n_topics


def test_stability_is_measured_as_before(branched, tmp_path):
    write_results_folder(with_stability(branched, 2), tmp_path / "results")
    assert run("recluster", tmp_path / "results", 4).exit_code == 0
    assert et.TopicResult.load(tmp_path / "results" / "model").stability.n_replicates == 2


FARM = "cow barn milk meadow hay tractor plough fence calf wheat stable pig".split()
SKY = "star comet orbit moon telescope galaxy planet nova eclipse dust lens ring".split()
SHIP = "anchor harbour mast sail keel rudder".split()


def texts_of(words, count, seed, name=""):
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(words, 5))} {name}{i}" for i in range(count)]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    frame = pd.DataFrame({
        "body": [*texts_of(FARM, 60, 0), *texts_of(SKY, 40, 1)],
        "when": "2024-01-01", "paper": ["a", "b"] * 50,
    })  # fmt: skip
    corpus = et.Corpus(frame, text="body", time="when", group="paper")
    model = et.TopicModel("lsa", languages=["en"], random_state=1, n_topics=2)
    folder = tmp_path_factory.mktemp("written") / "results"
    write_results_folder(rename(model.fit(corpus).result_, {0: "Farms"}), folder)
    return folder


def test_documents_are_added_twice_and_the_columns_found(grown, tmp_path):
    results = shutil.copytree(grown, tmp_path / "results")
    before = et.TopicResult.load(results / "model")
    for number, seed in enumerate((2, 3), 1):
        file = tmp_path / "new.csv"
        body = [*texts_of(FARM, 5, seed, f"n{seed}"), before.corpus.texts[0]]
        other = ["=1+1 <b>" * 9] * 6
        pd.DataFrame({"other": other, "paper": "c", "when": "2025-02-03", "body": body}).to_csv(
            file, index=False
        )
        expected = extend(
            et.TopicResult.load(results / "model"),
            et.Corpus(file, text="body", time="when", group="paper"),
        )
        done = run("extend", results, file)
        assert done.exit_code == 0, done.output
        assert expected.summary() in done.stdout and "Farms" in done.stdout
        after = et.TopicResult.load(results / "model")
        assert len(after.corpus) == 100 + 6 * number
        np.testing.assert_array_equal(after.labels, expected.result.labels)
        np.testing.assert_array_equal(after.labels[:100], before.labels)
        assert after.corpus.time.iloc[-1] == pd.Timestamp("2025-02-03")
        assert after.corpus.group.iloc[-1] == "c"
    assert (results / "report.html").is_file()


def test_a_new_subject_is_told_and_adopted(grown, tmp_path):
    file = tmp_path / "ships.txt"
    file.write_text("\n".join(texts_of([*SHIP, "cow", "star"], 40, 4)), "utf-8")
    before = et.TopicResult.load(grown / "model")
    expected = extend(before, et.Corpus(file))
    out = tmp_path / "out"
    done = run("extend", grown, file, "--out", out)
    assert done.exit_code == 0, done.output
    assert expected.is_alarming and len(expected.candidates) == 1
    assert expected.summary() in done.stdout and "more than chance explains" in done.stdout
    size = expected.candidates["size"].iloc[0]
    assert f"{size} texts: " in done.stdout and "--adopt makes topics" in done.stdout
    assert et.TopicResult.load(grown / "model").labels.shape == (100,)  # stays as it was
    done = run("extend", grown, file, "--out", tmp_path / "more", "--adopt")
    assert done.exit_code == 0, done.output
    assert "--adopt makes topics" not in done.stdout
    after = et.TopicResult.load(tmp_path / "more" / "model")
    assert after.n_topics == 3


def test_what_is_refused_with_one_line(grown, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("body,when\na cow,2024-01-01\n", "utf-8")
    for arguments, message in (
        ((tmp_path / "nowhere", file), "expected a folder that embedtopics topics"),
        ((grown, tmp_path / "nowhere.csv"), "no such file"),
        ((grown, file, "--text", "foo"), "got 'foo'"),
        ((grown, file, "--encoder", "tfidf"), "--encoder must be the encoder of the fit"),
        ((grown, file, "--out", file), "is a file"),
    ):
        assert message in refused("extend", *arguments)


def test_verify_says_what_comes_out_again(results, branches, tmp_path):
    done = run("verify", results)
    assert done.exit_code == 0, done.output
    assert "The study comes out again." in done.stdout
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert lines["topics"][1:3] == ["same", "bits"] and lines["topics"][-1] == "0"
    (results / "topics.csv").write_text("edited")
    (tmp_path / "texts.txt").write_text("\n".join([*branches[0][1:], branches[0][0]]))
    done = run("verify", results, "--corpus", tmp_path / "texts.txt")
    assert done.exit_code == 1 and "Different: texts, files." in done.stdout
    assert "changed after the study was written: topics.csv" in " ".join(done.stdout.split())
    assert "no such file" in refused("verify", results, "--corpus", tmp_path / "none.txt")
