"""The demo corpus is as documented, and the wheel holds what an installed copy needs."""

import hashlib
import os
import re
import zipfile
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics._utils.folders import demo_path
from tests.factories import python

README = (demo_path().parent / "README.md").read_text("utf-8")


def test_checksum_is_the_documented_one():
    assert hashlib.sha256(demo_path().read_bytes()).hexdigest() in README


def test_counts_are_the_documented_ones():
    corpus = pd.read_csv(demo_path(), dtype=str, keep_default_na=False)
    assert len(corpus) == 929
    distinct = corpus.assign(key=corpus["text"].str.split().str.join(" "))
    distinct = distinct[distinct["key"] != ""].drop_duplicates("key")
    rows = re.findall(r"^\| (\w+)(?: \(fr\))? \| (\d+) \|", README, re.M)
    documented = {theme: int(count) for theme, count in rows}
    assert Counter(distinct["theme"]) == documented
    assert Counter(distinct["language"]) == {"en": 664, "fr": 256}


def test_holds_what_a_reader_must_survive():
    corpus = Corpus(demo_path(), text="text", id="id", time="date", group="source")
    documents = corpus.distinct()
    assert len(corpus) == 929
    assert (documents.of_row < 0).sum() == 1
    assert documents.weights.sum() - len(documents) == 8
    assert sum("<script>" in text for text in corpus.texts) == 1
    assert max(len(text.split()) for text in corpus.texts) > 900
    assert corpus.time.min().year == 2023 and corpus.time.max().year == 2024


def test_words_in_context_are_the_documented_ones():
    path = demo_path().parent / "words_in_context.csv"
    assert hashlib.sha256(path.read_bytes()).hexdigest() in README
    table = pd.read_csv(path, dtype=str)
    documented = re.findall(
        r"^\| (\w+) \| ([\w, ]+) \|$", README.split("# Words in context")[1], re.M
    )
    senses = {word: named.split(", ") for word, named in documented if word != "word"}
    assert table.groupby("word", sort=False)["sense"].unique().map(list).to_dict() == senses
    assert (table.groupby(["word", "sense"]).size() == 10).all()
    assert f"{len(table)} short English sentences" in README


REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    with zipfile.ZipFile(folder / python(code, cwd=REPOSITORY).split()[-1]) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def test_holds_code_data_and_licence(wheel):
    names = {p.relative_to(wheel).as_posix() for p in wheel.rglob("*") if p.is_file()}
    package = {
        p.relative_to(REPOSITORY).as_posix()
        for p in (REPOSITORY / "embedtopics").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert package <= names
    assert "embedtopics/data/demo.csv" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "benchmarks", "data/")) for name in names)


def test_the_demo_corpus_travels_inside(wheel, tmp_path):
    code = "from embedtopics._utils.folders import demo_path; print(demo_path())"
    found = python(code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(wheel)})
    found = Path(found.strip())
    assert found == wheel / "embedtopics" / "data" / "demo.csv"
    assert found.read_bytes() == (REPOSITORY / "data" / "demo.csv").read_bytes()
