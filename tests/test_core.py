"""What a plain installation can do: topics, search and labels without PyTorch."""

import re

import pandas as pd
import pytest

from embedtopics._utils.folders import demo_path
from tests.conftest import REPOSITORY
from tests.factories import python

# Where the libraries are installed, they are hidden from the interpreter that runs the code.
HIDE = """
import sys
from importlib.machinery import PathFinder

HIDDEN = {"torch", "transformers", "sentence_transformers", "gensim", "conllu"}
find = PathFinder.find_spec
PathFinder.find_spec = classmethod(
    lambda cls, name, *rest: None if name.partition(".")[0] in HIDDEN else find(name, *rest)
)
"""


@pytest.fixture
def desk(tmp_path):
    """A folder with the English texts of the demo corpus."""
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo[demo["language"] == "en"].to_csv(tmp_path / "articles.csv", index=False)
    return tmp_path


def first_block():
    return re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text("utf-8"), re.S)[1]


SEARCH = """
index = et.SearchIndex.build(corpus, "articles.index")
assert len(index.search("cliffs and waves", k=3)) == 3
"""
CLASSIFY = """
classifier = et.TextClassifier().fit(corpus.texts[:60], [n % 2 for n in range(60)])
assert len(classifier.predict(corpus.texts[:3])) == 3
"""


@pytest.mark.parametrize("more", ["", SEARCH, CLASSIFY])
def test_the_core_needs_no_torch(desk, more):
    corpus = 'import embedtopics as et\ncorpus = et.Corpus.from_file("articles.csv", text="body")\n'
    python(HIDE + (corpus + more if more else first_block()), cwd=desk)


def test_a_command_needs_no_torch(desk):
    run = "import runpy\nsys.argv[1:] = ['demo', '--out', 'results']\n"
    run += "runpy.run_module('embedtopics', run_name='__main__')"
    assert "topics" in python(HIDE + run, cwd=desk)
    assert (desk / "results" / "report.html").is_file()


@pytest.mark.parametrize(
    "code",
    [
        'et.SentenceEncoder(runtime="torch").encode(["a"])',
        'et.training.fit_pairs("all-MiniLM-L6-v2", [("a", "b")] * 40, out="o")',
        'et.probing.hidden_states(["a"])',
        'et.FastTextEncoder().fit(["some words"] * 9)',
    ],
)
def test_what_needs_more_names_the_extra(code):
    raised = python(
        HIDE
        + f"import embedtopics as et\ntry:\n    {code}\n"
        + "except et.MissingExtraError as error:\n    print(error)"
    )
    assert re.fullmatch(r'[^\n]+: pip install "embedtopics\[\w+\]"\n', raised)
