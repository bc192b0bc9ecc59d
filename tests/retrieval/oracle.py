"""What a search must find: every document compared, in a few lines, and a tiny encoder for it."""

import math
import re
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from embedtopics import SearchIndex
from embedtopics.encoders.words._counts import RandomProjectionEncoder
from embedtopics.retrieval import _search
from embedtopics.retrieval._fusion import fuse_scores


@contextmanager
def plain_fusion():
    """Make all passages candidates, without feedback, which takes the best few: of two that are as
    good, the last bit decides which."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "DEPTH", 1000)
        patch.setattr(_search, "fuse_scores", partial(fuse_scores, feedback=0))
        yield


class Tiny(RandomProjectionEncoder):
    """Encodes in 24 dimensions, and reads three words; it cannot be loaded by name."""

    name = fingerprint = "tiny"

    def __init__(self):
        super().__init__(24)
        del self.fingerprint  # the class has one
        self.is_made = True

    @property
    def settings(self):
        return None if hasattr(self, "is_made") else super().settings

    def windows(self, texts):
        return [cut(text) for text in texts]


def cut(text):
    """Return spans of up to three words, the last of which the next has, too."""
    words = [match.span() for match in re.finditer(r"\w+", text)]
    if len(words) <= 3:
        return [(0, len(text))]
    starts = range(0, len(words) - 1, 2)
    return [(words[i][0], words[min(i + 2, len(words) - 1)][1]) for i in starts]


def build(data, out=None, encoder=None, **others):
    return SearchIndex.build(
        data, out, encoder=encoder or Tiny(), languages=[], stems=False, show_progress=False,
        **others,
    )  # fmt: skip


class Passages:
    """All passages of a dict from id to text, in the order of addition."""

    def __init__(self, model, spans_of=cut):
        self.ids, self.texts, self.spans = [], [], []
        for id, text in model.items():
            for start, stop in spans_of(text) if text.strip() else []:
                self.ids.append(id)
                self.texts.append(text[start:stop])
                self.spans.append((start, stop))
        self.vectors = Tiny().encode(self.texts).astype(float) if self.texts else np.empty((0, 24))
        self.words = [re.findall(r"\w+", text) for text in self.texts]

    def bm25(self, query):
        n = len(self.words)
        mean = sum(map(len, self.words)) / max(n, 1)
        scores = np.zeros(n)
        for word in re.findall(r"\w+", query):
            held = sum(word in words for words in self.words)
            rarity = math.log(1 + (n - held + 0.5) / (held + 0.5))
            for place, words in enumerate(self.words):
                times = words.count(word)
                norm = 1.5 * (0.25 + 0.75 * len(words) / mean)
                scores[place] += rarity * times / (times + norm) if times else 0
        return scores

    def scores(self, query, mode, allowed):
        """Return a score for each passage that the mode finds among those of allowed ids."""
        may = np.array([id in allowed for id in self.ids], dtype=bool)
        vector, words = Tiny().encode([query])[0].astype(float), self.bm25(query)
        if mode == "dense":
            found = may if vector.any() else np.zeros(len(may), bool)
            scores = self.vectors @ vector
        elif mode == "lexical" or not vector.any():
            found, scores = may & (words > 0), words
        else:
            found, scores = may, np.zeros(len(may))
            near = np.flatnonzero(may)
            mean = self.vectors.mean(axis=0) if len(self.ids) else np.zeros(24)
            if len(near):
                scores[near] = fuse_scores(
                    vector, self.vectors[near], words[near], mean, feedback=0
                ).scores
        return {place: float(scores[place]) for place in np.flatnonzero(found)}

    def best(self, query, mode, allowed):
        """Return the best passage of each document, (score, place) by id."""
        found = {}
        for place, score in self.scores(query, mode, allowed).items():
            id = self.ids[place]
            if id not in found or score > found[id][0] + 1e-9:
                found[id] = score, place
        return found


def assert_found(hits, passages, query, mode, k, allowed):
    """Hold hits against the best passages of all documents; last bits may break a tie."""
    best = passages.best(query, mode, allowed)
    assert len(hits) == min(k, len(best)) and len({hit.id for hit in hits}) == len(hits)
    for hit, score in zip(hits, sorted((s for s, _ in best.values()), reverse=True), strict=False):
        assert abs(hit.score - score) < 1e-5 and abs(best[hit.id][0] - score) < 1e-5
        texts = {
            passages.texts[place]
            for place, value in passages.scores(query, mode, {hit.id}).items()
            if mode == "hybrid" or value > score - 1e-5
        }
        assert hit.passage in texts
    # Documents that are found by the same words are exactly as good: the first comes first.
    order = list(dict.fromkeys(passages.ids))
    rank = {hit.id: place for place, hit in enumerate(hits)}
    by_text = {}
    for id in order:
        if id in best:
            by_text.setdefault(passages.texts[best[id][1]], []).append(id)
    for ids in by_text.values():
        ranks = [rank.get(id, len(rank)) for id in ids]
        assert ranks == sorted(ranks), (ids, ranks)
