"""Every block of the README and of the guides in docs/ runs as it stands there."""

import ast
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import docx
import pandas as pd
import pytest

from embedtopics._utils.folders import demo_path
from embedtopics.corpus.filters._expressions import parse_filter
from embedtopics.training import TrainingSettings, _student, _tokens
from tests.chat_server import said, serving

REPOSITORY = Path(__file__).parents[1]
README = REPOSITORY / "README.md"
GUIDES = sorted((REPOSITORY / "docs").glob("*.md"))
TEXTS = {path.stem: path.read_text("utf-8") for path in [README, *GUIDES]}
ELSEWHERE = ("langchain_core", "llama_index")  # test_retrievers and test_sentence_transformers


def python_blocks(page):
    found = re.findall(r"```python\n(.*?)```", TEXTS[page], re.S)
    return [block for block in found if not any(name in block for name in ELSEWHERE)]


def fill(folder):
    """Write the files that the pages read."""
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo[::2].to_csv(folder / "articles.csv", index=False)
    inferences().to_json(folder / "pairs.jsonl", orient="records", lines=True)
    shutil.copy(REPOSITORY / "data" / "words_in_context.csv", folder)
    plan = re.search(r"```toml\n(.*?)```", TEXTS["after_the_fit"], re.S)[1]
    (folder / "plan.toml").write_text(plan, "utf-8")
    (folder / "treebank.conllu").write_text(treebank(), "utf-8")
    write_judged_queries(folder)
    (folder / "letters").mkdir()
    for name, text in (("Ada_1843", "The engine weaves."), ("Mary_1818", "A ship in the ice.")):
        letter = docx.Document()
        letter.add_paragraph(text)
        letter.save(folder / "letters" / f"{name}.docx")


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
    for module in (_tokens, _student):
        monkeypatch.setattr(module, "plain_vocabulary", few_tokens)


def few_tokens(tokenizer, make=_tokens.plain_vocabulary):
    """Let every tenth token alone be encoded, for all 30,000 take half a minute."""
    whole = make(tokenizer)
    kept = [text if place % 10 == 0 else "" for place, text in enumerate(whole.surfaces)]
    return replace(whole, surfaces=tuple(kept))


ENDPOINT = "http://localhost:8080/v1"


def answer(body, number):
    """Code an article by a word."""
    is_heat = "heat" in body["messages"][1]["content"]
    return said('{"label": "heat pumps"}' if is_heat else '{"label": "other"}')


class Run(NamedTuple):
    """What the blocks of a page left: names, and the statements that made them."""

    names: dict
    statements: set
    folder: Path
    endpoint: str

    def go_on(self, page):
        """Run the blocks of a page; what was said word by word before is not computed again."""
        run = self._replace(names=dict(self.names), statements=set(self.statements))
        for block in python_blocks(page):
            for statement in ast.parse(block.replace(ENDPOINT, self.endpoint)).body:
                source = ast.unparse(statement)
                if source not in run.statements:
                    exec(compile(source, f"{page}: {source[:60]}", "exec"), run.names)
                    run.statements.add(source)
        return run


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    """The README's blocks, run one after the other, in a folder that the other pages share."""
    folder = tmp_path_factory.mktemp("desk")
    fill(folder)
    with pytest.MonkeyPatch.context() as patch, serving(answer) as server:
        patch.chdir(folder)
        few_steps(patch)
        yield Run({}, set(), folder, server.url).go_on("README")


@pytest.mark.slow
@pytest.mark.smoke
def test_python_blocks_of_the_readme_run(readme):
    assert len(python_blocks("README")) == 12
    for name in ("comparison.html", "study.html"):
        assert Path(name).stat().st_size > 50_000
    assert Path("study", "manifest.json").is_file()
    assert Path("my-encoder", "model.safetensors").is_file()
    assert len(readme.names["hits"])


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("page", [page for page in list(TEXTS)[1:] if python_blocks(page)])
def test_python_blocks_of_a_guide_run(readme, page):
    assert readme.go_on(page).statements > readme.statements


def test_every_filter_of_the_table_is_read():
    columns = {
        "year": "integer", "source": "text", "topic": "integer", "title": "text", "date": "date",
        "author": "text", "column with spaces": "integer", "tags": "list", "authors": "list",
    }  # fmt: skip
    table = TEXTS["search"].split("| filter | meaning |")[1].split("\n\n")[0]
    filters = re.findall(r"^\| `(.+?)` \|", table, re.M)
    assert len(filters) == 6
    asked = " ".join(filters)
    for one in filters:
        assert parse_filter(one, columns).text == one
    assert all(name in asked for name in columns)


def test_make_targets_exist():
    for target in re.findall(r"^make ([a-z-]+)", "\n".join(TEXTS.values()), re.M):
        subprocess.run(
            ["make", "--dry-run", target], cwd=REPOSITORY, check=True, capture_output=True
        )


def anchors(path):
    """Return the anchors that a Markdown page gives its headings."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", [README, *GUIDES], ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        target, _, anchor = link.partition("#")
        if not target.startswith("http"):
            other = path.parent / target if target else path
            assert other.exists(), link
            assert not anchor or anchor in anchors(other), link


def test_every_guide_is_in_the_contents():
    trees = re.findall(r"```{toctree}\n(.*?)```", "\n".join(TEXTS.values()), re.S)
    listed = re.findall(r"^(?:.+<)?(\w+)>?$", "\n".join(trees), re.M)
    assert {path.stem for path in GUIDES} - {"index"} == set(listed)


def test_figures_of_the_readme_are_those_of_the_benchmarks():
    measured = (REPOSITORY / "benchmarks" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| [a-z].*?\|(.*)\|$", TEXTS["README"], re.M)
    figures = re.findall(r"-?\d[\d,]*\.?\d*", " ".join(rows))
    assert len(figures) > 15 and not [figure for figure in figures if figure not in measured]
    assert len(TEXTS["README"].splitlines()) <= 250
