"""Every command of the README and of the guides in docs/ runs as it stands there."""

import re
import shlex
import shutil

import pandas as pd
import pytest

import embedtopics as et
from embedtopics._utils.folders import demo_path
from tests.cli import running
from tests.test_readme import TEXTS, few_steps, fill, inferences


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder of its own with the files that the commands read."""
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands():
    """Return the commands of all pages, each once."""
    blocks = [b for text in TEXTS.values() for b in re.findall(r"```(\w*)\n(.*?)```", text, re.S)]
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    found = [line.split("#")[0].strip() for line in lines]
    return list(dict.fromkeys(line for line in found if line.startswith("embedtopics ")))


def run(command):
    """Run a command in this process; tests/cli/test_cli.py starts the program itself."""
    return running.run(*shlex.split(command)[1:])


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The results that the README's commands work on."""
    folder = tmp_path_factory.mktemp("results")
    demo = pd.read_csv(demo_path(), keep_default_na=False)
    demo.to_csv(folder / "articles.csv", index=False)
    command = "embedtopics topics {0}/articles.csv --encoder lsa --n-replicates 3 --out {0}/results"
    done = run(f"{command.format(folder)} --text text --time date --group source")
    assert done.exit_code == 0, done.output
    return folder / "results"


@pytest.fixture(scope="session")
def collection(tmp_path_factory):
    """The index that the README's commands search."""
    folder = tmp_path_factory.mktemp("collection")
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    corpus = et.Corpus(demo, text="body", id="id", time="date")
    et.SearchIndex.build(corpus, folder / "articles.index", show_progress=False)
    return folder / "articles.index"


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """The trained encoder that the README's commands read."""
    folder = tmp_path_factory.mktemp("encoder")
    fill(folder)
    (train,) = (command for command in commands() if command.startswith("embedtopics train pairs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        few_steps(patch)
        done = run(train)
    assert done.exit_code == 0, done.output
    return folder / "my-encoder"


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """The classifier that the README's commands use, and a file of labelled texts."""
    folder = tmp_path_factory.mktemp("classifier")
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo = demo[demo["theme"].isin(["heat_pumps", "chess"])].drop_duplicates("body")
    demo["label"] = demo["theme"]
    demo.to_csv(folder / "labelled.csv", index=False)
    model = et.TextClassifier("all-MiniLM-L6-v2")
    model.fit(demo["body"][::2].tolist(), demo["label"][::2].tolist()).save(
        folder / "my-classifier"
    )
    return folder


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.filterwarnings("default")  # a command does not stop at a library's warning
@pytest.mark.parametrize("command", commands())
def test_commands_run(desk, request, monkeypatch, command):
    few_steps(monkeypatch)
    if " results" in command:
        shutil.copytree(request.getfixturevalue("results"), desk / "results")
    if " my-classifier" in command:
        shutil.copytree(request.getfixturevalue("classifier"), desk, dirs_exist_ok=True)
    if " my-encoder" in command and "--out" not in command:
        shutil.copytree(request.getfixturevalue("encoder"), desk / "my-encoder")
        scored = inferences().rename(columns={"a": "sentence1", "b": "sentence2"})
        scored["score"] = (scored.pop("y") == "entailment").astype(int)
        scored.to_csv(desk / "scored.csv", index=False)
    if " articles.index" in command and "--out" not in command:
        shutil.copytree(request.getfixturevalue("collection"), desk / "articles.index")
    done = run(command)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip()


def test_all_commands_are_found():
    assert len(commands()) == 39
