"""The readers on the development data sets, which are not part of the repository."""

import os
from pathlib import Path

import pytest

from embedtopics.corpus import Corpus, detect_languages
from embedtopics.corpus._columns import guess_columns

DATA = Path(os.environ.get("EMBEDTOPICS_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = [
    pytest.mark.benchmark_data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no development data in {DATA}"),
]


def test_news_articles():
    corpus = Corpus.from_file(DATA / "bbc_news" / "bbc_news.jsonl.gz", id="id", group="label")
    assert len(corpus) == 2225
    assert corpus.text_column == "text"
    assert corpus.group.nunique() == 5
    assert len(corpus.distinct()) == 2089
    assert detect_languages(corpus.document_texts()).shares["en"] > 0.99


def test_titles_with_quotes_that_enclose_nothing():
    path = DATA / "arxiv_titles" / "arxiv_titles.tsv.gz"
    corpus = Corpus.from_file(path, text="title", id="arxiv_id", time="created", limit=50_000)
    assert len(corpus) == 50_000
    assert any(text.startswith('"') for text in corpus.texts)
    assert corpus.time.notna().all()
    assert corpus.time.dt.year.between(1986, 2019).all()


@pytest.mark.slow
def test_all_titles():
    path = DATA / "arxiv_titles" / "arxiv_titles.tsv.gz"
    corpus = Corpus.from_file(path, text="title", id="arxiv_id", time="created")
    assert len(corpus) == 573_800


def test_newsgroup_posts():
    corpus = Corpus.from_file(DATA / "20newsgroups" / "train.jsonl.gz")
    assert len(corpus) == 11_314
    expected = {"text": None, "id": None, "time": None, "group": "label"}  # repeated ids
    assert guess_columns(corpus.metadata) == expected


def test_french_speeches():
    corpus = Corpus.from_file(DATA / "fr_parlement" / "speeches.jsonl.gz", time="date")
    assert detect_languages(corpus.document_texts()).main == "fr"
    assert corpus.time.notna().all()
