"""Topics of the command line that are told beforehand."""

import pandas as pd
import pytest

import embedtopics as et
from tests.cli.running import refused, run


@pytest.fixture
def themes(toy, tmp_path):
    texts, _, themes = toy
    side = ["north" if i % 2 else "south" for i in range(len(texts))]
    number = [-1 if i % 3 else i % 2 for i in range(len(texts))]
    path = tmp_path / "themes.csv"
    frame = pd.DataFrame({"text": texts, "theme": themes, "side": side, "number": number})
    frame.loc[::5, "side"] = None
    frame.to_csv(path, index=False)
    return path


def found(themes, tmp_path, *options):
    out = tmp_path / "out"
    done = run(
        "topics", themes, "--text", "text", "--out", out, "--replicates", 3, *options,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return et.TopicModel.load(out / "model").result_


@pytest.mark.slow
def test_names_become_topics(themes, tmp_path, toy):
    result = found(themes, tmp_path, "--names", "fruit, chess, astronomy")
    anchors = {topic.label: topic.topic_id for topic in result.topics if topic.is_seeded}
    assert set(anchors) == {"fruit", "chess"}
    assert (toy[2][result.labels == anchors["fruit"]] == 0).all()
    assert (toy[2][result.labels == anchors["chess"]] == 2).all()


def test_a_column_of_labels_guides(themes, tmp_path):
    result = found(themes, tmp_path, "--labels", "side", "--encoder", "tfidf")
    assert result.settings["constraints"]["classes"] == ["north", "south"]
    assert result.settings["constraints"]["n_labeled"] == 108


def test_what_became_of_names_is_printed(themes, tmp_path):
    out = tmp_path / "out"
    names = "orchard juice apple, [bold]checkmate rook[/], nowhere"
    options = ("--names", names, "--encoder", "tfidf", "--replicates", 0)
    done = run("topics", themes, "--text", "text", "--out", out, *options)
    assert done.exit_code == 0, done.output
    table, notes = done.stdout.split("note: ", 1)
    assert "orchard juice apple: " in table and "[bold]checkmate rook[/]: " in table
    assert "Texts that match a name: orchard juice apple " in notes
    assert "knows no word of these names, which were left out: nowhere" in notes
    reread = run("resolution", out, "4")
    assert reread.exit_code == 0 and "orchard juice apple: " in reread.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_with_gaps_are_labels(themes, tmp_path, suffix):
    """With gaps pandas makes floats of integers."""
    frame = pd.read_csv(themes)
    frame["number"] = frame["number"].where(frame.index % 4 > 0)
    path = tmp_path / f"gaps.{suffix}"
    getattr(frame, f"to_{suffix}")(path, index=False)
    about = found(path, tmp_path, "--labels", "number", "--encoder", "tfidf").settings[
        "constraints"
    ]
    assert about["classes"] == ["0", "1"]
    assert about["n_labeled"] == sum(i % 3 == 0 and i % 4 > 0 for i in range(135))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--labels", "sides"), "theme, side, number"),
        (("--names", "a", "--labels", "side"), "give one"),
        (("--names", " , "), "at least one name"),
        (("--names", "a,A"), "different"),
    ],
)
def test_bad_guidance_is_one_line(themes, tmp_path, options, message):
    arguments = ("topics", themes, "--text", "text", "--out", tmp_path / "o", *options)
    assert message in refused(*arguments)
