"""What builds and changes an index until it is killed, and says so before and after each."""

import random

from embedtopics.corpus import Corpus
from embedtopics.retrieval import SearchIndex

WORDS = "cat dog owl hen fox".split()


def text_of(rng):
    return " ".join(rng.choices(WORDS, k=rng.randrange(12)))


def corpus(texts):
    return Corpus(list(texts.values()), ids=list(texts))


def build(folder, texts, **others):
    return SearchIndex.build(
        corpus(texts), folder, encoder="random", languages=[], stems=False, show_progress=False,
        **others,
    )  # fmt: skip


def work(folder, seed, pipe):
    rng = random.Random(seed)
    if not folder.exists() or seed % 7 == 6:
        texts = {f"b{seed}-{i}": text_of(rng) for i in range(8)} | {"z": "zebra"}
        pipe.send(["build", texts])  # which may take the place of another
        build(folder, texts, overwrite=folder.exists())
        pipe.send(["done"])
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
        pipe.send([kind, texts])
        if kind in ("add", "update"):
            index.add(corpus(texts), update=kind == "update", show_progress=False)
            model |= set(texts)
        elif kind == "remove":
            index.remove(texts)
            model -= set(texts)
        else:
            index.compact()
        pipe.send(["done"])
