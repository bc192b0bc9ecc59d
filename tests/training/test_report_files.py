"""Reports on disk: every value comes back, and damage is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils.folders import replacing_folder, write_manifest
from embedtopics.errors import CorruptFileError
from embedtopics.training import read_report
from embedtopics.training._report import _plain, _restored, write_report
from tests.factories import refuses
from tests.training.reports import make_report, same


def test_all_values_come_back(tmp_path):
    report = make_report()
    place = write_report(report, tmp_path)
    assert place == tmp_path / "training-report"
    assert same(report, read_report(tmp_path))
    content = (place / "training.json").read_text()
    json.loads(content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (tmp_path / "README.md").read_text("utf-8").startswith("---\n")
    later = make_report(best_step=4)
    write_report(later, tmp_path)
    assert same(later, read_report(tmp_path))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("$number"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_a_setting_holds_comes_back(value):
    text = json.dumps(_plain(value, "value"), allow_nan=False)
    assert same(value, _restored(json.loads(text)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "bool", "uint8"])
def test_arrays_keep_their_type_shape_and_bits(dtype):
    values = np.random.default_rng(0).normal(size=(3, 4)) * 3
    array = np.abs(values).astype(dtype)
    assert same(array, _restored(json.loads(json.dumps(_plain(array, "a")))))
    empty = np.zeros((0, 3), dtype=dtype)
    back = _restored(_plain(empty, "a"))
    assert back.shape == (0, 3) and back.dtype == dtype


def test_what_json_cannot_hold_is_named(tmp_path):
    with refuses("report.settings['loss']"):
        write_report(make_report(settings={"loss": same}), tmp_path)
    assert not list(tmp_path.iterdir())
    endless: dict = {}
    endless["again"] = endless
    with refuses(
        "report.settings['again']['again']['again']['again']['again']['again']['again']['"
    ):
        write_report(make_report(settings=endless), tmp_path)


def damaged(place, edit):
    path = place / "training.json"
    path.write_text(edit(path.read_text()))
    write_manifest(place, "embedtopics training report", 1)


def test_damage_is_told(tmp_path):
    with refuses("folder"):
        write_report(make_report(), tmp_path / "nowhere")
    with refuses("folder"):
        read_report(tmp_path)
    place = write_report(make_report(), tmp_path)
    text = (place / "training.json").read_text()
    (place / "training.json").write_text(text.replace("0.81", "0.91"))
    with pytest.raises(CorruptFileError, match="checksum"):
        read_report(tmp_path)
    # Written by somebody with checksums that fit.
    for edit in (
        lambda t: "[1]",
        lambda t: t.replace('"Curves"', '"Surprise"'),
        lambda t: t.replace('"best_step"', '"worst_step"'),
        lambda t: t.replace('"float64"', '"object"'),
        lambda t: t.replace('"$tuple"', '"$eval"'),
        lambda t: "[" * 100_000,
    ):
        (place / "training.json").write_text(text)
        damaged(place, edit)
        with pytest.raises(CorruptFileError, match=r"damaged|no report"):
            read_report(tmp_path)
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "version": 2}))
    with pytest.raises(CorruptFileError, match="newer"):
        read_report(tmp_path)


def test_a_saved_encoder_with_a_report_can_be_saved_again(tmp_path):
    def save():
        with replacing_folder(tmp_path / "encoder", "an encoder") as fresh:
            (fresh / "weights").write_text("1")
            write_manifest(fresh, "an encoder", 1)

    save()
    write_report(make_report(), tmp_path / "encoder")
    (tmp_path / "encoder" / "README.md").write_text("edited")
    save()
    assert sorted(p.name for p in (tmp_path / "encoder").iterdir()) == ["manifest.json", "weights"]


def test_a_static_encoder_is_read_as_before_when_a_report_lies_in_its_folder(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    from embedtopics.encoders import StaticEncoder

    words = {"[UNK]": 0, "cat": 1, "dog": 2}
    table = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    encoder = StaticEncoder.from_arrays(table, tokenizer)
    encoder.save(tmp_path / "static")
    write_report(make_report(), tmp_path / "static")
    (tmp_path / "static" / "README.md").write_text("edited")
    read = StaticEncoder(Path(tmp_path / "static"))
    assert np.array_equal(read.encode(["cat"]), encoder.encode(["cat"]))


def test_a_report_shows_itself():
    report = make_report()
    assert "\n" not in repr(report) and report.diagnosis.verdict in repr(report)
    assert "1379" in report._repr_html_() and "<script>" not in report._repr_html_()
