"""Every block of the README runs as it stands there."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import embedtopics as et
from embedtopics.corpus._readers import demo_path
from embedtopics.retrieval.filters._parse import parse_filter
from embedtopics.training import TrainingSettings
from embedtopics.training._settings import StudentSettings
from tests.cli import running

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
SHELL = re.findall(r"```(\w*)\n(.*?)```", README, re.S)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the README's articles.csv in it."""
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo.to_csv(tmp_path / "articles.csv", index=False)
    inferences().to_json(tmp_path / "pairs.jsonl", orient="records", lines=True)
    shutil.copy(REPOSITORY / "data" / "words_in_context.csv", tmp_path)
    (tmp_path / "treebank.conllu").write_text(treebank(), "utf-8")
    write_judged_queries(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_judged_queries(folder):
    """Two questions, and the documents of the demo corpus that answer them."""
    queries = {"q1": "trains that are cancelled", "q2": "cliffs that fall into the sea"}
    themes = {"q1": "trains_regionaux", "q2": "coastal_erosion"}
    pd.DataFrame(queries.items(), columns=["id", "text"]).to_csv(
        folder / "queries.csv", index=False
    )
    demo = pd.read_csv(demo_path(), keep_default_na=False)
    lines = [
        f"{query} 0 {document} 1"
        for query, theme in themes.items()
        for document in demo.loc[demo["theme"] == theme, "id"]
    ]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", "utf-8")


def inferences():
    """Enough short premises, each with both kinds of hypotheses, to hold some out."""
    things = "dog cat cow goat hen duck fox owl bee ant bat eel".split()
    colours = "red green blue black white grey brown pink tan gold teal plum beige".split()
    rows = [
        (f"A {colour} {thing}.", hypothesis, name)
        for colour in colours
        for thing in things
        for hypothesis, name in [
            (f"A big {colour} {thing}.", "entailment"),
            (f"No {thing} is {colour}.", "contradiction"),
        ]
    ]
    return pd.DataFrame(rows, columns=["a", "b", "y"])


def treebank():
    """The sentences of words_in_context.csv, each word but the first below the first."""
    table = pd.read_csv(REPOSITORY / "data" / "words_in_context.csv")
    lines = []
    for text, tags in zip(table["text"], table["tags"], strict=True):
        for number, (word, tag) in enumerate(zip(text.split(), tags.split(), strict=True), 1):
            head = "0\troot" if number == 1 else "1\tdep"
            lines.append(f"{number}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def few_steps(monkeypatch):
    """Let training take a few steps, for by its defaults it takes minutes."""
    check = TrainingSettings.__post_init__

    def shorten(settings):
        object.__setattr__(settings, "epochs", min(settings.epochs, 0.2))
        object.__setattr__(settings, "sample_size", 16)
        check(settings)

    monkeypatch.setattr(TrainingSettings, "__post_init__", shorten)
    whole = StudentSettings.__post_init__

    def hurry(settings):
        object.__setattr__(settings, "min_steps", min(settings.min_steps, 40))
        whole(settings)

    monkeypatch.setattr(StudentSettings, "__post_init__", hurry)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [pytest.param("few", marks=pytest.mark.smoke), "all"])
def test_python_blocks_run(desk, monkeypatch, steps):
    if steps == "few":
        few_steps(monkeypatch)
    assert len(PYTHON) == 16
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)
    assert (desk / "report.html").stat().st_size > 100_000
    assert (desk / "my-model" / "manifest.json").is_file()
    assert (desk / "my-static-encoder" / "model.safetensors").is_file()
    assert (desk / "comparison.html").stat().st_size > 100_000
    assert (desk / "my-encoder" / "model.safetensors").is_file()
    assert (desk / "my-student" / "model.safetensors").is_file()
    assert len(names["hits"]) and (desk / "passages.parquet").is_file()
    assert et.retrieval.check(desk / "articles.index") == []


def commands():
    for language, block in SHELL:
        if language:
            continue
        for line in block.splitlines():
            command = line.split("#")[0].strip()
            if command.startswith("embedtopics "):
                yield command


