"""A writer may be killed at any moment: a collection is as before its write, or as after."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embedtopics.retrieval.storage._checks import check
from embedtopics.retrieval.storage._collection import Collection
from tests.retrieval.collection.fake import add, assert_clean, make_segment, state

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")
REPOSITORY = Path(__file__).parents[3]


class Loop:
    """A program that writes; see loop.py."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.retrieval.collection.loop"], cwd=REPOSITORY,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(self, folder, seed, n_words, seconds):
        """Let it say some words, kill it a while after the last, and return what it said."""
        fifo = folder.parent / f"fifo-{seed}"
        os.mkfifo(fifo)
        print(json.dumps([str(folder), seed, str(fifo)]), file=self.process.stdin, flush=True)
        (child,) = json.loads(self.process.stdout.readline())
        with fifo.open() as said:
            # The clock starts with a word, so that kills fall on writes however slow these are.
            lines = [said.readline() for _ in range(n_words)]
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
            assert json.loads(self.process.stdout.readline()) == ["ended"]
            lines += said.read().splitlines()
        fifo.unlink()
        return [json.loads(line) for line in lines]


def after(before, kind, ids, text):
    found = dict(before)
    for id in ids:
        if kind == "remove":
            del found[id]
        else:
            found[id] = (text, {"text": text})
    return found


def kill_often(folder, n_kills, seed):
    rng = random.Random(seed)
    done, unfinished = {}, 0
    with Loop() as loop:
        for number in range(n_kills):
            # Uneven, so that the last word is that a write begins; the first says of making.
            n_words = 1 + 2 * min(number, rng.randrange(4))
            said = loop.run(folder, number, n_words, rng.random() * 0.02)
            before = done
            for word, *rest in said:
                if word == "begin":
                    before, done = done, after(done, *rest)
            may_be = (done,) if said[-1] == ["done"] else (before, done)
            unfinished += said[-1] != ["done"]
            if not folder.exists():
                assert said == [["begin", "create", [], ""]]
                continue
            collection = Collection.open(folder, verify=True)
            done = state(collection)
            assert done in may_be, said[-1][:2]
            left = {problem.what for problem in check(folder)}
            assert left <= {"no version of the index names it"}
            with collection.writing():
                pass
            assert_clean(collection)
    assert done == state(collection)
    with collection.writing() as writer:
        add(writer, ["last"], ["Goes on."])
        writer.compact(make_segment)
    assert state(collection).keys() == done.keys() | {"last"}
    return unfinished


@pytest.mark.slow  # tests/retrieval/test_index_faults.py kills a few, one layer up
def test_a_few_kills(tmp_path):
    assert kill_often(tmp_path / "a", 6, seed=1)


@pytest.mark.slow
def test_many_kills(tmp_path):
    assert kill_often(tmp_path / "a", 50, seed=2) >= 10


def test_a_reader_in_one_process_a_writer_in_another(tmp_path):
    folder = tmp_path / "a"
    code = (
        "import random, sys; from pathlib import Path\n"
        "from tests.retrieval.collection.fake import add, make_segment, small\n"
        "collection = small(Path(sys.argv[1])); print('made', flush=True)\n"
        "for number in range(12):\n"
        "    with collection.writing() as writer:\n"
        "        add(writer, [f'x{number}', f'y{number}'], ['One.', 'Two of them.'])\n"
        "        writer.remove([f'x{number}'])\n"
        "        writer.compact(make_segment)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, folder], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "made\n"
    collection, versions = Collection.open(folder), []
    while writer.poll() is None:
        # Files of a snapshot may be deleted while they are read, but never change.
        snapshot = collection.snapshot()
        versions.append(snapshot.version)
        numbers = {int(n) for view in snapshot.segments for n in view.documents[view.alive]}
        assert len(numbers) == snapshot.n_documents
        kept = {document.id for document in collection.documents(sorted(numbers)) if document}
        assert {"d0", "100"} <= kept
    writer.stdout.close()
    assert writer.returncode == 0 and versions == sorted(versions)
    assert state(collection).keys() == {"d0", "d2", "d3", "d4", "d5", "100", "1.5"} | {
        f"y{number}" for number in range(12)
    }
    assert_clean(collection)
