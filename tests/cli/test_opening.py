"""Every command that only reads takes a folder of results, or the saved model in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedtopics.corpus import Corpus
from embedtopics.topics import save_result
from tests.cli import running
from tests.factories import make_result

COMMANDS = {
    "find": ("river", "--by", "terms"),
    "export": ("--out", "all"),
    "evaluate": (),
    "hierarchy": (),
    "over-time": (),
    "by-group": (),
    "name": ("--endpoint", "http://localhost:9/v1", "--model", "m", "--dry-run"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    result = make_result(90, 3)
    metadata = result.corpus.metadata.assign(half=np.arange(len(result.corpus)) % 2)
    fields = {name: getattr(result.corpus, name) for name in Corpus.__dataclass_fields__}
    corpus = Corpus.of_fields(**fields | {"metadata": metadata, "group_column": "half"})
    save_result(replace(result, corpus=corpus), path / "model")
    return path


def run(command, place, tmp_path):
    options = [str(tmp_path / o) if o == "all" else o for o in COMMANDS[command]]
    return running.run(command, place, *options)


@pytest.mark.parametrize("command", COMMANDS)
def test_results_and_their_model_are_opened_alike(command, folder, tmp_path):
    whole = run(command, folder, tmp_path / "a")
    alone = run(command, folder / "model", tmp_path / "a")
    assert whole.exit_code == alone.exit_code == 0, whole.output + alone.output
    assert whole.output and whole.output == alone.output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_a_model_is_refused_in_one_line(command, tmp_path):
    (tmp_path / "empty" / "model").mkdir(parents=True)
    (tmp_path / "file").write_text("text")
    for place in (tmp_path, tmp_path / "empty", tmp_path / "nowhere", tmp_path / "file"):
        done = run(command, place, tmp_path)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        assert done.exit_code == 2 and len(lines) == 1
        assert lines[0].startswith("error: expected a folder that embedtopics topics or demo wrote")
        assert f"{place} holds no saved model" in lines[0]
