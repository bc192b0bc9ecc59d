"""Pipes in place of files are refused; nothing waits for what somebody may write into them."""

import os

import pytest

import embedtopics as et
from embedtopics._utils.folders import read_regular
from embedtopics.annotation._sheets import read_sheet
from embedtopics.batch._manifest import make_manifest
from embedtopics.topics.editing._names_file import read_names
from tests.cli.running import refused
from tests.factories import make_result, refuses

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")


@pytest.fixture
def pipe(tmp_path):
    """Make a pipe of some name."""

    def make(name):
        path = tmp_path / name
        os.mkfifo(path)
        return path

    return make


def test_reading_a_pipe_is_an_error(pipe):
    with pytest.raises(OSError, match="is not a regular file"):
        read_regular(pipe("any"))


def test_a_pipe_is_no_sheet(pipe):
    with pytest.raises(et.errors.InputError, match="is not a regular file"):
        read_sheet(pipe("answers.csv"))


def test_a_pipe_is_no_file_of_names(pipe):
    with refuses("names_from"):
        read_names(pipe("names.csv"), make_result(60, 2))


def test_a_pipe_is_no_shard(pipe):
    with refuses("files"):
        make_manifest(pipe("a.jsonl"))


def test_a_pipe_is_no_plan(pipe):
    assert "plan" in refused("run-plan", pipe("plan.toml"))


def test_a_pipe_is_no_codebook(pipe, tmp_path):
    (tmp_path / "texts.csv").write_text("text\nan owl\na cat\n")
    assert "codebook" in refused("annotate", tmp_path / "texts.csv", "--codebook", pipe("a.json"))
