"""``embedtopics classify``: the whole way, as a user goes it."""

import pandas as pd
import pytest

from embedtopics import TextClassifier
from tests.classification.conftest import themed_texts
from tests.cli.running import refused, run


@pytest.fixture(scope="module")
def desk(tmp_path_factory, tiny_bert):
    """A folder with files of labelled texts, and a classifier of them."""
    folder = tmp_path_factory.mktemp("desk")
    texts, themes = themed_texts(160, noise=0.2)
    frame = pd.DataFrame({"text": texts, "theme": themes, "side": ["left", "right"] * 80})
    frame[:80].to_csv(folder / "train.csv", index=False)
    frame[80:].to_csv(folder / "test.csv", index=False)
    sample = frame.assign(theme=frame["theme"].where(frame.index % 3 == 0, ""))
    sample[80:].to_csv(folder / "corpus.csv", index=False)
    done = run("classify", "train", folder / "train.csv", "--labels", "theme", "--encoder",
               tiny_bert, "--out", folder / "model")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "80 labelled texts, 3 classes: chess, fruit, train" in done.stdout
    return folder


def test_a_report_is_printed_and_counted(desk):
    asked = ["classify", "evaluate", desk / "model", desk / "test.csv", "--labels", "theme",
             "--train", desk / "train.csv", "--out"]  # fmt: skip
    first = run(*asked, desk / "scores.csv", columns=100)
    second = run(*asked, desk / "report.html", columns=100)
    assert first.exit_code == 0, first.output
    assert "TF-IDF" in first.stdout and "evaluated on these texts 1 time" in first.stdout
    assert "evaluated on these texts 2 times" in second.stdout and "too high" in second.stdout
    assert {"value", "low", "high"} <= set(pd.read_csv(desk / "scores.csv").columns)
    page = (desk / "report.html").read_text("utf-8")
    for part in ("2 times", "confusion-of-classes", "figure-1", "figure-2",
                 "mislabelled"):  # fmt: skip
        assert part in page


def test_predictions_are_written(desk):
    done = run("classify", "predict", desk / "model", desk / "corpus.csv", "--text", "text",
               "--out", desk / "found.csv")  # fmt: skip
    assert done.exit_code == 0, done.output
    table = pd.read_csv(desk / "found.csv")
    assert len(table) == 80 and set(table["label"]) <= {"chess", "fruit", "train"}


def test_two_columns_are_classified_together(desk, tiny_bert):
    frame = pd.read_csv(desk / "train.csv")
    frame["other"] = frame["text"].shift(1, fill_value="a cat")
    frame.to_csv(desk / "pairs.csv", index=False)
    columns = ("--text", "text,other")
    done = run("classify", "train", desk / "pairs.csv", *columns, "--pairs", "--labels", "side",
               "--encoder", tiny_bert, "--out", desk / "of-pairs")  # fmt: skip
    assert done.exit_code == 0, done.output
    out = desk / "found-pairs.csv"
    done = run("classify", "predict", desk / "of-pairs", desk / "pairs.csv", *columns, "--out", out)
    assert done.exit_code == 0, done.output
    predicted = TextClassifier.load(desk / "of-pairs").predict(frame[["text", "other"]])
    assert pd.read_csv(out)["label"].tolist() == predicted.tolist()


def test_shares_are_printed(desk):
    done = run("classify", "shares", desk / "model", desk / "corpus.csv", "--gold", "theme",
               "--by", "side", "--width", 0.1, "--out", desk / "shares.csv",
               "--figure", desk / "shares.html", columns=100)  # fmt: skip
    assert done.exit_code == 0, done.output
    shares = pd.read_csv(desk / "shares.csv")
    assert shares["n_gold"].sum() == 3 * 27 and "more labels" in done.stdout
    assert ((shares["low"] <= shares["estimate"]) & (shares["estimate"] <= shares["high"])).all()
    without = run("classify", "shares", desk / "model", desk / "corpus.csv", "--text", "text")
    assert without.exit_code == 0 and "prior shift" in without.stdout


def test_bad_input_is_one_line(desk):
    train, model = desk / "train.csv", desk / "model"
    out = ["--out", desk / "other"]
    assert "--labels" in refused("classify", "train", train, "--labels", "topic", *out)
    assert "--method" in refused(
        "classify", "train", train, "--labels", "theme", "--method", "svm", *out
    )
    assert "--classes" in refused(
        "classify", "train", train, "--labels", "theme", "--head", "ordinal", *out
    )
    assert "--every" in refused("classify", "shares", model, desk / "corpus.csv", "--gold",
                                "theme", "--every", "decade")  # fmt: skip
    refused("classify", "predict", desk / "missing", train, *out)
