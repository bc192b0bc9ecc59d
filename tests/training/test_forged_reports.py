"""Reports whose values have another type are refused by the name of the field."""

import json

import pytest

from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.training import TrainingReport
from embedtopics.training._report import write_report
from tests.training.reports import make_report, same


def forged(tmp_path, change):
    """Write a report that was changed, with a checksum that fits."""
    place = write_report(make_report(), tmp_path)
    content = json.loads((place / "training.json").read_text("utf-8"))
    change(content["fields"])
    (place / "training.json").write_text(json.dumps(content), "utf-8")
    write_manifest(place, "embedtopics training report", 1)
    return tmp_path


def test_a_report_that_is_sealed_again_is_read(tmp_path):
    folder = forged(tmp_path, lambda fields: fields.update(stopped="finished"))
    assert same(TrainingReport.load(folder), make_report(stopped="finished"))


def test_a_report_of_an_earlier_version_lacks_fields_with_a_default(tmp_path):
    folder = forged(tmp_path, lambda fields: [fields.pop("decisions"), fields.pop("versions")])
    report = TrainingReport.load(folder)
    assert report.decisions == () and report.versions == {}


def curves(fields):
    return fields["curves"]["fields"]


def first_change(fields):
    return fields["before_after"]["$tuple"][0]["fields"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("best_step", lambda f: f.update(best_step="2")),
        ("best_step", lambda f: f.update(best_step=True)),
        ("n_steps", lambda f: f.update(n_steps=1.5)),
        ("folder", lambda f: f.update(folder=["a"])),
        ("settings", lambda f: f.update(settings=[])),
        ("versions", lambda f: f.update(versions={"torch": 2})),
        ("before_after", lambda f: f.update(before_after={"$tuple": ["better"]})),
        ("decisions", lambda f: f.update(decisions=[])),
        ("curves", lambda f: f.update(curves=None)),
        ("unknown", lambda f: f.update(unknown=1)),
        ("training_loss", lambda f: curves(f).update(training_loss="low")),
        ("validation_steps", lambda f: curves(f)["validation_steps"].update(dtype="float64")),
        ("n_sample", lambda f: curves(f).update(n_sample="50")),
        ("verdict", lambda f: f["diagnosis"]["fields"].update(verdict=3)),
        ("advice", lambda f: f["diagnosis"]["fields"].update(advice={"$tuple": [1]})),
        ("before", lambda f: first_change(f).update(before="0.8")),
        ("n", lambda f: first_change(f).update(n=None)),
        ("n", lambda f: first_change(f).update(n=10**30)),
        ("n_test_evaluations", lambda f: first_change(f).update(n_test_evaluations=-1)),
        ("before_after", lambda f: f.update(before_after=[])),
        ("before_after", lambda f: f.update(before_after={"$tuple": [f["curves"]]})),
        ("evidence", lambda f: f["diagnosis"]["fields"].update(evidence="gap")),
        ("evidence", lambda f: f["diagnosis"]["fields"].update(evidence=f["before_after"])),
        ("difference", lambda f: first_change(f).pop("difference")),
    ],
)
def test_a_forged_field_is_named(tmp_path, field, change):
    folder = forged(tmp_path, change)
    with pytest.raises(CorruptFileError, match=rf"training\.json is damaged .*\.{field}\b"):
        TrainingReport.load(folder)
