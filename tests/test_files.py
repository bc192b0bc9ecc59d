from __future__ import annotations

import json

import pytest

from embedtopics._utils.folders import (
    add_unchecked,
    read_manifest,
    replacing_file,
    replacing_folder,
    write_manifest,
)
from embedtopics.errors import CorruptFileError, InputError

KIND = "a test"


def save(folder, content):
    with replacing_folder(folder, KIND) as fresh:
        (fresh / "value.txt").write_text(content)
        write_manifest(fresh, KIND, 1)


def test_replaces_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "a" / "saved"
    save(folder, "one")
    save(folder, "two")
    with (
        pytest.raises(InputError, match="no space"),
        replacing_folder(folder, KIND) as fresh,
    ):
        (fresh / "value.txt").write_text("thr")
        raise OSError(28, "no space")
    with pytest.raises(KeyboardInterrupt), replacing_folder(folder, KIND):
        raise KeyboardInterrupt
    assert (folder / "value.txt").read_text() == "two"
    assert [p.name for p in folder.parent.iterdir()] == ["saved"]
    assert read_manifest(folder, KIND, 1)["version"] == 1


def test_other_files_are_never_replaced(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    (folder / "my notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        save(folder, "two")
    assert (folder / "my notes.txt").read_text() == "mine"


def test_files_that_were_added_may_be_edited_and_are_replaced_with_the_folder(tmp_path):
    folder = tmp_path / "saved"
    save(folder, "one")
    (folder / "README.md").write_text("about")
    add_unchecked(folder, ["README.md"])
    (folder / "README.md").write_text("about, edited")
    assert read_manifest(folder, KIND, 1)["unchecked"] == ["README.md"]
    save(folder, "two")
    assert sorted(p.name for p in folder.iterdir()) == ["manifest.json", "value.txt"]
    bare = tmp_path / "bare"
    bare.mkdir()
    add_unchecked(bare, ["README.md"])
    assert not list(bare.iterdir())


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        save(tmp_path / "file", "one")
    with pytest.raises(InputError, match="is a file"):
        save(tmp_path / "file" / "below", "one")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "value.txt").write_text("onf"), "checksum"),
        (lambda f: (f / "value.txt").unlink(), "missing"),
        (lambda f: (f / "manifest.json").write_text("{"), "damaged"),
        (lambda f: (f / "manifest.json").unlink(), "not saved by"),
    ],
    ids=["changed", "missing", "broken manifest", "no manifest"],
)
def test_damage_is_named(tmp_path, damage, message):
    folder = tmp_path / "saved"
    save(folder, "one")
    damage(folder)
    with pytest.raises(CorruptFileError, match=message):
        read_manifest(folder, KIND, 1)


def test_newer_and_other_kinds_are_refused(tmp_path):
    save(tmp_path / "saved", "one")
    with pytest.raises(CorruptFileError, match="newer"):
        read_manifest(tmp_path / "saved", KIND, 0)
    with pytest.raises(CorruptFileError, match="it holds 'a test'"):
        read_manifest(tmp_path / "saved", "another", 1)
    with pytest.raises(InputError, match="does not exist"):
        read_manifest(tmp_path / "nowhere", KIND, 1)


def test_manifest_is_readable_by_people(tmp_path):
    save(tmp_path / "saved", "one")
    content = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    assert content["files"]["value.txt"]["bytes"] == 3


def test_an_interrupt_while_taking_the_place_leaves_the_old_one(tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    save(folder, "one")
    rename = type(folder).rename

    def interrupted(self, target):
        if self.suffix == ".new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(type(folder), "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(folder, "two")
    assert (folder / "value.txt").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    save(tmp_path / "link", "one")
    save(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target" / "value.txt").read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]


def test_mount_points_and_impossible_names_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="name another folder"):
        save(tmp_path / ("x" * 300), "one")
    monkeypatch.setattr("embedtopics._utils.folders.os.path.ismount", lambda path: path == tmp_path)
    with pytest.raises(InputError, match="mount point"):
        save(tmp_path, "one")


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing_file(path) as fresh:
        fresh.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    with replacing_file(path) as fresh:
        assert fresh.suffix == ".csv"
        fresh.write_text("new")
    assert path.read_text() == "new" and [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    for bad, message in ((tmp_path, "is a folder"), (tmp_path / "a" / "b.csv", "does not exist")):
        with pytest.raises(InputError, match=message), replacing_file(bad):
            pass


def test_a_full_disk_that_safetensors_meets_is_named_like_any_other(tmp_path, monkeypatch):
    import numpy as np
    from safetensors.numpy import save_file

    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    content = {"a": np.zeros(10_000)}
    try:
        with pytest.raises(InputError, match=r"could not write .*File too large.*free some space"):
            with replacing_folder(tmp_path / "new", "thing") as fresh:
                save_file(content, fresh / "a.safetensors")
        with pytest.raises(InputError, match=r"could not write .*File too large"):
            with replacing_file(tmp_path / "b.safetensors") as fresh:
                save_file(content, fresh)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
