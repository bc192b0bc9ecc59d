"""Small indexes of texts by their ids, with vectors of random projections."""

from embedtopics import Corpus, SearchIndex


def corpus(texts):
    return Corpus(list(texts.values()), ids=list(texts))


def build(folder, texts, **others):
    return SearchIndex.build(
        corpus(texts), folder, encoder="random", languages=[], stems=False, show_progress=False,
        **others,
    )  # fmt: skip
