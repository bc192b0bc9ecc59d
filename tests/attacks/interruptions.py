"""What writes, interrupted at every file that it opens, renames or deletes.

Run as a program this does one kind of work again and again, each time in a forked child with
another interruption, and prints what each left behind: the old, the new, or something else.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

WATCHED = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link")
READS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
SECONDS = 60
"""What one child may take; no work here takes two."""


@dataclass(frozen=True)
class Work:
    """A change of a folder, and what is read from it; None where nothing is there."""

    first: Callable[[Path], Any]
    then: Callable[[Path], Any]
    read: Callable[[Path], Any]
    is_the_same: bool = False  # what is read, before and after


def _result(version: str) -> Any:
    from tests.factories import make_result

    return make_result(n_documents=30, n_topics=2 if version == "old" else 3)


def saved_result() -> Work:
    """Save topics over others."""
    from embedtopics.topics import documents
    from embedtopics.topics.results import TopicResult

    made = {version: _result(version) for version in ("old", "new")}
    return Work(
        lambda folder: made["old"].save(folder),
        lambda folder: made["new"].save(folder),
        lambda folder: documents(TopicResult.load(folder)).to_csv(),
    )


def _index_work(change: Callable[[Any], Any], is_the_same: bool = False) -> Work:
    from embedtopics import SearchIndex
    from embedtopics.retrieval.storage._checks import check
    from tests.retrieval.indexes import build

    texts = {f"d{i}": f"cat {'dog' * (i % 2)} owl{i}" for i in range(30)}

    def first(folder: Path) -> None:
        build(folder, texts)
        SearchIndex.load(folder).remove(["d3"])

    def read(folder: Path) -> Any:
        index = SearchIndex.load(folder, verify=True)
        damage = {problem.what for problem in check(folder)} - {"a killed writer left it"}
        assert not damage, damage
        hits = [[hit.id for hit in index.search("cat owl5", 9, mode=mode).hits[0]]
                for mode in ("dense", "lexical")]  # fmt: skip
        return sorted((document.id, document.text) for document in index), hits

    return Work(first, change, read, is_the_same)


def built_index() -> Work:
    """Build an index over another."""
    from tests.retrieval.indexes import build

    return _index_work(lambda folder: build(folder, {"n1": "fox", "n2": "owl cat"}, overwrite=True))


def enlarged_index() -> Work:
    """Add documents to an index, and change one."""
    from embedtopics import SearchIndex
    from tests.retrieval.indexes import corpus

    def change(folder: Path) -> None:
        texts = {"d1": "changed hen", "n1": "fox", "n2": "owl cat"}
        SearchIndex.load(folder).add(corpus(texts), update=True, show_progress=False)

    return _index_work(change)


def compacted_index() -> Work:
    """Compact an index; what it holds stays."""
    from embedtopics import SearchIndex

    return _index_work(lambda folder: SearchIndex.load(folder).compact(), is_the_same=True)


def cached_vectors() -> Work:
    """Encode texts through a cache; what is kept is right, and what is not is encoded again."""
    from embedtopics.encoders import CachedEncoder
    from tests.encoders.test_cached import Counting

    texts = [f"text {i}" for i in range(40)]
    sought = Counting().encode(texts)

    def read(folder: Path) -> Any:
        found = CachedEncoder(Counting(), folder=folder).encode(texts)
        np.testing.assert_array_equal(found, sought)
        return "right"

    return Work(
        lambda folder: CachedEncoder(Counting(), folder=folder).encode(texts[:10]),
        lambda folder: CachedEncoder(Counting(), folder=folder).encode(texts),
        read,
        is_the_same=True,
    )


def _checkpoint() -> Path:
    """Return a small encoder, made beside the folder that is worked on."""
    from tests.encoders.conftest import tiny_bert

    class Folders:
        def mktemp(self, name: str) -> Path:
            return Path.cwd() / name

    return tiny_bert.__wrapped__(Folders())


def trained_encoder() -> Work:
    """Train an encoder; another try goes on to the same weights."""
    from embedtopics.training.trainer import _running as running
    from tests.training.trainer.conftest import data_of
    from tests.training.trainer.test_running import ABOUT, settings, weights_of

    running.LEAST_VALIDATIONS = 1
    make = data_of.__wrapped__(_checkpoint())

    def train(folder: Path) -> Any:
        data, validation = make(settings())
        running.train(data, validation, settings(), folder, ABOUT)
        return {name: weights.tolist() for name, weights in weights_of(data).items()}

    return Work(lambda folder: folder.mkdir(), train, train, is_the_same=True)


def labelled_text() -> Work:
    """Label one text more; the labels before stay, and another try gives the same."""
    from embedtopics import AnnotationProject

    texts = [f"{'cat owl' if i % 2 else 'train rail'} {i}" for i in range(12)]

    def label(n: int) -> Callable[[Path], Any]:
        def run(folder: Path) -> None:
            with AnnotationProject(texts, ["a", "b"], folder, encoder="random") as study:
                known = study.labels().tolist()
                for row, key in enumerate(study.keys[:n]):
                    if known[row] is None:
                        study.label(key, "ab"[row % 2])

        return run

    def read(folder: Path) -> Any:
        with AnnotationProject(texts, None, folder, encoder="random") as study:
            return study.labels().tolist()

    return Work(label(3), label(4), read)


WORKS: dict[str, Callable[[], Work]] = {
    made.__name__: made
    for made in (
        saved_result, built_index, enlarged_index, compacted_index, cached_vectors,
        trained_encoder, labelled_text,
    )
}  # fmt: skip


def _interrupt(kind: str, point: int, folder: Path) -> None:
    """Let the so many-th change of a file of the folder kill this process or fail."""
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event not in WATCHED or folder.name not in str(arguments[:2]):
            return
        if event == "open" and not (arguments[2] or 0) & READS:
            return
        seen += 1
        if seen == point and kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if seen >= point and kind in ("full", "denied"):
            raise OSError(
                *((28, "No space left on device"), (13, "Permission denied"))[kind == "denied"]
            )

    if kind in ("kill", "full", "denied"):
        sys.addaudithook(hook)
    elif kind == "moment":
        signal.setitimer(signal.ITIMER_REAL, point / 1000)
    elif kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (point, resource.RLIM_INFINITY))


def _in_child(job: Callable[[], Any], is_read: bool = False) -> str:
    """Do a job in a fork; return its answer's digest, its refusal, or how it ended."""
    from embedtopics.errors import EmbedTopicsError

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # tqdm's own lock is shared by forks: one that is killed in its hold would stop all others.
        tqdm.set_lock(threading.RLock())
        try:
            answer = job()  # a model, or arrays, of which nothing is asked
            said = "done " + (hashlib.sha256(repr(answer).encode()).hexdigest() if is_read else "")
        except EmbedTopicsError as error:
            is_clear = "\n" not in str(error)
            said = f"refused {error}" if is_clear else f"failed unclear {str(error)[:200]!r}"
        except BaseException as error:
            import traceback

            said = f"failed {type(error).__name__}: {str(error)[:200]} " + "".join(
                traceback.format_tb(error.__traceback__)[-3:]
            )
        with suppress(OSError):
            os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    begun = time.monotonic()
    with open(reader, "rb") as pipe:
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() - begun > SECONDS:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "failed: hangs"
            time.sleep(0.002)
        return pipe.read().decode() or "killed"


