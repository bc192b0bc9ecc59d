"""Real texts in many languages go from a file to the explorer without an error or a warning."""

import gzip
import json
import warnings
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest

import embedtopics as et

pytestmark = [pytest.mark.benchmark_data, pytest.mark.slow]
MOST_ROWS, MOST_CHARACTERS = 300, 800
ENGLISH, MULTILINGUAL = "all-MiniLM-L6-v2", "multilingual-e5-small"
MEANT = "The encoder"  # begins the only warnings that are meant: of languages and truncation

ENTRIES = (Path(__file__).parent / "sets.txt").read_text("utf-8").splitlines()[1:]
SETS = dict(entry.split(": ") for entry in ENTRIES if ": " in entry)
SCRIPTS = [entry.partition("/")[2] for entry in ENTRIES if entry.startswith("sib200/")]


def read(path, column):
    """Return the first rows of a file, or the sentences of a file of tokens."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        if column in ("form", "token"):
            header, _, body = lines.read().partition("\n")
            place = header.split("\t").index(column)
            parts = [part.strip().split("\n") for part in body.split("\n\n") if part.strip()]
            words = ([line.split("\t")[place] for line in part] for part in parts)
            return pd.DataFrame({column: map(" ".join, words)})
        if path.name.endswith(".tsv.gz"):
            return pd.read_csv(lines, sep="\t", quoting=3, nrows=20_000, dtype=str)
        return pd.DataFrame(map(json.loads, islice(lines, 20_000)))


def goes_through(frame, text, time, group, tmp_path, encoder):
    """Take a frame through every step."""
    frame = frame.iloc[:: max(1, len(frame) // MOST_ROWS)][:MOST_ROWS].reset_index(drop=True)
    frame[text] = frame[text].str.slice(0, MOST_CHARACTERS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MEANT)
        corpus = et.Corpus(frame, text=text, time=time or None, group=group or None)
        seen = et.topics.inspect(corpus, encoder)
        assert seen.n_rows == len(frame) and seen.n_documents > 0
        result = et.TopicModel(encoder, random_state=0).fit(corpus).result_
        table = et.topics.table(result)
        assert len(table) >= result.n_topics
        assert all(topic.name.strip(" ,") not in ("", "no terms") for topic in result.topics)
        if time:
            et.plots.over_time(et.topics.over_time(result))
        if group:
            et.topics.by_group(result)
        result.save(tmp_path / "result")
        loaded = et.TopicResult.load(tmp_path / "result")
        pd.testing.assert_frame_equal(et.topics.table(loaded), table)
        et.report.write_report(result, tmp_path / "explorer.html")
        index = et.SearchIndex.build(corpus, tmp_path / "index", encoder=encoder)
        query = next(value for value in frame[text].dropna() if len(value) > 20)[:80]
        hits = index.search(query, k=5, mode="hybrid")
        assert hits and all(hit.snippet for hit in hits)


@pytest.mark.parametrize("name", SETS)
def test_every_set(name, data_folder, tmp_path):
    text, time, group = SETS[name].split(",")
    frame = read(data_folder / f"{name if '.' in name else name + '.jsonl'}.gz", text)
    if name.startswith("reuters"):  # characters of the wire follow some dates, which are refused
        frame[time] = frame[time].str.partition("&")[0]
    other = name.startswith(
        ("fr_", "gnad", "ud_french", "masakhanews_fra", "multi30k", "stsb", "xnli")
    )
    goes_through(frame, text, time, group, tmp_path, MULTILINGUAL if other else ENGLISH)


@pytest.mark.parametrize("language", SCRIPTS)
def test_scripts(language, data_folder, tmp_path):
    with gzip.open(data_folder / "sib200" / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        frame = pd.DataFrame(map(json.loads, lines))
    if language != "all":
        frame = frame[frame["language"] == language]
    goes_through(frame, "text", "", "label", tmp_path, MULTILINGUAL)
