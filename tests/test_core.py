"""What a plain installation can do: topics, search and labels without PyTorch."""

import json
import re
import shutil
from importlib.util import find_spec

import pandas as pd
import pytest

from embedtopics._utils.folders import demo_path
from embedtopics.encoders.sentence._loading import PACKAGE, package_folder
from tests.conftest import REPOSITORY
from tests.factories import python

NAMES_EXTRA = re.compile(r'[^\n]+: pip install "embedtopics\[\w+\]"')
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
# `make core-tests` runs these where PyTorch is truly absent; beside it, they are slow.
in_the_core = pytest.mark.slow if find_spec("torch") else lambda test: test


@pytest.fixture
def desk(tmp_path):
    """A folder with a third of the English texts of the demo corpus."""
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo[demo["language"] == "en"][::3].to_csv(tmp_path / "articles.csv", index=False)
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


def test_the_core_needs_no_torch(desk):
    python(HIDE + first_block() + SEARCH + CLASSIFY, cwd=desk)


@in_the_core
def test_a_command_needs_no_torch(desk):
    run = "import runpy\nsys.argv[1:] = ['demo', '--out', 'results']\n"
    run += "runpy.run_module('embedtopics', run_name='__main__')"
    assert "topics" in python(HIDE + run, cwd=desk)
    assert (desk / "results" / "report.html").is_file()


NEEDS_MORE = """
et.SentenceEncoder(backend="torch").encode(["a"])
et.SentenceEncoder(device="cuda").encode(["a"])
et.SentenceEncoder("t5").encode(["a"])
et.encoders.FastTextEncoder().fit(["some words"] * 9)
et.training.fit("all-MiniLM-L6-v2", pairs, out="o")
et.training.fit("all-MiniLM-L6-v2", [(*p, n % 3) for n, p in enumerate(pairs)], kind="nli", out="o")
et.training.fit("all-MiniLM-L6-v2", [(*pair, "c") for pair in pairs], kind="triplets", out="o")
et.encoders.to_sentence_transformer(et.SentenceEncoder())
et.TextClassifier(method="few_shot").fit(texts, codes)
et.TextClassifier(method="fine_tune").fit(texts, codes)
et.TokenClassifier().fit([["a", "b"]] * 9, [["A", "B"]] * 9)
et.TokenClassifier(method="fine_tune").fit([["a", "b"]] * 9, [["A", "B"]] * 9)
et.probing.hidden_states("all-MiniLM-L6-v2", ["a"])
et.probing.hidden_states("all-MiniLM-L6-v2", ["a"], random_weights=True)
et.probing.probe
et.pretraining.pretrain("all-MiniLM-L6-v2", texts, out="o")
et.pretraining.train_tokenizer(texts)
et.pretraining.new_encoder(None, out="o")
et.pretraining.extend_vocabulary("all-MiniLM-L6-v2", ["graphene"], out="o")
et.SearchIndex.build(et.Corpus(texts), "i").search("word", reranker="t5")
"""
COMMANDS = """
train triplets.csv --kind triplets --out o
pretrain articles.csv --text body --out o
pretrain articles.csv --text body --add-words 5 --out o
probe treebank.conllu
classify train triplets.csv --text positive --labels negative --method few_shot --out o
topics articles.csv --text body --encoder t5 --out o
"""


@pytest.fixture
def unusual(desk):
    """A folder with a checkpoint of a family that only transformers reads."""
    model = package_folder(PACKAGE) / "model"
    shutil.copytree(model, desk / "t5", copy_function=shutil.copyfile)
    config = json.loads((model / "config.json").read_text("utf-8"))
    (desk / "t5" / "config.json").write_text(json.dumps({**config, "model_type": "t5"}))
    return desk


@in_the_core
def test_what_needs_more_names_the_extra(unusual):
    code = f"""
import embedtopics as et

texts, codes = [f"word {{n}}" for n in range(40)], [n % 2 for n in range(40)]
pairs = list(zip(texts, texts[1:]))
for line in {NEEDS_MORE.strip().splitlines()}:
    try:
        exec(line)
    except et.errors.MissingExtraError as error:
        print(error)
    else:
        print("ran:", line)
"""
    raised = python(HIDE + code, cwd=unusual).splitlines()
    assert [line for line in raised if not NAMES_EXTRA.fullmatch(line)] == []
    assert len(raised) == len(NEEDS_MORE.strip().splitlines())


@in_the_core
def test_commands_that_need_more_name_the_extra(unusual):
    texts = "\n".join(f"a word,word {n},other {n % 2}" for n in range(40))
    (unusual / "triplets.csv").write_text(f"anchor,positive,negative\n{texts}")
    (unusual / "treebank.conllu").write_text("1\tcat\tcat\tNOUN\tN\t_\t0\troot\t_\t_\n\n")
    code = f"""
import contextlib, runpy
for line in {COMMANDS.strip().splitlines()}:
    sys.argv[1:] = line.split()
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(sys.stdout):
        runpy.run_module("embedtopics", run_name="__main__")
"""
    raised = re.findall("error: (.*)", python(HIDE + code, cwd=unusual))
    assert [line for line in raised if not NAMES_EXTRA.fullmatch(line)] == []
    assert len(raised) == len(COMMANDS.strip().splitlines())
