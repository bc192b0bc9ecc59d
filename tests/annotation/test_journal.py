"""The journal of a study: what is confirmed stays, damage is named, foreign files stay."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

from embedtopics import AnnotationProject
from embedtopics.annotation._journal import Journal, read_journal
from embedtopics.errors import CorruptFileError, InputError
from tests.annotation.conftest import NAMES, code
from tests.factories import refuses

HEADER = {
    "kind": "embedtopics annotation", "version": 1, "labels_kind": "single", "pairs": False,
    "labels": [{"name": "a", "key": "1", "definition": "", "examples": []},
               {"name": "b", "key": "2", "definition": "", "examples": []}],
    "design": {"teach": 0.5, "n_test": 0, "overlap": 0.0, "random_state": 0},
    "test": [], "n_texts": 2,
}  # fmt: skip


def answer(label="a", **changes):
    fields = {"text": "k", "id": "0", "by": "ann", "stream": "count", "n_texts": 2}
    return {**fields, "labels": [label], "unsure": False, "note": "", **changes}


@pytest.fixture
def path(tmp_path):
    """The file of a closed journal: a codebook and five answers."""
    journal = Journal(tmp_path / "study")
    journal.add("study", **HEADER)
    for n in range(5):
        journal.add("answer", **answer(note=f"note {n}"))
    journal.close()
    return tmp_path / "study" / "journal.sqlite"


def reopened(path):
    """Return the events, by a journal and by a reader, which must agree."""
    journal = Journal(path.parent)
    journal.close()
    assert read_journal(path.parent) == journal.events
    return journal.events


def check_refused(path, reason, error=CorruptFileError):
    """Whoever opens a file refuses it, gives the reason and does not change it."""
    content = path.read_bytes()
    for opened in (Journal, read_journal):
        with pytest.raises(error, match=reason):
            opened(path.parent)
    assert path.read_bytes() == content
    assert sorted(one.name for one in path.parent.iterdir()) == [path.name]


# What is confirmed stays.


KILLED = f"""
import sys
from pathlib import Path
from embedtopics.annotation._journal import Journal
journal = Journal(Path(sys.argv[1]))
if not journal.events:
    journal.add("study", **{HEADER!r})
print("ready", flush=True)
answer = {answer(note="x" * 300)!r}
while True:
    print(journal.add("answer", **answer).n, flush=True)
