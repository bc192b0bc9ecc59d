"""The methods of the page, on twelve ways to a result."""

from dataclasses import replace

import numpy as np
import pytest

import embedtopics as et
from embedtopics import Corpus, topics
from embedtopics.report._study import methods_text
from embedtopics.results import Decision
from embedtopics.topics import ManualLabels, SeedWords, ZeroShot

THEMES = ("apple orchard", "bishop chess", "train station")
TEXTS = [f"the {THEMES[i % 3]} of the house {i} and the street" for i in range(90)]
RNG = np.random.default_rng(0)
CENTERS = np.eye(3, 16)
VECTORS = (CENTERS[np.arange(90) % 3] + 0.1 * RNG.normal(size=(90, 16))).astype(np.float32)


def fit(texts=TEXTS, vectors=VECTORS, **parameters):
    model = et.TopicModel(**{"languages": ["en"], "random_state": 7, **parameters})
    return model.fit(texts, embeddings=vectors).result_


def with_note(name, message):
    return replace(PLAIN, decisions=(*PLAIN.decisions, Decision("encoder", name, 0.5, message)))


PLAIN = fit()
PATHS = {
    "automatic number": (lambda: PLAIN, "Their number was chosen by the program (auto)."),
    "number": (lambda: fit(n_topics=3), "Their number was set to 3."),
    "resolution": (lambda: topics.recluster(PLAIN, 2), "After the fit: "),
    "seed words": (
        lambda: fit(constraints=SeedWords({"games": ["chess"]})),
        "Texts with seed words: games 30.",
    ),
    "zero-shot": (
        lambda: fit(constraints=ZeroShot(["Fruit"], embeddings=CENTERS[:1])),
        "Texts that match a name: Fruit",
    ),
    "manual labels": (
        lambda: fit(constraints=ManualLabels([THEMES[i % 3] for i in range(90)])),
        "People gave the topics of the texts.",
    ),
    "edits": (lambda: topics.merge(PLAIN, [0, 1]), "After the fit: merged"),
    "truncation": (lambda: with_note("truncated", "9 % of texts were cut."), "9 % of texts"),
    "windows": (lambda: with_note("long_texts", "Means over windows."), "Means over windows."),
    "passages": (lambda: fit(Corpus(TEXTS).passages()), "90 rows were cut into 90 passages."),
    "exclusions": (
        lambda: fit([*TEXTS, ""], np.vstack([VECTORS, VECTORS[:1]])),
        "Rows without text: 1 of 91. They are in no topic.",
    ),
    "outliers": (lambda: fit(coverage=0), "Outliers were not assigned."),
    "stop words": (lambda: PLAIN, "stop words were left out (en)."),
    "seed": (lambda: PLAIN, "Seed 7."),
}


@pytest.mark.parametrize("path", PATHS)
def test_the_paragraph_is_built_from_what_was_done(path):
    make, sentence = PATHS[path]
    paragraph = methods_text(make())
    assert sentence in paragraph
    others = {"number", "edits", "zero-shot", "manual labels", "outliers", "exclusions"} - {path}
    assert not [name for name in others if PATHS[name][1] in paragraph]
    assert ("Campello" in paragraph) == (path != "manual labels")
