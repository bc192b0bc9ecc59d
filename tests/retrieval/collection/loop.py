"""A program that writes a collection until it is killed, and says before and after each write.

It is started once and makes a child of itself for each line ``folder seed`` on its input, which
spares the imports; the child's number is its answer.
"""

import json
import os
import random
import sys
from pathlib import Path

import pandas as pd

from embedtopics.retrieval.storage._collection import Collection
from tests.retrieval.collection.fake import add, make_segment


def say(pipe, *what):
    os.write(pipe, (json.dumps(what) + "\n").encode())


def plan(rng, ids):
    """Return a write: what to do, with which ids, and the text that they get."""
    kind = rng.choice(["add", "add", "update", "remove", "compact"])
    text = "".join(rng.choices("ab é🙂", k=rng.randrange(40)))
    if kind in ("update", "remove") and not ids:
        kind = "add"
    if kind == "add":
        fresh = {f"n{rng.randrange(10**9)}" for _ in range(rng.randrange(1, 30))}
        return "add", sorted(fresh), text
    if kind == "compact":
        return "compact", [], ""
    return kind, sorted(rng.sample(sorted(ids), rng.randint(1, len(ids)))), text


def write(folder, seed, pipe):
    rng = random.Random(seed)
    if not folder.exists():
        say(pipe, "begin", "create", [], "")
        Collection.create(folder, {"made": "by a loop"})
        say(pipe, "done")
    collection = Collection.open(folder)
    ids = {document.id for batch in collection.batches() for document in batch}
    while True:
        kind, some, text = plan(rng, ids)
        say(pipe, "begin", kind, some, text)
        with collection.writing() as writer:
            if kind == "compact":
                writer.compact(make_segment)
            elif kind == "remove":
                writer.remove(some)
            else:
                frame = pd.DataFrame({"text": [text] * len(some)})
                add(writer, some, [text] * len(some), frame, update=kind == "update")
            say(pipe, "done")
        ids = ids - set(some) if kind == "remove" else ids | set(some)


def main():
    for line in sys.stdin:
        folder, seed, fifo = json.loads(line)
        child = os.fork()
        if not child:
            write(Path(folder), seed, os.open(fifo, os.O_WRONLY))
        say(sys.stdout.fileno(), child)
        os.waitpid(child, 0)
        say(sys.stdout.fileno(), "ended")


if __name__ == "__main__":
    main()
