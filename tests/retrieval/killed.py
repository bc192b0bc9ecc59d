"""A program that builds and changes an index until it is killed, and says before and after each.

It is started once and makes a child of itself for each line on its input, which spares the
imports; the child's number is its answer.
"""

import json
import os
import random
import sys
import tempfile
from pathlib import Path

from embedtopics.corpus import Corpus
from embedtopics.retrieval import SearchIndex

WORDS = "cat dog owl hen fox".split()


def say(pipe, *what):
    os.write(pipe, (json.dumps(what) + "\n").encode())


def text_of(rng):
    return " ".join(rng.choices(WORDS, k=rng.randrange(12)))


def corpus(texts):
    return Corpus.from_texts(list(texts.values()), ids=list(texts))


def build(folder, texts, **others):
    return SearchIndex.build(
        corpus(texts), folder, encoder="random", languages=[], stems=False, show_progress=False,
        **others,
    )  # fmt: skip


def work(folder, seed, pipe):
    rng = random.Random(seed)
    if not folder.exists() or seed % 7 == 6:
        texts = {f"b{seed}-{i}": text_of(rng) for i in range(8)} | {"z": "zebra"}
        say(pipe, "build", texts)  # which may take the place of another
        build(folder, texts, overwrite=folder.exists())
        say(pipe, "done")
    index = SearchIndex.load(folder)
    model = set(index.ids)
    for step in range(10_000):
        kind = rng.choice(["add", "update", "remove", "compact"])
        some = rng.sample(sorted(model - {"z"}), min(len(model) - 1, rng.randrange(1, 4)))
        if kind == "add":
            some = [f"n{seed}-{step}-{i}" for i in range(rng.randrange(1, 5))]
        texts = (
            {id: text_of(rng) for id in some}
            if kind in ("add", "update")
            else dict.fromkeys(some if kind == "remove" else [])
        )
        say(pipe, kind, texts)
        if kind in ("add", "update"):
            index.add(corpus(texts), update=kind == "update", show_progress=False)
            model |= set(texts)
        elif kind == "remove":
            index.remove(texts)
            model -= set(texts)
        else:
            index.compact()
        say(pipe, "done")


def main():
    with tempfile.TemporaryDirectory() as folder:  # so that all is imported
        build(Path(folder) / "i", {"a": "cat"}).compact()
    for line in sys.stdin:
        folder, seed, fifo = json.loads(line)
        child = os.fork()
        if not child:
            work(Path(folder), seed, os.open(fifo, os.O_WRONLY))
        say(sys.stdout.fileno(), child)
        os.waitpid(child, 0)
        say(sys.stdout.fileno(), "ended")


if __name__ == "__main__":
    main()