def _points(kind: str, most: int, seconds: float) -> list[int]:
    """Return where to interrupt: numbers of changes, milliseconds, or bytes of a file."""
    if kind == "limit":
        return [0, *(int(200 * 1.8**step) for step in range(most - 1))]
    if kind == "moment":
        return [1 + int(1200 * seconds * place / most) for place in range(most)]
    return list(range(1, most + 1))


def trials(work: Work, kinds: dict[str, int], folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield each interruption and what was wrong with what it left; "" where nothing was."""
    pristine = folder.with_name("pristine")
    work.first(folder)
    shutil.copytree(folder, pristine)

    def read() -> str:
        return _in_child(lambda: work.read(folder), is_read=True)

    def interrupted(kind: str, point: int) -> str:
        for path in folder.parent.glob(f"*{folder.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(pristine, folder)

        def job() -> None:
            _interrupt(kind, point, folder)
            work.then(folder)

        return _in_child(job)

    before, begun = read(), time.monotonic()
    assert interrupted("never", 0).startswith("done")
    seconds, after = time.monotonic() - begun, read()
    assert before.startswith("done") and after.startswith("done"), (before, after)
    assert (before == after) == work.is_the_same, "nothing was changed"
    for kind, most in kinds.items():
        for point in _points(kind, most, seconds):
            ended = interrupted(kind, point)
            found, wrong = read(), ""
            is_done = ended.startswith("done")
            if ended.startswith("failed"):
                wrong = ended
            elif found not in (before, after) or (is_done and found != after):
                wrong = f"{ended}; then {found}"
            elif not _in_child(lambda: work.then(folder)).startswith("done") or read() != after:
                wrong = f"{ended}; another try does not mend it"
            if is_done and kind in ("kill", "full", "denied") and not wrong:
                break  # there are no more changes
            yield kind, point, wrong


def main(name: str, kinds: str) -> None:
    """Do a kind of work with interruptions; write a JSON line for each."""
    for found in trials(WORKS[name](), json.loads(kinds), Path.cwd() / "interrupted"):
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
