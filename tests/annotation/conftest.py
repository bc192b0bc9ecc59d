"""A study of the toy texts, and a coder who knows the answers."""

from contextlib import contextmanager

import pytest

from embedtopics import AnnotationProject
from tests.report.conftest import browser  # noqa: F401

NAMES = ["fruit", "train", "chess"]


@pytest.fixture
def begin(toy, tmp_path):
    """Return a function that opens a study of the toy texts in one folder."""
    texts, vectors, _ = toy
    opened = []

    def begin(codebook=NAMES, folder="study", corpus=texts, encoder=vectors, **options):
        study = AnnotationProject(corpus, codebook, tmp_path / folder, encoder=encoder, **options)
        opened.append(study)
        return study

    yield begin
    for study in opened:
        study.close()


@pytest.fixture
def truth(toy):
    texts, _, themes = toy
    return {text: NAMES[theme] for text, theme in zip(texts, themes, strict=True)}


def code(study, truth, n, by="annotator"):
    """Label the next texts as a coder does who makes no mistake; return them."""
    given = []
    for _ in range(n):
        text = study.next(by=by)
        study.label(text.key, truth[text.text], by=by)
        given.append(text)
    return given


@contextmanager
def full_disk(study):
    """Let the journal of a study grow by nothing."""
    connection = study.state.journal._connection
    (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
    (most,) = connection.execute("PRAGMA max_page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {n_pages}")
    yield
    connection.execute(f"PRAGMA max_page_count = {most}")


small = {"n_test": 5}