def run(command):
    """Run a command in this process; tests/cli/test_cli.py starts the program itself."""
    return running.run(*shlex.split(command)[1:])


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The results that the README's commands work on."""
    folder = tmp_path_factory.mktemp("results")
    demo = pd.read_csv(demo_path(), keep_default_na=False)
    demo.to_csv(folder / "articles.csv", index=False)
    command = "embedtopics topics {0}/articles.csv --encoder lsa --replicates 3 --out {0}/results"
    done = run(f"{command.format(folder)} --text text --time date --group source")
    assert done.exit_code == 0, done.output
    return folder / "results"


@pytest.fixture(scope="session")
def tuned(tmp_path_factory):
    """The encoder that the README's commands read and evaluate, after a step of training."""
    folder = tmp_path_factory.mktemp("tuned") / "my-encoder"
    rows = inferences()
    pairs = rows[rows["y"] == "entailment"][["a", "b"]].itertuples(index=False, name=None)
    examples = et.training.read_examples(list(pairs), "pairs")
    train, validation = et.training.split(examples, 0.5)
    et.training.fit_pairs(
        "all-MiniLM-L6-v2", train.take(range(32)), validation=validation, out=folder, epochs=1,
        validations_per_epoch=1, sample_size=8, max_length=8, show_progress=False,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def collection(tmp_path_factory):
    """The index that the README's commands search."""
    folder = tmp_path_factory.mktemp("collection")
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    corpus = et.Corpus.from_frame(demo, text="body", id="id", time="date")
    et.SearchIndex.build(corpus, folder / "articles.index", show_progress=False)
    return folder / "articles.index"


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """The classifier that the README's commands use, and a file of labelled texts."""
    folder = tmp_path_factory.mktemp("classifier")
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo = demo[demo["theme"].isin(["heat_pumps", "chess"])].drop_duplicates("body")
    demo["label"] = demo["theme"]
    demo.to_csv(folder / "labelled.csv", index=False)
    model = et.classification.TextClassifier("all-MiniLM-L6-v2")
    model.fit(demo["body"][::2].tolist(), demo["label"][::2].tolist()).save(
        folder / "my-classifier"
    )
    return folder


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.filterwarnings("default")  # a command does not stop at a library's warning
@pytest.mark.parametrize("command", list(commands()))
def test_commands_run(desk, request, monkeypatch, command):
    few_steps(monkeypatch)
    if " results" in command:
        shutil.copytree(request.getfixturevalue("results"), desk / "results")
    if " my-classifier" in command:
        shutil.copytree(request.getfixturevalue("classifier"), desk, dirs_exist_ok=True)
    if " my-encoder" in command and "--out" not in command:
        shutil.copytree(request.getfixturevalue("tuned"), desk / "my-encoder")
        scored = inferences().rename(columns={"a": "sentence1", "b": "sentence2"})
        scored["score"] = (scored.pop("y") == "entailment").astype(int)
        scored.to_csv(desk / "scored.csv", index=False)
    if " articles.index" in command and "--out" not in command:
        shutil.copytree(request.getfixturevalue("collection"), desk / "articles.index")
    done = run(command)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip()


def test_all_commands_are_found():
    assert len(list(commands())) == 30


def test_every_filter_of_the_table_is_read():
    columns = {
        "year": "integer", "source": "text", "topic": "integer", "title": "text", "date": "date",
        "author": "text", "column with spaces": "integer", "tags": "list", "authors": "list",
    }  # fmt: skip
    table = README.split("| filter | meaning |")[1].split("\n\n")[0]
    filters = re.findall(r"^\| `(.+?)` \|", table, re.M)
    assert len(filters) == 6
    asked = " ".join(filters)
    for one in filters:
        assert parse_filter(one, columns).text == one
    assert all(name in asked for name in columns)


def test_make_targets_exist():
    for target in re.findall(r"^make ([a-z-]+)", README, re.M):
        subprocess.run(
            ["make", "--dry-run", target], cwd=REPOSITORY, check=True, capture_output=True
        )


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        if not link.startswith("http"):
            assert (REPOSITORY / link).exists(), link