"""


@pytest.mark.parametrize("n_kills", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_kills_lose_no_event_that_was_confirmed(tmp_path, n_kills):
    confirmed = 0
    for round in range(n_kills):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, tmp_path / "study"], stdout=subprocess.PIPE
        )
        lines = [process.stdout.readline() for _ in range(2 + round % 7)]
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
        process.wait()
        process.stdout.close()
        numbers = [int(line) for line in lines if line.strip().isdigit() and line.endswith(b"\n")]
        confirmed = max(confirmed, *numbers)

        journal = Journal(tmp_path / "study")
        journal.close()
        assert [event.n for event in journal.events] == list(range(len(journal.events)))
        assert len(journal.events) > confirmed


def test_a_kill_before_the_first_event_leaves_a_new_study(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / ".journal.sqlite.new").write_bytes(b"SQLite format 3\0 cut short")
    (folder / ".journal.sqlite.new-journal").write_bytes(b"")
    journal = Journal(folder)
    journal.add("study", **HEADER)
    journal.close()
    assert len(read_journal(folder)) == 1
    assert [path.name for path in folder.iterdir()] == ["journal.sqlite"]


def test_an_interrupted_write_is_undone_when_the_study_is_opened(begin, truth, tmp_path):
    study = begin()
    code(study, truth, 3)
    study.close()
    path = tmp_path / "study" / "journal.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # so that a part is on disk before the end
    connection.execute("BEGIN IMMEDIATE")
    for n in range(4, 300):
        connection.execute("INSERT INTO events VALUES (?, ?, ?)", (n, "x" * 2000, ""))
    shutil.copytree(path.parent, tmp_path / "killed")
    connection.execute("ROLLBACK")
    connection.close()
    assert (tmp_path / "killed" / "journal.sqlite-journal").stat().st_size > 0

    mine = begin(folder="mine")
    with pytest.raises(InputError, match="open that study once"):
        mine.merge(tmp_path / "killed")
    again = begin(codebook=None, folder="killed")
    assert len(again.to_frame()) == 3
    assert mine.merge(tmp_path / "killed") == 3


def test_a_copy_of_an_open_journal_is_complete(path, tmp_path):
    journal = Journal(path.parent)
    journal.add("answer", **answer(note="the last"))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    assert read_journal(tmp_path / "copy") == journal.events == read_journal(path.parent)
    journal.close()


def test_digests_chain_the_events(path):
    connection = sqlite3.connect(path)
    digest = ""
    for n, text, recorded in connection.execute("SELECT n, event, digest FROM events ORDER BY n"):
        digest = sha256(f"{digest}\n{text}".encode()).hexdigest()
        assert recorded == digest and json.loads(text)["n"] == n
    assert connection.execute("SELECT * FROM head").fetchall() == [(0, 6, digest)]
    connection.close()


def test_a_closed_journal_takes_no_events(path):
    journal = Journal(path.parent)
    journal.close()
    with pytest.raises(InputError, match="was closed"):
        journal.add("answer", **answer())


# Damage.


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE events SET event = replace(event, 'note 2', 'note 7')", "event 3 was changed"),
        ("UPDATE events SET event = replace(event, '\"a\"', '\"b\"') WHERE n = 4", "event 4"),
        ("UPDATE events SET event = replace(event, '+00:00', '+01:00') WHERE n = 1", "event 1"),
        ("UPDATE events SET event = CAST(x'FF' AS TEXT) WHERE n = 2", "event 2"),
        ("UPDATE events SET event = x'00' WHERE n = 2", "event 2"),
        ("UPDATE events SET event = 5 WHERE n = 2", "event 2"),
        ("UPDATE events SET digest = '' WHERE n = 5", "event 5"),
        ("DELETE FROM events WHERE n = 3", "event 3 is missing"),
        ("DELETE FROM events WHERE n = 0", "event 0 is missing"),
        ("DELETE FROM events WHERE n = 5", "5 events in place of 6"),
        ("DELETE FROM events", "0 events in place of 6"),
        ("UPDATE events SET n = 7 WHERE n = 5", "event 5 is missing"),
        ("INSERT INTO events SELECT 6, event, digest FROM events WHERE n = 5", "event 6"),
        ("UPDATE head SET digest = ''", "6 events"),
        ("UPDATE head SET n_events = 5", "in place of 5"),
        ("DELETE FROM head", "6 events in place of other"),
        ("INSERT INTO head SELECT 1, n_events, digest FROM head", "in place of other"),
    ],
)
def test_changed_and_missing_events_are_named(path, statement, reason):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    check_refused(path, reason)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON events (digest)",
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "ALTER TABLE events ADD COLUMN more",
        "ALTER TABLE events RENAME TO answers",
        "DROP TABLE head",
        "DROP TABLE head; CREATE VIEW head AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT 1 "
        "FROM c) SELECT i AS id, i AS n_events, '' AS digest FROM c",
    ],
)
def test_a_crafted_schema_is_refused(path, statement):
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.close()
    check_refused(path, "other tables")


def test_a_flipped_byte_anywhere_is_refused_or_without_effect(path):
    content = path.read_bytes()
    events = reopened(path)
    n_refused = 0
    for place in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 0x20
        path.write_bytes(damaged)
        try:
            assert reopened(path) == events
        except (CorruptFileError, InputError):
            n_refused += 1
        path.write_bytes(content)
    assert n_refused > 5


@pytest.mark.parametrize("share", [0.0, 0.01, 0.4, 0.9])
def test_a_shortened_file_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    check_refused(path, "not the journal of a study|is damaged")


def test_a_newer_format_is_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    check_refused(path, "format 3.*upgrade")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("answer", answer(labels=["c"])),
        ("answer", answer(labels=[])),
        ("answer", answer(labels=["a", "b"])),
        ("answer", answer(spans=[["c", 0, 1]])),
        ("study", HEADER),
    ],
)
def test_events_that_do_not_fit_the_codebook_are_named(path, toy, event, fields):
    text = json.dumps({"n": 6, "time": "t", "event": event, **fields})
    with sqlite3.connect(path) as connection:
        (digest,) = connection.execute("SELECT digest FROM head").fetchone()
        digest = sha256(f"{digest}\n{text}".encode()).hexdigest()
        connection.execute("INSERT INTO events VALUES (6, ?, ?)", (text, digest))
        connection.execute("UPDATE head SET n_events = 7, digest = ?", (digest,))
    connection.close()
    with pytest.raises(CorruptFileError, match="event 6"):
        AnnotationProject.load(path.parent, toy[0], encoder=toy[1])


# Files of others.


def foreign_database(path, application_id=0):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (n INTEGER PRIMARY KEY, event TEXT, digest TEXT)")
    connection.execute(f"PRAGMA application_id = {application_id}")
    connection.close()


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.jsonl"])
@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_text("a list of things to do\n"),
        lambda path: path.write_text("things to do"),
        lambda path: path.write_text('{"n": 0, "event": "study"}\n'),
        lambda path: path.write_text('["a"]\n'),
        lambda path: path.write_bytes(os.urandom(3000)),
        lambda path: path.write_bytes(b"\0" * 200 + b"\n"),
        foreign_database,
        lambda path: foreign_database(path, 7),
    ],
)
def test_a_foreign_file_stays_as_it_is(tmp_path, toy, name, write):
    path = tmp_path / "study" / name
    path.parent.mkdir()
    write(path)
    check_refused(path, "not the journal of a study")
    content = path.read_bytes()
    for labels in (NAMES, None):
        with pytest.raises(CorruptFileError):
            AnnotationProject(toy[0], labels, path.parent, encoder=toy[1])
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["journal.sqlite", "journal.jsonl", "journal.sqlite-journal"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "folder", "device"])
def test_what_is_no_regular_file_is_refused_at_once(begin, tmp_path, monkeypatch, name, kind):
    path = tmp_path / "study" / name
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        monkeypatch.chdir(path.parent)  # the paths of sockets are short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    elif kind == "folder":
        path.mkdir()
    else:
        target = tmp_path / "elsewhere"
        if kind == "link":
            target.write_text("somebody's own\n")
        path.symlink_to(target if kind == "link" else "/dev/zero")
    with pytest.raises(CorruptFileError, match="regular file"):
        begin()
    study = begin(folder="mine")
    with pytest.raises(CorruptFileError, match="regular file"):
        study.merge(path.parent)
    if kind == "link":
        assert target.read_text() == "somebody's own\n"


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with refuses("folder"):
        Journal(tmp_path)
    with refuses("folder"):
        Journal(tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# Format 1, and what is exported.


def lines_of(n_answers=3):
    """Return the lines of a journal of format 1."""
    entries = [{"event": "study", **HEADER}]
    entries += [{"event": "answer", **answer(note=f"é {n}")} for n in range(n_answers)]
    entries.append({"event": "undo", "by": "ann"})
    return [
        json.dumps({"n": n, "time": f"2026-01-0{n + 1}T00:00:00.000+00:00", **entry}) + "\n"
        for n, entry in enumerate(entries)
    ]


def written(tmp_path, content):
    path = tmp_path / "study" / "journal.jsonl"
    path.parent.mkdir()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_journal_of_format_1_is_copied_once_and_stays(tmp_path):
    path = written(tmp_path, "".join(lines_of()))
    content = path.read_bytes()
    journal = Journal(path.parent)
    assert (journal.n_converted, journal.n_torn) == (5, 0)
    assert [event.n for event in journal.events] == [0, 1, 2, 3, 4]
    assert [event.note for event in journal.events[1:4]] == ["é 0", "é 1", "é 2"]
    assert journal.events[3].time == "2026-01-04T00:00:00.000+00:00"
    journal.add("answer", **answer())
    journal.close()

    again = Journal(path.parent)
    again.close()
    assert again.n_converted == 0 and len(again.events) == 6
    assert path.read_bytes() == content


def test_a_study_of_format_1_is_merged_and_not_changed(begin, toy, truth, tmp_path):
    other = begin(folder="other")
    code(other, truth, 4, by="bea")
    other.export_journal(tmp_path / "lines.jsonl")
    stripped = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    for line in stripped:
        del line["digest"]
    written(tmp_path, "".join(json.dumps(line) + "\n" for line in stripped))
    mine = begin(folder="mine")
    assert mine.merge(tmp_path / "study") == 4
    assert [path.name for path in (tmp_path / "study").iterdir()] == ["journal.jsonl"]
    pd.testing.assert_frame_equal(mine.to_frame(), other.to_frame())


@pytest.mark.parametrize("tail", ["", '{"n": 5', '{"n": 5, "time": "2026-01-06T', "\0\0\0"])
def test_the_beginning_of_a_line_is_left_out_with_a_word(begin, toy, tmp_path, tail):
    header = {**HEADER, "labels": [{**HEADER["labels"][0], "name": name} for name in NAMES]}
    for number, label in enumerate(header["labels"], 1):
        label["key"] = str(number)
    lines = [line.replace('["a"]', '["fruit"]') for line in lines_of()]
    lines[0] = json.dumps({"n": 0, "time": "", "event": "study", **header}) + "\n"
    path = written(tmp_path, "".join(lines) + tail)
    study = begin(codebook=None)
    names = [decision.name for decision in study.decisions]
    assert names == ["converted", *["torn"] * bool(tail), "gone"]
    assert len(study.to_frame()) == 1  # of three answers to one text, the last was undone
    assert path.read_text().endswith(tail)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, lambda line: line.replace("{", "[", 1)),
        (4, lambda line: line.replace("{", "[", 1)),  # the last line, which was confirmed
        (4, lambda line: line.replace("{", "[", 1).strip()),
        (4, lambda line: line[:-3] + "\n"),
        (1, lambda line: ""),
        (3, lambda line: line + line),
        (2, lambda line: line.replace('"by"', '"who"')),
        (2, lambda line: line.replace('"by"', '"more": 1, "by"')),
        (2, lambda line: line.replace('["a"]', '{"a": 1}')),
        (2, lambda line: line.replace('"unsure": false', '"unsure": 0')),
        (2, lambda line: line.replace('"count"', '"other"')),
        (2, lambda line: line.replace('"answer"', '"unknown"')),
        (1, lambda line: "a list of things to do\n"),
        (0, lambda line: line.replace('"version": 1', '"version": 2')),
        (0, lambda line: line.replace("embedtopics annotation", "other")),
        (0, lambda line: line.replace('"single"', '"double"')),
    ],
)
def test_damage_in_format_1_is_named_with_its_line(tmp_path, number, change):
    lines = lines_of()
    lines[number] = change(lines[number])
    path = written(tmp_path, "".join(lines))
    # Missing and repeated lines show in the number of the next one.
    n_line = {1: 2, 3: 5}.get(number, number + 1)
    check_refused(path, f"line {n_line}")


@pytest.mark.parametrize("label", ["frui\u0074\u0073", 'fruit", "train'])
def test_an_answer_of_no_label_stops_the_copy(begin, tmp_path, label):
    study = begin(folder="other")
    study.label(study.next().key, "fruit")
    lines = study.export_journal(tmp_path / "lines.jsonl").read_text().splitlines()
    plain = [{k: v for k, v in json.loads(line).items() if k != "digest"} for line in lines]
    content = "".join(json.dumps(line) + "\n" for line in plain)
    path = written(tmp_path, content.replace('["fruit"]', f'["{label}"]'))
    content = path.read_text()
    with pytest.raises(CorruptFileError, match=r"line 2 of journal.jsonl"):
        begin(codebook=None)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert path.read_text() == content


def test_a_last_line_without_end_is_an_event(tmp_path):
    path = written(tmp_path, "".join(lines_of()).rstrip())
    journal = Journal(path.parent)
    journal.close()
    assert len(journal.events) == 5 and journal.n_torn == 0


@pytest.mark.parametrize("content", ["", '{"n": 0, "time": "20'])
def test_a_file_before_its_first_event_is_a_new_study(tmp_path, content):
    path = written(tmp_path, content)
    journal = Journal(path.parent)
    assert journal.events == [] and journal.n_torn == bool(content)
    journal.add("study", **HEADER)
    journal.close()
    assert len(reopened(path.parent / "journal.sqlite")) == 1
    assert path.read_text() == content


def test_an_id_with_half_a_character_does_not_end_a_study(tmp_path):
    lines = lines_of()
    lines[2] = lines[2].replace('"id": "0"', '"id": "a\\ud800"')
    journal = Journal(written(tmp_path, "".join(lines)).parent)
    journal.close()
    assert journal.events[2].id == "a\ufffd"


def test_an_export_is_plain_lines_and_opens_as_the_same_study(begin, truth, tmp_path):
    study = begin([*NAMES[:2], "échecs\u2028 "])
    study.label(study.next().key, "échecs", note="\u2028 ja")
    code_two = study.next()
    study.label(code_two.key, "fruit", unsure=True)
    frame = study.to_frame()
    assert study.export_journal(tmp_path / "journal.jsonl") == tmp_path / "journal.jsonl"
    rows = study.state.journal.rows()
    study.close()

    lines = (tmp_path / "journal.jsonl").read_bytes().decode("ascii").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["study", "answer", "answer"]
    assert [json.loads(line)["digest"] for line in lines] == [digest for _, digest in rows]
    (tmp_path / "again").mkdir()
    (tmp_path / "journal.jsonl").rename(tmp_path / "again" / "journal.jsonl")
    again = begin(codebook=None, folder="again")
    pd.testing.assert_frame_equal(again.to_frame(), frame)
    assert again.state.journal.rows() == rows


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, lambda line: line.replace('["fruit"]', '["train"]')),
        (1, lambda line: line.replace('"digest": "', '"digest": "0')),
        (1, lambda line: line[: line.index(', "digest"')] + "}"),
    ],
)
def test_a_changed_export_is_named_with_its_line(begin, tmp_path, number, change):
    study = begin()
    for _ in range(2):
        study.label(study.next().key, "fruit")
    lines = study.export_journal(tmp_path / "all.jsonl").read_text().splitlines()
    assert change(lines[number]) != lines[number]
    lines[number] = change(lines[number])
    path = tmp_path / "again" / "journal.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n")
    check_refused(path, f"line {number + 1}.*digest")


def test_a_study_that_is_open_can_be_merged_and_loses_nothing(begin, truth):
    mine, theirs = begin(folder="mine"), begin(folder="theirs")
    code(theirs, truth, 3, by="bea")
    assert mine.merge(theirs.state.journal.folder) == 3
    code(theirs, truth, 2, by="bea")
    assert mine.merge(Path(theirs.state.journal.folder)) == 2
    assert mine.merge(mine.state.journal.folder) == 0
